import { hash } from 'node:crypto'
import type { Hex } from '../../lib/hex.ts'
import type { DevnetTransaction, UnsignedTransaction } from './chain-types.ts'

/** Hashes of transactions and blocks. The seed determines them until a test or a fault changes the chain. */
export class ChainHashes {
  #salt: string
  #divergence = ''

  constructor(salt: string) {
    this.#salt = salt
  }

  transactionHash(blockNumber: number, index: number, { from, to, input }: UnsignedTransaction): Hex {
    return digest(this.#salt, 'transaction', this.#divergence, blockNumber, index, from, to, input)
  }

  // Omits the hash of the parent, so that the hash of a block is known without a replay from block 0.
  blockHash(blockNumber: number, transactions: readonly { hash: Hex }[]): Hex {
    return digest(this.#salt, 'block', this.#divergence, blockNumber, ...transactions.map(({ hash }) => hash))
  }

  /** Makes every later hash depend on these transactions, and so differ from the hash that the seed determines. */
  diverge(transactions: readonly DevnetTransaction[], reason = 'injected'): void {
    this.#divergence = digest(this.#divergence, reason, ...transactions.flatMap(({ hash, logs }) => [hash, JSON.stringify(logs)]))
  }
}

/**
 * Returns 32 bytes that depend on the parts. It uses SHA-256 instead of keccak: clients see no difference, and the native
 * hash builds hundreds of past blocks fast.
 */
export const digest = (...parts: readonly (string | number)[]): Hex => `0x${hash('sha256', parts.join('\n'))}`
