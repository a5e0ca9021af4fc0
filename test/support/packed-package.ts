import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ChildProgram } from './child-program.ts'

export const repositoryRoot = fileURLToPath(new URL('../..', import.meta.url))

/** A folder with nothing but the package, as npm installs it from the packed tarball. */
export class PackedPackage {
  readonly folder = mkdtempSync(join(tmpdir(), 'stocktape-packed-'))
  readonly root = join(this.folder, 'node_modules/stocktape')

  constructor() {
    execFileSync('npm', ['run', '--silent', 'build'], { cwd: repositoryRoot })
    const pack = ['pack', '--silent', '--pack-destination', this.folder, './dist']
    const tarball = execFileSync('npm', pack, { cwd: repositoryRoot, encoding: 'utf8' }).trim()
    writeFileSync(join(this.folder, 'package.json'), '{"type":"module"}')
    const install = ['install', tarball, '--prefer-offline', '--no-audit', '--no-fund']
    execFileSync('npm', install, { cwd: this.folder, stdio: 'pipe' })
  }

  /** Starts a program in the folder. */
  spawn(...command: readonly [string, ...string[]]): ChildProgram {
    return new ChildProgram(command, { cwd: this.folder, env: { PATH: process.env.PATH, HOME: process.env.HOME } })
  }

  /** What the program of the package prints, once it has ended. */
  async run(...args: readonly string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const program = this.spawn('npx', 'stocktape', ...args)
    const code = await program.waitForExit()
    // What npm says about the settings of this machine is not ours.
    return { code, stdout: program.stdout, stderr: program.stderr.replaceAll(/^npm warn .*\n/gm, '') }
  }

  /** Writes files and returns the mistakes that the compiler finds in them. */
  typeMistakes(sources: Readonly<Record<string, string>>, ...flags: readonly string[]): string {
    for (const [name, source] of Object.entries(sources)) writeFileSync(join(this.folder, name), source)
    const tsc = join(repositoryRoot, 'node_modules/typescript/bin/tsc')
    const options = ['--strict', '--noEmit', '--target', 'es2022', '--module', 'nodenext', ...flags]
    try {
      execFileSync(process.execPath, [tsc, ...options, ...Object.keys(sources)], { cwd: this.folder, encoding: 'utf8' })
      return ''
    } catch (failure) {
      return String(failure instanceof Error && 'stdout' in failure ? failure.stdout : failure)
    }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}
