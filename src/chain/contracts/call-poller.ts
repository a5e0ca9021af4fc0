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
import type { RequestFn } from '../rpc/client.ts'
import { UpstreamError } from '../rpc/error.ts'
import { isCallMethod } from '../rpc/methods.ts'
import { type BlockRef, type FeedCallResult, readFeed, readToken, type TokenCallResult } from './reads.ts'

/** What a contract answered for itself. */
export type ContractAnswer =
  | ({ readonly type: 'token'; readonly address: Hex; readonly block: number } & TokenCallResult)
  | ({ readonly type: 'feed'; readonly proxy: Hex } & FeedCallResult)

/** How often it is looked whether anything is to be asked. */
const CHECK_INTERVAL_MS = 1_000
/** How often a feed is asked who makes its rounds. */
const FEED_INTERVAL_MS = 60_000
/** How long nobody is asked after a failure. */
const RETRY_MS = 10_000
/** How long contracts are not asked where that is refused. */
const REFUSED_MS = 3_600_000
/** How long a contract that said nothing, or may not be asked, is left alone: a node may be behind without saying so. */
const SILENT_CONTRACT_MS = 60_000
/** So many contracts are asked at once: what is asked besides must not crowd out what is needed. */
const CONCURRENCY = 1

type Options = {
  readonly request: RequestFn
  readonly tokens: Observable<readonly Hex[]>
  /** The proxies of the feeds. */
  readonly feeds: Observable<readonly Hex[]>
  /** The newest sealed block. */
  readonly head: () => BlockRef | null
  /** Whenever it fires, every token is asked anew. */
  readonly refresh: Observable<unknown>
  readonly clock: SchedulerLike
  readonly warn: (kind: string, detail: unknown) => void
}

/** What tokens and feeds answer for themselves, where a node lets them be asked; without it nothing is missing. */
export const pollContracts = (options: Options): Observable<ContractAnswer> =>
  defer(() => {
    const poller = new ContractPoller(options)
    const { tokens, feeds, refresh, clock } = options
    return merge(
      merge(
        tokens.pipe(tap((list) => poller.setContracts('token', list))),
        feeds.pipe(tap((list) => poller.setContracts('feed', list))),
        refresh.pipe(tap(() => poller.refreshTokens())),
      ).pipe(ignoreElements()),
      timer(0, clock).pipe(
        mergeMap(() => poller.pollDue()),
        repeat({ delay: () => timer(CHECK_INTERVAL_MS, clock) }),
      ),
    )
  })

/** A contract to be asked. */
type PolledContract = {
  readonly type: 'token' | 'feed'
  readonly address: Hex
  /** When it is to be asked next. */
  dueAt: number
  /** The block that it was asked about when the node did not know it yet: soon it will. */
  asOf: BlockRef | null
}

/** Who is to be asked, and when. */
class ContractPoller {
  readonly #options: Options
  #contracts: ReadonlySet<PolledContract> = new Set()
  #backoffUntil = Number.NEGATIVE_INFINITY
  #refusedUntil = Number.NEGATIVE_INFINITY
  #refusedError: UpstreamError | null = null

  constructor(options: Options) {
    this.#options = options
  }

