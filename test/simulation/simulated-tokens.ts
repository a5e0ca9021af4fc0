import type { Hex } from '../../src/lib/hex.ts'

/** A token of the simulated list. */
export type SimulatedToken = {
  readonly address: Hex
  readonly symbol: string
  readonly decimals: number
  /** Shares per token in whole hundredths, so that shares are computed without fractions. */
  readonly hundredths: bigint
}

const makeToken = (nth: number, symbol: string, decimals: number, hundredths: bigint): SimulatedToken => ({
  address: `0xb2${nth.toString(16).padStart(38, '0')}`,
  symbol,
  decimals,
  hundredths,
})

/** Tokens that are listed from the beginning, and one that may be listed later. */
export const listedTokens: readonly SimulatedToken[] = [
  makeToken(1, 'AAPLc', 8, 100n),
  makeToken(2, 'TSLAc', 8, 300n),
  makeToken(3, 'NVDAc', 6, 103n),
]
export const laterToken = makeToken(4, 'NEWc', 18, 100n)

/** Contracts that are never listed. */
export const unlistedAddresses: readonly [Hex, Hex] = [`0xf0${'0'.repeat(38)}`, `0xf1${'0'.repeat(38)}`]

const tokensByAddress = new Map([...listedTokens, laterToken].map((token) => [token.address, token]))
export const tokenAt = (address: string): SimulatedToken | undefined => tokensByAddress.get(address as Hex)
