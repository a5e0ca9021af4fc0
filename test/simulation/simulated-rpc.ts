import type { RequestFn } from '../../src/chain/rpc/client.ts'
import { UpstreamError } from '../../src/chain/rpc/error.ts'
import { waitOn } from '../support/virtual-time.ts'
import type { ActiveFaults } from './active-faults.ts'
import { SeededRandom } from './seeded-random.ts'
import type { SimulatedNode } from './simulated-node.ts'
import type { Settings } from './simulation-settings.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** The real client's values: backoff after a failure, and the deadline of a request. */
const MIN_BACKOFF_MS = 250
const MAX_BACKOFF_MS = 30_000
const DEADLINE_MS = 5_000
const SECOND_MS = 1_000

type Options = {
  readonly settings: Settings
  readonly clock: VirtualClock
  readonly activeFaults: ActiveFaults
  readonly node: SimulatedNode
}

/** What the node answers, and after how long. */
type RequestOutcome = { readonly afterMs: number; readonly answer: unknown; readonly failure: unknown }

/** A value of another type than the method returns. */
const wrongAnswer = (random: SeededRandom, method: string): unknown =>
  random.pick<unknown>(method === 'eth_getLogs' ? [null, 'logs', 42, {}] : ['answer', 42, [], { number: 7 }])

/** The way to the node and back: slow, broken, or blocked for a while after each failure, as in `RpcClient`. */
export class SimulatedRpc {
  readonly #options: Options
  readonly #requestTimes: number[] = []
  #requestCount = 0
  #failures = 0
  #backoffUntil = 0
  readonly #pendingRequests = new Set<{ readonly signal: AbortSignal | undefined }>()

  constructor(options: Options) {
    this.#options = options
  }

  readonly request: RequestFn = async (method, params, signal) => {
    const { clock, settings } = this.#options
    this.#requestCount += 1
    const random = new SeededRandom(settings.seed, 'question', this.#requestCount)
    this.#requestTimes.push(clock.elapsedMs)
    if (clock.elapsedMs < this.#backoffUntil) throw new UpstreamError('unreachable', 'every endpoint failed just now')
    const halfway = (settings.latencyMs * (0.5 + random.next())) / 2
    const pending = { signal }
    this.#pendingRequests.add(pending)
    try {
      await waitOn(clock, halfway, signal)
      const { afterMs, answer, failure } = this.#answerAtNode(random, method, params)
      await waitOn(clock, afterMs + halfway, signal)
      if (failure !== null) throw failure
      this.#failures = 0
      return answer
    } catch (failure) {
      this.#backOff(failure, random)
      throw failure
    } finally {
      this.#pendingRequests.delete(pending)
    }
  }

  get inFlight(): number {
    return [...this.#pendingRequests].filter(({ signal }) => !signal?.aborted).length
  }

  get requestCount(): number {
    return this.#requestCount
  }

  /** Requests of the last second, including those that the backoff refused. */
  requestsLastSecond(): number {
    const since = this.#options.clock.elapsedMs - SECOND_MS
    while (this.#requestTimes[0] !== undefined && this.#requestTimes[0] < since) this.#requestTimes.shift()
    return this.#requestTimes.length
  }

  #answerAtNode(random: SeededRandom, method: string, params: readonly unknown[]): RequestOutcome {
    const { settings, activeFaults, node } = this.#options
    const rolls = [random.next() * 100, random.next() * 100, random.next() * 100] as const
    // A relay that cannot ask for a block by its hash cannot tell which machine of a name answers.
    const uneven = random.chance(50) && settings.byHash ? activeFaults.amount('halfTheNodesLag') : null
    const fails = (failure: UpstreamError, afterMs = 0): RequestOutcome => ({ afterMs, answer: null, failure })
    if (activeFaults.isActive('unreachable')) return fails(new UpstreamError('unreachable', 'connection refused'))
    if (rolls[0] < (activeFaults.amount('flaky') ?? 0)) return fails(new UpstreamError('unreachable', 'HTTP 502'))
    if (rolls[1] < (activeFaults.amount('htmlAnswers') ?? 0)) return fails(new UpstreamError('unreadable', 'not JSON-RPC'))
    const backoffMs = activeFaults.amount('rateLimited')
    if (backoffMs !== null) return fails(new UpstreamError('busy', 'HTTP 429', backoffMs * SECOND_MS))
    if (rolls[2] < (activeFaults.amount('hangingAnswers') ?? 0))
      return fails(new UpstreamError('unreachable', 'The operation was aborted due to timeout'), DEADLINE_MS)
    const behindMs = Math.max(activeFaults.amount('nodeLags') ?? 0, uneven ?? 0)
    const afterMs = activeFaults.amount('slowAnswers') ?? 0
    try {
      const answer = node.answer(method, params, behindMs)
      const isWrong = random.fork('wrong').chance(activeFaults.amount('wrongAnswers') ?? 0)
      return { afterMs, answer: isWrong ? wrongAnswer(random.fork('shape'), method) : answer, failure: null }
    } catch (failure) {
      return { afterMs, answer: null, failure }
    }
  }

  #backOff(failure: unknown, random: SeededRandom): void {
    if (!(failure instanceof UpstreamError) || !failure.isRetryable || failure.isRequestSpecific) return
    const { clock } = this.#options
    const backoffMs = Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** Math.min(this.#failures, 16)) * (0.5 + random.next())
    this.#failures += 1
    this.#backoffUntil = clock.elapsedMs + Math.max(backoffMs, failure.retryAfterMs ?? 0)
  }
}
