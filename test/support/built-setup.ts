import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Builds the program once for all files of the project. */
export default function setup(): void {
  execFileSync('npm', ['run', '--silent', 'bundle'], { cwd: fileURLToPath(new URL('../..', import.meta.url)), stdio: 'inherit' })
}
