import { defer, map, mergeMap, type Observable, of, type SchedulerLike, throwError, timer } from 'rxjs'
import type { RequestFn } from '../../../src/chain/rpc/client.ts'
import { UpstreamError } from '../../../src/chain/rpc/error.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
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

/** A chain as a node answers for it, one question at a time and with no time of its own. */
export class FakeChain {
  readonly requests: RpcRequest[] = []
  /** The newest sealed block; the one being built is the next. */
  head: number
  safe: number | null = null
  finalized: number | null = null
  /** What `pending` reads as. */
  pending: 'shown' | 'numberless' | 'partial' | 'latest' | 'null' | 'behind' | 'refused' = 'shown'
  rangeBound = 2_000
  resultsBound = 20_000
  /** Whether the refusal of a page that holds too much says how far it would go, and how it writes that. */
  rangeHint: 'nothing' | 'decimal' | 'hex' = 'nothing'
  /** The oldest block of which the node still has the logs. */
  oldestLogBlock = 0
  /** So many blocks the node that answers is behind the chain. */
  lagBlocks = 0
  /** Whether the node can be asked for a block's logs by its hash. */
  supportsBlockHash = true
  /** Whether headers list their transactions. */
  listsTransactions = true
  /** How long an answer takes. */
  delayMs = 0
  /** Thrown instead of an answer. */
  failure: UpstreamError | null = null
  /** Another answer to a question; undefined leaves it as it is. */
  override: (asked: RpcRequest) => unknown = () => undefined
  inFlight = 0
  maxInFlight = 0
  #logs: PlacedLog[] = []
  /** How often a block is still said to have no logs, though it has. */
  readonly #hidden = new Map<number, number>()
  readonly #forks: number[] = []
  readonly #clock: SchedulerLike | null

  constructor(head: number, clock: SchedulerLike | null = null) {
    this.head = head
    this.#clock = clock
  }

  /** Puts a transfer into a block, whether it is sealed by now or not. */
  addLog(block: number, address: Hex = apple, tx?: Hex): PlacedLog {
    const index = this.#logs.filter((log) => log.block === block).length
    const log = { block, index, address, tx: tx ?? txHash(block, index) }
    this.#logs.push(log)
    return log
  }

  /** Says of a block, so often, that it has no logs. */
  hideLogs(block: number, times = Number.POSITIVE_INFINITY): void {
    this.#hidden.set(block, times)
  }

  /** Seals the newest blocks anew, with nothing in them. The first of them. */
  reorganise(depth: number): number {
    const from = this.head - depth + 1
    this.#forks.push(from)
    this.#logs = this.#logs.filter(({ block }) => block < from)
    for (const block of this.#hidden.keys()) if (block >= from) this.#hidden.delete(block)
    return from
  }

  /** The hash of a block as the chain is now. */
  hashOf(block: number): Hex {
    const fork = this.#forks.findLastIndex((from) => from <= block) + 1
    return word(BigInt(fork) * FORK_FACTOR + BigInt(blockHash(block)))
  }

  headerOf(block: number): Record<string, unknown> {
    const txHashes = this.#logs.filter((log) => log.block === block).map(({ tx }) => tx)
    const transactions = this.listsTransactions ? [txHash(block, 999), ...txHashes] : []
    return { ...header(block), hash: this.hashOf(block), parentHash: this.hashOf(block - 1), transactions }
  }

  /** A log that is sealed, as the node sends it. */
  readonly nodeLogOf = (log: PlacedLog): NodeLog => ({
    ...sealedLog(log),
    transactionHash: log.tx,
    blockHash: this.hashOf(log.block),
  })

  readonly request: RequestFn = (method, params) =>
    defer(() => {
      const request = { method, params }
      this.requests.push(request)
      this.inFlight += 1
      this.maxInFlight = Math.max(this.maxInFlight, this.inFlight)
      const wait: Observable<unknown> = this.#clock ? timer(this.delayMs, this.#clock) : of(0)
      return wait.pipe(
        mergeMap(() => {
          this.inFlight -= 1
          return this.failure ? throwError(() => this.failure) : of(0)
        }),
        map(() => {
          const override = this.override(request)
          if (override !== undefined) return override
          return method === 'eth_getLogs' ? this.#getLogs(params[0] as Filter) : this.#block(String(params[0]))
        }),
      )
    })

  /** The ranges of blocks that logs were asked for. */
  requestedRanges(): readonly (readonly [from: number, to: number | 'pending'])[] {
    return this.#filters().flatMap(({ fromBlock, toBlock, blockHash: hash }) =>
      hash ? [] : [[Number(fromBlock), toBlock === 'pending' ? toBlock : Number(toBlock)] as const],
    )
  }

