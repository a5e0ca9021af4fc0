import {
  delist,
  diffList,
  type ListTiming,
  listedAddresses,
  markListed,
  type TokenTable,
} from '../../../../src/relay/tokens/list/list-diff.ts'
import { type ListedToken, parseList } from '../../../../src/relay/tokens/list/list-parser.ts'
import type { PolledList } from '../../../../src/relay/tokens/list/list-poller.ts'
import type { Token } from '../../../../src/relay/tokens/token.ts'
import type { ChangedToken } from '../../../../src/relay/tokens/token-drafts.ts'

/** A record of the list. */
export type StockRecord = Record<string, unknown>

export const APPLE = '0xb200000000000000000000c2e324d24d7eecd1fb'
export const TESLA = '0xb2000000000000000000001e800a7f5189430cd0'

export const NOON = Date.parse('2026-11-20T12:00:00Z')
export const listTime: ListTiming = { now: NOON, navStaleAfterMs: 93_600_000, at: { block: 0, logIndex: 0 } }
export const listTimeAfter = (ms: number): ListTiming => ({ ...listTime, now: NOON + ms })

export const apple = (overrides: StockRecord = {}): StockRecord => ({
  contract_address: '0xb200000000000000000000C2e324d24d7eEcd1fb',
  symbol: 'AAPLc',
  name: 'Apple',
  decimals: 8,
  isin: 'US0378331005',
  total_supply: 19_893.91,
  multiplier: 1,
  paused_features: [],
  nav_price: 324.3014,
  nav_price_updated_at: '2026-11-20T11:30:03Z',
  ...overrides,
})

export const tesla = (overrides: StockRecord = {}): StockRecord => ({
  ...apple({ contract_address: TESLA, symbol: 'TSLAc', name: 'Tesla', isin: 'US88160R1014', nav_price: 438.29 }),
  ...overrides,
})

/** The list's text; a record given as text stays unchanged, since JavaScript would lose digits. */
export const listBody = (...records: readonly (StockRecord | string)[]): string =>
  `{"tokens":[${records.map((record) => (typeof record === 'string' ? record : JSON.stringify(record))).join()}]}`

export const parsedList = (...records: readonly (StockRecord | string)[]): readonly ListedToken[] =>
  parseText(listBody(...records)).tokens

/** The parsed list of a text. */
export function parseText(text: string) {
  const { tokens, skipped } = parseList(Buffer.from(text))
  return { tokens: [...tokens.values()], skipped }
}

/** A whole list, as the poller emits it. */
export const polledList = (tokens: readonly ListedToken[], partial = false): PolledList => ({
  ...{ tokens, partial },
  order: tokens.map(({ address }) => address),
})

/** The changes of the known tokens by a whole list. */
export function changesOfList(table: TokenTable, list: readonly ListedToken[], timing: ListTiming): readonly ChangedToken[] {
  const listed = new Set(list.map(({ address }) => address))
  const missing = listedAddresses(table).filter((address) => !listed.has(address))
  return [...diffList(table, list, timing), ...delist(table, missing, timing)]
}

/** The listed token of a record. */
export function tokenOf(record: StockRecord | string = apple()): Token {
  const [awaited] = diffList(new Map(), parsedList(record), listTime)
  if (!awaited) throw new Error('no token')
  const { address } = awaited.after
  const [listed] = markListed(new Map([[address, awaited.after]]), [address], listTime)
  if (!listed) throw new Error('not listed')
  return listed.after
}
