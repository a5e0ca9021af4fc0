import { parseUnits } from 'viem/utils'
import { type Hex, toWord } from '../../lib/hex.ts'
import { codeKey, mappingSlot, type ReadState, type StateValues, storageKey } from '../chain/account-state.ts'
import type { DevnetToken } from './issued-tokens.ts'

/** The code of every tokenized stock: only a marker, because the chain itself implements the token. */
export const TOKEN_CODE = 0xefn
export const MULTIPLIER_DECIMALS = 18
const ONE = 10n ** 18n
export const NO_CAP = 2n ** 128n - 1n
/** Limit of the bytes of a text in one slot. */
const TEXT_BOUND_BYTES = 31

// The storage slots of a token. Balances and allowances are mappings.
const BALANCES = toWord(0n)
const ALLOWANCES = toWord(1n)

export const tokenBalanceKey = (token: Hex, account: Hex): string => storageKey(token, mappingSlot(account, BALANCES))
export const allowanceKey = (token: Hex, owner: Hex, spender: Hex): string =>
  storageKey(token, mappingSlot(spender, mappingSlot(owner, ALLOWANCES)))
const keyOfSlot = (slot: bigint) => (token: Hex) => storageKey(token, toWord(slot))
export const supplyKey = keyOfSlot(2n)
export const multiplierKey = keyOfSlot(3n)
export const scheduledMultiplierKey = keyOfSlot(4n)
export const effectiveAtKey = keyOfSlot(5n)
export const pausedFeaturesKey = keyOfSlot(6n)
export const nameKey = keyOfSlot(7n)
export const symbolKey = keyOfSlot(8n)
export const supplyCapKey = keyOfSlot(9n)

export const parseMultiplier = (text: string): bigint => {
  const multiplier = parseUnits(text, MULTIPLIER_DECIMALS)
  if (multiplier <= 0n) throw new Error(`a multiplier is above zero, not ${text}`)
  return multiplier
}

export const initialTokenValues = ({ address, name, symbol, supply, multiplier }: DevnetToken): StateValues =>
  new Map([
    [codeKey(address), TOKEN_CODE],
    [supplyKey(address), supply],
    [multiplierKey(address), parseMultiplier(multiplier)],
    [nameKey(address), packText(name)],
    [symbolKey(address), packText(symbol)],
    [supplyCapKey(address), NO_CAP],
  ])

/** Returns the multiplier with 18 decimals, by default 1. A schedule takes effect without a write. */
export const multiplierAt = (readState: ReadState, token: Hex, timestamp: number): bigint => {
  const effectiveAt = readState(effectiveAtKey(token))
  const isEffective = effectiveAt !== 0n && effectiveAt <= timestamp
  return readState(isEffective ? scheduledMultiplierKey(token) : multiplierKey(token)) || ONE
}

export const isScheduled = (readState: ReadState, token: Hex, timestamp: number): boolean =>
  readState(effectiveAtKey(token)) > timestamp

export const packFeatures = (features: readonly number[]): bigint =>
  features.reduce((bits, feature) => bits | (1n << BigInt(feature)), 0n)

export const unpackFeatures = (bits: bigint): readonly number[] =>
  [...bits.toString(2)].toReversed().flatMap((bit, feature) => (bit === '1' ? [feature] : []))

/** Packs a short text into a slot as Solidity does: the bytes first, and twice their number in the last byte. */
export const packText = (text: string): bigint => {
  const bytes = Buffer.from(text)
  if (bytes.length > TEXT_BOUND_BYTES) throw new Error(`"${text}" is longer than ${TEXT_BOUND_BYTES} bytes`)
  return BigInt(`0x${bytes.toString('hex').padEnd(62, '0')}${(bytes.length * 2).toString(16).padStart(2, '0')}`)
}

export const unpackText = (packed: bigint): string => {
  const length = Number(packed & 0xffn) / 2
  return Buffer.from(toWord(packed).slice(2), 'hex').subarray(0, length).toString()
}