  /** The hashes of the blocks that logs were asked for. */
  requestedHashes(): readonly Hex[] {
    return this.#filters().flatMap(({ blockHash: hash }) => (hash ? [hash] : []))
  }

  /** The addresses of each question for logs. */
  requestedAddresses(): readonly (readonly string[])[] {
    return this.#filters().map(({ address }) => address)
  }

  /** The blocks that were asked for, by number or tag. */
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
    const head = this.head - this.lagBlocks
    const matching = this.#logs.filter((log) => address.includes(log.address))
    if (hash) return this.#visibleLogs(this.#logsByHash(hash, matching, head))
    const [from, to] = [Number(fromBlock), toBlock === 'pending' ? head : Number(toBlock)]
    if (to - from + 1 > this.rangeBound) throw new UpstreamError('too_large', 'query exceeds max block range')
    if (from < this.oldestLogBlock) throw new UpstreamError('gone', 'pruned history unavailable')
    // What stands before the node answers for a block above its head with nothing at all.
    const sealed = to > head ? [] : matching.filter(({ block }) => block >= from && block <= to)
    this.#checkResultsBound(sealed, from, to)
    const showsPending = ['shown', 'numberless', 'partial'].includes(this.pending) && toBlock === 'pending'
    return [
      ...this.#visibleLogs(sealed),
      ...(showsPending ? matching.filter(({ block }) => block > head).map(pendingNodeLog) : []),
    ]
  }

  #logsByHash(hash: Hex, matching: readonly PlacedLog[], head: number): readonly PlacedLog[] {
    if (!this.supportsBlockHash) throw new UpstreamError('invalid', '-32602 unknown field blockHash')
    const number = Number(BigInt(hash) % FORK_FACTOR) - Number(blockHash(0))
    if (number > head || this.hashOf(number) !== hash) throw behindError()
    if (number < this.oldestLogBlock) throw new UpstreamError('gone', 'pruned history unavailable')
    const found = matching.filter(({ block }) => block === number)
    if (found.length > this.resultsBound) throw new UpstreamError('too_large', 'query exceeds max results')
    return found
  }

  #checkResultsBound(found: readonly PlacedLog[], from: number, to: number): void {
    if (found.length <= this.resultsBound) return
    const last = Math.max(from, (found[this.resultsBound]?.block ?? to) - 1)
    const [low, high] = this.rangeHint === 'hex' ? [`0x${from.toString(16)}`, `0x${last.toString(16)}`] : [from, last]
    const hint = this.rangeHint === 'nothing' ? '' : `, retry with the range ${low}-${high}`
    throw new UpstreamError('too_large', `-32602 query exceeds max results ${this.resultsBound}${hint}`)
  }

  #visibleLogs(found: readonly PlacedLog[]): readonly NodeLog[] {
    const hidden = new Set<number>()
    for (const block of new Set(found.map((log) => log.block))) {
      const times = this.#hidden.get(block) ?? 0
      if (times === 0) continue
      this.#hidden.set(block, times - 1)
      hidden.add(block)
    }
    return found.filter(({ block }) => !hidden.has(block)).map(this.nodeLogOf)
  }
}

const pendingNodeLog = (log: PlacedLog): NodeLog => ({ ...pendingLog(log), transactionHash: log.tx })
