import { describe, expect, it } from 'vitest'
import { toWord } from '../../../../src/devnet/chain/hex.ts'
import type { Devnet } from '../../../../src/devnet/devnet.ts'
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
  it('is told three times by the aggregator, with eight decimals and the time of its block', async () => {
    const devnet = await startManualDevnet()
    const { timestamp } = devnet.chain.pending
    const hash = devnet.publishRound({ symbol, price: '438.12345678', round: 363 })
    const logs = devnet.makeFlashblock()
    const { aggregator } = feedOf(devnet)
    expect(logs.map(({ address, transactionHash }) => [address, transactionHash])).toEqual(
      logs.map(() => [aggregator, hash]),
    )
    const [transmission, ...rest] = logs.map(decodeLog)
    expect(transmission?.slice(0, 3)).toEqual(['NewTransmission', toWord(363n), 43_812_345_678n])
    expect(rest).toEqual([
      ['NewRound', toWord(363n), ZERO_HASH, BigInt(timestamp - 15)],
      ['AnswerUpdated', toWord(43_812_345_678n), toWord(363n), BigInt(timestamp)],
    ])
  })

  it('follows the one before it, and may be of another time and below zero', async () => {
    const devnet = await startManualDevnet()
    devnet.publishRound({ symbol, price: '0', round: 9 })
    devnet.publishRound({ symbol, price: '-1.5', updatedAt: 1_795_185_003 })
    const answers = devnet.makeFlashblock().map(decodeLog)
    expect(answers.filter(([name]) => name === 'AnswerUpdated').slice(1)).toEqual([
      ['AnswerUpdated', `0x${(2n ** 256n - 150_000_000n).toString(16)}`, toWord(10n), 1_795_185_003n],
    ])
  })

  it('is on the list once it is sealed, if it is newer than what the list has', async () => {
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

describe('a proxy', () => {
  it('keeps its phase and its aggregator in slot 2, at each block as it was there', async () => {
    const devnet = await startManualDevnet()
    const old = feedOf(devnet, 'NVDAc')
    const packed = ({ aggregator, phase }: typeof old) => toWord((BigInt(aggregator) << 16n) | BigInt(phase))
    devnet.swapAggregator('NVDAc')
    expect(devnet.makeFlashblock()).toEqual([])
    const young = feedOf(devnet, 'NVDAc')
    expect([old.phase, young.phase, young.proxy]).toEqual([2, 3, old.proxy])
    expect(young.aggregator).not.toBe(old.aggregator)
    const slotAt = (tag: string) => rpcResult(devnet, 'eth_getStorageAt', old.proxy, '0x2', tag)
    expect([await slotAt('latest'), await slotAt('pending')]).toEqual([packed(old), packed(young)])
    devnet.seal()
    expect([await slotAt('safe'), await slotAt('latest')]).toEqual([packed(old), packed(young)])
  })

  it('has the rounds of its new aggregator from the first', async () => {
    const devnet = await startManualDevnet()
    devnet.swapAggregator(symbol)
    devnet.publishRound({ symbol, price: '400' })
    const [, , answer] = devnet.makeFlashblock()
    expect(answer?.address).toBe(feedOf(devnet).aggregator)
    expect(answer && decodeLog(answer)[2]).toBe(toWord(1n))
  })
})
