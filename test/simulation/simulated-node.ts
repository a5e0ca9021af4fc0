import type { DevnetBlock, DevnetLog } from '../../src/devnet/chain/chain-types.ts'
import { answerCall } from '../../src/devnet/node/eth-call.ts'
import { CallError } from '../../src/devnet/node/json-rpc.ts'
import { type Hex, ZERO_WORD } from '../../src/lib/hex.ts'
import { UpstreamError } from '../../src/relay/chain/rpc/upstream-error.ts'
import type { ActiveFaults } from './active-faults.ts'
import { isOfManager, matchesFilter, type NodeFilter } from './node-filter.ts'
import type { NodeView } from './node-view.ts'
import type { SimulatedBlock, SimulatedChain } from './simulated-chain.ts'
import { applyNodeTraits, headerJson, type JsonObject } from './simulated-node-json.ts'
import { answerPoolCall, poolSlot } from './simulated-pools.ts'
import { hex } from './simulated-transactions.ts'
import type { Settings } from './simulation-settings.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** After how many logs a page ends without a word. */
const PAGE_COUNTS = [20, 100, 500, 1_000]
/** How wide a range may be: the promised bound first, then those of stricter nodes. */
const RANGE_BOUNDS = [2_000, 500, 10, 5]
const RESULTS_BOUND = 10_000

type Filter = NodeFilter & { readonly blockHash?: Hex; readonly fromBlock?: string; readonly toBlock?: string }

type Call = { readonly to: Hex; readonly data: Hex }

type Options = {
  readonly settings: Settings
  readonly chain: SimulatedChain
  readonly clock: VirtualClock
  readonly activeFaults: ActiveFaults
}

/** How a node refuses the logs of a pool manager, as the real client reads it. Such an answer says nothing against the node. */
const managerRefusals: readonly UpstreamError[] = [
  new UpstreamError('invalid', '-32602 filter not supported'),
  new UpstreamError('unknown', '-32000 filter not supported', null, true),
  new UpstreamError('unknown_method', '-32601 filter not supported'),
]

const unknownMethod = (method: string) => new UpstreamError('unknown_method', `-32601 the method ${method} does not exist`)

/** The node's answers, with all its quirks. The network in between is `SimulatedRpc`. */
export class SimulatedNode {
  readonly #options: Options

  constructor(options: Options) {
    this.#options = options
  }

  /** Returns or throws. `behindMs`: how far the machine that answers lags behind the others of its name. */
  answer(method: string, params: readonly unknown[], behindMs: number): unknown {
    const { chain, settings } = this.#options
    const view = chain.viewBehind(behindMs, behindMs + settings.sealedLagMs)
    switch (method) {
      case 'eth_getBlockByNumber':
        return this.#blockByTag(view, String(params[0]))
      case 'eth_getLogs':
        return this.#logs(view, params[0] as Filter)
      case 'eth_call':
        if (settings.answersCalls) return this.#call(view, params[0] as Call, String(params[1]))
        throw unknownMethod(method)
      case 'eth_getStorageAt':
        return this.#slot(view, params as readonly [Hex, Hex, string])
      case 'eth_blockNumber':
        return `0x${view.head.toString(16)}`
      case 'eth_chainId':
        return '0x2105'
      default:
        throw unknownMethod(method)
    }
  }

  /** What a broken cache takes a question about the logs of one block for: the same about the last block before it that has some. */
  aboutAnotherBlock(params: readonly unknown[]): readonly unknown[] {
    const filter = params[0] as Filter
    const { blocksByHash } = this.#options.chain
    const hasLogs = ({ logs }: SimulatedBlock) => logs.some(({ content }) => matchesFilter(filter, content))
    let block = blocksByHash.get(filter.blockHash ?? '0x')
    do block = block && blocksByHash.get(block.parentHash)
    while (block && !hasLogs(block))
    return block ? [{ ...filter, blockHash: block.hash }] : params
  }

