import type { Hex } from '../../src/protocol/fields.ts'

/** A token as this world lists it. */
export type Stock = {
  readonly address: Hex
  readonly symbol: string
  readonly decimals: number
  /** Whole shares per token in hundredths, so that shares can be computed without fractions. */
  readonly hundredths: bigint
}

const stock = (nth: number, symbol: string, decimals: number, hundredths: bigint): Stock => ({
  address: `0xb2${nth.toString(16).padStart(38, '0')}`,
  symbol,
  decimals,
  hundredths,
})

/** Listed from the beginning, and one that may come later. */
export const stocks: readonly Stock[] = [
  stock(1, 'AAPLc', 8, 100n),
  stock(2, 'TSLAc', 8, 300n),
  stock(3, 'NVDAc', 6, 103n),
]
export const newcomer = stock(4, 'NEWc', 18, 100n)

/** Contracts that nobody asked for. */
export const foreigners: readonly [Hex, Hex] = [`0xf0${'0'.repeat(38)}`, `0xf1${'0'.repeat(38)}`]

const known = new Map([...stocks, newcomer].map((one) => [one.address, one]))
export const stockAt = (address: string): Stock | undefined => known.get(address as Hex)
