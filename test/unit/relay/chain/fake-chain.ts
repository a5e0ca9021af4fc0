import type { SchedulerLike } from 'rxjs'
import type { Hex } from '../../../../src/lib/hex.ts'
import type { ConfirmChain, RequestFn } from '../../../../src/relay/chain/rpc/endpoint-pool.ts'
import { UpstreamError } from '../../../../src/relay/chain/rpc/upstream-error.ts'
import { waitOn } from '../../../support/virtual-time.ts'
import { apple, blockHash, header, type NodeLog, pendingLog, sealedLog, txHash, word } from './node-json.ts'

type Filter = {
  readonly address: readonly string[]
  readonly fromBlock?: string
  readonly toBlock?: string
  readonly blockHash?: Hex
}
export type RpcRequest = { readonly method: string; readonly params: readonly unknown[] }
type PlacedLog = { readonly block: number; readonly index: number; readonly address: Hex; readonly tx: Hex }

const FORK_FACTOR = 2n ** 48n

export const behindError = (message = '-32000 header not found') => new UpstreamError('behind', message, null, true)

/** A chain behind a node. It answers each request at once, unless it has a clock. */
export class FakeChain {
  readonly requests: RpcRequest[] = []
  /** The newest sealed block. The next one is being built. */
  head: number
  safe: number | null = null
  finalized: number | null = null
  /** What the node returns as the pending block. */
  pending: 'shown' | 'numberless' | 'partial' | 'latest' | 'null' | 'behind' | 'refused' = 'shown'
  rangeBound = 2_000
  resultsBound = 20_000
  /** How many addresses a request for logs may name. */
  addressesBound = Number.POSITIVE_INFINITY
  /** Whether a refused page comes with a suggested range, and in which notation. */
  rangeHint: 'nothing' | 'decimal' | 'hex' = 'nothing'
  /** The oldest block whose logs the node still has. */
  oldestLogBlock = 0
  /** How far the node lags behind the chain. */
  lagBlocks = 0
  /** Whether the node serves logs by block hash. */
  supportsBlockHash = true
  /** Whether headers list their transactions. */
  listsTransactions = true
  /** The delay of an answer. */
  delayMs = 0
  /** Thrown instead of an answer. */
  failure: UpstreamError | null = null
  /** Thrown where the chain behind answers has to be confirmed. */
  chainFailure: UpstreamError | null = null
  readonly confirmations: Parameters<ConfirmChain>[0][] = []
  /** Another answer to a request; undefined keeps the usual one. */
  override: (request: RpcRequest) => unknown = () => undefined
  #logs: PlacedLog[] = []
  /** How often the logs of a block are still left out. */
  readonly #hidden = new Map<number, number>()
  readonly #forks: number[] = []
  readonly #clock: SchedulerLike | null

  constructor(head: number, clock: SchedulerLike | null = null) {
    this.head = head
    this.#clock = clock
  }

  /** Adds a transfer to a block, which may be sealed already. */
  addLog(block: number, address: Hex = apple, tx?: Hex): PlacedLog {
    const index = this.#logs.filter((log) => log.block === block).length
    const log = { block, index, address, tx: tx ?? txHash(block, index) }
    this.#logs.push(log)
    return log
  }

  /** Leaves out the logs of a block, this often. */
  hideLogs(block: number, times = Number.POSITIVE_INFINITY): void {
    this.#hidden.set(block, times)
  }

  /** Replaces the newest blocks with empty ones, and returns the first of them. */
  reorganise(depth: number): number {
    const from = this.head - depth + 1
    this.#forks.push(from)
    this.#logs = this.#logs.filter(({ block }) => block < from)
    for (const block of this.#hidden.keys()) if (block >= from) this.#hidden.delete(block)
    return from
  }

  /** The hash of a block on the current branch. */
  hashOf(block: number): Hex {
    const fork = this.#forks.findLastIndex((from) => from <= block) + 1
    return word(BigInt(fork) * FORK_FACTOR + BigInt(blockHash(block)))
  }

  headerOf(block: number): Record<string, unknown> {
    const txHashes = this.#logs.filter((log) => log.block === block).map(({ tx }) => tx)
    const transactions = this.listsTransactions ? [txHash(block, 999), ...txHashes] : []
    return { ...header(block), hash: this.hashOf(block), parentHash: this.hashOf(block - 1), transactions }
  }

  /** A sealed log in the JSON of a node. */
  readonly nodeLogOf = (log: PlacedLog): NodeLog => ({
    ...sealedLog(log),
    transactionHash: log.tx,
    blockHash: this.hashOf(log.block),
  })

  readonly request: RequestFn = async (method, params, signal) => {
    const request = { method, params }
    this.requests.push(request)
    if (this.#clock) await waitOn(this.#clock, this.delayMs, signal)
    if (this.failure) throw this.failure
    const override = this.override(request)
    if (override !== undefined) return override
    return method === 'eth_getLogs' ? this.#getLogs(params[0] as Filter) : this.#block(String(params[0]))
  }

  readonly confirmChain: ConfirmChain = async (answers) => {
    this.confirmations.push(answers)
    if (this.chainFailure) throw this.chainFailure
  }

  /** The block ranges of all log requests. */
  requestedRanges(): readonly (readonly [from: number, to: number | 'pending'])[] {
    return this.#filters().flatMap(({ fromBlock, toBlock, blockHash: hash }) =>
      hash ? [] : [[Number(fromBlock), toBlock === 'pending' ? toBlock : Number(toBlock)] as const],
    )
  }

  /** The block hashes of all log requests. */
  requestedHashes(): readonly Hex[] {
    return this.#filters().flatMap(({ blockHash: hash }) => (hash ? [hash] : []))
  }

  /** The addresses of all log requests. */
  requestedAddresses(): readonly (readonly string[])[] {
    return this.#filters().map(({ address }) => address)
  }

  /** The blocks of all header requests, by number or tag. */
  requestedHeaders(): readonly (number | string)[] {
    const requests = this.requests.filter(({ method }) => method === 'eth_getBlockByNumber')
    return requests.map(({ params }) => (/^0x/.test(String(params[0])) ? Number(params[0]) : String(params[0])))
  }

  #filters(): readonly Filter[] {
    return this.requests.filter(({ method }) => method === 'eth_getLogs').map(({ params }) => params[0] as Filter)
  }

