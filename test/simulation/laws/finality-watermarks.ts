import type { Entry } from '../../../src/relay/tape/tape.ts'
import type { Law, LawContext } from './law.ts'

/** Finality is polled every 10 s, and the answer takes a moment. */
const PUBLISH_TIMEOUT_MS = 20_000

/** Published safe and finalized blocks are true, and only grow. */
export class FinalityWatermarks implements Law {
  readonly #context: LawContext
  readonly #published = { safe: -1, finalized: -1 }

  constructor(context: LawContext) {
    this.#context = context
  }

  onBatch(entries: readonly Entry[]): void {
    const { violation, chain } = this.#context
    for (const { update } of entries) {
      if (update.type !== 'finality') continue
      const { id, stage, block } = update
      const current = chain.watermarks.at(-1)
      if (block.number > (current?.[stage] ?? 0)) violation('I3', `${id}: block ${block.number} is not ${stage}`)
      if (chain.block(block.number)?.hash !== block.hash) violation('I3', `${id}: block ${block.number} is not ${block.hash}`)
      if (block.number <= this.#published[stage]) violation('I1', `${id}: ${stage} goes back to ${block.number}`)
      this.#published[stage] = block.number
    }
  }

  onEnd(recovered: boolean): void {
    const { violation, chain, clock, settings } = this.#context
    if (!recovered || settings.finalityUnknown) return
    const dueMark = chain.watermarks.findLast(({ at }) => at <= clock.elapsedMs - PUBLISH_TIMEOUT_MS)
    for (const stage of ['safe', 'finalized'] as const) {
      const due = dueMark?.[stage] ?? 0
      // The simulated chain has no block from before its beginning, so the node does not answer with one.
      if (this.#published[stage] < due && chain.block(due))
        violation('I5', `${stage} is ${due}, published is ${this.#published[stage]}`)
    }
  }
}
