import { defer, map, mergeMap, type Observable, of, type SchedulerLike, throwError, timer } from 'rxjs'
import type { Ask } from '../../../src/chain/rpc/client.ts'
import { UpstreamError } from '../../../src/chain/rpc/error.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import { apple, blockHash, header, pendingLog, sealedLog, txHash, type WireLog, word } from './node-json.ts'

type Filter = {
  readonly address: readonly string[]
  readonly fromBlock?: string
  readonly toBlock?: string
  readonly blockHash?: Hex
}
export type Asked = { readonly method: string; readonly params: readonly unknown[] }
type Placed = { readonly block: number; readonly index: number; readonly address: Hex; readonly tx: Hex }

const FORK = 2n ** 48n

export const behind = (message = '-32000 header not found') => new UpstreamError('behind', message, null, true)

/** A chain as a node answers for it, one question at a time and with no time of its own. */
export class FakeChain {
  readonly asked: Asked[] = []
  /** The newest sealed block; the one being built is the next. */
  head: number
  safe: number | null = null
  finalized: number | null = null
  /** What `pending` reads as. */
  pending: 'shown' | 'numberless' | 'partial' | 'latest' | 'null' | 'behind' | 'refused' = 'shown'
  rangeBound = 2_000
  resultsBound = 20_000
  /** Whether the refusal of a page that holds too much says how far it would go, and how it writes that. */
  suggests: 'nothing' | 'decimal' | 'hex' = 'nothing'
  /** The oldest block of which the node still has the logs. */
  keptFrom = 0
  /** So many blocks the node that answers is behind the chain. */
  lag = 0
  /** Whether the node can be asked for a block's logs by its hash. */
  knowsHashes = true
  /** Whether headers list their transactions. */
  showsTransactions = true
  /** How long an answer takes. */
  delayMs = 0
  /** Thrown instead of an answer. */
  trouble: UpstreamError | null = null
  /** Another answer to a question; undefined leaves it as it is. */
  instead: (asked: Asked) => unknown = () => undefined
  inFlight = 0
  mostInFlight = 0
  #logs: Placed[] = []
  /** How often a block is still said to have no logs, though it has. */
  readonly #hidden = new Map<number, number>()
  readonly #forks: number[] = []
  readonly #clock: SchedulerLike | null

  constructor(head: number, clock: SchedulerLike | null = null) {
    this.head = head
    this.#clock = clock
  }

  /** Puts a transfer into a block, whether it is sealed by now or not. */
  put(block: number, address: Hex = apple, tx?: Hex): Placed {
    const index = this.#logs.filter((log) => log.block === block).length
    const log = { block, index, address, tx: tx ?? txHash(block, index) }
    this.#logs.push(log)
    return log
  }

  /** Says of a block, so often, that it has no logs. */
  hide(block: number, times = Number.POSITIVE_INFINITY): void {
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
    return word(BigInt(fork) * FORK + BigInt(blockHash(block)))
  }

  headerOf(block: number): Record<string, unknown> {
    const held = this.#logs.filter((log) => log.block === block).map(({ tx }) => tx)
    const transactions = this.showsTransactions ? [txHash(block, 999), ...held] : []
    return { ...header(block), hash: this.hashOf(block), parentHash: this.hashOf(block - 1), transactions }
  }

  /** A log that is sealed, as the node sends it. */
  readonly wireOf = (log: Placed): WireLog => ({
    ...sealedLog(log),
    transactionHash: log.tx,
    blockHash: this.hashOf(log.block),
  })

  readonly ask: Ask = (method, params) =>
    defer(() => {
      const asked = { method, params }
      this.asked.push(asked)
      this.inFlight += 1
      this.mostInFlight = Math.max(this.mostInFlight, this.inFlight)
      const wait: Observable<unknown> = this.#clock ? timer(this.delayMs, this.#clock) : of(0)
      return wait.pipe(
        mergeMap(() => {
          this.inFlight -= 1
          return this.trouble ? throwError(() => this.trouble) : of(0)
        }),
        map(() => {
          const instead = this.instead(asked)
          if (instead !== undefined) return instead
          return method === 'eth_getLogs' ? this.#find(params[0] as Filter) : this.#block(String(params[0]))
        }),
      )
    })

