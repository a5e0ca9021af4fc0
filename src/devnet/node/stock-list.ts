import { formatUnits } from 'viem/utils'
import { type Hex, toLowerHex } from '../../lib/hex.ts'
import type { ReadState } from '../chain/account-state.ts'
import type { NavRound } from '../life/nav-curve.ts'
import type { ScriptedChain } from '../scripted-chain.ts'
import { FEED_DECIMALS, feeds, readFeedState, readNewestRound, testFeed } from '../tokens/feeds.ts'
import { type DevnetToken, TOKEN_DECIMALS } from '../tokens/issued-tokens.ts'
import * as storage from '../tokens/token-storage.ts'
import { supplyKey } from '../tokens/token-storage.ts'

/** A record of the list, whose fields are all optional. A multiplier in text is served with exactly its digits. */
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

// TypeScript's library lacks `JSON.rawJSON`, which Node has since version 21.
const { rawJSON } = JSON as typeof JSON & { rawJSON: (text: string) => unknown }

/** An entry of the list. `overrides` are the fields that a test sets. `readRecord` returns undefined if it is not listed. */
type ListEntry = { readRecord: () => StockRecord | undefined; overrides: StockRecord; issuedAs?: string }

/** Makes a list of these tokens. `readRecord` is called each time the list is served. */
export const createStockList = (tokens: readonly DevnetToken[], readRecord: (token: DevnetToken) => StockRecord | undefined) => {
  let entries: ListEntry[] = tokens.map((token) => ({ readRecord: () => readRecord(token), overrides: {}, issuedAs: token.symbol }))
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
    const found = entry ?? entries.find(({ issuedAs }) => issuedAs === symbolOrAddress)
    if (!found) throw new Error(`${symbolOrAddress} is not listed`)
    return found
  }
  const body = () => JSON.stringify({ tokens: entries.flatMap(servedRecords).map(withExactMultiplier) })

  return {
    /** The records as they would be served now. */
    records: (): readonly StockRecord[] => entries.flatMap(servedRecords),
    /** Adds a record, even for a token that has one. */
    add: (record: StockRecord): void => {
      entries.push({ readRecord: () => ({}), overrides: record })
    },
    remove: (symbolOrAddress: string): void => {
      const entry = findEntry(symbolOrAddress)
      entries = entries.filter((listed) => listed !== entry)
    },
    /** Overrides fields of a record; an undefined field is omitted. */
    change: (symbolOrAddress: string, fields: StockRecord): void => {
      const entry = findEntry(symbolOrAddress)
      entry.overrides = { ...entry.overrides, ...fields }
    },
    /** Serves this body, or the true body changed by this function. Undefined serves the true body again. */
    corrupt: (override: typeof bodyOverride): void => {
      bodyOverride = override
    },
    /** Returns the lower-case address of the token that has this symbol on the list, or was issued under it. */
    addressOf: (symbol: string): Hex => {
      const [record] = servedRecords(findEntry(symbol))
      if (!record?.contract_address) throw new Error(`${symbol} has no address`)
      return toLowerHex(record.contract_address)
    },
    body: () => (typeof bodyOverride === 'function' ? bodyOverride(body()) : (bodyOverride ?? body())),
  }
}
export type StockList = ReturnType<typeof createStockList>

/** A double cannot hold the multiplier's eighteen decimals, so its digits are written unchanged. */
const withExactMultiplier = (record: StockRecord) =>
  typeof record.multiplier === 'string' ? { ...record, multiplier: rawJSON(record.multiplier) } : record

type ListReaderInputs = Pick<ScriptedChain, 'chain' | 'isListed' | 'nameDelayBlocks'>

/** Reads a token's record from the newest sealed block; undefined while the token is not on the list. */
export const createRecordReader =
  (scriptedChain: ListReaderInputs, readNavNow: (token: DevnetToken) => NavRound | undefined) =>
  (token: DevnetToken): StockRecord | undefined => {
    const { chain, isListed, nameDelayBlocks } = scriptedChain
    const { number, timestamp, state } = chain.head
    if (!isListed(token, number)) return undefined
    const { address } = token
    const readState = state.read
    const nameBlock = Math.max(number - nameDelayBlocks, chain.oldest - 1, 0)
    const readNameState = (key: string) => chain.valueAt(key, nameBlock)
    const round = newerRound(readNavNow(token), readChainRound(readState, token))
    return {
      contract_address: token.contractAddress,
      symbol: storage.unpackText(readNameState(storage.symbolKey(address))),
      name: storage.unpackText(readNameState(storage.nameKey(address))),
      decimals: TOKEN_DECIMALS,
      icon_url: `https://example.invalid/icons/${token.symbol.toLowerCase()}.svg`,
      total_supply: Number(readState(supplyKey(address))) / 10 ** TOKEN_DECIMALS,
      isin: token.isin,
      multiplier: formatUnits(storage.multiplierAt(readState, address, timestamp), storage.MULTIPLIER_DECIMALS),
      paused_features: storage.unpackFeatures(readState(storage.pausedFeaturesKey(address))),
      ...(round && {
        nav_price: round.price,
        nav_price_updated_at: new Date(round.updatedAtMs).toISOString().replace('.000Z', 'Z'),
      }),
    }
  }

/** Reads the newest round of a token's feed on the chain; undefined if there is none. */
const readChainRound = (readState: ReadState, token: DevnetToken): NavRound | undefined => {
  const feed = [...feeds, testFeed].find((candidate) => candidate.token === token)
  if (!feed) return undefined
  const { round, answer, updatedAt } = readNewestRound(readState, readFeedState(readState, feed.proxy).aggregator)
  if (round === 0n) return undefined
  return { price: Number(formatUnits(answer, FEED_DECIMALS)), updatedAtMs: Number(updatedAt) * 1_000 }
}

const newerRound = (a: NavRound | undefined, b: NavRound | undefined): NavRound | undefined =>
  a && b ? (b.updatedAtMs > a.updatedAtMs ? b : a) : (a ?? b)
