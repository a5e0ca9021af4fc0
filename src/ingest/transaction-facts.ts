import type { Hex } from '../protocol/fields.ts'
import type { PublishedFact } from './fact.ts'

/** The published facts of each transaction, in any block, so that a moved transaction is found again. */
export class TransactionFacts {
  /** Most transactions have one fact, which needs no set. */
  readonly #facts = new Map<Hex, PublishedFact | Set<PublishedFact>>()

  factsOf(tx: Hex): readonly PublishedFact[] {
    const facts = this.#facts.get(tx)
    if (facts instanceof Set) return [...facts]
    return facts ? [facts] : []
  }

  add(fact: PublishedFact): void {
    const { hash } = fact.draft.tx
    const facts = this.#facts.get(hash)
    if (facts instanceof Set) facts.add(fact)
    else this.#facts.set(hash, facts ? new Set([facts, fact]) : fact)
  }

  delete(fact: PublishedFact): void {
    const { hash } = fact.draft.tx
    const facts = this.#facts.get(hash)
    if (facts instanceof Set) facts.delete(fact)
    if (facts === fact || (facts instanceof Set && facts.size === 0)) this.#facts.delete(hash)
  }
}
