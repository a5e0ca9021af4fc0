import type { Entry } from '../../../src/tape/tape.ts'
import type { Law, Scene } from './law.ts'

/** Watermarks are polled; then they take a moment. */
const TELL_BOUND_MS = 20_000

/** What is told of safety and finality is so, and only grows. */
export class Watermarks implements Law {
  readonly #scene: Scene
  readonly #told = { safe: -1, finalized: -1 }

  constructor(scene: Scene) {
    this.#scene = scene
  }

  turn(entries: readonly Entry[]): void {
    const { broken, chain } = this.#scene
    for (const { update } of entries) {
      if (update.type !== 'finality') continue
      const { id, stage, block } = update
      const now = chain.marks.at(-1)
      if (block.number > (now?.[stage] ?? 0)) broken('I3', `${id}: block ${block.number} is not ${stage}`)
      if (chain.block(block.number)?.hash !== block.hash)
        broken('I3', `${id}: block ${block.number} is not ${block.hash}`)
      if (block.number <= this.#told[stage]) broken('I1', `${id}: ${stage} goes back to ${block.number}`)
      this.#told[stage] = block.number
    }
  }

  end(recovered: boolean): void {
    const { broken, chain, clock } = this.#scene
    if (!recovered) return
    const then = chain.marks.findLast(({ at }) => at <= clock.frame - TELL_BOUND_MS)
    for (const stage of ['safe', 'finalized'] as const) {
      const due = then?.[stage] ?? 0
      if (this.#told[stage] < due) broken('I5', `${stage} is ${due}, told was ${this.#told[stage]}`)
    }
  }
}
