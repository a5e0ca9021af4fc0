import { setImmediate as nextTurn } from 'node:timers/promises'
import { Observable } from 'rxjs'
import type { Pass } from '../../../src/chain/rpc/client.ts'
import type { Heard } from '../../../src/chain/source/source.ts'
import { Answers } from '../../../src/gateway/answers.ts'
import { readQuestion } from '../../../src/gateway/call.ts'
import { Moment } from '../../../src/gateway/chain-state.ts'
import { hiding } from '../../../src/gateway/redact.ts'
import { Fault } from '../../../src/gateway/rpc-error.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import { hashOf, headed, logOf, preconfirmed } from './log-feed-fixture.ts'

/** What is heard of the chain, each as the source says it. */
export const heard = {
  head: (sealed: number, hash: Hex = hashOf(sealed)): Heard => ({ ...headed(sealed), hash }) as Heard,
  building: (pending: number): Heard => ({ type: 'head', sealed: null, pending, timestamp: null }),
  log: (block: number): Heard => preconfirmed(logOf({ block })),
  sealed: (number: number, hash: Hex = hashOf(number)): Heard => {
    const block = { number, hash, timestamp: null, logs: [], asked: [], via: 'sealed' as const }
    return { type: 'sealed', blocks: [block], newest: number, cursor: { number, hash } }
  },
  hearing: { type: 'status', source: 'pendingLogs', reason: 'ok' } as Heard,
  deaf: { type: 'status', source: 'down', reason: 'unreachable' } as Heard,
  doubted: (from: number): Heard => ({ type: 'doubted', from }),
  finality: (stage: 'safe' | 'finalized', number: number): Heard => ({
    type: 'finality',
    stage,
    block: { number, hash: hashOf(number), parentHash: null, timestamp: null, gasUsed: null, transactions: null },
  }),
}

/** A question as it came to the node, which answers when the test says so. */
export type Passed = {
  readonly method: string
  readonly params: readonly unknown[]
  readonly give: (result: unknown) => Promise<void>
  readonly fail: (failure: Error) => Promise<void>
}

type Given = {
  readonly head?: number | null
  readonly chainId?: number | null
  /** The upstream's, which nobody may read. */
  readonly urls?: readonly string[]
  /** Whether somebody else serves what public endpoints refuse. */
  readonly receipts?: boolean
  readonly moment?: Moment
}

/** Answers over a node, a clock and a chain that are all moved by hand. */
export function answering({
  head = 1_000,
  chainId = null,
  urls = [],
  receipts = false,
  moment = new Moment(),
}: Given = {}) {
  const clock = { uptime: 0 }
  if (head !== null) for (const news of [heard.sealed(head - 1), heard.head(head), heard.hearing]) moment.hear(news)
  const [passed, passedToOther] = [[] as Passed[], [] as Passed[]]
  const passing =
    (to: Passed[]): Pass =>
    (method, params) =>
      new Observable((asker) => {
        const give = (result: unknown) => {
          asker.next(Buffer.from(JSON.stringify(result)))
          asker.complete()
          return nextTurn()
        }
        const fail = (failure: Error) => {
          asker.error(failure)
          return nextTurn()
        }
        to.push({ method, params, give, fail })
      })
  const answers = new Answers({
    pass: passing(passed),
    receipts: receipts ? passing(passedToOther) : null,
    moment,
    chainId: () => chainId,
    hide: hiding(urls),
    uptime: () => clock.uptime,
  })
  const ask = async (method: string, ...params: readonly unknown[]): Promise<string> =>
    String(await answers.answer(readQuestion(method, params, moment)))
  /** Asks, and lets the node answer at once where it is asked; whether it was. */
  const asksAnew = async (question: readonly [method: string, ...params: unknown[]], result: unknown) => {
    const before = passed.length
    const answer = ask(...question)
    await nextTurn()
    await passed[before]?.give(result)
    await answer
    return passed.length > before
  }
  return { clock, moment, answers, passed, passedToOther, ask, asksAnew }
}

/** What is said instead of an answer. */
export const faultOf = (answer: Promise<unknown>): Promise<Fault> =>
  answer.then(
    (given) => new Fault(0, `an answer: ${String(given)}`),
    (failure: unknown) => (failure instanceof Fault ? failure : new Fault(0, `no fault: ${String(failure)}`)),
  )
