import type { Hex } from '../../src/protocol/fields.ts'

/** A token as this world lists it. */
export type SimulatedToken = {
  readonly address: Hex
  readonly symbol: string
  readonly decimals: number
  /** Whole shares per token in hundredths, so that shares can be computed without fractions. */
  readonly hundredths: bigint
}

const makeToken = (nth: number, symbol: string, decimals: number, hundredths: bigint): SimulatedToken => ({
  address: `0xb2${nth.toString(16).padStart(38, '0')}`,
  symbol,
  decimals,
  hundredths,
})

/** Listed from the beginning, and one that may come later. */
export const listedTokens: readonly SimulatedToken[] = [
  makeToken(1, 'AAPLc', 8, 100n),
  makeToken(2, 'TSLAc', 8, 300n),
  makeToken(3, 'NVDAc', 6, 103n),
]
export const laterToken = makeToken(4, 'NEWc', 18, 100n)

/** Contracts that nobody asked for. */
export const unlistedAddresses: readonly [Hex, Hex] = [`0xf0${'0'.repeat(38)}`, `0xf1${'0'.repeat(38)}`]

const tokensByAddress = new Map([...listedTokens, laterToken].map((one) => [one.address, one]))
export const tokenAt = (address: string): SimulatedToken | undefined => tokensByAddress.get(address as Hex)
