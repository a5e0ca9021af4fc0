import { type Hex, toLowerHex } from '../../lib/hex.ts'
import { type DevnetToken, TOKEN_DECIMALS } from '../tokens/issued-tokens.ts'
import type { TokenListing } from './list-record.ts'

/** A record of the list; no field is required. A multiplier given as text is served with exactly its digits. */
type StockRecord = {
  contract_address?: string
  symbol?: string
  name?: string
  decimals?: number
  icon_url?: string
  total_supply?: number
  isin?: string
  multiplier?: number | string
  paused_features?: readonly number[]
  nav_price?: number
  nav_price_updated_at?: string
  [unknown: string]: unknown
}

/** The served list, and how a test changes it. */
export type StockList = {
  /** The records as they would be served now. */
  records: () => readonly StockRecord[]
  /** Adds a record; it may repeat a token. */
  add: (record: StockRecord) => void
  /** Removes the record with this symbol or address. */
  remove: (symbolOrAddress: string) => void
  /** Overrides fields of the record with this symbol or address; an undefined field is left out. */
  change: (symbolOrAddress: string, fields: StockRecord) => void
  /** Serves this body, or the true body changed by a function; undefined serves the true body again. */
  corrupt: (body: string | ((body: string) => string) | undefined) => void
  /** The lower-case address of the token with this symbol on the list, or issued under it. */
  addressOf: (symbol: string) => Hex
  body: () => string
}

// Not yet in TypeScript's library; Node has it since 21.
const { rawJSON } = JSON as typeof JSON & { rawJSON: (text: string) => unknown }

/** An entry of the list with a test's overrides. Its record is undefined while the token is not listed. */
type ListEntry = { readRecord: () => StockRecord | undefined; overrides: StockRecord; issuedAs?: string }

/** The list of some tokens, each read when the list is served. A token without data is not on the list. */
export const createStockList = (
  tokens: readonly DevnetToken[],
  readToken: (token: DevnetToken) => TokenListing | undefined,
): StockList => {
  let entries: ListEntry[] = tokens.map((token) => ({
    readRecord: () => {
      const listed = readToken(token)
      return listed && toRecord(token, listed)
    },
    overrides: {},
    issuedAs: token.symbol,
  }))
  let bodyOverride: string | ((body: string) => string) | undefined

  const servedRecords = ({ readRecord, overrides }: ListEntry): StockRecord[] => {
    const record = readRecord()
    return record ? [{ ...record, ...overrides }] : []
  }
  const findEntry = (symbolOrAddress: string): ListEntry => {
    const entry = entries.find((candidate) =>
      servedRecords(candidate).some(
        ({ symbol, contract_address }) =>
          symbol === symbolOrAddress || contract_address?.toLowerCase() === symbolOrAddress.toLowerCase(),
      ),
    )
    if (!entry) throw new Error(`${symbolOrAddress} is not listed`)
    return entry
  }
  const entryOfSymbol = (symbol: string): ListEntry => {
    const entry = entries.find((candidate) => servedRecords(candidate).some((record) => record.symbol === symbol))
    return entry ?? entries.find(({ issuedAs }) => issuedAs === symbol) ?? findEntry(symbol)
  }
  const body = () => JSON.stringify({ tokens: entries.flatMap(servedRecords).map(withExactMultiplier) })

  return {
    records: () => entries.flatMap(servedRecords),
    add: (record) => {
      entries.push({ readRecord: () => ({}), overrides: record })
    },
    remove: (symbolOrAddress) => {
      const entry = findEntry(symbolOrAddress)
      entries = entries.filter((listed) => listed !== entry)
    },
    change: (symbolOrAddress, fields) => {
      const entry = findEntry(symbolOrAddress)
      entry.overrides = { ...entry.overrides, ...fields }
    },
    corrupt: (override) => {
      bodyOverride = override
    },
    addressOf: (symbol) => {
      const [record] = servedRecords(entryOfSymbol(symbol))
      if (!record?.contract_address) throw new Error(`${symbol} has no address`)
      return toLowerHex(record.contract_address)
    },
    body: () => (typeof bodyOverride === 'function' ? bodyOverride(body()) : (bodyOverride ?? body())),
  }
}

const toRecord = (token: DevnetToken, { name, symbol, supply, multiplier, paused, round }: TokenListing): StockRecord => ({
  contract_address: token.contractAddress,
  symbol,
  name,
  decimals: TOKEN_DECIMALS,
  icon_url: `https://example.invalid/icons/${token.symbol.toLowerCase()}.svg`,
  total_supply: Number(supply) / 10 ** TOKEN_DECIMALS,
  isin: token.isin,
  multiplier,
  paused_features: paused,
  ...(round && { nav_price: round.price, nav_price_updated_at: new Date(round.updatedAtMs).toISOString().replace('.000Z', 'Z') }),
})

/** A double cannot hold the multiplier's eighteen decimals, so its digits are written unchanged. */
const withExactMultiplier = (record: StockRecord) =>
  typeof record.multiplier === 'string' ? { ...record, multiplier: rawJSON(record.multiplier) } : record
