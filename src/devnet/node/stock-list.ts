import { type Hex, lower } from '../chain/hex.ts'
import { TOKEN_DECIMALS, type Token } from '../tokens/listed.ts'
import type { Reading } from './list-record.ts'

/** A record of the list. No field is required. A multiplier given as text stands in the answer with exactly those digits. */
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

/** The list at the door, and what a test does to it. */
export type StockList = {
  /** Every record as it would be served now. */
  records: () => readonly StockRecord[]
  /** A new listing, or a second record of the same. */
  add: (record: StockRecord) => void
  /** Takes the record with this symbol or address off the list. */
  remove: (which: string) => void
  /** Overrides fields of the record with this symbol or address; a field set to undefined is left out. */
  change: (which: string, fields: StockRecord) => void
  /** Serves this body instead, or what becomes of the true one; undefined serves the truth again. */
  corrupt: (body: string | ((body: string) => string) | undefined) => void
  /** The address of the token that the list calls so, or that was issued under this symbol, as logs write it. */
  addressOf: (symbol: string) => Hex
  /** The body of the answer. */
  body: () => string
}

// Not yet in TypeScript's library; Node has it since 21.
const { rawJSON } = JSON as typeof JSON & { rawJSON: (text: string) => unknown }

/** A place on the list: what is so when it is read, undefined while the token is not listed, and what a test says instead. */
type Row = { live: () => StockRecord | undefined; fields: StockRecord; issuedAs?: string }

/** The list of some tokens, each as it is when the list is read; a token of which nothing is read is not on it. */
export const createList = (tokens: readonly Token[], readNow: (token: Token) => Reading | undefined): StockList => {
  let rows: Row[] = tokens.map((token) => ({
    live: () => {
      const reading = readNow(token)
      return reading && recordOf(token, reading)
    },
    fields: {},
    issuedAs: token.symbol,
  }))
  let corrupted: string | ((body: string) => string) | undefined

  const served = ({ live, fields }: Row): StockRecord[] => {
    const record = live()
    return record ? [{ ...record, ...fields }] : []
  }
  const find = (which: string): Row => {
    const row = rows.find((one) =>
      served(one).some(
        ({ symbol, contract_address }) => symbol === which || contract_address?.toLowerCase() === which.toLowerCase(),
      ),
    )
    if (!row) throw new Error(`${which} is not listed`)
    return row
  }
  const named = (symbol: string): Row => {
    const row = rows.find((one) => served(one).some((record) => record.symbol === symbol))
    return row ?? rows.find(({ issuedAs }) => issuedAs === symbol) ?? find(symbol)
  }
  const body = () => JSON.stringify({ tokens: rows.flatMap(served).map(withDigits) })

  return {
    records: () => rows.flatMap(served),
    add: (record) => {
      rows.push({ live: () => ({}), fields: record })
    },
    remove: (which) => {
      const row = find(which)
      rows = rows.filter((one) => one !== row)
    },
    change: (which, fields) => {
      const row = find(which)
      row.fields = { ...row.fields, ...fields }
    },
    corrupt: (wrong) => {
      corrupted = wrong
    },
    addressOf: (symbol) => {
      const [record] = served(named(symbol))
      if (!record?.contract_address) throw new Error(`${symbol} has no address`)
      return lower(record.contract_address)
    },
    body: () => (typeof corrupted === 'function' ? corrupted(body()) : (corrupted ?? body())),
  }
}

const recordOf = (token: Token, { name, symbol, supply, multiplier, paused, round }: Reading): StockRecord => ({
  contract_address: token.contractAddress,
  symbol,
  name,
  decimals: TOKEN_DECIMALS,
  icon_url: `https://example.invalid/icons/${token.symbol.toLowerCase()}.svg`,
  total_supply: Number(supply) / 10 ** TOKEN_DECIMALS,
  isin: token.isin,
  multiplier,
  paused_features: paused,
  ...(round && {
    nav_price: round.price,
    nav_price_updated_at: new Date(round.updatedAtMs).toISOString().replace('.000Z', 'Z'),
  }),
})

/** A double cannot hold the multiplier's eighteen decimals, so its digits are written as they are. */
const withDigits = (record: StockRecord) =>
  typeof record.multiplier === 'string' ? { ...record, multiplier: rawJSON(record.multiplier) } : record
