import { UpstreamError } from '../../src/chain/rpc/error.ts'
import type { Hex } from '../../src/protocol/fields.ts'
import type { Weather } from './active-faults.ts'
import type { View } from './node-view.ts'
import { type Block, hex, type Placed } from './simulated-block.ts'
import type { Chain } from './simulated-chain.ts'
import { habitually, type WireLog, wireBuilding, wireHeader, wireLog } from './simulated-node-json.ts'
import type { Settings } from './simulation-settings.ts'
import type { Clock } from './virtual-clock.ts'

/** How wide a range may be: what is promised, and what a narrow node allows. */
const RANGE_BOUNDS = [2_000, 500, 10, 5]
const RESULTS_BOUND = 10_000

type Filter = {
  readonly address?: readonly Hex[]
  readonly blockHash?: Hex
  readonly fromBlock?: string
  readonly toBlock?: string
}

type Options = {
  readonly settings: Settings
  readonly chain: Chain
  readonly clock: Clock
  readonly weather: Weather
}

/** The node that is asked: what it answers to which question, traps included. Knows nothing of the way there. */
export class NodeModel {
  readonly #options: Options

  constructor(options: Options) {
    this.#options = options
  }

  /** Answers or throws. `behindMs`: how far this one of the machines behind the name lags. */
  answer(method: string, params: readonly unknown[], behindMs: number): unknown {
    const { chain, settings } = this.#options
    const view = chain.view(behindMs, behindMs + settings.canonLagMs)
    switch (method) {
      case 'eth_getBlockByNumber':
        return this.#blockBy(view, String(params[0]))
      case 'eth_getLogs':
        return this.#logs(view, params[0] as Filter)
      case 'eth_blockNumber':
        return `0x${view.head.toString(16)}`
      case 'eth_chainId':
        return '0x2105'
      default:
        throw new UpstreamError('unknown_method', `-32601 the method ${method} does not exist`)
    }
  }

  #blockBy(view: View, tag: string): WireLog | null {
    const { weather } = this.#options
    if (tag === 'pending') return this.#pending(view)
    if (tag === 'safe' || tag === 'finalized') {
      const refused = weather.amount('noFinality')
      if (refused === 0) throw new UpstreamError('invalid', `-32602 unknown block tag ${tag}`)
      if (refused !== null) return null
    }
    const block = view.block(this.#numberOf(view, tag))
    return block ? wireHeader(block) : null
  }

  #pending(view: View): WireLog | null {
    const { chain, settings, weather } = this.#options
    if (weather.is('pendingNull')) return null
    const latest = view.block(view.head)
    const behind = weather.amount('pendingBehind')
    const { building } = behind === null ? view : chain.view(behind)
    if (!building || !latest || weather.is('pendingLatest')) {
      if (settings.withoutPending === 'invalid') throw new UpstreamError('invalid', '-32602 no pending block')
      return settings.withoutPending === 'null' || !latest ? null : wireHeader(latest)
    }
    const txs = (behind === null ? view : chain.view(behind)).txsOf(building)
    const partial = weather.is('pendingHashed') ? hex(64, 0xf1a5_0000n * 2n ** 64n + BigInt(txs.length)) : undefined
    const shown = wireBuilding(building, txs, partial)
    return weather.is('pendingNumberless') ? { ...shown, number: null, hash: null } : shown
  }

  #logs(view: View, filter: Filter): readonly WireLog[] {
    const { settings, weather } = this.#options
    const { traits } = settings
    // To a node an empty list means every contract there is.
    const { address = [] } = filter
    const all = address.length === 0 || traits.includes('unfiltered')
    const listens = (log: Placed) => all || address.includes(log.content.address)
    const found =
      filter.blockHash === undefined
        ? this.#range(view, filter, listens)
        : this.#byHash(view, filter.blockHash, listens)
    const bound = weather.amount('crowded') ?? RESULTS_BOUND
    if (found.length > bound) throw new UpstreamError('too_large', `-32602 query exceeds max results ${bound}`)
    const habitual = found.map((log) => habitually(traits, log))
    return traits.includes('unsorted') ? habitual.reverse() : habitual
  }

  #byHash(view: View, hash: Hex, listens: (log: Placed) => boolean): readonly WireLog[] {
    const { chain, settings } = this.#options
    if (!settings.byHash) throw new UpstreamError('invalid', '-32602 blockHash is not supported')
    const orphan = settings.traits.includes('orphans') ? chain.hashes.get(hash) : undefined
    const block = view.byHash(hash) ?? orphan
    if (!block) throw new UpstreamError('behind', '-32000 header not found', null, true)
    this.#keeps(view, block.number)
    return this.#indexed(block)
      .filter(listens)
      .map((log) => wireLog(log, block.hash))
  }

  #range(view: View, filter: Filter, listens: (log: Placed) => boolean): readonly WireLog[] {
    const { chain, settings, weather } = this.#options
    const from = this.#numberOf(view, filter.fromBlock ?? 'latest')
    const pending = filter.toBlock === 'pending'
    const to = pending ? view.head : this.#numberOf(view, filter.toBlock ?? 'latest')
    const bound = RANGE_BOUNDS[weather.amount('narrow') ?? 0] ?? 0
    if (to - from + 1 > bound) throw new UpstreamError('too_large', `-32602 query exceeds max block range ${bound}`)
    if (to > view.head || from > view.head) this.#above(from, view)
    if (pending && settings.mode === 'native' && settings.withoutPending === 'invalid')
      throw new UpstreamError('invalid', '-32602 pending is not supported')
    if (from <= view.head) this.#keeps(view, from)
    const found: WireLog[] = []
    for (let number = from; number <= Math.min(to, view.head); number += 1) {
      const block = view.block(number)
      for (const log of block ? this.#indexed(block) : [])
        if (block && listens(log)) found.push(wireLog(log, block.hash))
    }
    if (!pending || weather.is('pendingNull') || weather.is('pendingLatest')) return found
    const behind = weather.amount('pendingBehind')
    const shown = behind === null ? view.pending : chain.view(behind).pending
    return [...found, ...shown.filter(listens).map((log) => wireLog(log))]
  }

  /** A range above the head: nothing, which looks like a quiet chain, or one of two errors. */
  #above(from: number, view: View): void {
    const { aboveHead } = this.#options.settings
    if (aboveHead === 'behind')
      throw new UpstreamError('behind', '-32602 block range extends beyond current head block', null, true)
    if (aboveHead === 'invalid' && from > view.head)
      throw new UpstreamError('invalid', '-32602 invalid block range params')
  }

  #keeps(view: View, number: number): void {
    const kept = this.#options.weather.amount('gone')
    if (kept !== null && number <= view.head - kept) throw new UpstreamError('gone', '-32000 history is not available')
  }

  /** Some nodes show a block before its logs can be found. */
  #indexed({ logs, since }: Block): readonly Placed[] {
    const { clock, weather } = this.#options
    const unindexedMs = weather.amount('unindexed')
    return unindexedMs !== null && clock.frame - since < unindexedMs ? [] : logs
  }

  #numberOf(view: View, tag: string): number {
    if (tag === 'latest' || tag === 'pending') return view.head
    if (tag === 'safe') return view.safe
    if (tag === 'finalized') return view.finalized
    return Number(tag)
  }
}
