import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../../../src/devnet/devnet.ts'
import { toWord } from '../../../../src/lib/hex.ts'
import { decodeLog } from '../decode-log.ts'
import { rpcResult, startManualDevnet, ZERO_HASH } from '../devnet-client.ts'

const symbol = 'TSLAc'
const feedOf = (devnet: Devnet, which = symbol) => {
  const feed = devnet.feeds[which]
  if (!feed) throw new Error(`${which} has no feed`)
  return feed
}
const recordOf = (devnet: Devnet) => devnet.list.records().find((record) => record.symbol === symbol)

describe('a round', () => {
  it('is three logs of the aggregator, with eight decimals and the time of its block', async () => {
    const devnet = await startManualDevnet()
    const { timestamp } = devnet.chain.pending
    const transactionHash = devnet.publishRound({ symbol, price: '438.12345678', round: 363 })
    const logs = devnet.makeFlashblock()
    const { aggregator } = feedOf(devnet)
    expect(logs).toMatchObject(logs.map(() => ({ address: aggregator, transactionHash })))
    const [transmission, ...rest] = logs.map(decodeLog)
    expect(transmission?.slice(0, 3)).toEqual(['NewTransmission', toWord(363n), 43_812_345_678n])
    expect(rest).toEqual([
      ['NewRound', toWord(363n), ZERO_HASH, BigInt(timestamp - 15)],
      ['AnswerUpdated', toWord(43_812_345_678n), toWord(363n), BigInt(timestamp)],
    ])
  })

  it('has the next number by default, and may have another time and a negative price', async () => {
    const devnet = await startManualDevnet()
    devnet.publishRound({ symbol, price: '0', round: 9 })
    devnet.publishRound({ symbol, price: '-1.5', updatedAt: 1_795_185_003 })
    const negative = `0x${(2n ** 256n - 150_000_000n).toString(16)}`
    expect(devnet.makeFlashblock().map(decodeLog).at(-1)).toEqual(['AnswerUpdated', negative, toWord(10n), 1_795_185_003n])
  })

  it('is on the list once it is sealed, if it is newer than the reading of the list', async () => {
    const devnet = await startManualDevnet()
    const before = recordOf(devnet)
    devnet.publishRound({ symbol, price: '500.25' })
    devnet.makeFlashblock()
    expect(recordOf(devnet)).toEqual(before)
    const { timestamp } = devnet.seal()
    const nav_price_updated_at = new Date(timestamp * 1_000).toISOString().replace('.000Z', 'Z')
    expect(recordOf(devnet)).toMatchObject({ nav_price: 500.25, nav_price_updated_at })
    devnet.reorg(1, [devnet.chain.head.transactions[0]?.hash ?? ZERO_HASH])
    expect(recordOf(devnet)).toEqual(before)
  })

  it('is refused for a token without a reference value', async () => {
    const devnet = await startManualDevnet()
    expect(() => devnet.publishRound({ symbol: 'INTCc', price: '1' })).toThrow('INTCc has no feed')
    expect(Object.keys(devnet.feeds)).toHaveLength(devnet.tokens.length - 1)
  })
})

it('a proxy has its phase and its aggregator in slot 2 at every block, and a new aggregator restarts the round numbers', async () => {
  const devnet = await startManualDevnet()
  const previous = feedOf(devnet, 'NVDAc')
  const packed = ({ aggregator, phase }: typeof previous) => toWord((BigInt(aggregator) << 16n) | BigInt(phase))
  devnet.swapAggregator('NVDAc')
  expect(devnet.makeFlashblock()).toEqual([])
  const current = feedOf(devnet, 'NVDAc')
  expect([previous.phase, current.phase, current.proxy]).toEqual([2, 3, previous.proxy])
  expect(current.aggregator).not.toBe(previous.aggregator)
  const slotAt = (tag: string) => rpcResult(devnet, 'eth_getStorageAt', previous.proxy, '0x2', tag)
  expect([await slotAt('latest'), await slotAt('pending')]).toEqual([packed(previous), packed(current)])
  devnet.seal()
  expect([await slotAt('safe'), await slotAt('latest')]).toEqual([packed(previous), packed(current)])
  devnet.publishRound({ symbol: 'NVDAc', price: '400' })
  const answer = devnet.makeFlashblock().at(-1)
  expect(answer?.address).toBe(current.aggregator)
  expect(answer && decodeLog(answer)[2]).toBe(toWord(1n))
})
