import type { SchedulerLike } from 'rxjs'
import type { Hex } from '../../../../../src/lib/hex.ts'
import type { RequestFn } from '../../../../../src/relay/chain/rpc/endpoint-pool.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { waitOn } from '../../../../support/virtual-time.ts'

export const UI_MULTIPLIER = '0xa60bf13d'
export const MULTIPLIER = '0x1b3ed722'
export const NEW_UI_MULTIPLIER = '0xdc767007'
export const EFFECTIVE_AT = '0x97a4064f'
export const PAUSED_FEATURES = '0xde9997e3'
export const AGGREGATOR = '0x245a7bfc'
export const PHASE_ID = '0x58303b10'
export const DECIMALS = '0x313ce567'
export const LATEST_ROUND_DATA = '0xfeaf968c'

const reverted = new UpstreamError('reverted', '3 execution reverted')

/** Contracts behind a node. Each call gets its scripted answer, or reverts. */
export class FakeContracts {
  /** Every request: selector or method, target and block. */
  readonly requests: string[] = []
  /** Answers of methods other than eth_call. */
  readonly otherAnswers = new Map<string, unknown>()
  /** Thrown instead of an answer. */
  failure: UpstreamError | null = null
  delayMs = 0
  inFlight = 0
  mostInFlight = 0
  readonly #answers = new Map<string, unknown>()
  readonly #clock: SchedulerLike | null

  constructor(clock: SchedulerLike | null = null) {
    this.#clock = clock
  }

  setAnswers(address: Hex, answers: Readonly<Record<string, unknown>>): void {
    for (const [selector, answer] of Object.entries(answers)) this.#answers.set(`${selector} ${address}`, answer)
  }

  readonly request: RequestFn = async (method, params, signal) => {
    const [first, second, third] = params as readonly [unknown, unknown, unknown]
    const call = method === 'eth_call' ? (first as { to: Hex; data: Hex }) : null
    this.requests.push(call ? `${call.data} ${call.to} ${second}` : [method, first, second, third].join(' ').trim())
    this.inFlight += 1
    this.mostInFlight = Math.max(this.mostInFlight, this.inFlight)
    try {
      if (this.#clock) await waitOn(this.#clock, this.delayMs, signal)
    } finally {
      this.inFlight -= 1
    }
    if (call && this.failure) throw this.failure
    const key = call ? `${call.data} ${call.to}` : method
    const answers = call ? this.#answers : this.otherAnswers
    const answer = answers.has(key) || !call ? answers.get(key) : reverted
    if (answer instanceof Error) throw answer
    return answer
  }
}
