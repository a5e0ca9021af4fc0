import { merge, type Observable, Subject } from 'rxjs'
import { observe, repeatStep } from '../../../lib/async-loop.ts'
import { type Hex, quantity } from '../../../lib/hex.ts'
import { chunk, nextTurn } from '../../../lib/turns.ts'
import { isCallMethod } from '../../../protocol/json-rpc-methods.ts'
import type { Host } from '../../host.ts'
import type { LogKind } from '../../log-lines.ts'
import { addressSetOf } from '../logs/log-filter.ts'
import { batchedRequests } from '../rpc/batched-requests.ts'
import type { RequestBatchFn, RequestFn } from '../rpc/endpoint-pool.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'
import { type FeedContractState, readFeed } from './feed-contract.ts'
import { type BlockRef, readFrozen, readToken, type TokenContractState } from './token-contract.ts'

export type ContractAnswer =
  | ({ readonly type: 'token' } & TokenContractState)
  | ({ readonly type: 'feed' } & FeedContractState)
  /** Whether the feed of the token is frozen, as the registry contract says; null if that is unknown. */
  | { readonly type: 'oracle'; readonly address: Hex; readonly frozen: boolean | null }

const CHECK_INTERVAL_MS = 1_000
/** Limit of contracts that the poller adds, or of which it checks whether they are due, in one turn of the event loop. */
const CONTRACTS_PER_TURN = 2_500
/** Limit of contracts that are read at once before settling begins in the past. Each has one request in a batch. */
const FIRST_READS = 64
const FEED_INTERVAL_MS = 60_000
/** With N tokens, the poller asks the registry contract about each token at an interval of at least N times this. */
const ORACLE_PAUSE_MS = 20
/** After failures for this long, the poller reports that it does not know whether the feed of a token is frozen. */
const ORACLE_PATIENCE_MS = 60_000
/** Least delay before a failed read is repeated. A failure of the node delays all other reads too. */
const RETRY_MS = 10_000
/** Pause of all contract calls after the node refused one. */
const REFUSED_MS = 3_600_000
/** Delay before a contract is read again after an empty or refused answer. A lagging node may answer empty. */
const EMPTY_CONTRACT_MS = 60_000

type Options = Pick<Host, 'clock' | 'log'> & {
  readonly request: RequestFn
  readonly requestBatch: RequestBatchFn
  readonly feeds: readonly Hex[]
  /** The contract that says whether the feed of a token is frozen; null if none is configured. */
  readonly registry: { readonly address: Hex; readonly stocksRefreshMs: number } | null
  readonly head: () => BlockRef | null
}

type PolledContract = {
  readonly type: 'token' | 'feed' | 'oracle'
  /** Address of the token, or of the proxy contract of the feed. */
  readonly address: Hex
  dueAt: number
  /** Block of the current read, or of the retry after a node lagged: it reads the token at the same block. Null otherwise. */
  asOf: BlockRef | null
  /** Block of the last answer, even if the poller could not use this answer; null before the first one. */
  readAt: number | null
  answeredAt: number
}

type PolledType = PolledContract['type']
const polledTypes = ['feed', 'token', 'oracle'] as const satisfies readonly PolledType[]
/** `wanted` is the newest list of addresses. `contracts` has one entry for each address of the list `taken`. */
type ContractList = { wanted: readonly Hex[]; taken: readonly Hex[]; readonly contracts: Map<Hex, PolledContract> }

const emptyList = (): ContractList => ({ wanted: [], taken: [], contracts: new Map() })

/** Reads the state of token and feed contracts by eth_call, if the node serves it. No update waits for these reads. */
export class ContractPoller {
  readonly #options: Options
  readonly #first = new Subject<ContractAnswer>()
  readonly #lists: Readonly<Record<PolledType, ContractList>> = { token: emptyList(), feed: emptyList(), oracle: emptyList() }
  #backoffUntil = Number.NEGATIVE_INFINITY
  #refusedUntil = Number.NEGATIVE_INFINITY
  #refusedError: UpstreamError | null = null

  constructor(options: Options) {
    this.#options = options
    this.#lists.feed.wanted = options.feeds
  }

