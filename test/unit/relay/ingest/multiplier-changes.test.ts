import { describe, expect, it } from 'vitest'
import { blockHash, timestampOf, txHash } from '../chain/node-json.ts'
import { apple } from '../tokens/stock-records.ts'
import { changed, isoTime, moved, openListed, splitLogs } from './multiplier-fixture.ts'
import {
  agreedHead,
  headEvent,
  holeEvent,
  listEvent,
  partial,
  play,
  type Step,
  sealedEventOfLogs as sealed,
  transactionEvent,
} from './reducer-fixture.ts'
import { transfer } from './token-logs.ts'

const [legacyChange, change] = splitLogs(11, 1)
const block11 = [moved(11), legacyChange, change, moved(11, 3)]
const listed = (multiplier: number) => listEvent(apple({ multiplier }))
const push = (...logs: Parameters<typeof transactionEvent>[0]) => transactionEvent(logs)
const atFork = (block: number) => ({ hash: blockHash(block + 1_000) })

describe('a transfer before, in the block of, and after a split', () => {
  it.each(['pendingLogs', 'poll'] as const)('has the multiplier of its chain position: %s', async (via) => {
    const groups = [[moved(10)], [moved(11)], [legacyChange, change], [moved(11, 3)], [moved(12)]]
    await play(await openListed(via), [
      [
        groups.map((logs) => transactionEvent(logs, via)),
        'preconfirmed 10/0 x 1, preconfirmed 11/0 x 1, effective 1 to 2 by log, preconfirmed 11/3 x 2, preconfirmed 12/0 x 2',
      ],
      [sealed(10, [moved(10)]), 'seal 10/0'],
      [sealed(11, block11), 'seal 11/0,11/1,11/2,11/3'],
    ])
  })

  it.each([
    ['content', 5n, false],
    ['other content', 6n, false],
    ['other content', 6n, true],
  ])(
    'is amended with its sealed block, and with the transaction index of its %s (%d, restarted: %s)',
    async (_, raw, isRestarted) => {
      const ingest = await openListed()
      const at = { block: 11, index: 3 }
      const whole = { ...transfer(at, raw), transactionIndex: 2 }
      await ingest.publish(push(transfer(at, 5n)), sealed(11, [whole], { timestamp: null }))
      const { publish } = isRestarted ? await ingest.restart() : ingest
      await publish(sealed(10, splitLogs(10, 1), { newest: 11, cursor: 10 }))
      expect((await ingest.updates()).at(-1)).toMatchObject({
        type: 'amend',
        update: { tx: { index: 2, log_index: 3 }, block: { hash: blockHash(11), timestamp: isoTime(timestampOf(11)) } },
      })
    },
  )
})

