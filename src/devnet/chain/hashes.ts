import type { Deed, Transaction } from './block.ts'
import { digest, type Hex } from './hex.ts'

/** What transactions and blocks are called: what the seed says, until something happens that it does not tell. */
export class Lineage {
  #salt: string
  #hold = ''

  constructor(salt: string) {
    this.#salt = salt
  }

  nameOf(number: number, index: number, { from, to, input }: Deed): Hex {
    return digest(this.#salt, 'transaction', this.#hold, number, index, from, to, input)
  }

  // The parent's hash is not part of it: then a block's hash can be told without replaying the chain from its beginning.
  hashOf(number: number, transactions: readonly { hash: Hex }[]): Hex {
    return digest(this.#salt, 'block', this.#hold, number, ...transactions.map(({ hash }) => hash))
  }

  /** From here on every hash differs from the seed's chain, and commits to how this one came to differ. */
  part(transactions: readonly Transaction[], why = 'injected'): void {
    this.#hold = digest(this.#hold, why, ...transactions.flatMap(({ hash, logs }) => [hash, JSON.stringify(logs)]))
  }
}
