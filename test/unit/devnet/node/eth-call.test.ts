import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Devnet } from '../../../../src/devnet/devnet.ts'
import { toWord } from '../../../../src/lib/hex.ts'
import { ALICE, rpcCall, rpcResult, startManualDevnet } from '../devnet-client.ts'

const WAD = 10n ** 18n
const symbol = 'TSLAc'
const views = {
  uiMultiplier: '0xa60bf13d',
  multiplier: '0x1b3ed722',
  newUIMultiplier: '0xdc767007',
  effectiveAt: '0x97a4064f',
  pausedFeatures: '0xde9997e3',
  aggregator: '0x245a7bfc',
  phaseId: '0x58303b10',
  decimals: '0x313ce567',
  latestRoundData: '0xfeaf968c',
} as const

/** The words of a call's answer. */
const call = async (devnet: Devnet, to: string, view: keyof typeof views, at = 'latest') => {
  const answer = z.string().parse(await rpcResult(devnet, 'eth_call', { to, data: views[view] }, at))
  return answer
    .slice(2)
    .match(/.{64}/g)
    ?.map((hex) => BigInt(`0x${hex}`))
}

describe('eth_call', () => {
  it('is refused with 403 by default, as on a public endpoint', async () => {
    const devnet = await startManualDevnet()
    const to = devnet.list.addressOf(symbol)
    const { status, error } = await rpcCall(devnet, 'eth_call', { to, data: views.uiMultiplier }, 'latest')
    expect({ status, error }).toEqual({ status: 403, error: { code: -32601, message: 'rpc method is not whitelisted' } })
    expect(devnet.requests).toMatchObject({ eth_call: 1, unknown: 0 })
  })

  it('answers the multiplier at a block: before, during and after a schedule', async () => {
    const devnet = await startManualDevnet({ calls: true })
    const token = devnet.list.addressOf(symbol)
    const effectiveAt = devnet.chain.pending.timestamp + 2
    devnet.issuer.split({ symbol, to: '2', effectiveAt })
    devnet.makeFlashblock()
    const multipliersAt = async (at: string) => {
      const values = []
      for (const view of ['multiplier', 'uiMultiplier', 'newUIMultiplier', 'effectiveAt'] as const) {
        values.push((await call(devnet, token, view, at))?.[0])
      }
      return values
    }
    const [scheduled, effective] = [
      [WAD, WAD, 2n * WAD, BigInt(effectiveAt)],
      [2n * WAD, 2n * WAD, 2n * WAD, BigInt(effectiveAt)],
    ]
    expect(await multipliersAt('latest')).toEqual([WAD, WAD, WAD, 0n])
    expect(await multipliersAt('pending')).toEqual(scheduled)
    const { number } = devnet.seal()
    expect(await multipliersAt('pending')).toEqual(effective)
    devnet.seal()
    expect(await multipliersAt('latest')).toEqual(effective)
    expect(await multipliersAt(`0x${number.toString(16)}`)).toEqual(scheduled)
  })

  it('answers the initial multiplier of a token', async () => {
    const devnet = await startManualDevnet({ calls: true })
    expect(await call(devnet, devnet.list.addressOf('NVDAc'), 'uiMultiplier')).toEqual([1_000_537_939_576_369_481n])
  })

  it('answers the paused features', async () => {
    const devnet = await startManualDevnet({ calls: true })
    devnet.issuer.pause({ symbol, features: [3, 0] })
    devnet.makeFlashblock()
    const token = devnet.list.addressOf(symbol)
    expect(await call(devnet, token, 'pausedFeatures', 'pending')).toEqual([32n, 2n, 0n, 3n])
    expect(await call(devnet, token, 'pausedFeatures')).toEqual([32n, 0n])
  })

  it('answers the aggregator, phase and newest round of a feed, with the phase in the round number', async () => {
    const devnet = await startManualDevnet({ calls: true })
    const { proxy, aggregator, phase } = devnet.feeds[symbol] ?? {}
    const updatedAt = devnet.chain.pending.timestamp
    devnet.publishRound({ symbol, price: '438.25', round: 362 })
    devnet.makeFlashblock()
    devnet.seal()
    const feed = proxy ?? ''
    expect(await call(devnet, feed, 'aggregator')).toEqual([BigInt(aggregator ?? 0)])
    expect(await call(devnet, feed, 'phaseId')).toEqual([BigInt(phase ?? 0)])
    expect(await call(devnet, feed, 'decimals')).toEqual([8n])
    const number = (1n << 64n) + 362n
    const times = [BigInt(updatedAt - 15), BigInt(updatedAt)]
    expect(await call(devnet, feed, 'latestRoundData')).toEqual([number, 43_825_000_000n, ...times, number])
  })

  it('answers the same round as the list at the start', async () => {
    const devnet = await startManualDevnet({ calls: true })
    const { nav_price, nav_price_updated_at } = devnet.list.records().find((record) => record.symbol === symbol) ?? {}
    const [, answer, , updatedAt] = (await call(devnet, devnet.feeds[symbol]?.proxy ?? '', 'latestRoundData')) ?? []
    expect([Number(answer) / 1e8, Number(updatedAt) * 1_000]).toEqual([nav_price, Date.parse(nav_price_updated_at ?? '')])
  })

  it.each([
    ['an unknown token function', (devnet: Devnet) => devnet.list.addressOf(symbol), '0x70a08231'],
    ['a token function called on a feed', (devnet: Devnet) => devnet.feeds[symbol]?.proxy, views.uiMultiplier],
    ['empty calldata', (devnet: Devnet) => devnet.list.addressOf(symbol), '0x'],
  ])('reverts for %s', async (_, calleeOf, data) => {
    const devnet = await startManualDevnet({ calls: true })
    const { status, error } = await rpcCall(devnet, 'eth_call', { to: calleeOf(devnet), data }, 'latest')
    expect({ status, error }).toEqual({ status: 200, error: { code: 3, message: 'execution reverted' } })
  })

  it('answers 0x without code, accepts input instead of data, and defaults to the latest block', async () => {
    const devnet = await startManualDevnet({ calls: true })
    expect(await rpcResult(devnet, 'eth_call', { to: ALICE, data: views.uiMultiplier })).toBe('0x')
    const to = devnet.list.addressOf(symbol)
    expect(await rpcResult(devnet, 'eth_call', { to, input: views.uiMultiplier })).toBe(toWord(WAD))
    expect((await rpcCall(devnet, 'eth_call', { data: views.uiMultiplier }, 'latest')).error?.code).toBe(-32602)
  })
})
