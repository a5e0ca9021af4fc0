import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import type { Pool } from '../../../../../src/relay/chain/pools/pool.ts'
import { APPLE, apple, TESLA, tesla } from '../../tokens/stock-records.ts'
import { listEvent, play, sealedEvent, sealedEventOfLogs, transactionEvent } from '../reducer-fixture.ts'

import {
  bothReceived,
  bought,
  everything,
  open,
  openFollowed,
  POOL,
  pool,
  pushed,
  read,
  reading,
  readOf,
  received,
  refused,
  settingsOf,
  USDC,
  wrong,
} from './pool-fixture.ts'

describe('a pool', () => {
  it('is followed once its tokens were read and its logs are received, and this is said once', async () => {
    const ingest = await open(received(APPLE as Hex))
    await play(ingest, [
      [sealedEvent(101, []), ''],
      [read({ kind: 'unreadable', reason: 'no answer' }), 'quote null in 101'],
      [read({ ...reading(324.9), tokens: 'unread' }), 'quote 324.9 in 100'],
      [bothReceived, ''],
      [read(reading(324.9)), 'followed from 102'],
      [[bothReceived, read(reading(324.9))], ''],
      'restart',
      [[bothReceived, read(reading(324.9))], ''],
    ])
  })

  it('is dropped if it trades other tokens, and followed again if it no longer does', async () => {
    const ingest = await open(received(APPLE as Hex))
    await play(ingest, [
      [read(wrong), 'dropped from 101 wrong_tokens, quote null in 100'],
      [read(wrong), ''],
      'restart',
      [read(wrong), ''],
      // Nobody says that it changed: the node answers no calls any more.
      [read({ ...reading(324), tokens: 'refused' }), 'quote 324.0 in 100'],
      [bothReceived, ''],
      [received(APPLE as Hex), ''],
      [read(reading(324.9)), 'quote 324.9 in 100'],
      [bothReceived, 'followed from 101'],
    ])
  })

  it('is followed on the word of the settings where the node answers no calls', async () => {
    const ingest = await open(received(APPLE as Hex))
    await play(ingest, [
      [read(refused), 'quote null in 100'],
      [bothReceived, 'followed from 101'],
      [pushed({ block: 101 }), 'buy 1.5 at 324.90438933 preconfirmed for a fee of null, quote 324.9 in 101'],
      [read(reading(324.9)), ''],
      [pushed({ block: 101, index: 1 }), 'buy 1.5 at 324.90438933 preconfirmed'],
      [read(wrong), 'dropped from 101 wrong_tokens, quote null in 100'],
      [read(refused), ''],
      [bothReceived, ''],
    ])
  })

  it('is dropped with its token, and followed again with it', async () => {
    const ingest = await openFollowed()
    await play(ingest, [
      [listEvent(), 'token, dropped from 101 delisted'],
      [pushed({ block: 101 }), ''],
      [listEvent(apple()), ''],
      [[received(APPLE as Hex), read(reading(324.9))], 'token, multiplier, nav, quote 324.9 in 100'],
      [bothReceived, 'followed from 101'],
    ])
  })

  it('is dropped if the settings no longer name it, and its open trades are settled all the same', async () => {
    const ingest = await openFollowed()
    await ingest.publish(pushed({ block: 101 }))
    const without = await ingest.restart({ worth: settingsOf() })
    expect(await without.publish(listEvent(apple()))).toEqual(['dropped from 101 settings'])
    expect(await without.publish(pushed({ block: 102, index: 1 }))).toEqual([])
    expect(await without.publish(sealedEventOfLogs(101, [bought({ block: 101 })], { addresses: everything }))).toEqual([
      'seal trade',
    ])
  })

  it('has no other trades once it is dropped than those of the blocks with open ones', async () => {
    const ingest = await openFollowed()
    await ingest.publish(pushed({ block: 101 }))
    const without = await ingest.restart({ worth: settingsOf() })
    await without.publish(listEvent(apple()))
    const logs = [bought({ block: 101 }), bought({ block: 101, index: 3 })]
    expect(await without.publish(sealedEventOfLogs(101, logs, { addresses: everything }))).toEqual([
      ...['buy 1.5 at 324.90438933 sealed late', 'seal trade+trade'],
    ])
    expect(await without.publish(sealedEventOfLogs(102, [bought({ block: 102 })], { addresses: everything }))).toEqual([])
  })

  it('keeps its published trades when the settings give it to another token', async () => {
    const ingest = await openFollowed()
    await ingest.publish(listEvent(apple(), tesla()), received(APPLE as Hex, TESLA as Hex, POOL))
    const [first, second] = [bought({ block: 101 }), bought({ block: 102 })]
    await ingest.publish(transactionEvent([first]), transactionEvent([second]))
    await ingest.publish(sealedEventOfLogs(101, [first], { addresses: everything, cursor: 101, restartCursor: 100 }))
    const moved = await ingest.restart({ worth: settingsOf({ ...pool, token: TESLA }) })
    await moved.publish(listEvent(apple(), tesla()))
    expect(await moved.publish(readOf({ ...pool, token: TESLA as Hex }, wrong))).toEqual([
      'dropped from 102 settings',
      'dropped from 102 wrong_tokens',
      'quote null in 101',
    ])
    const addresses = [...everything, TESLA as Hex]
    expect(await moved.publish(sealedEventOfLogs(101, [first], { addresses }))).toEqual([])
    expect(await moved.publish(sealedEventOfLogs(102, [second, bought({ block: 102, index: 5 })], { addresses }))).toEqual([
      ...['buy 1.5 at 324.90438933 sealed late', 'seal trade+trade'],
    ])
    const trades = (await ingest.updates()).filter(({ type }) => type === 'trade')
    expect(trades.map(({ symbol }) => symbol)).toEqual(['AAPLc', 'AAPLc', 'AAPLc'])
  })

  it('is followed at once as another kind of pool if its logs are received already', async () => {
    const ingest = await openFollowed()
    const slipstream: Pool = { ...pool, kind: 'slipstream' }
    const corrected = await ingest.restart({ worth: settingsOf(slipstream) })
    expect(await corrected.publish(listEvent(apple()), bothReceived)).toEqual([])
    expect(await corrected.publish(readOf(slipstream, reading(324.9)))).toEqual([
      'dropped from 101 settings',
      'followed from 101',
      'quote 324.9 in 100',
    ])
  })

  it('counts the decimals of its currency that the settings give now', async () => {
    const ingest = await openFollowed()
    const corrected = await ingest.restart({ worth: settingsOf({ ...pool, currency: { ...USDC, decimals: 8 } }) })
    await corrected.publish(listEvent(apple()), bothReceived)
    expect(await corrected.publish(pushed({ block: 101 }))).toContain('buy 1.5 at 3.24904389 preconfirmed')
  })
})