  setContracts(type: PolledContract['type'], addresses: readonly Hex[]): void {
    const otherType = [...this.#contracts].filter((one) => one.type !== type)
    const known = new Map([...this.#contracts].map((one) => [`${one.type} ${one.address}`, one]))
    const dueAt = this.#options.clock.now()
    const contracts = [...new Set(addresses)].map(
      (address): PolledContract => known.get(`${type} ${address}`) ?? { type, address, dueAt, asOf: null },
    )
    this.#contracts = new Set([...otherType, ...contracts])
  }

  refreshTokens(): void {
    for (const contract of this.#contracts) {
      if (contract.type !== 'token') continue
      contract.asOf = null
      contract.dueAt = this.#options.clock.now()
    }
  }

  /** Asks whoever is due, the longest due first. */
  pollDue(): Observable<ContractAnswer> {
    const due = [...this.#contracts].filter((one) => this.#isDue(one)).sort((one, other) => one.dueAt - other.dueAt)
    return from(due).pipe(mergeMap((one) => defer(() => (this.#isDue(one) ? this.#poll(one) : EMPTY)), CONCURRENCY))
  }

  #isDue(contract: PolledContract): boolean {
    const now = this.#options.clock.now()
    if (contract.dueAt > now || this.#backoffUntil > now || !this.#contracts.has(contract)) return false
    return contract.type === 'feed' || (this.#refusedUntil <= now && this.#options.head() !== null)
  }

  #poll(contract: PolledContract): Observable<ContractAnswer> {
    // Whoever is to be asked again becomes due while being asked.
    contract.dueAt = Number.POSITIVE_INFINITY
    return (contract.type === 'token' ? this.#pollToken(contract) : this.#pollFeed(contract)).pipe(
      catchError((failure: unknown) => {
        if (!(failure instanceof UpstreamError)) return throwError(() => failure)
        this.#handleFailure(contract, failure)
        return EMPTY
      }),
    )
  }

  #pollToken(contract: PolledContract): Observable<ContractAnswer> {
    const asOf = contract.asOf ?? this.#options.head()
    if (!asOf) return EMPTY
    contract.asOf = asOf
    return readToken(this.#requestUnlessRefused, contract.address, asOf).pipe(
      mergeMap((answer) => {
        contract.asOf = null
        const isEmpty = answer.multiplier === null && answer.paused === null
        if (isEmpty) return this.#skipSilent(contract)
        return of<ContractAnswer>({ type: 'token', address: contract.address, block: asOf.number, ...answer })
      }),
    )
  }

  #pollFeed(contract: PolledContract): Observable<ContractAnswer> {
    this.#scheduleIn(contract, FEED_INTERVAL_MS)
    return readFeed(this.#requestUnlessRefused, contract.address).pipe(
      mergeMap((answer) =>
        answer ? of<ContractAnswer>({ type: 'feed', proxy: contract.address, ...answer }) : this.#skipSilent(contract),
      ),
    )
  }

  #skipSilent(contract: PolledContract): Observable<never> {
    this.#scheduleIn(contract, SILENT_CONTRACT_MS)
    this.#options.warn('contract says nothing', { type: contract.type, address: contract.address })
    return EMPTY
  }

  #handleFailure(contract: PolledContract, failure: UpstreamError): void {
    const isBehind = failure.kind === 'behind'
    if (!isBehind) contract.asOf = null
    const waitMs = failure.isRefused ? SILENT_CONTRACT_MS : Math.max(RETRY_MS, failure.retryAfterMs ?? 0)
    this.#scheduleIn(contract, waitMs)
    if (!isBehind && !failure.isRefused) this.#backoffUntil = this.#options.clock.now() + waitMs
    // That contracts cannot be asked at all was said when it was found out.
    if (failure !== this.#refusedError)
      this.#options.warn('contract not asked', {
        type: contract.type,
        address: contract.address,
        reason: failure.message,
      })
  }

  #scheduleIn(contract: PolledContract, ms: number): void {
    contract.dueAt = Math.min(contract.dueAt, this.#options.clock.now() + ms)
  }

  readonly #requestUnlessRefused: RequestFn = (method, params) =>
    defer(() => {
      const { request, clock } = this.#options
      if (!isCallMethod(method)) return request(method, params)
      if (clock.now() < this.#refusedUntil) return throwError(() => this.#refusedError)
      return request(method, params).pipe(tap({ error: (failure: unknown) => this.#handleCallFailure(failure) }))
    })

  #handleCallFailure(failure: unknown): void {
    if (!(failure instanceof UpstreamError && failure.isRefused)) return
    this.#refusedError = failure
    this.#refusedUntil = this.#options.clock.now() + REFUSED_MS
    this.#options.warn('contracts cannot be asked', { reason: failure.message })
  }
}