  setTokens(addresses: readonly Hex[]): void {
    this.#lists.token.wanted = addresses
    if (this.#options.registry) this.#lists.oracle.wanted = addresses
  }

  /** Makes tokens due again that were read at this block or above. */
  refreshTokens(from: number): void {
    const dueAt = this.#options.clock.now()
    for (const contract of this.#lists.token.contracts.values()) {
      const { asOf, readAt } = contract
      if (Math.max(asOf?.number ?? -1, readAt ?? -1) >= from) Object.assign(contract, { asOf: null, dueAt })
    }
  }

  answers(): Observable<ContractAnswer> {
    const { clock } = this.#options
    const polled = observe<ContractAnswer>((emit, signal) => repeatStep(() => this.#pollDue(emit, signal), { clock, signal }))
    return merge(polled, this.#first)
  }

  /** Reads the state that a block left behind, for the facts of the blocks after it. Ends early if the node has none of it. */
  async readAt(block: BlockRef, signal: AbortSignal): Promise<void> {
    const request = batchedRequests(this.#options.requestBatch, signal)
    const { feed, token } = this.#lists
    const feeds = feed.wanted.map((proxy) => async (): Promise<ContractAnswer | null> => {
      const reading = await readFeed(request, proxy, quantity(block.number))
      return reading && { type: 'feed', proxy, ...reading }
    })
    const tokens = token.wanted.map((address) => async (): Promise<ContractAnswer | null> => {
      const reading = await readToken(request, address, block)
      return reading && { type: 'token', address, block: block.number, ...reading }
    })
    for (const part of chunk([...tokens, ...feeds], FIRST_READS)) {
      const answers = await Promise.all(part.map((read) => read().catch(upstreamFailure)))
      signal.throwIfAborted()
      for (const answer of answers) if (answer !== null && !(answer instanceof UpstreamError)) this.#first.next(answer)
      if (answers.every((answer) => answer instanceof UpstreamError)) return
    }
  }

  /** Reads due contracts one by one, so that these optional reads do not delay required ones. The registry is read last. */
  async #pollDue(emit: (answer: ContractAnswer) => void, signal: AbortSignal): Promise<number> {
    let due: readonly PolledContract[] = []
    for (const type of polledTypes) {
      await this.#takeWanted(type)
      due = due.concat(await this.#findDue(type))
    }
    for (const contract of due.toSorted((a, b) => Number(a.type === 'oracle') - Number(b.type === 'oracle') || a.dueAt - b.dueAt)) {
      signal.throwIfAborted()
      if (!this.#isDue(contract, this.#options.clock.now())) continue
      const answer = await this.#poll(contract, signal)
      if (answer) emit(answer)
    }
    return CHECK_INTERVAL_MS
  }

  /** A long list takes several turns of the event loop. */
  async #findDue(type: PolledType): Promise<readonly PolledContract[]> {
    const due: PolledContract[] = []
    for (const [index, part] of chunk([...this.#lists[type].contracts.values()], CONTRACTS_PER_TURN).entries()) {
      if (index > 0) await nextTurn()
      const now = this.#options.clock.now()
      for (const contract of part) if (this.#isDue(contract, now)) due.push(contract)
    }
    return due
  }

  #isDue(contract: PolledContract, now: number): boolean {
    if (contract.dueAt > now || this.#backoffUntil > now) return false
    const isReadable = contract.type !== 'token' || (this.#refusedUntil <= now && this.#options.head() !== null)
    return isReadable && addressSetOf(this.#lists[contract.type].wanted).has(contract.address)
  }

  /** Makes `contracts` match the newest list. A long list takes several turns of the event loop. */
  async #takeWanted(type: PolledType): Promise<void> {
    const list = this.#lists[type]
    const { wanted, contracts } = list
    if (wanted === list.taken) return
    list.taken = wanted
    const set = addressSetOf(wanted)
    for (const address of contracts.keys()) if (!set.has(address)) contracts.delete(address)
    const dueAt = this.#options.clock.now()
    for (const [index, part] of chunk(wanted, CONTRACTS_PER_TURN).entries()) {
      if (index > 0) await nextTurn()
      for (const address of part)
        if (!contracts.has(address)) contracts.set(address, { type, address, dueAt, asOf: null, readAt: null, answeredAt: dueAt })
    }
  }

  async #poll(contract: PolledContract, signal: AbortSignal): Promise<ContractAnswer | null> {
    // During the read, only a refresh can make the contract due.
    contract.dueAt = Number.POSITIVE_INFINITY
    const read = this.#requestFor(contract.type)
    const request: RequestFn = (method, params) => read(method, params, signal)
    try {
      if (contract.type === 'token') return await this.#pollToken(contract, request)
      return contract.type === 'feed' ? await this.#pollFeed(contract, request) : await this.#pollOracle(contract, request)
    } catch (failure) {
      signal.throwIfAborted()
      if (!(failure instanceof UpstreamError)) throw failure
      this.#handleFailure(contract, failure)
      const isUnknown = contract.type === 'oracle' && this.#options.clock.now() - contract.answeredAt >= ORACLE_PATIENCE_MS
      return isUnknown ? { type: 'oracle', address: contract.address, frozen: null } : null
    }
  }

  async #pollToken(contract: PolledContract, request: RequestFn): Promise<ContractAnswer | null> {
    const asOf = contract.asOf ?? this.#options.head()
    if (!asOf) return null
    contract.asOf = asOf
    const answer = await readToken(request, contract.address, asOf)
    // A refresh during the read: a reorg may have replaced the block, so the contract is read again.
    if (contract.dueAt <= this.#options.clock.now()) return null
    contract.asOf = null
    contract.readAt = asOf.number
    // The node has replaced the settled block in a reorg that settling has not found yet, so the answer must not count.
    if (!answer) return this.#postpone(contract, 'contract_of_another_block', RETRY_MS)
    if (answer.multiplier === null && answer.paused === null) return this.#postpone(contract)
    return { type: 'token', address: contract.address, block: asOf.number, ...answer }
  }

  async #pollFeed(contract: PolledContract, request: RequestFn): Promise<ContractAnswer | null> {
    this.#scheduleIn(contract, FEED_INTERVAL_MS)
    const answer = await readFeed(request, contract.address)
    return answer ? { type: 'feed', proxy: contract.address, ...answer } : this.#postpone(contract)
  }

  async #pollOracle(contract: PolledContract, request: RequestFn): Promise<ContractAnswer | null> {
    const { registry, clock } = this.#options
    if (!registry) return null
    this.#scheduleIn(contract, Math.max(registry.stocksRefreshMs, this.#lists.oracle.contracts.size * ORACLE_PAUSE_MS))
    const frozen = await readFrozen(request, registry.address, contract.address)
    contract.answeredAt = clock.now()
    return { type: 'oracle', address: contract.address, frozen }
  }

  #postpone(contract: PolledContract, warning: LogKind = 'contract_empty', ms = EMPTY_CONTRACT_MS): null {
    this.#scheduleIn(contract, ms)
    this.#options.log(warning, { type: contract.type, address: contract.address })
    return null
  }

  #handleFailure(contract: PolledContract, failure: UpstreamError): void {
    const isBehind = failure.kind === 'behind'
    if (!isBehind) contract.asOf = null
    const isOracle = contract.type === 'oracle'
    const waitMs = failure.isRefused ? EMPTY_CONTRACT_MS : Math.max(RETRY_MS, failure.retryAfterMs ?? 0)
    this.#scheduleIn(contract, waitMs)
    // A failure of the registry contract proves nothing about the node, so it does not delay other reads.
    if (!isBehind && !isOracle && !failure.isRefused) this.#backoffUntil = this.#options.clock.now() + waitMs
    // A refusal that stops all calls is already logged.
    if (failure !== this.#refusedError)
      this.#options.log('contract_failed', { type: contract.type, address: contract.address, reason: failure.message })
  }

  #scheduleIn(contract: PolledContract, ms: number): void {
    contract.dueAt = Math.min(contract.dueAt, this.#options.clock.now() + ms)
  }

  /** Returns a request function that fails all calls for a while after the node refused one, unless it was of the registry. */
  #requestFor(type: PolledType): RequestFn {
    const { request, clock } = this.#options
    return async (method, params, signal) => {
      if (!isCallMethod(method)) return request(method, params, signal)
      if (clock.now() < this.#refusedUntil) throw this.#refusedError
      try {
        return await request(method, params, signal)
      } catch (failure) {
        if (type !== 'oracle') this.#handleCallFailure(failure)
        throw failure
      }
    }
  }

  #handleCallFailure(failure: unknown): void {
    if (!(failure instanceof UpstreamError && failure.isRefused)) return
    this.#refusedError = failure
    this.#refusedUntil = this.#options.clock.now() + REFUSED_MS
    this.#options.log('contracts_refused', { reason: failure.message })
  }
}

const upstreamFailure = (failure: unknown): UpstreamError => {
  if (failure instanceof UpstreamError) return failure
  throw failure
}
