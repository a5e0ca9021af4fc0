import { describe, expect, it, type TestContext } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { ChildProgram } from '../support/child-program.ts'

const MAX_COLUMNS = 100
const commandNames = ['serve', 'tail', 'doctor', 'backup', 'restore', 'conform', 'key', 'completion', 'version'] as const
const versionLine = `${packageJson.version} (Node ${process.versions.node})\n`

const stocktape = (context: TestContext, ...args: readonly string[]) => run(context, 'src/main.ts', ...args)

async function run({ onTestFinished }: TestContext, ...command: readonly string[]) {
  // Without the dashes Node itself looks for the file of --env-file.
  const program = new ChildProgram([process.execPath, '--', ...command], { env: { PATH: process.env.PATH } })
  onTestFinished(() => program.kill())
  const code = await program.waitForExit()
  return { code, stdout: program.stdout, stderr: program.stderr }
}

describe.concurrent('stocktape', () => {
  it.for([[['--help']], [['-h']], [['help']]])(
    'lists its commands for %j, and leaves the settings to serve --help',
    async ([args = []], context) => {
      const { code, stdout, stderr } = await stocktape(context, ...args)
      expect([code, stderr]).toEqual([0, ''])
      for (const command of ['serve', 'tail', 'doctor', 'version']) expect(stdout).toMatch(new RegExp(`^  ${command} {2,}\\w`, 'm'))
      expect(stdout).toContain('stocktape serve --help')
      expect(stdout).not.toContain('PENDING_POLL')
    },
  )

  it.for([
    [['help', 'tail'], /^stocktape tail SYMBOL/],
    [['tail', '--help'], /^stocktape tail SYMBOL/],
    [['help', 'doctor'], /^stocktape doctor \[--rpc /],
    [['help', 'serve'], /^stocktape \[serve\] \[--SETTING VALUE/],
    [['--port', '1', '--help'], /^stocktape \[serve\] \[--SETTING VALUE/],
  ] as const)('answers %j', async ([args, text], context) => {
    const { code, stdout, stderr } = await stocktape(context, ...args)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(text)
  })

  it.for([
    ...['--version', '-V', 'version'].map((word) => [word]),
    ...commandNames.flatMap((command) => [
      [command, '--version'],
      [command, '-V'],
    ]),
  ])('prints the versions of itself and of Node for %j', async (args, context) => {
    expect(await stocktape(context, ...args)).toEqual({ code: 0, stdout: versionLine, stderr: '' })
  })

  it.for([
    ...commandNames.map((command) => ['src/main.ts', command]),
    ...['src/main.ts', 'src/devnet/main.ts', 'test/simulation/run-simulations.ts', 'test/bench/run-benchmarks.ts'].map((file) => [
      file,
    ]),
  ])(`explains %j in lines of at most ${MAX_COLUMNS} columns`, async (command, context) => {
    const { code, stdout, stderr } = await run(context, ...command, '--help')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout.split('\n').filter((line) => line.length > MAX_COLUMNS)).toEqual([])
  })

  it.for([
    [['tial'], "stocktape: 'tial' is not a command. Did you mean tail? Try --help.\n"],
    [['AAPLc'], "stocktape: 'AAPLc' is not a command. Try --help.\n"],
    [['help', 'srve'], "stocktape: 'srve' is not a command. Did you mean serve? Try --help.\n"],
    [['constructor'], "stocktape: 'constructor' is not a command. Try --help.\n"],
    [['doctor', '--rcp=1'], "stocktape doctor: '--rcp' is not a flag. Did you mean --rpc? Try --help.\n"],
    [['--prot=1'], "stocktape: '--prot' is not a flag. Did you mean --port? Try --help.\n"],
    [['serve', '--prot=1'], "stocktape: '--prot' is not a flag. Did you mean --port? Try --help.\n"],
    [['serve', 'tail'], "stocktape: 'tail' is not a flag. Try --help.\n"],
    [['-v'], "stocktape: '-v' is not a flag. Did you mean -V? Try --help.\n"],
    [['backup'], 'stocktape backup: name one file. Try --help.\n'],
    [['tail', '-v'], "stocktape tail: '-v' is not a flag. Did you mean -V? Try --help.\n"],
    [['--clients-bound', '5'], 'stocktape: --clients-bound is now --max-clients\n'],
    [['--demo', 'false'], expect.stringMatching(/^stocktape: no upstream is set, and DEMO is false: [^\n]*\n$/)],
    [['--network=base', '--env-file=/nowhere'], 'stocktape: --env-file names a file that cannot be read (ENOENT): "/nowhere"\n'],
    [['doctor', '--env-file', '/nowhere'], 'stocktape doctor: --env-file names a file that cannot be read (ENOENT): "/nowhere"\n'],
  ] as const)('reports the mistake of %j in one line and exits with code 2', async ([args, line], context) => {
    expect(await stocktape(context, ...args)).toEqual({ code: 2, stdout: '', stderr: line })
  })

  it.for([
    ['20.19.5', 2],
    ['22.9.0', 2],
    ['22.18.0', 0],
    ['26.0.0', 0],
  ] as const)('on Node %s ends with %i', async ([version, expected], { onTestFinished }) => {
    const pretended = `Object.defineProperty(process.versions, 'node', { value: '${version}' })`
    const preload = ['--import', `data:text/javascript,${encodeURIComponent(pretended)}`]
    const program = new ChildProgram([process.execPath, ...preload, 'src/main.ts', '--version'], {
      env: { PATH: process.env.PATH },
    })
    onTestFinished(() => program.kill())
    expect(await program.waitForExit()).toBe(expected)
    const needed = packageJson.engines.node.replace('>=', '')
    expect(program.stderr).toBe(expected === 0 ? '' : `stocktape: Node ${needed} or later is needed, and this is ${version}\n`)
  })
})
