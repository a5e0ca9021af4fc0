import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../../../src/devnet/devnet.ts'
import { quantity, toWord } from '../../../../src/lib/hex.ts'
import { ALICE, callWords, rpcCall, rpcResult, startManualDevnet } from '../devnet-client.ts'

const WAD = 10n ** 18n
const symbol = 'TSLAc'
const UI_MULTIPLIER = '0xa60bf13d'
const views = {
  ...{ uiMultiplier: UI_MULTIPLIER, multiplier: '0x1b3ed722', newUIMultiplier: '0xdc767007', effectiveAt: '0x97a4064f' },
  ...{ pausedFeatures: '0xde9997e3', aggregator: '0x245a7bfc', phaseId: '0x58303b10', decimals: '0x313ce567' },
  latestRoundData: '0xfeaf968c',
} as const

/** The words of these views, one after the other. */
const read = async (devnet: Devnet, to: string, at: string, ...names: readonly (keyof typeof views)[]) =>
  (await Promise.all(names.map((name) => callWords(devnet, to, views[name], at)))).flat()
const open = async () => {
  const devnet = await startManualDevnet({ calls: true })
  return { devnet, token: devnet.list.addressOf(symbol), feed: devnet.feeds[symbol] ?? expect.unreachable() }
}

describe('eth_call', () => {
  it('is refused with 403 by default, as on a public endpoint', async () => {
    const devnet = await startManualDevnet()
    const answer = await rpcCall(devnet, 'eth_call', { to: devnet.list.addressOf(symbol), data: UI_MULTIPLIER }, 'latest')
    expect(answer).toMatchObject({ status: 403, error: { code: -32601, message: 'rpc method is not whitelisted' } })
  })

  it('answers the multiplier at a block: before, during and after a schedule', async () => {
    const { devnet, token } = await open()
    const effectiveAt = devnet.chain.pending.timestamp + 2
    devnet.issuer.split({ symbol, to: '2', effectiveAt })
    devnet.makeFlashblock()
    const multipliersAt = (at: string) => read(devnet, token, at, 'multiplier', 'uiMultiplier', 'newUIMultiplier', 'effectiveAt')
    const scheduled = [WAD, WAD, 2n * WAD, BigInt(effectiveAt)]
    const effective = [2n * WAD, 2n * WAD, 2n * WAD, BigInt(effectiveAt)]
    expect([await multipliersAt('latest'), await multipliersAt('pending')]).toEqual([[WAD, WAD, WAD, 0n], scheduled])
    const { number } = devnet.seal()
    expect(await multipliersAt('pending')).toEqual(effective)
    devnet.seal()
    expect([await multipliersAt('latest'), await multipliersAt(quantity(number))]).toEqual([effective, scheduled])
  })

  it('answers the paused features', async () => {
    const { devnet, token } = await open()
    devnet.issuer.pause({ symbol, features: [3, 0] })
    devnet.makeFlashblock()
    expect(await read(devnet, token, 'pending', 'pausedFeatures')).toEqual([32n, 2n, 0n, 3n])
    expect(await read(devnet, token, 'latest', 'pausedFeatures')).toEqual([32n, 0n])
    devnet.issuer.unpause({ symbol, features: [0, 2] })
    devnet.makeFlashblock()
    expect(await read(devnet, token, 'pending', 'pausedFeatures')).toEqual([32n, 1n, 3n])
  })

  it('answers the round of the list at the start, and later the newest one, with the phase in its number', async () => {
    const { devnet, feed } = await open()
    const { nav_price, nav_price_updated_at } = devnet.list.records().find((record) => record.symbol === symbol) ?? {}
    const [, answer, , listedAt] = await read(devnet, feed.proxy, 'latest', 'latestRoundData')
    expect([Number(answer) / 1e8, Number(listedAt) * 1_000]).toEqual([nav_price, Date.parse(nav_price_updated_at ?? '')])
    const updatedAt = BigInt(devnet.chain.pending.timestamp)
    devnet.publishRound({ symbol, price: '438.25', round: 362 })
    devnet.makeFlashblock()
    const round = (1n << 64n) + 362n
    expect(await read(devnet, feed.proxy, 'pending', 'latestRoundData', 'aggregator', 'phaseId', 'decimals')).toEqual([
      ...[round, 43_825_000_000n, updatedAt - 15n, updatedAt, round],
      ...[BigInt(feed.aggregator), 1n, 8n],
    ])
  })

  it.each<[string, (token: string) => object, object]>([
    ['an unknown function', (to) => ({ to, data: '0x70a08231' }), { code: 3 }],
    ['empty calldata', (to) => ({ to, data: '0x' }), { code: 3, message: 'execution reverted' }],
    ['no address', () => ({ data: UI_MULTIPLIER }), { code: -32602 }],
  ])('is refused with HTTP 200 for %s', async (_, requestOf, error) => {
    const { devnet, token } = await open()
    expect(await rpcCall(devnet, 'eth_call', requestOf(token), 'latest')).toMatchObject({ status: 200, error })
  })

  it('answers 0x without code, accepts input instead of data, and defaults to the latest block', async () => {
    const { devnet, token } = await open()
    expect(await rpcResult(devnet, 'eth_call', { to: ALICE, data: UI_MULTIPLIER })).toBe('0x')
    expect(await rpcResult(devnet, 'eth_call', { to: token, input: UI_MULTIPLIER })).toBe(toWord(WAD))
  })
})
