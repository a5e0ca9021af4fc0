import { type Hex, lower } from './hex.ts'
import type { Round } from './nav.ts'
import { TOKEN_DECIMALS, type Token } from './tokens.ts'

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
  /** The address of the token with this symbol, as logs write it. */
  addressOf: (symbol: string) => Hex
  /** The body of the answer. */
  body: () => string
}

// Not yet in TypeScript's library; Node has it since 21.
const { rawJSON } = JSON as typeof JSON & { rawJSON: (text: string) => unknown }

/** The list of some tokens, with their supply and reference value as they are when it is read. */
export const createList = (
  tokens: readonly Token[],
  supplyNow: (token: Token) => bigint,
  navNow: (token: Token) => Round | undefined,
): StockList => {
  let rows: { live: () => StockRecord; fields: StockRecord }[] = tokens.map((token) => ({
    live: () => recordOf(token, supplyNow(token), navNow(token)),
    fields: {},
  }))
  let corrupted: string | ((body: string) => string) | undefined

  const served = ({ live, fields }: (typeof rows)[number]): StockRecord => ({ ...live(), ...fields })
  const find = (which: string) => {
    const row = rows.find((one) => {
      const { symbol, contract_address } = served(one)
      return symbol === which || contract_address?.toLowerCase() === which.toLowerCase()
    })
    if (!row) throw new Error(`${which} is not listed`)
    return row
  }
  const body = () => JSON.stringify({ tokens: rows.map(served).map(withDigits) })

  return {
    records: () => rows.map(served),
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
      const { contract_address } = served(find(symbol))
      if (!contract_address) throw new Error(`${symbol} has no address`)
      return lower(contract_address)
    },
    body: () => (typeof corrupted === 'function' ? corrupted(body()) : (corrupted ?? body())),
  }
}

const recordOf = (token: Token, supply: bigint, round: Round | undefined): StockRecord => ({
  contract_address: token.contractAddress,
  symbol: token.symbol,
  name: token.name,
  decimals: TOKEN_DECIMALS,
  icon_url: `https://example.invalid/icons/${token.symbol.toLowerCase()}.svg`,
  total_supply: Number(supply) / 10 ** TOKEN_DECIMALS,
  isin: token.isin,
  multiplier: token.multiplier,
  paused_features: [],
  ...(round && {
    nav_price: round.price,
    nav_price_updated_at: new Date(round.updatedAtMs).toISOString().replace('.000Z', 'Z'),
  }),
})

/** A double cannot hold the multiplier's eighteen decimals, so its digits are written as they are. */
const withDigits = (record: StockRecord) =>
  typeof record.multiplier === 'string' ? { ...record, multiplier: rawJSON(record.multiplier) } : record
