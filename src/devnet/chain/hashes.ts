import { hash } from 'node:crypto'
import type { Hex } from '../../lib/hex.ts'
import type { DevnetTransaction, UnsignedTransaction } from './chain-types.ts'

/** Hashes of transactions and blocks. The seed determines them until something else changes the chain. */
export class ChainHashes {
  #salt: string
  #divergence = ''

  constructor(salt: string) {
    this.#salt = salt
  }

  transactionHash(blockNumber: number, index: number, { from, to, input }: UnsignedTransaction): Hex {
    return digest(this.#salt, 'transaction', this.#divergence, blockNumber, index, from, to, input)
  }

  // The parent's hash is not part of it, so a block's hash is known without replaying the chain from block 0.
  blockHash(blockNumber: number, transactions: readonly { hash: Hex }[]): Hex {
    return digest(this.#salt, 'block', this.#divergence, blockNumber, ...transactions.map(({ hash }) => hash))
  }

  /** Makes every later hash differ from the seed's chain, and depend on what made this block differ. */
  diverge(transactions: readonly DevnetTransaction[], reason = 'injected'): void {
    this.#divergence = digest(this.#divergence, reason, ...transactions.flatMap(({ hash, logs }) => [hash, JSON.stringify(logs)]))
  }
}

/**
 * 32 bytes derived from some parts. SHA-256 instead of keccak: clients see no difference, and the native hash builds
 * hundreds of past blocks fast.
 */
export const digest = (...parts: readonly (string | number)[]): Hex => `0x${hash('sha256', parts.join('\n'))}`
