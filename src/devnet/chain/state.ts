import { keccak256 } from 'viem/utils'
import { type Hex, word } from './hex.ts'

/** What is held under each key: wei, counts, code, and the words of storage slots, all as numbers. */
export type Values = ReadonlyMap<string, bigint>

/** Tells what is held under a key. */
export type Held = (key: string) => bigint

/** One change to what is held under a key. */
export type Write = { key: string; change: (held: bigint) => bigint }

/** The write of a value, whatever was there. */
export const set = (key: string, value: bigint): Write => ({ key, change: () => value })

export const etherOf = (address: Hex) => `ether ${address}`
export const nonceOf = (address: Hex) => `nonce ${address}`
export const codeOf = (address: Hex) => `code ${address}`
export const slotOf = (address: Hex, slot: Hex) => `slot ${address} ${slot}`

/** How many computed slots are remembered. */
const SLOTS_BOUND = 10_000
const slots = new Map<string, Hex>()

/** The slot of a key in a mapping that stands at `base`, as Solidity lays it out: keccak256(key ++ base). */
export const mappingSlot = (key: Hex, base: Hex): Hex => {
  const name = key + base
  const known = slots.get(name)
  if (known) return known
  if (slots.size >= SLOTS_BOUND) slots.clear()
  const slot = keccak256(`0x${word(key).slice(2)}${base.slice(2)}`)
  slots.set(name, slot)
  return slot
}

/** What every account and slot holds: as sealed, and on top of it as pre-confirmed. */
export class State {
  #sealed: Map<string, bigint>
  #pending = new Map<string, bigint>()

  constructor(opening: Values) {
    this.#sealed = new Map(opening)
  }

  sealed(key: string): bigint {
    return this.#sealed.get(key) ?? 0n
  }

  pending(key: string): bigint {
    return this.#pending.get(key) ?? this.sealed(key)
  }

  write({ key, change }: Write): void {
    this.#pending.set(key, change(this.pending(key)))
  }

  /** Makes what is pre-confirmed the sealed state; returns what its keys held before. */
  seal(): Values {
    const before = new Map<string, bigint>()
    for (const [key, value] of this.#pending) {
      before.set(key, this.sealed(key))
      this.#sealed.set(key, value)
    }
    this.#pending.clear()
    return before
  }

  /** Forgets what is pre-confirmed. */
  discard(): void {
    this.#pending.clear()
  }

  /** Takes a seal back. */
  unseal(before: Values): void {
    for (const [key, value] of before) this.#sealed.set(key, value)
  }
}