  /** The ranges of blocks that logs were asked for. */
  ranges(): readonly (readonly [from: number, to: number | 'pending'])[] {
    return this.#filters().flatMap(({ fromBlock, toBlock, blockHash: hash }) =>
      hash ? [] : [[Number(fromBlock), toBlock === 'pending' ? toBlock : Number(toBlock)] as const],
    )
  }

  /** The hashes of the blocks that logs were asked for. */
  hashes(): readonly Hex[] {
    return this.#filters().flatMap(({ blockHash: hash }) => (hash ? [hash] : []))
  }

  /** The addresses of each question for logs. */
  addresses(): readonly (readonly string[])[] {
    return this.#filters().map(({ address }) => address)
  }

  /** The blocks that were asked for, by number or tag. */
  headers(): readonly (number | string)[] {
    const asked = this.asked.filter(({ method }) => method === 'eth_getBlockByNumber')
    return asked.map(({ params }) => (/^0x/.test(String(params[0])) ? Number(params[0]) : String(params[0])))
  }

  #filters(): readonly Filter[] {
    return this.asked.filter(({ method }) => method === 'eth_getLogs').map(({ params }) => params[0] as Filter)
  }

  #block(which: string): unknown {
    const head = this.head - this.lag
    if (which === 'latest') return this.headerOf(head)
    if (which === 'safe') return this.safe === null ? null : this.headerOf(this.safe)
    if (which === 'finalized') return this.finalized === null ? null : this.headerOf(this.finalized)
    if (which !== 'pending') return Number(which) <= head ? this.headerOf(Number(which)) : null
    return this.#pending(head)
  }

  #pending(head: number): unknown {
    const built = { ...this.headerOf(head + 1), hash: word(0) }
    switch (this.pending) {
      case 'shown':
        return built
      case 'partial':
        return { ...built, hash: word(0xfa_0000_0000 + this.asked.length) }
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

  #find({ address, fromBlock, toBlock, blockHash: hash }: Filter): readonly WireLog[] {
    const head = this.head - this.lag
    const of = this.#logs.filter((log) => address.includes(log.address))
    if (hash) return this.#sealed(this.#byHash(hash, of, head))
    const [from, to] = [Number(fromBlock), toBlock === 'pending' ? head : Number(toBlock)]
    if (to - from + 1 > this.rangeBound) throw new UpstreamError('too_large', 'query exceeds max block range')
    if (from < this.keptFrom) throw new UpstreamError('gone', 'pruned history unavailable')
    // What stands before the node answers for a block above its head with nothing at all.
    const sealed = to > head ? [] : of.filter(({ block }) => block >= from && block <= to)
    this.#bounded(sealed, from, to)
    const pre = ['shown', 'numberless', 'partial'].includes(this.pending) && toBlock === 'pending'
    return [...this.#sealed(sealed), ...(pre ? of.filter(({ block }) => block > head).map(wirePending) : [])]
  }

  #byHash(hash: Hex, of: readonly Placed[], head: number): readonly Placed[] {
    if (!this.knowsHashes) throw new UpstreamError('invalid', '-32602 unknown field blockHash')
    const number = Number(BigInt(hash) % FORK) - Number(blockHash(0))
    if (number > head || this.hashOf(number) !== hash) throw behind()
    if (number < this.keptFrom) throw new UpstreamError('gone', 'pruned history unavailable')
    const found = of.filter(({ block }) => block === number)
    if (found.length > this.resultsBound) throw new UpstreamError('too_large', 'query exceeds max results')
    return found
  }

  #bounded(found: readonly Placed[], from: number, to: number): void {
    if (found.length <= this.resultsBound) return
    const last = Math.max(from, (found[this.resultsBound]?.block ?? to) - 1)
    const [low, high] = this.suggests === 'hex' ? [`0x${from.toString(16)}`, `0x${last.toString(16)}`] : [from, last]
    const hint = this.suggests === 'nothing' ? '' : `, retry with the range ${low}-${high}`
    throw new UpstreamError('too_large', `-32602 query exceeds max results ${this.resultsBound}${hint}`)
  }

  #sealed(found: readonly Placed[]): readonly WireLog[] {
    const hidden = new Set<number>()
    for (const block of new Set(found.map((log) => log.block))) {
      const times = this.#hidden.get(block) ?? 0
      if (times === 0) continue
      this.#hidden.set(block, times - 1)
      hidden.add(block)
    }
    return found.filter(({ block }) => !hidden.has(block)).map(this.wireOf)
  }
}

const wirePending = (log: Placed): WireLog => ({ ...pendingLog(log), transactionHash: log.tx })
