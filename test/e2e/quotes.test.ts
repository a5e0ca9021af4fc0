import { describe, expect, it, onTestFinished } from 'vitest'
import type { Devnet, DevnetOptions } from '../../src/devnet/devnet.ts'
import { createTempFolder } from '../support/child-program.ts'
import { serveNode } from '../support/loopback-server.ts'
import type { MessageOf, TestListener } from '../support/test-listener.ts'
import { fetchDocumented, listenToAll, openDevnet, openRelayFor } from '../support/test-stack.ts'

const withPools = ({ poolsText, quoteTokens, oracleRegistry }: Devnet) => ({
  POOLS: poolsText,
  QUOTE_TOKENS: quoteTokens,
  ORACLE_REGISTRY: oracleRegistry,
})

/** A relay that reads the pools of a devnet at rest, and a listener that has received a quote of each. */
const openQuotes = async (options: DevnetOptions = {}, settings: Record<string, string> = {}) => {
  const devnet = await openDevnet({ pace: 'manual', calls: true, ...options })
  const relay = await openRelayFor(devnet, { ...withPools(devnet), ...settings })
  const listener = await listenToAll({ relay }, 'start')
  await listener.until(() => listener.messagesOf('status').at(-1)?.source === 'pendingLogs', 'pendingLogs')
  await listener.until(() => new Set(poolsIn(listener)).size === devnet.pools.length, 'a quote of each pool')
  // The trades of a pool are published from then on.
  await listener.until(() => listener.messagesOf('venue').length === devnet.pools.length, 'each pool to be followed')
  return { devnet, relay, listener }
}
const poolsIn = (listener: TestListener) => listener.messagesOf('quote').map(({ venue }) => venue.pool)
const poolOf = ({ pools }: Devnet, symbol: string, kind = 'uniswap_v3') =>
  pools.find((pool) => pool.symbol === symbol && pool.kind === kind)?.id ?? expect.unreachable()
const lastQuote = (listener: TestListener, pool: string): MessageOf<'quote'> =>
  listener.messagesOf('quote').findLast(({ venue }) => venue.pool === pool) ?? expect.unreachable()
const waitForPrice = async (listener: TestListener, pool: string, matches: (quote: MessageOf<'quote'>) => boolean) => {
  await listener.until(() => matches(lastQuote(listener, pool)), 'the price')
  return lastQuote(listener, pool)
}
const isNear = (price: string) => (quote: MessageOf<'quote'>) =>
  quote.price !== null && Math.abs(Number(quote.price) / Number(price) - 1) < 1e-6

describe.each([
  ['calls', true],
  ['storage', false],
])('a pool that is read by %s', (_, calls) => {
  it.each(['uniswap_v3', 'uniswap_v4'] as const)('of %s is quoted again after each swap, pre-confirmed', async (kind) => {
    const { devnet, listener } = await openQuotes({ calls })
    const pool = poolOf(devnet, 'AAPLc', kind)
    const before = lastQuote(listener, pool)
    devnet.swap('AAPLc', { kind, price: '400' })
    devnet.makeFlashblock()
    const quote = await waitForPrice(listener, pool, isNear('400'))
    expect(quote).toMatchObject({ symbol: 'AAPLc', state: 'ok', block: { number: devnet.chain.pending.number, hash: null } })
    expect(quote.basis).toBe('premium')
    expect(Number(quote.basis_bps)).toBeCloseTo((Number(quote.price) / Number(quote.nav.price) - 1) * 10_000, 1)
    expect(quote.venue).toEqual({ ...before.venue, kind, pool })
    expect(quote.venue.fee_bps).toBe(kind === 'uniswap_v4' ? '5' : calls ? '30' : null)
    const hooksOf = new Map(listener.messagesOf('quote').map(({ venue }) => [venue.pool, venue.hooks]))
    expect(hooksOf).toEqual(new Map(devnet.pools.map(({ id, hooks }) => [id, hooks])))
  })

  it('is quoted as it is again after a swap that was not sealed', async () => {
    const { devnet, listener } = await openQuotes({ calls })
    const pool = poolOf(devnet, 'TSLAc')
    const { price } = lastQuote(listener, pool)
    const hash = devnet.swap('TSLAc', { price: '500' })
    devnet.makeFlashblock()
    await waitForPrice(listener, pool, isNear('500'))
    devnet.faults.drop(hash)
    devnet.seal()
    await waitForPrice(listener, pool, (quote) => quote.price === price)
    // The quote is read from a new head, whose logs may still be on their way.
    const retracts = () => listener.messagesOf('retract')
    await listener.until(() => retracts().length === 2, 'the retracts of the transfer and of the trade')
    for (const retract of retracts()) expect(retract).toMatchObject({ symbol: 'TSLAc', reason: 'not_sealed' })
  })
})

