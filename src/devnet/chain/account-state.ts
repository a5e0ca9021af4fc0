import { keccak256 } from 'viem/utils'
import { type HexString, toWord } from './hex.ts'

/** What is held under each key: wei, counts, code, and the words of storage slots, all as numbers. */
export type StateValues = ReadonlyMap<string, bigint>

/** Tells what is held under a key. */
export type ReadState = (key: string) => bigint

/** One change to what is held under a key. */
export type StateWrite = { key: string; change: (value: bigint) => bigint }

/** The write of a value, whatever was there. */
export const writeValue = (key: string, value: bigint): StateWrite => ({ key, change: () => value })

export const etherKey = (address: HexString) => `ether ${address}`
export const nonceKey = (address: HexString) => `nonce ${address}`
export const codeKey = (address: HexString) => `code ${address}`
export const storageKey = (address: HexString, slot: HexString) => `slot ${address} ${slot}`

/** How many computed slots are remembered. */
const SLOTS_BOUND = 10_000
const slotCache = new Map<string, HexString>()

/** The slot of a key in a mapping that stands at `base`, as Solidity lays it out: keccak256(key ++ base). */
export const mappingSlot = (key: HexString, base: HexString): HexString => {
  const cacheKey = key + base
  const cached = slotCache.get(cacheKey)
  if (cached) return cached
  if (slotCache.size >= SLOTS_BOUND) slotCache.clear()
  const slot = keccak256(`0x${toWord(key).slice(2)}${base.slice(2)}`)
  slotCache.set(cacheKey, slot)
  return slot
}

/** What every account and slot holds: as sealed, and on top of it as pre-confirmed. */
export class DevnetState {
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

  /** Makes what is pre-confirmed the sealed state; returns what its keys held before. */
  seal(): StateValues {
    const valuesBefore = new Map<string, bigint>()
    for (const [key, value] of this.#pending) {
      valuesBefore.set(key, this.readSealed(key))
      this.#sealed.set(key, value)
    }
    this.#pending.clear()
    return valuesBefore
  }

  /** Forgets what is pre-confirmed. */
  discard(): void {
    this.#pending.clear()
  }

  /** Takes a seal back. */
  unseal(valuesBefore: StateValues): void {
    for (const [key, value] of valuesBefore) this.#sealed.set(key, value)
  }
}
