import { concatMap, defer, finalize, map, tap, throwError, timer } from 'rxjs'
import type { RequestFn } from '../../src/chain/rpc/client.ts'
import { UpstreamError } from '../../src/chain/rpc/error.ts'
import type { ActiveFaults } from './active-faults.ts'
import { SeededRandom } from './seeded-random.ts'
import type { SimulatedNode } from './simulated-node.ts'
import type { Settings } from './simulation-settings.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** As the real one: how long a failing endpoint is left alone, and how long one question may take. */
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

/** What comes of a question once it has reached the node, and how long that takes. */
type RequestOutcome = { readonly afterMs: number; readonly answer: unknown; readonly failure: unknown }

/** The way to the node and back: slow, broken, or closed for a while after each failure, as `Rpc` does. */
export class SimulatedRpc {
  readonly #options: Options
  readonly #requestTimes: number[] = []
  #requestCount = 0
  #failures = 0
  #backoffUntil = 0
  inFlight = 0

  constructor(options: Options) {
    this.#options = options
  }

  readonly request: RequestFn = (method, params) =>
    defer(() => {
      const { clock, settings } = this.#options
      this.#requestCount += 1
      const index = this.#requestCount
      this.#requestTimes.push(clock.elapsedMs)
      if (clock.elapsedMs < this.#backoffUntil)
        return throwError(() => new UpstreamError('unreachable', 'every endpoint failed just now'))
      const random = new SeededRandom(settings.seed, 'question', index)
      const halfway = (settings.latencyMs * (0.5 + random.next())) / 2
      this.inFlight += 1
      return timer(halfway, clock).pipe(
        map(() => this.#answerAtNode(random, method, params)),
        concatMap(({ afterMs, answer, failure }) =>
          timer(afterMs + halfway, clock).pipe(
            map(() => {
              if (failure !== null) throw failure
              return answer
            }),
          ),
        ),
        tap({
          next: () => {
            this.#failures = 0
          },
          error: (failure: unknown) => this.#backOff(failure, random),
        }),
        finalize(() => {
          this.inFlight -= 1
        }),
      )
    })

  get requestCount(): number {
    return this.#requestCount
  }

  /** How many questions were asked in the last second, those that were turned away at once included. */
  requestsLastSecond(): number {
    const since = this.#options.clock.elapsedMs - SECOND_MS
    while (this.#requestTimes[0] !== undefined && this.#requestTimes[0] < since) this.#requestTimes.shift()
    return this.#requestTimes.length
  }

  #answerAtNode(random: SeededRandom, method: string, params: readonly unknown[]): RequestOutcome {
    const { settings, activeFaults, node } = this.#options
    const rolls = [random.next() * 100, random.next() * 100, random.next() * 100] as const
    // Where a block cannot be asked for by its hash, nothing tells one machine behind a name from another.
    const uneven = random.chance(50) && settings.byHash ? activeFaults.amount('uneven') : null
    const fails = (failure: UpstreamError, afterMs = 0): RequestOutcome => ({ afterMs, answer: null, failure })
    if (activeFaults.isActive('unreachable')) return fails(new UpstreamError('unreachable', 'connection refused'))
    if (rolls[0] < (activeFaults.amount('flaky') ?? 0)) return fails(new UpstreamError('unreachable', 'HTTP 502'))
    if (rolls[1] < (activeFaults.amount('html') ?? 0)) return fails(new UpstreamError('unreadable', 'not JSON-RPC'))
    const backoffMs = activeFaults.amount('busy')
    if (backoffMs !== null) return fails(new UpstreamError('busy', 'HTTP 429', backoffMs * SECOND_MS))
    if (rolls[2] < (activeFaults.amount('stalled') ?? 0))
      return fails(new UpstreamError('unreachable', 'The operation was aborted due to timeout'), DEADLINE_MS)
    const behindMs = Math.max(activeFaults.amount('lagging') ?? 0, uneven ?? 0)
    const afterMs = activeFaults.amount('slow') ?? 0
    try {
      return { afterMs, answer: node.answer(method, params, behindMs), failure: null }
    } catch (failure) {
      return { afterMs, answer: null, failure }
    }
  }

  #backOff(failure: unknown, random: SeededRandom): void {
    if (!(failure instanceof UpstreamError) || !failure.isRetryable || failure.isRequestSpecific) return
    const { clock } = this.#options
    const backoffMs =
      Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** Math.min(this.#failures, 16)) * (0.5 + random.next())
    this.#failures += 1
    this.#backoffUntil = clock.elapsedMs + Math.max(backoffMs, failure.retryAfterMs ?? 0)
  }
}
