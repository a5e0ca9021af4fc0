import { keccak256 } from 'viem/utils'
import { type Hex, toWord } from '../../lib/hex.ts'

export type StateValues = ReadonlyMap<string, bigint>

export type ReadState = (key: string) => bigint

export type StateWrite = { key: string; change: (value: bigint) => bigint }

export const writeValue = (key: string, value: bigint): StateWrite => ({ key, change: () => value })

export const etherKey = (address: Hex) => `ether ${address}`
export const nonceKey = (address: Hex) => `nonce ${address}`
export const codeKey = (address: Hex) => `code ${address}`
export const storageKey = (address: Hex, slot: Hex) => `slot ${address} ${slot}`

const SLOTS_BOUND = 10_000
const slotCache = new Map<string, Hex>()

/** Returns the slot of a mapping's key, computed as in Solidity: keccak256(key ++ base). Results are cached. */
export const mappingSlot = (key: Hex, base: Hex): Hex => {
  const cacheKey = key + base
  const cached = slotCache.get(cacheKey)
  if (cached) return cached
  if (slotCache.size >= SLOTS_BOUND) slotCache.clear()
  const slot = keccak256(`0x${toWord(key).slice(2)}${base.slice(2)}`)
  slotCache.set(cacheKey, slot)
  return slot
}

/** Values by key, sealed and pre-confirmed: ether in wei, nonces, code and storage slots, all as numbers. */
export class AccountState {
  #sealed: Map<string, bigint>
  #pending = new Map<string, bigint>()

  constructor(initialState: StateValues) {
    this.#sealed = new Map(initialState)
  }

  readSealed(key: string): bigint {
    return this.#sealed.get(key) ?? 0n
  }

  readPending(key: string): bigint {
    return this.#pending.get(key) ?? this.readSealed(key)
  }

  write({ key, change }: StateWrite): void {
    this.#pending.set(key, change(this.readPending(key)))
  }

  /** Seals the pre-confirmed values. Returns the values that their keys had before. */
  seal(): StateValues {
    const valuesBefore = new Map<string, bigint>()
    for (const [key, value] of this.#pending) {
      valuesBefore.set(key, this.readSealed(key))
      this.#sealed.set(key, value)
    }
    this.#pending.clear()
    return valuesBefore
  }

  discard(): void {
    this.#pending.clear()
  }

  unseal(valuesBefore: StateValues): void {
    for (const [key, value] of valuesBefore) this.#sealed.set(key, value)
  }
}