  #call(view: NodeView, { to, data }: Call, tag: string): string {
    const block = this.#blockOf(view, tag)
    const answer = answerPoolCall(to, data, block.state.read)
    if (answer !== null) return answer
    try {
      return answerCall({ readState: block.state.read, timestamp: block.timestamp }, to, data)
    } catch (failure) {
      if (!(failure instanceof CallError)) throw failure
      throw new UpstreamError('reverted', `${failure.code} ${failure.message}`)
    }
  }

  #slot(view: NodeView, [account, slot, tag]: readonly [Hex, Hex, string]): Hex {
    return poolSlot(account, slot, this.#blockOf(view, tag).state.read) ?? ZERO_WORD
  }

  #blockOf(view: NodeView, tag: string): DevnetBlock {
    const block = view.block(this.#numberOf(view, tag))
    if (!block) throw new UpstreamError('behind', '-32000 header not found', null, true)
    return block
  }

  #blockByTag(view: NodeView, tag: string): JsonObject | null {
    const { activeFaults, settings } = this.#options
    if (tag === 'pending') return this.#pending(view)
    if (tag === 'safe' || tag === 'finalized') {
      const refused = settings.finalityUnknown ? 0 : activeFaults.amount('noFinality')
      if (refused === 0) throw new UpstreamError('invalid', `-32602 unknown block tag ${tag}`)
      if (refused !== null) return null
    }
    const block = view.block(this.#numberOf(view, tag))
    return block ? headerJson(block) : null
  }

  #pending(view: NodeView): JsonObject | null {
    const { chain, settings, activeFaults } = this.#options
    if (activeFaults.isActive('pendingNull')) return null
    const latest = view.block(view.head)
    const behind = activeFaults.amount('pendingBehind')
    const { pending } = behind === null ? view : chain.viewBehind(behind)
    if (!pending || !latest || activeFaults.isActive('pendingLatest')) {
      if (settings.withoutPending === 'invalid') throw new UpstreamError('invalid', '-32602 no pending block')
      return settings.withoutPending === 'null' || !latest ? null : headerJson(latest)
    }
    const partial = hex(64, 0xf1a5_0000n * 2n ** 64n + BigInt(pending.transactions.length))
    const shown = headerJson(activeFaults.isActive('pendingHashed') ? { ...pending, hash: partial } : pending)
    return activeFaults.isActive('pendingNumberless') ? { ...shown, number: null, hash: null } : shown
  }

  #logs(view: NodeView, filter: Filter): readonly JsonObject[] {
    const { settings, activeFaults } = this.#options
    const { traits } = settings
    const refused = isOfManager(filter) ? managerRefusals[activeFaults.amount('managersRefused') ?? -1] : undefined
    if (refused) throw refused
    const all = traits.includes('unfiltered')
    const matches = (log: DevnetLog) => all || matchesFilter(filter, log)
    const found =
      filter.blockHash === undefined
        ? this.#page(this.#range(view, filter, matches))
        : this.#byHash(view, filter.blockHash, matches)
    const bound = activeFaults.amount('fewResults') ?? RESULTS_BOUND
    if (found.length > bound) throw new UpstreamError('too_large', `-32602 query exceeds max results ${bound}`)
    const formatted = found.map((log) => applyNodeTraits(traits, log))
    return traits.includes('unsorted') ? formatted.reverse() : formatted
  }

  /** A page never ends inside its first block: in a range of one block that cannot be noticed. */
  #page(found: readonly DevnetLog[]): readonly DevnetLog[] {
    const index = this.#options.activeFaults.amount('truncatedPages')
    if (index === null) return found
    const firstBlock = found.filter(({ blockNumber }) => blockNumber === found[0]?.blockNumber)
    return found.slice(0, Math.max(firstBlock.length, PAGE_COUNTS[index] ?? 0))
  }

  #byHash(view: NodeView, hash: Hex, matches: (log: DevnetLog) => boolean): readonly DevnetLog[] {
    const { chain, settings } = this.#options
    if (!settings.byHash) throw new UpstreamError('invalid', '-32602 blockHash is not supported')
    const orphan = settings.traits.includes('orphans') ? chain.blocksByHash.get(hash)?.onChain : undefined
    const block = view.blockByHash(hash) ?? orphan
    if (!block) throw new UpstreamError('behind', '-32000 header not found', null, true)
    this.#assertHistoryKept(view, block.number)
    return this.#indexed(block).filter(matches)
  }

  #range(view: NodeView, filter: Filter, matches: (log: DevnetLog) => boolean): readonly DevnetLog[] {
    const { chain, settings, activeFaults } = this.#options
    const from = this.#numberOf(view, filter.fromBlock ?? 'latest')
    const pending = filter.toBlock === 'pending'
    const to = pending ? view.head : this.#numberOf(view, filter.toBlock ?? 'latest')
    const bound = RANGE_BOUNDS[activeFaults.amount('narrowRanges') ?? 0] ?? 0
    if (to - from + 1 > bound) throw new UpstreamError('too_large', `-32602 query exceeds max block range ${bound}`)
    if (to > view.head || from > view.head) this.#rejectAboveHead(from, view)
    if (pending && settings.mode === 'native' && settings.withoutPending === 'invalid')
      throw new UpstreamError('invalid', '-32602 pending is not supported')
    if (from <= view.head) this.#assertHistoryKept(view, from)
    const found: DevnetLog[] = []
    for (let number = from; number <= Math.min(to, view.head); number += 1) {
      const block = view.block(number)
      if (block) found.push(...this.#indexed(block).filter(matches))
    }
    if (!pending || activeFaults.isActive('pendingNull') || activeFaults.isActive('pendingLatest')) return found
    const behind = activeFaults.amount('pendingBehind')
    const shown = behind === null ? view.pendingLogs : chain.viewBehind(behind).pendingLogs
    return [...found, ...shown.filter(matches)]
  }

  /** A range above the head gives nothing, which looks like a quiet chain, or one of two errors. */
  #rejectAboveHead(from: number, view: NodeView): void {
    const { aboveHead } = this.#options.settings
    if (aboveHead === 'behind')
      throw new UpstreamError('behind', '-32602 block range extends beyond current head block', null, true)
    if (aboveHead === 'invalid' && from > view.head) throw new UpstreamError('invalid', '-32602 invalid block range params')
  }

  #assertHistoryKept(view: NodeView, number: number): void {
    const kept = this.#options.activeFaults.amount('historyPruned')
    if (kept !== null && number <= view.head - kept) throw new UpstreamError('gone', '-32000 history is not available')
  }

  /** Some nodes show a block before they find its logs. */
  #indexed({ hash, logs }: DevnetBlock): readonly DevnetLog[] {
    const { chain, clock, activeFaults } = this.#options
    const unindexedMs = activeFaults.amount('lateIndexing')
    const canonicalFrom = chain.blocksByHash.get(hash)?.canonicalFrom ?? 0
    return unindexedMs !== null && clock.elapsedMs - canonicalFrom < unindexedMs ? [] : logs
  }

  #numberOf(view: NodeView, tag: string): number {
    if (tag === 'latest' || tag === 'pending') return view.head
    if (tag === 'safe') return view.safe
    if (tag === 'finalized') return view.finalized
    return Number(tag)
  }
}
