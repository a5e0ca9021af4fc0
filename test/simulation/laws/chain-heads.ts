import { headNote } from '../../../src/relay/notes/published-notes.ts'
import type { Law, LawContext } from './law.ts'

/** I22: the heads that the relay names are ones that the chain had: nothing is kept from one false message. */
export class ChainHeads implements Law {
  readonly #context: LawContext
  #highest: number

  constructor(context: LawContext) {
    this.#context = context
    this.#highest = context.chain.head
    context.chain.events.subscribe(() => {
      this.#highest = Math.max(this.#highest, context.chain.head)
    })
  }

  onTick(): void {
    const { tape, violation } = this.#context
    const head = tape().notes.note(headNote)
    if (!head) return
    const wrong = [
      ['sealed', head.sealed, this.#highest],
      ['pending', head.pending, this.#highest + 1],
    ] as const
    for (const [name, number, highest] of wrong)
      if ((number ?? 0) > highest) violation('I22', `the ${name} head is ${number}, and the chain never had more than ${highest}`)
  }
}