  #block(tag: string): unknown {
    const head = this.head - this.lagBlocks
    if (tag === 'latest') return this.headerOf(head)
    if (tag === 'safe') return this.safe === null ? null : this.headerOf(this.safe)
    if (tag === 'finalized') return this.finalized === null ? null : this.headerOf(this.finalized)
    if (tag !== 'pending') return Number(tag) <= head ? this.headerOf(Number(tag)) : null
    return this.#pending(head)
  }

  #pending(head: number): unknown {
    const built = { ...this.headerOf(head + 1), hash: word(0) }
    switch (this.pending) {
      case 'shown':
        return built
      case 'partial':
        return { ...built, hash: word(0xfa_0000_0000 + this.requests.length) }
      case 'numberless':
        return { ...built, number: null, hash: null }
      case 'behind':
        return { ...this.headerOf(head - 449), hash: word(0) }
      case 'latest':
        return this.headerOf(head)
      case 'null':
        return null
      case 'refused':
        throw new UpstreamError('invalid', '-32602 invalid block tag')
    }
  }

  #getLogs({ address, fromBlock, toBlock, blockHash: hash }: Filter): readonly NodeLog[] {
    if (address.length > this.addressesBound)
      throw new UpstreamError('too_large', '-32602 exceed max addresses or topics per search position')
    const head = this.head - this.lagBlocks
    const matching = this.#logs.filter((log) => address.includes(log.address))
    if (hash) return this.#visibleLogs(this.#logsByHash(hash, matching, head))
    const [from, to] = [Number(fromBlock), toBlock === 'pending' ? head : Number(toBlock)]
    if (to - from + 1 > this.rangeBound) throw new UpstreamError('too_large', 'query exceeds max block range')
    if (from < this.oldestLogBlock) throw new UpstreamError('gone', 'pruned history unavailable')
    // The proxy in front of a node returns an empty list above the head.
    const inRange = to > head ? [] : matching.filter(({ block }) => block >= from && block <= to)
    this.#checkResultsBound(inRange, from, to)
    const showsPending = ['shown', 'numberless', 'partial'].includes(this.pending) && toBlock === 'pending'
    return [
      ...this.#visibleLogs(inRange),
      ...(showsPending ? matching.filter(({ block }) => block > head).map(pendingNodeLog) : []),
    ]
  }

  #logsByHash(hash: Hex, matching: readonly PlacedLog[], head: number): readonly PlacedLog[] {
    if (!this.supportsBlockHash) throw new UpstreamError('invalid', '-32602 unknown field blockHash')
    const number = Number(BigInt(hash) % FORK_FACTOR) - Number(blockHash(0))
    if (number > head || this.hashOf(number) !== hash) throw behindError()
    if (number < this.oldestLogBlock) throw new UpstreamError('gone', 'pruned history unavailable')
    const logs = matching.filter(({ block }) => block === number)
    if (logs.length > this.resultsBound) throw new UpstreamError('too_large', 'query exceeds max results')
    return logs
  }

  #checkResultsBound(logs: readonly PlacedLog[], from: number, to: number): void {
    if (logs.length <= this.resultsBound) return
    const last = Math.max(from, (logs[this.resultsBound]?.block ?? to) - 1)
    const [low, high] = this.rangeHint === 'hex' ? [`0x${from.toString(16)}`, `0x${last.toString(16)}`] : [from, last]
    const hint = this.rangeHint === 'nothing' ? '' : `, retry with the range ${low}-${high}`
    throw new UpstreamError('too_large', `-32602 query exceeds max results ${this.resultsBound}${hint}`)
  }

  #visibleLogs(logs: readonly PlacedLog[]): readonly NodeLog[] {
    const hidden = new Set<number>()
    for (const block of new Set(logs.map((log) => log.block))) {
      const times = this.#hidden.get(block) ?? 0
      if (times === 0) continue
      this.#hidden.set(block, times - 1)
      hidden.add(block)
    }
    return logs.filter(({ block }) => !hidden.has(block)).map(this.nodeLogOf)
  }
}

const pendingNodeLog = (log: PlacedLog): NodeLog => ({ ...pendingLog(log), transactionHash: log.tx })
