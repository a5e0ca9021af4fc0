import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { MANAGER_SWAP_TOPIC } from '../../../../../src/relay/chain/logs/event-decoder.ts'
import type { ReadFilter } from '../../../../../src/relay/chain/logs/log-filter.ts'
import { type Pool, poolOf } from '../../../../../src/relay/chain/pools/pool.ts'
import type { PoolSetting } from '../../../../../src/relay/config/pool-settings.ts'
import type { IngestEvent } from '../../../../../src/relay/ingest/fold-batch.ts'
import { venueNotes } from '../../../../../src/relay/notes/published-notes.ts'
import { Notes } from '../../../../../src/relay/tape/notes.ts'
import type { Venue } from '../../../../../src/relay/tokens/venue.ts'
import { blockHash, word } from '../../chain/node-json.ts'
import { APPLE, apple, TESLA, tesla } from '../../tokens/stock-records.ts'
import { listEvent, logAt, play, sealedEvent, sealedEventOfLogs, transactionEvent } from '../reducer-fixture.ts'

import {
  bothReceived,
  bought,
  boughtOfManager,
  everything,
  MANAGER,
  managedPool,
  ofManager,
  ofTokens,
  open,
  openFollowed,
  openWith,
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

  it('is dropped from the first block on that is not read yet', async () => {
    const ingest = await openFollowed()
    await ingest.publish(sealedEvent(110, [], { addresses: everything, cursor: 105 }))
    expect(await ingest.publish(read(wrong))).toContain('dropped from 106 wrong_tokens')
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
      'dropped from 101 settings',
      'dropped from 101 wrong_tokens',
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

describe('a pool of a manager', () => {
  const bothSubscribed: IngestEvent = { type: 'subscribed', filters: [ofTokens, ofManager] }
  const readState = readOf(managedPool, reading(324.9))
  const sealed = (block: number, logs: Parameters<typeof sealedEventOfLogs>[1], ...filters: readonly ReadFilter[]) =>
    sealedEventOfLogs(block, logs, { filters: [ofTokens, ...filters] })
  const refusedOf = (isOver: boolean): IngestEvent => ({ type: 'refusal', contract: MANAGER, isOver })
  const openManaged = () => openWith(managedPool, bothSubscribed, readState)

  it('is followed once the swaps of its manager are received', async () => {
    const ingest = await openWith(managedPool, received(APPLE as Hex), readState)
    await play(ingest, [
      [{ type: 'subscribed', filters: [ofTokens, { ...ofManager, topics: [[MANAGER_SWAP_TOPIC], [word(45)]] }] }, ''],
      [bothSubscribed, 'followed from 101'],
      [transactionEvent([boughtOfManager({ block: 101 })]), 'buy 1.5 at 324.90438933 preconfirmed'],
      [sealed(101, [boughtOfManager({ block: 101 })], ofManager), 'seal trade'],
    ])
  })

  it('has trades that only a block settles that was read for them', async () => {
    const ingest = await openManaged()
    await play(ingest, [
      [transactionEvent([boughtOfManager({ block: 101 })]), 'buy 1.5 at 324.90438933 preconfirmed'],
      [sealed(101, []), ''],
      [sealed(101, [], { ...ofManager, topics: [[MANAGER_SWAP_TOPIC], [word(45)]] }), ''],
      [sealed(101, [], ofManager), 'retract trade not_sealed'],
    ])
  })

  it('is dropped while the node refuses the swaps of the manager, and its open trades wait', async () => {
    const ingest = await openManaged()
    const [transfer, trade] = [logAt({ block: 101, index: 0 }), boughtOfManager({ block: 101, index: 1 })]
    await play(ingest, [
      [transactionEvent([transfer, trade]), 'transfer, buy 1.5 at 324.90438933 preconfirmed'],
      [refusedOf(false), 'dropped from 101 refused'],
      [[sealed(101, [transfer]), readState], 'seal transfer'],
      'restart',
      [[bothSubscribed, readState, transactionEvent([boughtOfManager({ block: 102 })])], ''],
      [refusedOf(true), 'followed from 102'],
      [sealed(101, [transfer, trade], ofManager), 'seal transfer+trade'],
      [sealed(102, [boughtOfManager({ block: 102 })], ofManager), 'buy 1.5 at 324.90438933 sealed late, seal trade'],
    ])
  })

  it.each([
    { block: 'other logs of its token', first: ['transfer', 'buy 1.5 at 324.90438933 sealed late', 'seal transfer+trade'] },
    { block: 'a trade alone', first: ['buy 1.5 at 324.90438933 sealed late', 'seal trade'] },
  ])('is not read in a block that replaces one with $block, whose trade it keeps until it returns', async ({ first }) => {
    const transfer = first.length === 3 ? [logAt({ block: 101, index: 0 })] : []
    const trade = boughtOfManager({ block: 101, index: 1 })
    const [moved = '', again] = transfer.length > 0 ? ['retract transfer reorg', 'transfer, seal transfer+trade'] : ['', '']
    const replacing = sealedEventOfLogs(101, [], { filters: [ofTokens], hash: blockHash(7) })
    await play(await openManaged(), [
      [sealed(101, [...transfer, trade], ofManager), first.join(', ')],
      [refusedOf(false), 'dropped from 102 refused'],
      [{ type: 'reorg', from: 101 }, 'dropped from 101 refused'],
      [replacing, moved],
      [{ type: 'reorg', from: 101 }, ''],
      [sealed(101, transfer), again],
      'restart',
      [{ type: 'reorg', from: 101 }, ''],
      [replacing, moved],
      'restart',
      [sealed(101, transfer), again],
    ])
  })

  it('stays dropped after the refusal if its token was delisted, or if the settings no longer name it', async () => {
    const delisted = await openManaged()
    await play(delisted, [
      [refusedOf(false), 'dropped from 101 refused'],
      [listEvent(tesla()), 'token'],
      [[refusedOf(true), bothSubscribed], ''],
    ])
    const unnamed = await openManaged()
    await unnamed.publish(transactionEvent([boughtOfManager({ block: 101 })]), refusedOf(false))
    const without = await unnamed.restart({ worth: settingsOf() })
    expect(await without.publish(listEvent(apple()), bothSubscribed, refusedOf(true))).toEqual([])
    expect(await without.publish(sealed(101, [boughtOfManager({ block: 101 })], ofManager))).toEqual(['seal trade'])
  })

  it('is not followed while the manager is refused, if it is new', async () => {
    const ingest = await openWith(managedPool, bothSubscribed, refusedOf(false))
    await play(ingest, [
      [readState, 'quote 324.9 in 100'],
      [refusedOf(true), 'followed from 101'],
    ])
  })

  it('is dropped from the first block of a reorganisation on, which is settled again without it', async () => {
    const ingest = await openManaged()
    for (const block of [101, 102, 103]) await ingest.publish(sealed(block, [], ofManager))
    await play(ingest, [
      [refusedOf(false), 'dropped from 104 refused'],
      [{ type: 'reorg', from: 102, isSuspected: true }, ''],
      [{ type: 'reorg', from: 102 }, 'dropped from 102 refused'],
      [refusedOf(true), 'followed from 104'],
    ])
  })

  it('is dropped from the first block that a reorganisation replaced, if it is not settled again yet', async () => {
    const ingest = await openManaged()
    for (const block of [101, 102, 103]) await ingest.publish(sealed(block, [], ofManager))
    await play(ingest, [
      [{ type: 'reorg', from: 102 }, ''],
      [refusedOf(false), 'dropped from 102 refused'],
    ])
  })

  it('is of another manager once the trades of the first one are forgotten', async () => {
    const ingest = await openManaged()
    await ingest.publish(transactionEvent([boughtOfManager({ block: 101 })]))
    const moved: Pool = { ...managedPool, manager: `0x${'6'.repeat(40)}` }
    const ofBoth: IngestEvent = {
      type: 'subscribed',
      filters: [ofTokens, { ...ofManager, addresses: [MANAGER, `0x${'6'.repeat(40)}`] }],
    }
    const next = await ingest.restart({ worth: settingsOf(moved) })
    expect(await next.publish(listEvent(apple()), ofBoth)).toEqual([])
    expect(await next.publish(readOf(moved, reading(324.9)))).toEqual(['dropped from 101 settings'])
    expect(await next.publish(sealed(101, [boughtOfManager({ block: 101 })], ofManager))).toEqual(['seal trade'])
    expect(await next.publish(sealed(10_000, [], ofManager))).toEqual(['bar r1 1 at 324.90438933 in 101-101 partial settings'])
    expect(await next.publish(readOf(moved, reading(324.9)))).toEqual(['followed from 10001'])
  })
})

describe('a pool with a key that an older relay followed by its id', () => {
  const key = { fee: 3_000, tickSpacing: 60, hooks: `0x${'5'.repeat(40)}` } as const
  const keyed = { ...pool, kind: 'uniswap_v4', manager: `0x${'4'.repeat(40)}`, id: key } as const satisfies PoolSetting
  const { id, hooks } = poolOf(keyed, APPLE as Hex)
  const restartWith = async (...settings: readonly PoolSetting[]) => {
    const ingest = await openFollowed()
    await ingest.publish(listEvent(apple(), tesla()))
    const { tape } = ingest.openedTape
    const venue: Venue = { pool: { ...keyed, token: APPLE as Hex, id }, feeBps: '30', droppedFor: null, fromBlock: 90 }
    const notes = new Notes().set(venueNotes.at(APPLE), [venue])
    await tape.writer.append({ first: tape.next, updates: [], notes, keepAfter: 0 })
    const { publish } = await ingest.restart({ worth: settingsOf(...settings) })
    return { publish, hooksNow: () => tape.notes.note(venueNotes.at(APPLE))?.map(({ pool }) => pool.hooks) }
  }

  it.each<[string, readonly PoolSetting[], told: readonly string[], hooks: readonly unknown[]]>([
    ['its id', [{ ...keyed, id }], [], [undefined]],
    ['its key', [keyed], [], [hooks]],
    ['its key and a symbol', [{ ...keyed, token: 'aapl' }], [], [hooks]],
    ['its key and a symbol that is unknown now', [{ ...keyed, token: 'APPL' }], [], [hooks]],
    ['its key and another token', [{ ...keyed, token: 'TSLAc' }], ['dropped from 101 settings'], []],
    ['another key', [{ ...keyed, id: { ...key, fee: 500 } }], ['dropped from 101 settings'], []],
    ['nothing', [], ['dropped from 101 settings'], []],
  ])('has its hooks, or is dropped, where the settings name %s', async (_, settings, told, known) => {
    const { publish, hooksNow } = await restartWith(...settings)
    expect(await publish(listEvent(apple(), tesla()))).toEqual(told)
    expect(hooksNow()).toEqual(known)
  })

  it('is not dropped when the symbol of its token passes to another', async () => {
    const { publish, hooksNow } = await restartWith({ ...keyed, token: 'AAPLc' })
    const swapped = listEvent(apple({ symbol: 'OLDc' }), tesla({ symbol: 'AAPLc' }))
    for (const list of [listEvent(apple(), tesla()), swapped, swapped]) {
      const told = await publish(list)
      expect(told.filter((text) => text.startsWith('dropped'))).toEqual([])
    }
    expect(hooksNow()).toEqual([hooks])
  })
})
