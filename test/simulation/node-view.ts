import type { Hex } from '../../src/lib/hex.ts'
import { type PendingBlock, type PlacedLog, placeLogs, type SimulatedBlock } from './simulated-block.ts'
import type { SimulatedChain, Watermarks } from './simulated-chain.ts'

/** The chain as one node shows it at one moment, which may lie in the past. */
export class NodeView {
  readonly #chain: SimulatedChain
  readonly #atMs: number
  readonly #sealedAtMs: number
  readonly #watermarks: Watermarks

  /** `at` selects the pending block, `sealedAt` the sealed ones: a node may follow one faster than the other. */
  constructor(chain: SimulatedChain, at: number, sealedAt: number) {
    this.#chain = chain
    this.#atMs = at
    this.#sealedAtMs = sealedAt
    const watermarks = chain.watermarks.findLast((mark) => mark.at <= sealedAt) ?? chain.watermarks[0]
    if (!watermarks) throw new Error('a chain without blocks')
    this.#watermarks = watermarks
  }

  get head(): number {
    return this.#watermarks.number
  }

  get safe(): number {
    return this.#watermarks.safe
  }

  get finalized(): number {
    return this.#watermarks.finalized
  }

  block(number: number): SimulatedBlock | undefined {
    if (number > this.head) return undefined
    return this.#chain.blocksByNumber
      .get(number)
      ?.findLast(({ canonicalFrom, canonicalUntil }) => canonicalFrom <= this.#sealedAtMs && this.#sealedAtMs < canonicalUntil)
  }

  blockByHash(hash: Hex): SimulatedBlock | undefined {
    const block = this.#chain.blocksByHash.get(hash)
    return block && block === this.block(block.number) ? block : undefined
  }

  /** The newest pending block, if any part of it is shown. */
  get pendingBlock(): PendingBlock | undefined {
    return this.#shownBlocks.at(-1)
  }

  /** All pre-confirmed logs. They span several blocks where the sealed chain lags behind. */
  get pendingLogs(): readonly PlacedLog[] {
    return this.#shownBlocks.flatMap((pendingBlock) => placeLogs(pendingBlock, this.shownTransactionsOf(pendingBlock)))
  }

  shownTransactionsOf({ txs, shownAt }: PendingBlock): PendingBlock['txs'] {
    const later = shownAt.findIndex((at) => at > this.#atMs)
    return later < 0 ? txs : txs.slice(0, later)
  }

  get #shownBlocks(): readonly PendingBlock[] {
    const shown: PendingBlock[] = []
    for (let nth = this.#chain.pendingBlocks.length - 1; nth >= 0; nth -= 1) {
      const pendingBlock = this.#chain.pendingBlocks[nth]
      if (!pendingBlock || pendingBlock.number <= this.head) break
      const hasBegun = pendingBlock.startedAt <= this.#atMs && pendingBlock.hiddenFrom > this.#atMs
      if (hasBegun && !(pendingBlock.abandoned && pendingBlock.endedAt <= this.#atMs)) shown.unshift(pendingBlock)
    }
    return shown
  }
}
