import {
  catchError,
  defer,
  EMPTY,
  from,
  ignoreElements,
  merge,
  mergeMap,
  type Observable,
  of,
  repeat,
  type SchedulerLike,
  tap,
  throwError,
  timer,
} from 'rxjs'
import type { Hex } from '../../protocol/fields.ts'
import type { Ask } from '../rpc/client.ts'
import { UpstreamError } from '../rpc/error.ts'
import { isCall } from '../rpc/methods.ts'
import { type AsOf, type FeedSays, feedAt, type TokenSays, tokenAt } from './reads.ts'

/** What a contract answered for itself. */
export type Answered =
  | ({ readonly type: 'token'; readonly address: Hex; readonly block: number } & TokenSays)
  | ({ readonly type: 'feed'; readonly proxy: Hex } & FeedSays)

/** How often it is looked whether anything is to be asked. */
const LOOK_EVERY_MS = 1_000
/** How often a feed is asked who makes its rounds. */
const FEED_EVERY_MS = 60_000
/** How long nobody is asked after a failure. */
const RETRY_MS = 10_000
/** How long contracts are not asked where that is refused. */
const REFUSED_MS = 3_600_000
/** How long a contract that said nothing, or may not be asked, is left alone: a node may be behind without saying so. */
const MUTE_MS = 60_000
/** So many contracts are asked at once: what is asked besides must not crowd out what is needed. */
const AT_ONCE = 1

type Options = {
  readonly ask: Ask
  readonly tokens: Observable<readonly Hex[]>
  /** The proxies of the feeds. */
  readonly feeds: Observable<readonly Hex[]>
  /** The newest sealed block. */
  readonly head: () => AsOf | null
  /** Whenever it fires, every token is asked anew. */
  readonly again: Observable<unknown>
  readonly clock: SchedulerLike
  readonly say: (kind: string, detail: unknown) => void
}

/** What tokens and feeds answer for themselves, where a node lets them be asked; without it nothing is missing. */
export const asked = (options: Options): Observable<Answered> =>
  defer(() => {
    const inquiry = new Inquiry(options)
    const { tokens, feeds, again, clock } = options
    return merge(
      merge(
        tokens.pipe(tap((list) => inquiry.wants('token', list))),
        feeds.pipe(tap((list) => inquiry.wants('feed', list))),
        again.pipe(tap(() => inquiry.again())),
      ).pipe(ignoreElements()),
      timer(0, clock).pipe(
        mergeMap(() => inquiry.round()),
        repeat({ delay: () => timer(LOOK_EVERY_MS, clock) }),
      ),
    )
  })

/** A contract to be asked. */
type Wanted = {
  readonly type: 'token' | 'feed'
  readonly address: Hex
  /** When it is to be asked next. */
  dueAt: number
  /** The block that it was asked about when the node did not know it yet: soon it will. */
  asOf: AsOf | null
}

/** Who is to be asked, and when. */
class Inquiry {
  readonly #options: Options
  #wanted: ReadonlySet<Wanted> = new Set()
  #restUntil = Number.NEGATIVE_INFINITY
  #refusedUntil = Number.NEGATIVE_INFINITY
  #refusal: UpstreamError | null = null

  constructor(options: Options) {
    this.#options = options
  }

  wants(type: Wanted['type'], addresses: readonly Hex[]): void {
    const others = [...this.#wanted].filter((one) => one.type !== type)
    const known = new Map([...this.#wanted].map((one) => [`${one.type} ${one.address}`, one]))
    const dueAt = this.#options.clock.now()
    const wanted = [...new Set(addresses)].map(
      (address): Wanted => known.get(`${type} ${address}`) ?? { type, address, dueAt, asOf: null },
    )
    this.#wanted = new Set([...others, ...wanted])
  }

  again(): void {
    for (const one of this.#wanted) {
      if (one.type !== 'token') continue
      one.asOf = null
      one.dueAt = this.#options.clock.now()
    }
  }

  /** Asks whoever is due, the longest due first. */
  round(): Observable<Answered> {
    const due = [...this.#wanted].filter((one) => this.#isDue(one)).sort((one, other) => one.dueAt - other.dueAt)
    return from(due).pipe(mergeMap((one) => defer(() => (this.#isDue(one) ? this.#ask(one) : EMPTY)), AT_ONCE))
  }

  #isDue(one: Wanted): boolean {
    const now = this.#options.clock.now()
    if (one.dueAt > now || this.#restUntil > now || !this.#wanted.has(one)) return false
    return one.type === 'feed' || (this.#refusedUntil <= now && this.#options.head() !== null)
  }

  #ask(one: Wanted): Observable<Answered> {
    // Whoever is to be asked again becomes due while being asked.
    one.dueAt = Number.POSITIVE_INFINITY
    return (one.type === 'token' ? this.#token(one) : this.#feed(one)).pipe(
      catchError((failure: unknown) => {
        if (!(failure instanceof UpstreamError)) return throwError(() => failure)
        this.#failed(one, failure)
        return EMPTY
      }),
    )
  }

  #token(one: Wanted): Observable<Answered> {
    const asOf = one.asOf ?? this.#options.head()
    if (!asOf) return EMPTY
    one.asOf = asOf
    return tokenAt(this.#question, one.address, asOf).pipe(
      mergeMap((says) => {
        one.asOf = null
        const isMute = says.multiplier === null && says.paused === null
        if (isMute) return this.#mute(one)
        return of<Answered>({ type: 'token', address: one.address, block: asOf.number, ...says })
      }),
    )
  }

  #feed(one: Wanted): Observable<Answered> {
    this.#dueIn(one, FEED_EVERY_MS)
    return feedAt(this.#question, one.address).pipe(
      mergeMap((says) => (says ? of<Answered>({ type: 'feed', proxy: one.address, ...says }) : this.#mute(one))),
    )
  }

  #mute(one: Wanted): Observable<never> {
    this.#dueIn(one, MUTE_MS)
    this.#options.say('contract says nothing', { type: one.type, address: one.address })
    return EMPTY
  }

  #failed(one: Wanted, failure: UpstreamError): void {
    const isBehind = failure.kind === 'behind'
    if (!isBehind) one.asOf = null
    const wait = failure.refused ? MUTE_MS : Math.max(RETRY_MS, failure.retryAfterMs ?? 0)
    this.#dueIn(one, wait)
    if (!isBehind && !failure.refused) this.#restUntil = this.#options.clock.now() + wait
    // That contracts cannot be asked at all was said when it was found out.
    if (failure !== this.#refusal)
      this.#options.say('contract not asked', { type: one.type, address: one.address, reason: failure.message })
  }

  #dueIn(one: Wanted, ms: number): void {
    one.dueAt = Math.min(one.dueAt, this.#options.clock.now() + ms)
  }

  readonly #question: Ask = (method, params) =>
    defer(() => {
      const { ask, clock } = this.#options
      if (!isCall(method)) return ask(method, params)
      if (clock.now() < this.#refusedUntil) return throwError(() => this.#refusal)
      return ask(method, params).pipe(tap({ error: (failure: unknown) => this.#refused(failure) }))
    })

  #refused(failure: unknown): void {
    if (!(failure instanceof UpstreamError && failure.refused)) return
    this.#refusal = failure
    this.#refusedUntil = this.#options.clock.now() + REFUSED_MS
    this.#options.say('contracts cannot be asked', { reason: failure.message })
  }
}
