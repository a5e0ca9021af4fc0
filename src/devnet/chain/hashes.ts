import type { DevnetTransaction, UnsignedTransaction } from './block.ts'
import { digest, type HexString } from './hex.ts'

/** What transactions and blocks are called: what the seed says, until something happens that it does not tell. */
export class ChainHashes {
  #salt: string
  #divergence = ''

  constructor(salt: string) {
    this.#salt = salt
  }

  transactionHash(blockNumber: number, index: number, { from, to, input }: UnsignedTransaction): HexString {
    return digest(this.#salt, 'transaction', this.#divergence, blockNumber, index, from, to, input)
  }

  // The parent's hash is not part of it: then a block's hash can be told without replaying the chain from its beginning.
  blockHash(blockNumber: number, transactions: readonly { hash: HexString }[]): HexString {
    return digest(this.#salt, 'block', this.#divergence, blockNumber, ...transactions.map(({ hash }) => hash))
  }

  /** From here on every hash differs from the seed's chain, and commits to how this one came to differ. */
  diverge(transactions: readonly DevnetTransaction[], reason = 'injected'): void {
    this.#divergence = digest(
      this.#divergence,
      reason,
      ...transactions.flatMap(({ hash, logs }) => [hash, JSON.stringify(logs)]),
    )
  }
}
