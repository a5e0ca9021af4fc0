import { keccak256 } from 'viem/utils'
import { memoized } from '../../lib/bounded-map.ts'
import { type Hex, toWord } from '../../lib/hex.ts'

export type StateValues = ReadonlyMap<string, bigint>

export type ReadState = (key: string) => bigint

export type StateWrite = { key: string } & ({ value: bigint } | { change: (value: bigint) => bigint })

export const writeValue = (key: string, value: bigint): StateWrite => ({ key, value })

/** Returns the value after a write. Most writes need no read, which is slow. */
export const valueAfter = (write: StateWrite, read: ReadState): bigint =>
  'value' in write ? write.value : write.change(read(write.key))

export const etherKey = (address: Hex) => `ether ${address}`
export const nonceKey = (address: Hex) => `nonce ${address}`
export const codeKey = (address: Hex) => `code ${address}`
export const storageKey = (address: Hex, slot: Hex) => `slot ${address} ${slot}`

const SLOTS_BOUND = 10_000

/** Returns the slot of a mapping's key, computed as in Solidity: keccak256(key ++ base). */
export const mappingSlot = memoized(SLOTS_BOUND, (key: Hex, base: Hex): Hex => keccak256(`${toWord(key)}${base.slice(2)}`))

/** Limit of the layers of a state. A block that changes anything has one. */
const LAYERS_BOUND = 64

/** Values by key: ether in wei, nonces, code and storage slots, all as numbers. A change makes another state. */
export class AccountState {
  #values: StateValues
  #below: AccountState | undefined
  #depth: number

  constructor(values: StateValues, below?: AccountState) {
    this.#values = values
    this.#below = below
    this.#depth = below ? below.#depth + 1 : 1
  }

  readonly read: ReadState = (key) => {
    for (let layer: AccountState | undefined = this; layer; layer = layer.#below) {
      const value = layer.#values.get(key)
      if (value !== undefined) return value
    }
    return 0n
  }

  /** Changes values in the uppermost layer. */
  with(values: StateValues): AccountState {
    return new AccountState(new Map([...this.#values, ...values]), this.#below)
  }

  /** Begins a layer on top. */
  next(): AccountState {
    if (this.#values.size === 0) return this
    if (this.#depth < LAYERS_BOUND) return new AccountState(new Map(), this)
    const layers: StateValues[] = []
    for (let layer: AccountState | undefined = this; layer; layer = layer.#below) layers.unshift(layer.#values)
    return new AccountState(new Map(), new AccountState(new Map(layers.flatMap((values) => [...values]))))
  }
}
