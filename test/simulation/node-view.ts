import type { DevnetBlock, DevnetLog, PendingDevnetBlock } from '../../src/devnet/chain/chain-types.ts'
import type { Hex } from '../../src/lib/hex.ts'
import type { PendingBlock, SimulatedChain, Watermarks } from './simulated-chain.ts'

/** The chain as one node shows it at one moment, which may lie in the past. */
export class NodeView {
  readonly #chain: SimulatedChain
  readonly #atMs: number
  readonly #watermarks: Watermarks

  /** `at` selects the pending block, `sealedAt` the sealed ones: a node may follow one faster than the other. */
  constructor(chain: SimulatedChain, at: number, sealedAt: number) {
    this.#chain = chain
    this.#atMs = at
    const watermarks = chain.watermarks.findLast((mark) => mark.at <= sealedAt) ?? chain.watermarks[0]
    if (!watermarks) throw new Error('a chain without blocks')
    this.#watermarks = watermarks
  }

  /** The sealed blocks. */
  get chain(): Watermarks['chain'] {
    return this.#watermarks.chain
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

  block(number: number): DevnetBlock | undefined {
    return this.chain.block(number)
  }

  blockByHash(hash: Hex): DevnetBlock | undefined {
    const block = this.#chain.blocksByHash.get(hash)?.onChain
    return block && block === this.block(block.number) ? block : undefined
  }

  /** The newest pending block, if any part of it is shown. */
  get pending(): PendingDevnetBlock | undefined {
    return this.#shownBlocks.at(-1)
  }

  /** All pre-confirmed logs. They span several blocks where the sealed chain lags behind. */
  get pendingLogs(): readonly DevnetLog[] {
    return this.#shownBlocks.flatMap(({ logs }) => logs)
  }

  get #shownBlocks(): readonly PendingDevnetBlock[] {
    const shown: PendingDevnetBlock[] = []
    for (let nth = this.#chain.pendingBlocks.length - 1; nth >= 0; nth -= 1) {
      const pendingBlock = this.#chain.pendingBlocks[nth]
      if (!pendingBlock || pendingBlock.number <= this.head) break
      const version = this.#isShown(pendingBlock) ? pendingBlock.versions.findLast(({ at }) => at <= this.#atMs) : undefined
      if (version) shown.unshift(version.block)
    }
    return shown
  }

  #isShown({ startedAt, endedAt, hiddenFrom, abandoned }: PendingBlock): boolean {
    const atMs = this.#atMs
    return startedAt <= atMs && hiddenFrom > atMs && !(abandoned && endedAt <= atMs)
  }
}
