import type { KeyLifecycles } from './key-lifecycles.ts'
import type { Law, LawContext } from './law.ts'
import { isFact } from './published-facts.ts'

/**
 * I21: what is open stays on the tape, so that a reader of the sealed view can be given it. Only a tape with a small bound evicts
 * anything.
 */
export class OpenKeys implements Law {
  readonly #context: LawContext
  readonly #lifecycles: KeyLifecycles

  constructor(context: LawContext, lifecycles: KeyLifecycles) {
    this.#context = context
    this.#lifecycles = lifecycles
  }

  onTick(): void {
    const { settings, tape, violation, activeFaults } = this.#context
    if (settings.tapeBound !== undefined) for (const key of this.#lifecycles.all.keys()) this.#checkKey(key)
    // A relay that starts with a clock a day ahead takes everything for old.
    else if (tape().oldest() > 0 && !(activeFaults.occurs('clockStepped') && activeFaults.occursAt('relay')))
      violation('I21', `the tape has evicted all up to ${tape().oldest()}`)
  }

  #checkKey(key: string): void {
    const { tape, violation } = this.#context
    if (this.#lifecycles.all.get(key)?.state !== 'open') return
    const isKept = tape()
      .find({ key })
      .some(({ update }) => isFact(update))
    if (!isKept) violation('I21', `${key} was evicted while it was open`)
  }
}
