import { concatMap, defer, finalize, map, tap, throwError, timer } from 'rxjs'
import type { Ask } from '../../src/chain/rpc/client.ts'
import { UpstreamError } from '../../src/chain/rpc/error.ts'
import type { Weather } from './active-faults.ts'
import { Dice } from './seeded-random.ts'
import type { NodeModel } from './simulated-node.ts'
import type { Settings } from './simulation-settings.ts'
import type { Clock } from './virtual-clock.ts'

/** As the real one: how long a failing endpoint is left alone, and how long one question may take. */
const REST_LEAST_MS = 250
const REST_MOST_MS = 30_000
const DEADLINE_MS = 5_000
const SECOND_MS = 1_000

type Options = {
  readonly settings: Settings
  readonly clock: Clock
  readonly weather: Weather
  readonly node: NodeModel
}

/** What comes of a question once it has reached the node, and how long that takes. */
type Outcome = { readonly afterMs: number; readonly answer: unknown; readonly failure: unknown }

/** The way to the node and back: slow, broken, or closed for a while after each failure, as `Rpc` does. */
export class Way {
  readonly #options: Options
  readonly #askedAt: number[] = []
  #count = 0
  #failures = 0
  #restUntil = 0
  inFlight = 0

  constructor(options: Options) {
    this.#options = options
  }

  readonly ask: Ask = (method, params) =>
    defer(() => {
      const { clock, settings } = this.#options
      this.#count += 1
      const nth = this.#count
      this.#askedAt.push(clock.frame)
      if (clock.frame < this.#restUntil)
        return throwError(() => new UpstreamError('unreachable', 'every endpoint failed just now'))
      const dice = new Dice(settings.seed, 'question', nth)
      const halfway = (settings.latencyMs * (0.5 + dice.roll())) / 2
      this.inFlight += 1
      return timer(halfway, clock).pipe(
        map(() => this.#arrive(dice, method, params)),
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
          error: (failure: unknown) => this.#rest(failure, dice),
        }),
        finalize(() => {
          this.inFlight -= 1
        }),
      )
    })

  get count(): number {
    return this.#count
  }

  /** How many questions were asked in the last second, those that were turned away at once included. */
  lately(): number {
    const since = this.#options.clock.frame - SECOND_MS
    while (this.#askedAt[0] !== undefined && this.#askedAt[0] < since) this.#askedAt.shift()
    return this.#askedAt.length
  }

  #arrive(dice: Dice, method: string, params: readonly unknown[]): Outcome {
    const { settings, weather, node } = this.#options
    const strikes = [dice.roll() * 100, dice.roll() * 100, dice.roll() * 100] as const
    // Where a block cannot be asked for by its hash, nothing tells one machine behind a name from another.
    const uneven = dice.chance(50) && settings.byHash ? weather.amount('uneven') : null
    const fails = (failure: UpstreamError, afterMs = 0): Outcome => ({ afterMs, answer: null, failure })
    if (weather.is('unreachable')) return fails(new UpstreamError('unreachable', 'connection refused'))
    if (strikes[0] < (weather.amount('flaky') ?? 0)) return fails(new UpstreamError('unreachable', 'HTTP 502'))
    if (strikes[1] < (weather.amount('html') ?? 0)) return fails(new UpstreamError('unreadable', 'not JSON-RPC'))
    const rest = weather.amount('busy')
    if (rest !== null) return fails(new UpstreamError('busy', 'HTTP 429', rest * SECOND_MS))
    if (strikes[2] < (weather.amount('stalled') ?? 0))
      return fails(new UpstreamError('unreachable', 'The operation was aborted due to timeout'), DEADLINE_MS)
    const behindMs = Math.max(weather.amount('lagging') ?? 0, uneven ?? 0)
    const afterMs = weather.amount('slow') ?? 0
    try {
      return { afterMs, answer: node.answer(method, params, behindMs), failure: null }
    } catch (failure) {
      return { afterMs, answer: null, failure }
    }
  }

  #rest(failure: unknown, dice: Dice): void {
    if (!(failure instanceof UpstreamError) || !failure.passing || failure.ofQuestion) return
    const { clock } = this.#options
    const rest = Math.min(REST_MOST_MS, REST_LEAST_MS * 2 ** Math.min(this.#failures, 16)) * (0.5 + dice.roll())
    this.#failures += 1
    this.#restUntil = clock.frame + Math.max(rest, failure.retryAfterMs ?? 0)
  }
}
