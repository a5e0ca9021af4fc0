import { expect, onTestFinished } from 'vitest'
import type { Devnet, DevnetOptions } from '../../../src/devnet/devnet.ts'
import { BarsPage, type StoredBar } from '../../../src/protocol/bars/bars-query.ts'
import { listenNdjson, type MessageOf, type TestListener } from '../../support/test-listener.ts'
import { fetchDocumented, openDevnet, openRelayFor } from '../../support/test-stack.ts'

/** Seconds between two blocks: three blocks a minute. */
export const BLOCK_S = 20
export const MINUTE_S = 60

const tradedSymbols = ['AAPLc', 'TSLAc']

/** The settings with which a relay follows the pools of two tokens. */
export const poolSettings = ({ poolsText, quoteTokens }: Devnet) => ({
  POOLS: poolsText
    .split(',')
    .filter((pool) => tradedSymbols.some((symbol) => pool.startsWith(symbol)))
    .join(','),
  QUOTE_TOKENS: quoteTokens,
})

/** The ids of the pools of a token. */
export const poolsOf = ({ pools }: Devnet, symbol = 'AAPLc') => pools.filter((pool) => pool.symbol === symbol).map(({ id }) => id)

type Lifecycle = { readonly onTestFinished: typeof onTestFinished }

export const openTradedDevnet = (options: DevnetOptions = {}, test: Lifecycle = { onTestFinished }): Promise<Devnet> =>
  openDevnet({ pace: 'manual', calls: true, blockMs: BLOCK_S * 1_000, ...options }, test)

/** A listener to everything, from the start of the tape. */
export async function listenFromStart(
  url: string,
  test: Lifecycle = { onTestFinished },
  headers: Record<string, string> = {},
): Promise<TestListener> {
  const listener = await listenNdjson(`${url}/v1/stream?symbols=*&types=*&snapshot=false&since=start`, headers)
  test.onTestFinished(() => listener.close())
  await listener.waitFor('live')
  return listener
}

/** Resolves once the relay of a listener publishes each trade in these pools. */
export async function waitForPools(listener: TestListener, devnet: Devnet): Promise<void> {
  const followed = tradedSymbols.flatMap((symbol) => poolsOf(devnet, symbol))
  const isFollowed = (id: string) =>
    listener.messagesOf('venue').some(({ venue, change }) => venue.pool === id && change === 'followed')
  await listener.until(() => listener.messagesOf('status').at(-1)?.source === 'pendingLogs', 'pendingLogs')
  await listener.until(() => followed.every(isFollowed), 'each pool to be followed')
}

/** A devnet at rest whose next block is the first of a minute, a relay that follows pools of two tokens, and a listener. */
export async function openTradedMinutes(
  options: DevnetOptions = {},
  settings: Record<string, string> = {},
  test: Lifecycle = { onTestFinished },
) {
  const devnet = await openTradedDevnet(options, test)
  const relay = await openRelayFor(devnet, { ...poolSettings(devnet), ...settings }, test)
  const listener = await listenFromStart(relay.url, test, settings.API_KEYS ? { authorization: `Bearer ${settings.API_KEYS}` } : {})
  await waitForPools(listener, devnet)
  startMinute(devnet)
  return { devnet, relay, listener }
}
export type TradedMinutes = Awaited<ReturnType<typeof openTradedMinutes>>

/** Makes a block that contains what waits. */
export function makeBlock(devnet: Devnet) {
  devnet.makeFlashblock()
  return devnet.seal()
}

/** Makes blocks until the next one is the first of a minute. Returns the start of that minute, in seconds. */
export function startMinute(devnet: Devnet): number {
  while (devnet.chain.pending.timestamp % MINUTE_S !== 0) makeBlock(devnet)
  return devnet.chain.pending.timestamp
}

/** Makes the block that waits, the others of its minute, and the one after them, which closes the minute. */
export function closeMinute(devnet: Devnet) {
  makeBlock(devnet)
  startMinute(devnet)
  return makeBlock(devnet)
}

/** Swaps in a pool of a token until it has this price, in a flashblock. Resolves with the trade that a listener receives. */
export async function trade(
  { devnet, listener }: Pick<TradedMinutes, 'devnet' | 'listener'>,
  price: string,
  { symbol = 'AAPLc', ...pool }: { readonly symbol?: string } & Parameters<Devnet['swap']>[1] = {},
): Promise<MessageOf<'trade'>> {
  const hash = devnet.swap(symbol, { ...pool, price })
  devnet.makeFlashblock()
  return listener.waitFor('trade', ({ tx }) => tx.hash === hash)
}

/** The bars that a listener received of one minute, by the start in seconds. */
export const barsAt = (listener: TestListener, start: number, symbol = 'AAPLc'): readonly MessageOf<'bar'>[] =>
  listener.messagesOf('bar').filter((bar) => bar.symbol === symbol && Date.parse(bar.start) === start * 1_000)

/** Resolves with the bar of a minute once a listener has this revision of it. */
export const waitForBar = (listener: TestListener, start: number, revision = 1, symbol = 'AAPLc'): Promise<MessageOf<'bar'>> =>
  listener.waitFor('bar', (bar) => bar.symbol === symbol && Date.parse(bar.start) === start * 1_000 && bar.revision === revision)

/** The page of bars at a path after `/v1/bars`. */
export async function fetchBars(url: string, path: string): Promise<ReturnType<typeof BarsPage.parse>> {
  const { status, json, text } = await fetchDocumented(`${url}/v1/bars${path}`)
  expect([status, status === 200 ? '' : text]).toEqual([200, ''])
  return BarsPage.parse(json)
}

/** The fields of a message or of an answer that are those of the bar itself. */
export function contentOf(bar: MessageOf<'bar'> | StoredBar) {
  const { symbol, start, end, revision, open, high, low, close, vwap, trades, volume, shares, currency_volume } = bar
  const { buy_volume, buy_currency_volume, basis_bps, basis, nav, venues, blocks, partial } = bar
  return {
    ...{ symbol, start, end, revision, open, high, low, close, vwap, trades, volume, shares, currency_volume },
    ...{ buy_volume, buy_currency_volume, basis_bps, basis, nav, venues, blocks, partial },
  }
}

export const timeText = (seconds: number): string => new Date(seconds * 1_000).toISOString()
