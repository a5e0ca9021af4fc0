import { describe, expect, it } from 'vitest'
import { word } from '../../../../src/devnet/chain/hex.ts'
import type { Devnet } from '../../../../src/devnet/devnet.ts'
import { said } from '../decode-log.ts'
import { manual, read, ZERO_HASH } from '../devnet-client.ts'

const symbol = 'TSLAc'
const feedOf = (devnet: Devnet, which = symbol) => {
  const feed = devnet.feeds[which]
  if (!feed) throw new Error(`${which} has no feed`)
  return feed
}
const recordOf = (devnet: Devnet) => devnet.list.records().find((record) => record.symbol === symbol)

describe('a round', () => {
  it('is told three times by the aggregator, with eight decimals and the time of its block', async () => {
    const devnet = await manual()
    const { timestamp } = devnet.chain.pending
    const hash = devnet.round({ symbol, price: '438.12345678', round: 363 })
    const logs = devnet.flash()
    const { aggregator } = feedOf(devnet)
    expect(logs.map(({ address, transactionHash }) => [address, transactionHash])).toEqual(
      logs.map(() => [aggregator, hash]),
    )
    const [transmission, ...rest] = logs.map(said)
    expect(transmission?.slice(0, 3)).toEqual(['NewTransmission', word(363n), 43_812_345_678n])
    expect(rest).toEqual([
      ['NewRound', word(363n), ZERO_HASH, BigInt(timestamp - 15)],
      ['AnswerUpdated', word(43_812_345_678n), word(363n), BigInt(timestamp)],
    ])
  })

  it('follows the one before it, and may be of another time and below zero', async () => {
    const devnet = await manual()
    devnet.round({ symbol, price: '0', round: 9 })
    devnet.round({ symbol, price: '-1.5', updatedAt: 1_795_185_003 })
    const answers = devnet.flash().map(said)
    expect(answers.filter(([name]) => name === 'AnswerUpdated').slice(1)).toEqual([
      ['AnswerUpdated', `0x${(2n ** 256n - 150_000_000n).toString(16)}`, word(10n), 1_795_185_003n],
    ])
  })

  it('is on the list once it is sealed, if it is newer than what the list has', async () => {
    const devnet = await manual()
    const before = recordOf(devnet)
    devnet.round({ symbol, price: '500.25' })
    devnet.flash()
    expect(recordOf(devnet)).toEqual(before)
    const { timestamp } = devnet.seal()
    const nav_price_updated_at = new Date(timestamp * 1_000).toISOString().replace('.000Z', 'Z')
    expect(recordOf(devnet)).toMatchObject({ nav_price: 500.25, nav_price_updated_at })
    devnet.reorg(1, [devnet.chain.head.transactions[0]?.hash ?? ZERO_HASH])
    expect(recordOf(devnet)).toEqual(before)
  })

  it('is refused for a token without a reference value', async () => {
    const devnet = await manual()
    expect(() => devnet.round({ symbol: 'INTCc', price: '1' })).toThrow('INTCc has no feed')
    expect(Object.keys(devnet.feeds)).toHaveLength(devnet.tokens.length - 1)
  })
})

describe('a proxy', () => {
  it('keeps its phase and its aggregator in slot 2, at each block as it was there', async () => {
    const devnet = await manual()
    const old = feedOf(devnet, 'NVDAc')
    const packed = ({ aggregator, phase }: typeof old) => word((BigInt(aggregator) << 16n) | BigInt(phase))
    devnet.swapAggregator('NVDAc')
    expect(devnet.flash()).toEqual([])
    const young = feedOf(devnet, 'NVDAc')
    expect([old.phase, young.phase, young.proxy]).toEqual([2, 3, old.proxy])
    expect(young.aggregator).not.toBe(old.aggregator)
    const slotAt = (tag: string) => read(devnet, 'eth_getStorageAt', old.proxy, '0x2', tag)
    expect([await slotAt('latest'), await slotAt('pending')]).toEqual([packed(old), packed(young)])
    devnet.seal()
    expect([await slotAt('safe'), await slotAt('latest')]).toEqual([packed(old), packed(young)])
  })

  it('has the rounds of its new aggregator from the first', async () => {
    const devnet = await manual()
    devnet.swapAggregator(symbol)
    devnet.round({ symbol, price: '400' })
    const [, , answer] = devnet.flash()
    expect(answer?.address).toBe(feedOf(devnet).aggregator)
    expect(answer && said(answer)[2]).toBe(word(1n))
  })
})
