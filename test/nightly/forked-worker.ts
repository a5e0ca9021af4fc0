import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Test } from '../e2e/slow/deployed-relay.ts'

/** One of our own scripts in a process of its own, which carries out orders one after the other and reports on each. */
export class Child<Order extends { readonly do: string }, Report extends { readonly done: string }> {
  readonly #child: ChildProcess

  constructor(test: Test, script: URL) {
    this.#child = fork(fileURLToPath(script), { execArgv: [] })
    test.onTestFinished(() => void this.#child.kill('SIGKILL'))
  }

  async order<Name extends Order['do'] & Report['done']>(
    order: Extract<Order, { do: Name }>,
  ): Promise<Extract<Report, { done: Name }>> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const fail = () => reject(new Error(`the process that should ${order.do} has ended`))
    this.#child.once('message', resolve).once('exit', fail)
    this.#child.send(order)
    const report = await promise
    this.#child.off('exit', fail)
    return report as Extract<Report, { done: Name }>
  }
}
