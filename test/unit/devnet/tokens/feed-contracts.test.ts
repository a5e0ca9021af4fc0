import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../../../src/devnet/devnet.ts'
import { toWord } from '../../../../src/lib/hex.ts'
import { decodeLog } from '../decode-log.ts'
import { rpcResult, startManualDevnet, ZERO_HASH } from '../devnet-client.ts'

const symbol = 'TSLAc'
const feedOf = (devnet: Devnet, which = symbol) => devnet.feeds[which] ?? expect.unreachable()
const recordOf = (devnet: Devnet) => devnet.list.records().find((record) => record.symbol === symbol)

describe('a round', () => {
  it('is three logs of the aggregator, with eight decimals, and by default the time of its block and the next number', async () => {
    const devnet = await startManualDevnet()
    const { timestamp } = devnet.chain.pending
    const transactionHash = devnet.publishRound({ symbol, price: '438.12345678', round: 363 })
    const logs = devnet.makeFlashblock()
    expect(logs).toMatchObject(logs.map(() => ({ address: feedOf(devnet).aggregator, transactionHash })))
    const [transmission, ...rest] = logs.map(decodeLog)
    expect(transmission?.slice(0, 3)).toEqual(['NewTransmission', toWord(363n), 43_812_345_678n])
    expect(rest).toEqual([
      ['NewRound', toWord(363n), ZERO_HASH, BigInt(timestamp - 15)],
      ['AnswerUpdated', toWord(43_812_345_678n), toWord(363n), BigInt(timestamp)],
    ])
    devnet.publishRound({ symbol, price: '-1.5', updatedAt: 1_795_185_003 })
    const negative = `0x${(2n ** 256n - 150_000_000n).toString(16)}`
    expect(devnet.makeFlashblock().map(decodeLog).at(-1)).toEqual(['AnswerUpdated', negative, toWord(364n), 1_795_185_003n])
    expect(() => devnet.publishRound({ symbol: 'INTCc', price: '1' })).toThrow('INTCc has no feed')
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
    devnet.publishRound({ symbol, price: '1', updatedAt: 1 })
    devnet.makeFlashblock()
    devnet.seal()
    expect(recordOf(devnet)).toEqual(before)
  })
})

it('a proxy has its phase and its aggregator in slot 2 at every block, and a new aggregator restarts the round numbers', async () => {
  const devnet = await startManualDevnet()
  const previous = feedOf(devnet, 'NVDAc')
  devnet.swapAggregator('NVDAc')
  expect(devnet.makeFlashblock()).toEqual([])
  const current = feedOf(devnet, 'NVDAc')
  expect([previous.phase, current]).toEqual([
    2,
    { proxy: previous.proxy, phase: 3, aggregator: expect.not.stringMatching(previous.aggregator) },
  ])
  const slotAt = (tag: string) => rpcResult(devnet, 'eth_getStorageAt', previous.proxy, '0x2', tag)
  const packed = [previous, current].map(({ aggregator, phase }) => toWord((BigInt(aggregator) << 16n) | BigInt(phase)))
  expect([await slotAt('latest'), await slotAt('pending')]).toEqual(packed)
  devnet.publishRound({ symbol: 'NVDAc', price: '400' })
  const answer = devnet.makeFlashblock().at(-1) ?? expect.unreachable()
  expect([answer.address, decodeLog(answer)[2]]).toEqual([current.aggregator, toWord(1n)])
})
