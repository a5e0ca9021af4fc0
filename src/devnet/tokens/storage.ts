import { parseUnits } from 'viem/utils'
import { type Hex, word } from '../chain/hex.ts'
import { type Held, slotOf, type Values } from '../chain/state.ts'
import type { Token } from './listed.ts'

/** How many decimals a multiplier has. */
export const MULTIPLIER_DECIMALS = 18
const ONE = 10n ** 18n

/** The cap of a token that has none. */
export const NO_CAP = 2n ** 128n - 1n

/** How long a text may be that a slot holds. */
const TEXT_BOUND_BYTES = 31

// What a token says of itself stands after balances, allowances and the supply.
const at = (slot: bigint) => (token: Hex) => slotOf(token, word(slot))
export const multiplierOf = at(3n)
export const scheduledOf = at(4n)
export const effectiveAtOf = at(5n)
export const pausesOf = at(6n)
export const nameOf = at(7n)
export const symbolOf = at(8n)
export const supplyCapOf = at(9n)

/** What a token says of itself when it is issued. */
export const issued = ({ address, name, symbol, multiplier }: Token): Values =>
  new Map([
    [multiplierOf(address), parseUnits(multiplier, MULTIPLIER_DECIMALS)],
    [nameOf(address), wordOfText(name)],
    [symbolOf(address), wordOfText(symbol)],
    [supplyCapOf(address), NO_CAP],
  ])

/** The multiplier by a time, 18 decimals: what was scheduled takes effect without a write. A token that never had one has 1. */
export const multiplierAt = (held: Held, token: Hex, timestamp: number): bigint => {
  const effectiveAt = held(effectiveAtOf(token))
  const matured = effectiveAt !== 0n && effectiveAt <= timestamp
  return held(matured ? scheduledOf(token) : multiplierOf(token)) || ONE
}

/** Whether a schedule still lies ahead. */
export const isScheduled = (held: Held, token: Hex, timestamp: number): boolean =>
  held(effectiveAtOf(token)) > timestamp

/** Pauses as a word: a bit for each feature. */
export const wordOfFeatures = (features: readonly number[]): bigint =>
  features.reduce((bits, feature) => bits | (1n << BigInt(feature)), 0n)

/** The features that are paused, in order. */
export const featuresIn = (bits: bigint): readonly number[] =>
  [...bits.toString(2)].toReversed().flatMap((bit, feature) => (bit === '1' ? [feature] : []))

/** A short text as Solidity packs it into its slot: the bytes first, twice their count last. */
export const wordOfText = (text: string): bigint => {
  const bytes = Buffer.from(text)
  if (bytes.length > TEXT_BOUND_BYTES) throw new Error(`"${text}" is longer than ${TEXT_BOUND_BYTES} bytes`)
  return BigInt(`0x${bytes.toString('hex').padEnd(62, '0')}${(bytes.length * 2).toString(16).padStart(2, '0')}`)
}

export const textIn = (packed: bigint): string => {
  const length = Number(packed & 0xffn) / 2
  return Buffer.from(word(packed).slice(2), 'hex').subarray(0, length).toString()
}
