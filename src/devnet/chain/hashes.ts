import { hash } from 'node:crypto'
import type { Hex } from '../../lib/hex.ts'
import type { DevnetTransaction, UnsignedTransaction } from './block-types.ts'

/** Hashes of transactions and blocks. The seed determines them until something happens that it does not determine. */
export class ChainHashes {
  #salt: string
  #divergence = ''

  constructor(salt: string) {
    this.#salt = salt
  }

  transactionHash(blockNumber: number, index: number, { from, to, input }: UnsignedTransaction): Hex {
    return digest(this.#salt, 'transaction', this.#divergence, blockNumber, index, from, to, input)
  }

  // Without the parent's hash, so that a block's hash is known without replaying the chain from block 0.
  blockHash(blockNumber: number, transactions: readonly { hash: Hex }[]): Hex {
    return digest(this.#salt, 'block', this.#divergence, blockNumber, ...transactions.map(({ hash }) => hash))
  }

  /** From here on every hash differs from the seed's chain, and depends on what made this one differ. */
  diverge(transactions: readonly DevnetTransaction[], reason = 'injected'): void {
    this.#divergence = digest(this.#divergence, reason, ...transactions.flatMap(({ hash, logs }) => [hash, JSON.stringify(logs)]))
  }
}

/**
 * 32 bytes derived from some parts: block hashes, transaction hashes, roots, addresses of actors.
 * SHA-256 instead of keccak: clients see no difference, and the native hash builds hundreds of past blocks fast.
 */
export const digest = (...parts: readonly (string | number)[]): Hex => `0x${hash('sha256', parts.join('\n'))}`
