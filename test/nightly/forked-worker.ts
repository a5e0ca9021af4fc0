import { type ChildProcess, fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { TestLifecycle } from '../e2e/slow/deployed-relay.ts'
import { pinToCore } from '../support/cpu-cores.ts'

const dockerfile = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8')
const [command] = dockerfile.match(/(?<=^CMD ).+/m) ?? ['[]']

/** Those of the image's Node. Its young generation is small: a larger one is collected in longer pauses. */
export const imageFlags: string[] = JSON.parse(command).filter((part: string) => part.startsWith('--'))
if (imageFlags.length === 0) throw new Error('the Dockerfile starts Node without flags')

/** A script in a process of its own. It runs one command after the other and reports on each. */
export class ForkedWorker<Order extends { readonly do: string }, Report extends { readonly done: string }> {
  readonly #child: ChildProcess

  constructor(test: TestLifecycle, script: URL, execArgv: string[] = []) {
    this.#child = fork(fileURLToPath(script), { execArgv })
    test.onTestFinished(() => void this.#child.kill('SIGKILL'))
  }

  /** Leaves the other core to the relay. */
  pin(): void {
    if (this.#child.pid !== undefined) pinToCore(this.#child.pid, 'world')
  }

  async command<Name extends Order['do'] & Report['done']>(
    command: Extract<Order, { do: Name }>,
  ): Promise<Extract<Report, { done: Name }>> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const fail = () => reject(new Error(`the process that should ${command.do} has ended`))
    this.#child.once('message', resolve).once('exit', fail)
    this.#child.send(command)
    const report = await promise
    this.#child.off('exit', fail)
    return report as Extract<Report, { done: Name }>
  }
}