describe('a change of the multiplier', () => {
  it.each<[string, ...Step[]]>([
    [
      'that a hole leaves unconfirmed counts until the next log has another from',
      [[push(changed(11, '1', '2')), holeEvent(11, 11)], 'effective 1 to 2 by log, hole'],
      [push(moved(12)), 'preconfirmed 12/0 x 2'],
      [push(changed(13, '1', '4', { due: 20 })), 'scheduled 1 to 4 by log, amend 12/0 preconfirmed x 1'],
      [push(moved(14)), 'preconfirmed 14/0 x 1'],
    ],
    [
      'that is scheduled before a hole is not taken for one inside the hole where chain time has not reached it',
      [[sealed(5, [changed(5, '1', '2', { due: 20 })]), holeEvent(8, 8)], 'scheduled 1 to 2 by log late, seal 5/0, hole'],
      [push(moved(10)), 'preconfirmed 10/0 x 1'],
      [push(changed(30, '2', '4')), 'effective 2 to 4 by log'],
    ],
    [
      'inside a hole that is reported after newer blocks does not reach back either',
      [sealed(10, [moved(10)]), 'sealed 10/0 x 1 late, seal 10/0'],
      [sealed(22, [changed(22, '2', '4', { index: 1 })]), 'effective 2 to 4 by log late, seal 22/1, amend 10/0 sealed x 2'],
      [holeEvent(11, 20, 22), 'hole, amend 10/0 sealed x 1'],
    ],
    [
      'inside a hole that is reported after newer blocks counts in those behind it',
      [sealed(5, [changed(5, '1', '2')]), 'effective 1 to 2 by log late, seal 5/0'],
      [sealed(21, [moved(21)], { cursor: 10 }), 'sealed 21/0 x 2 late, seal 21/0'],
      [sealed(22, [changed(22, '4', '8')], { cursor: 10 }), 'effective 4 to 8 by log late, seal 22/0'],
      [holeEvent(11, 20, 22), 'hole, amend 21/0 sealed x 4'],
    ],
    [
      'inside a hole does not amend movements before the hole when a reorganisation replaces both',
      [[sealed(10, [moved(10)]), holeEvent(11, 20)], 'sealed 10/0 x 1 late, seal 10/0, hole'],
      [
        [sealed(21, [moved(21)]), sealed(22, [changed(22, '2', '4')])],
        'sealed 21/0 x 1 late, seal 21/0, effective 2 to 4 by log late, seal 22/0, amend 21/0 sealed x 2',
      ],
      [[{ type: 'reorg', from: 10 }, sealed(10, [moved(10)], atFork(10))], 'seal 10/0'],
      [sealed(22, [], atFork(22)), 'retract 22/0 reorg, now 1, amend 21/0 sealed x 1'],
    ],
    [
      'scheduled in a block with logs that cannot be read takes effect, and only once',
      [push(changed(5, '1', '2', { due: 20 })), 'scheduled 1 to 2 by log'],
      [agreedHead(20), 'effective 1 to 2 by clock'],
      [push(moved(21)), 'preconfirmed 21/0 x 2'],
      [[holeEvent(5, 5), partial(sealed(5, []))], 'hole'],
      [sealed(5, [changed(5, '1', '2', { due: 20 })]), 'seal 5/0'],
    ],
    [
      'in a replaced block does not count until the new block can be read whole',
      [[sealed(5, [moved(5)]), { type: 'reorg', from: 5 }], 'sealed 5/0 x 1 late, seal 5/0'],
      [[holeEvent(5, 5), partial(sealed(5, [changed(5, '1', '2', { index: 1 })], atFork(5)))], 'hole'],
      [push(moved(8)), 'preconfirmed 8/0 x 1'],
      [
        sealed(5, [changed(5, '1', '2', { index: 1 })], atFork(5)),
        'retract 5/0 reorg, effective 1 to 2 by log late, seal 5/1, amend 8/0 preconfirmed x 2',
      ],
    ],
    [
      'scheduled in a transaction that only a second reading of its block can read waits until the block can be read whole',
      [[holeEvent(4, 4), partial(sealed(4, [moved(4)]))], 'hole, sealed 4/0 x 1 late, seal 4/0'],
      [[partial(sealed(4, [changed(4, '1', '2', { index: 1, due: 5 })])), ...agreedHead(5)], ''],
      [push(moved(6)), 'preconfirmed 6/0 x 1'],
      [
        [sealed(4, [moved(4), changed(4, '1', '2', { index: 1, due: 5 })]), ...agreedHead(5)],
        'scheduled 1 to 2 by log late, seal 4/0,4/1, effective 1 to 2 by clock, amend 6/0 preconfirmed x 2',
      ],
    ],
    [
      'that is not sealed does not count as the value before the next change',
      [
        [push(moved(10)), push(...splitLogs(11, 1)), push(changed(12, '2', '4', { due: 50 }))],
        'preconfirmed 10/0 x 1, effective 1 to 2 by log, scheduled 2 to 4 by log',
      ],
      [sealed(10, [moved(10)]), 'seal 10/0'],
      [sealed(11, []), 'retract 11/2 not_sealed, now 1'],
    ],
  ])('%s', async (_, ...steps) => {
    await play(await openListed(), steps)
  })

  it.each([
    ['a block', sealed],
    ['a block that also has logs that cannot be read', (...block: Parameters<typeof sealed>) => partial(sealed(...block))],
  ])('is forgotten when %s has another log under its key', async (_, eventOfLogs) => {
    await play(await openListed(), [
      [push(changed(10, '1', '2', { due: 20 })), 'scheduled 1 to 2 by log'],
      [eventOfLogs(10, [transfer({ block: 10, index: 0, tx: txHash(10, 0) }, 100_000_000n)]), 'amend 10/0 sealed x 1, seal 10/0'],
      [sealed(20, [moved(20)]), 'sealed 20/0 x 1 late, seal 20/0'],
    ])
  })
})

describe('a multiplier of the list', () => {
  const backfilled = { via: 'backfill', newest: 50 } as const

  it.each([
    ['does not outlast that log', 15, 20, 'effective', '6'],
    ['stays where it may tell of unread blocks after that log', 30, 20, 'effective', '3'],
    ['does not outlast the previous value in that log of a schedule', 15, 100, 'scheduled', '4'],
  ])('that was read before a log arrives %s', async (_, hole, due, phase, multiplier) => {
    await play(await openListed(), [
      [[headEvent(9), sealed(9, [])], ''],
      'restart',
      [[listed(3), headEvent(50), holeEvent(hole - 5, hole)], 'effective 1 to 3 by list, hole'],
      [sealed(20, [changed(20, '4', '6', { due })], backfilled), `${phase} 4 to 6 by log late, seal 20/0`],
      [push(moved(51)), `preconfirmed 51/0 x ${multiplier}`],
    ])
  })

  it.each([
    [10_000, '3'],
    [10_001, '1'],
  ])(
    'read %i ms after the chain was last seen stands behind the blocks that are read later, if that is long',
    async (ms, before) => {
      const ingest = await openListed('poll')
      await ingest.publish(...agreedHead(10), sealed(10, []))
      ingest.clock.now += ms
      await play(ingest, [
        [listed(3), 'effective 1 to 3 by list'],
        [agreedHead(20), ''],
        [sealed(12, [moved(12)]), `sealed 12/0 x ${before} late, seal 12/0`],
        [sealed(30, [moved(30)]), 'sealed 30/0 x 3 late, seal 30/0'],
      ])
    },
  )
})
