import { type ReadState, type StateValues, type StateWrite, writeValue } from '../../src/devnet/chain/account-state.ts'
import type { DevnetToken } from '../../src/devnet/tokens/issued-tokens.ts'
import { initialTokenValues, packText, unpackText } from '../../src/devnet/tokens/token-storage.ts'
import type { Hex } from '../../src/lib/hex.ts'

/** A token of the simulated list. */
export type SimulatedToken = DevnetToken & { readonly decimals: number }

const makeToken = (nth: number, symbol: string, decimals: number, multiplier: string): SimulatedToken => {
  const address: Hex = `0xb2${nth.toString(16).padStart(38, '0')}`
  return { address, contractAddress: address, symbol, name: symbol, isin: '', supply: 0n, decimals, multiplier }
}

/** Tokens that are listed from the beginning, and one that may be listed later. */
export const listedTokens: readonly SimulatedToken[] = [
  makeToken(1, 'AAPLc', 8, '1'),
  makeToken(2, 'TSLAc', 8, '3'),
  makeToken(3, 'NVDAc', 6, '1.03'),
]
export const laterToken = makeToken(4, 'NEWc', 18, '1')
const allTokens = [...listedTokens, laterToken]

/** Contracts that are never listed. */
export const unlistedAddresses: readonly [Hex, Hex] = [`0xf0${'0'.repeat(38)}`, `0xf1${'0'.repeat(38)}`]

const tokensByAddress = new Map(allTokens.map((token) => [token.address, token]))
export const tokenAt = (address: string): SimulatedToken | undefined => tokensByAddress.get(address as Hex)

/** The state of the contracts when the chain begins. */
export const initialValues: StateValues = new Map(allTokens.flatMap((token) => [...initialTokenValues(token)]))

// The contracts store no metadata and no document. The list shows both once they have changed.
const metadataKey = (token: Hex) => `metadata ${token}`
const documentKey = (token: Hex) => `document ${token}`
const METADATA_PREFIX = 'cusip '

export const metadataWrite = (token: Hex, cusip: string): StateWrite =>
  writeValue(metadataKey(token), packText(METADATA_PREFIX + cusip))
export const documentWrite = (token: Hex): StateWrite => writeValue(documentKey(token), 1n)

export function recordedDocuments(readState: ReadState, token: Hex): Readonly<Record<string, unknown>> {
  const metadata = unpackText(readState(metadataKey(token)))
  const cusip = metadata.slice(METADATA_PREFIX.length)
  return {
    ...(metadata !== '' && { extra_metadata: cusip === '' ? {} : { cusip } }),
    ...(readState(documentKey(token)) > 0n && { contract_uri: null }),
  }
}