it.each(['latest', 'null'] as const)('where pending is %s, a quote is a reading of the sealed block', async (pending) => {
  const devnet = await openDevnet({ pace: 'manual', calls: true })
  devnet.faults.pending = pending
  const relay = await openRelayFor(devnet, withPools(devnet))
  const listener = await listenToAll({ relay }, 'start')
  await listener.until(() => new Set(poolsIn(listener)).size === devnet.pools.length, 'a quote of each pool')
  devnet.swap('AAPLc', { price: '400' })
  devnet.makeFlashblock()
  const { number, hash } = devnet.seal()
  const quote = await waitForPrice(listener, poolOf(devnet, 'AAPLc'), isNear('400'))
  expect(quote.block).toMatchObject({ number, hash })
  expect(listener.messagesOf('quote').filter(({ block }) => block.hash === null)).toEqual([])
})

it('a frozen feed makes a premium a drift, and back', async () => {
  const { devnet, listener } = await openQuotes()
  const pool = poolOf(devnet, 'TSLAc')
  await listener.until(() => listener.messagesOf('nav').some(({ symbol, nav }) => symbol === 'TSLAc' && nav.frozen === false))
  const change = async (action: 'freezeFeed' | 'unfreezeFeed', frozen: boolean) => {
    devnet.issuer[action]({ symbol: 'TSLAc' })
    devnet.makeFlashblock()
    devnet.seal()
    const isChanged = ({ symbol, nav }: MessageOf<'nav'>) => symbol === 'TSLAc' && nav.frozen === frozen
    await listener.until(() =>
      isChanged(listener.messagesOf('nav').findLast(({ symbol }) => symbol === 'TSLAc') ?? expect.unreachable()),
    )
    return (await waitForPrice(listener, pool, ({ nav }) => nav.frozen === frozen)).basis
  }
  expect(await change('freezeFeed', true)).toBe('drift')
  expect(await change('unfreezeFeed', false)).toBe('premium')
})

it('quotes and session survive a restart in snapshots, where the deepest pool leads', async () => {
  const DATA_DIR = await createTempFolder({ onTestFinished })
  const { devnet, relay, listener } = await openQuotes({}, { DATA_DIR })
  const session = await listener.waitFor('session')
  const readToken = async (url: string) => (await fetchDocumented(`${url}/v1/tokenized-stocks/AAPLc`)).json
  const {
    type: _type,
    id: _id,
    prev: _prev,
    symbol: _symbol,
    address: _address,
    time: _time,
    ...quote
  } = lastQuote(listener, poolOf(devnet, 'AAPLc', 'uniswap_v4'))
  expect(await readToken(relay.url)).toMatchObject({ quote, session: { market: 'XNYS', state: session.state } })
  await relay.stop()
  // The pools are the same in the next block, so that nothing is published.
  devnet.seal()
  const again = await openRelayFor(devnet, { ...withPools(devnet), DATA_DIR })
  expect(await readToken(again.url)).toMatchObject({ quote, session: { market: 'XNYS', state: session.state } })
})

it('without a calendar there is no session', async () => {
  const { relay, listener } = await openQuotes({}, { CALENDAR: 'none' })
  expect(listener.messagesOf('session')).toEqual([])
  expect((await fetchDocumented(`${relay.url}/v1/tokenized-stocks/AAPLc`)).json).toMatchObject({ session: null })
})

it('an upstream that never answers reads of pools delays no movement', async () => {
  const devnet = await openDevnet({ pace: 'manual', calls: true })
  const hanging = await serveNode(onTestFinished, devnet.rpcUrl, (body) => /"eth_(call|getStorageAt)"/.test(body))
  const relay = await openRelayFor(devnet, { ...withPools(devnet), UPSTREAM_RPC_URL: hanging })
  const listener = await listenToAll({ relay }, 'start')
  await listener.until(() => listener.messagesOf('status').at(-1)?.source === 'pendingLogs', 'pendingLogs')
  devnet.swap('AAPLc', { price: '400' })
  devnet.makeFlashblock()
  const { key } = await listener.waitFor('transfer')
  devnet.seal()
  await listener.until(() => listener.messagesOf('seal').some(({ keys }) => keys.includes(key)))
  expect(listener.messagesOf('quote')).toEqual([])
})
