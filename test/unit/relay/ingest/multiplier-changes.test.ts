import { describe, expect, it } from 'vitest'
import { blockHash, timestampOf, txHash } from '../chain/node-json.ts'
import { apple } from '../tokens/stock-records.ts'
import { agreedHead, headEvent, isoTime, openListed, positionAt, splitLogs, summarise } from './multiplier-fixture.ts'
import { holeEvent, listEvent, openReducer, partialEventOfLogs, sealedEventOfLogs, transactionEvent } from './reducer-fixture.ts'
import { multiplierUpdated, transfer, uiMultiplierUpdated } from './token-logs.ts'

describe('a transfer before, in the block of, and after a split', () => {
  const before = transfer(positionAt(10, 0), 100_000_000n)
  const first = transfer(positionAt(11, 0), 100_000_000n)
  const [legacyChange, change] = splitLogs(11, 1)
  const last = transfer(positionAt(11, 3), 100_000_000n)
  const after = transfer(positionAt(12, 0), 100_000_000n)

  const expected = (stage: string, late = '') => [
    `${stage} 10/0 100000000 x 1 = 1${late}`,
    `${stage} 11/0 100000000 x 1 = 1${late}`,
    `effective 1 to 2 by log${late}`,
    `${stage} 11/3 100000000 x 2 = 2${late}`,
    `${stage} 12/0 100000000 x 2 = 2${late}`,
  ]

  it.each(['pendingLogs', 'poll'] as const)('has the multiplier of its chain position: %s', async (via) => {
    const { publish } = await openListed(via)
    const groups = [[before], [first], [legacyChange, change], [last], [after]]
    expect(await publish(...groups.map((logs) => transactionEvent(logs, via)))).toEqual(expected('preconfirmed'))
    expect(await publish(sealedEventOfLogs(10, [before]))).toEqual(['seal 10/0 as transfer'])
    expect(await publish(sealedEventOfLogs(11, [first, legacyChange, change, last]))).toEqual([
      'seal 11/0,11/1,11/2,11/3 as transfer,part,multiplier,transfer',
    ])
  })

  it('has that multiplier when it is published late', async () => {
    const { publish } = await openListed()
    const blocks = [
      sealedEventOfLogs(10, [before]),
      sealedEventOfLogs(11, [first, legacyChange, change, last]),
      sealedEventOfLogs(12, [after]),
    ]
    expect((await publish(...blocks)).filter((line) => !line.startsWith('seal '))).toEqual(expected('sealed', ' late'))
  })

  it('has that multiplier when its block is backfilled much later', async () => {
    const { publish } = await openListed('sealed')
    const newer = { via: 'backfill', newest: 500, cursor: 400 } as const
    await publish(sealedEventOfLogs(500, []))
    const lines = await publish(
      sealedEventOfLogs(10, [before], newer),
      sealedEventOfLogs(11, [first, legacyChange, change, last], newer),
      sealedEventOfLogs(12, [after], newer),
    )
    expect(lines.filter((line) => !line.startsWith('seal '))).toEqual(expected('sealed', ' late'))
  })

  it('has that multiplier after a restart in between', async () => {
    const { publish, openedTape } = await openListed()
    await publish(transactionEvent([before]), transactionEvent([first]), transactionEvent([legacyChange, change]))
    const again = await openReducer(openedTape.tape)
    expect((await again.publish(transactionEvent([last]), transactionEvent([after]))).map(summarise)).toEqual(
      expected('preconfirmed').slice(3),
    )
  })

  it('is amended after a reorganisation that moves the split', async () => {
    const { publish } = await openListed()
    await publish(
      sealedEventOfLogs(10, [before]),
      sealedEventOfLogs(11, [first, legacyChange, change, last]),
      sealedEventOfLogs(12, [after]),
    )
    const hash = (block: number) => blockHash(block + 1_000)
    const [lateLegacyChange, lateChange] = splitLogs(12, 1)
    expect(
      await publish(
        sealedEventOfLogs(11, [first, transfer({ ...positionAt(11, 3), tx: txHash(11, 3) }, 100_000_000n)], { hash: hash(11) }),
      ),
    ).toEqual([
      'retract 11/2 reorg now {"multiplier":"1"}',
      'amend 11/3 multiplier,shares: 1 sealed',
      'seal 11/0,11/3 as transfer,transfer',
    ])
    expect(
      await publish(
        sealedEventOfLogs(12, [after, lateLegacyChange, lateChange, transfer(positionAt(12, 3), 1n)], { hash: hash(12) }),
      ),
    ).toEqual([
      'amend 12/0 multiplier,shares: 1 sealed',
      'effective 1 to 2 by log late',
      'sealed 12/3 1 x 2 = 0.00000002 late',
      'seal 12/0,12/1,12/2,12/3 as transfer,part,multiplier,transfer',
    ])
  })

  it('is amended when only the sealed block contains the split', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([first]), transactionEvent([last]), transactionEvent([after]))
    expect(await publish(sealedEventOfLogs(11, [first, legacyChange, change, last]))).toEqual([
      'amend 11/3 multiplier,shares: 2 sealed',
      'effective 1 to 2 by log late',
      'seal 11/0,11/1,11/2,11/3 as transfer,part,multiplier,transfer',
      'amend 12/0 multiplier,shares: 2 preconfirmed',
    ])
    expect(await publish(sealedEventOfLogs(12, [after]))).toEqual(['seal 12/0 as transfer'])
  })

  it('is amended when the split arrives out of order', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([first]), transactionEvent([last]))
    expect(await publish(transactionEvent([legacyChange, change]))).toEqual([
      'effective 1 to 2 by log',
      'amend 11/3 multiplier,shares: 2 preconfirmed',
    ])
  })

  it('is amended when the pre-confirmed split is not sealed', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([legacyChange, change]), transactionEvent([last]), transactionEvent([after]))
    expect(await publish(sealedEventOfLogs(11, [last]))).toEqual([
      'retract 11/2 not_sealed now {"multiplier":"1"}',
      'amend 11/3 multiplier,shares: 1 sealed',
      'seal 11/3 as transfer',
      'amend 12/0 multiplier,shares: 1 preconfirmed',
    ])
  })

  it.each([
    ['content', 5n, false],
    ['other content', 6n, false],
    ['other content', 6n, true],
  ])(
    'is amended with its sealed block, and with the transaction index of its %s (%d, restarted: %s)',
    async (_, raw, isRestarted) => {
      const { publish, openedTape } = await openListed()
      const sealed = { ...transfer(positionAt(11, 3), raw), transactionIndex: 2 }
      await publish(transactionEvent([transfer(positionAt(11, 3), 5n)]), sealedEventOfLogs(11, [sealed], { timestamp: null }))
      const { publish: publishNext } = isRestarted ? await openReducer(await openedTape.reopen()) : { publish }
      await publishNext(sealedEventOfLogs(10, splitLogs(10, 1), { newest: 11, cursor: 10 }))
      const [last] = (await openedTape.tape.readAfter(openedTape.tape.end() - 1, 1)).map(({ update }) => update)
      expect(last).toMatchObject({
        type: 'amend',
        update: { tx: { index: 2, log_index: 3 }, block: { hash: blockHash(11), timestamp: isoTime(timestampOf(11)) } },
      })
    },
  )

  it('is amended when the sealed split has another old value', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([uiMultiplierUpdated(positionAt(11, 1), '1', '2', timestampOf(11))]))
    expect(await publish(sealedEventOfLogs(11, [uiMultiplierUpdated(positionAt(11, 1), '1.5', '2', timestampOf(11))]))).toEqual([
      'amend 11/1 previous:  sealed',
      'seal 11/1 as multiplier',
    ])
  })

  it('is amended in a sealed block when the split is backfilled below it', async () => {
    const { publish } = await openListed()
    await publish(sealedEventOfLogs(500, [transfer(positionAt(500, 0), 1n)]))
    const beneath = { via: 'backfill', newest: 500, cursor: 11 } as const
    expect(await publish(sealedEventOfLogs(11, [legacyChange, change], beneath))).toEqual([
      'effective 1 to 2 by log late',
      'seal 11/1,11/2 as part,multiplier',
      'amend 500/0 multiplier,shares: 2 sealed',
    ])
  })
})

describe('a change of the multiplier', () => {
  it('to zero gives zero shares', async () => {
    const { publish } = await openListed()
    const nothing = uiMultiplierUpdated(positionAt(11, 0), '1', '0', timestampOf(11))
    expect(await publish(transactionEvent([nothing]), transactionEvent([transfer(positionAt(12, 0), 5n)]))).toEqual([
      'effective 1 to 0 by log',
      'preconfirmed 12/0 5 x 0 = 0',
    ])
  })

  it('is amended when the sealed log has another old value', async () => {
    const { publish } = await openListed()
    const again = (from: string) => uiMultiplierUpdated({ ...positionAt(12, 0), tx: txHash(12, 0) }, from, '4', timestampOf(12))
    await publish(transactionEvent(splitLogs(11, 1)), transactionEvent([again('2')]))
    expect(await publish(sealedEventOfLogs(11, []))).toEqual(['retract 11/2 not_sealed now {"multiplier":"4"}'])
    expect(await publish(sealedEventOfLogs(12, [again('1')]))).toEqual(['amend 12/0 previous:  sealed', 'seal 12/0 as multiplier'])
  })

  it.each([
    ['a block', sealedEventOfLogs],
    ['a block that also has logs that cannot be read', partialEventOfLogs],
  ])('is forgotten when %s has another log under its key', async (_, eventOfLogs) => {
    const { publish } = await openListed()
    await publish(transactionEvent([uiMultiplierUpdated({ ...positionAt(10, 0), tx: txHash(10, 0) }, '1', '2', timestampOf(20))]))
    await publish(eventOfLogs(10, [transfer({ ...positionAt(10, 0), tx: txHash(10, 0) }, 1n)]))
    expect(await publish(sealedEventOfLogs(20, [transfer(positionAt(20, 0), 1n)]))).toEqual([
      'sealed 20/0 1 x 1 = 0.00000001 late',
      'seal 20/0 as transfer',
    ])
  })

  it('inside a hole does not amend movements before the hole', async () => {
    const { publish } = await openListed()
    await publish(sealedEventOfLogs(10, [transfer(positionAt(10, 0), 1n)]))
    await publish(holeEvent(11, 20))
    expect(await publish(transactionEvent([transfer(positionAt(21, 0), 1n)]))).toEqual(['preconfirmed 21/0 1 x 1 = 0.00000001'])
    expect(await publish(transactionEvent([uiMultiplierUpdated(positionAt(22, 0), '2', '4', timestampOf(22))]))).toEqual([
      'effective 2 to 4 by log',
      'amend 21/0 multiplier,shares: 2 preconfirmed',
    ])
  })

  it('that a hole leaves unconfirmed counts until the next log has another from', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([uiMultiplierUpdated(positionAt(11, 0), '1', '2', timestampOf(11))]))
    await publish(holeEvent(11, 11))
    expect(await publish(transactionEvent([transfer(positionAt(12, 0), 1n)]))).toEqual(['preconfirmed 12/0 1 x 2 = 0.00000002'])
    const next = uiMultiplierUpdated(positionAt(13, 0), '1', '4', timestampOf(20))
    expect(await publish(transactionEvent([next]), transactionEvent([transfer(positionAt(14, 0), 1n)]))).toEqual([
      'scheduled 1 to 4 by log',
      'amend 12/0 multiplier,shares: 1 preconfirmed',
      'preconfirmed 14/0 1 x 1 = 0.00000001',
    ])
  })

  it('that is scheduled before a hole is not taken for one inside the hole where chain time has not reached it', async () => {
    const { publish } = await openListed()
    await publish(sealedEventOfLogs(5, [uiMultiplierUpdated(positionAt(5, 0), '1', '2', timestampOf(20))]), holeEvent(8, 8))
    await publish(transactionEvent([transfer(positionAt(10, 0), 1n)]))
    expect(await publish(transactionEvent([uiMultiplierUpdated(positionAt(30, 0), '2', '4', timestampOf(30))]))).toEqual([
      'effective 2 to 4 by log',
    ])
  })

  it('inside a hole that is reported after newer blocks does not reach back either', async () => {
    const { publish } = await openListed()
    await publish(sealedEventOfLogs(10, [transfer(positionAt(10, 0), 1n)]))
    const change = uiMultiplierUpdated(positionAt(22, 1), '2', '4', timestampOf(22))
    expect(await publish(sealedEventOfLogs(22, [change]))).toContain('amend 10/0 multiplier,shares: 2 sealed')
    expect(await publish(holeEvent(11, 20, 22))).toEqual(['hole', 'amend 10/0 multiplier,shares: 1 sealed'])
  })

  it('inside a hole does not amend movements before the hole when a reorganisation replaces both', async () => {
    const { publish } = await openListed()
    const before = sealedEventOfLogs(10, [transfer(positionAt(10, 0), 1n)], { hash: blockHash(1_010) })
    await publish(sealedEventOfLogs(10, [transfer(positionAt(10, 0), 1n)]), holeEvent(11, 20))
    const change = uiMultiplierUpdated(positionAt(22, 0), '2', '4', timestampOf(22))
    await publish(sealedEventOfLogs(21, [transfer(positionAt(21, 0), 1n)]), sealedEventOfLogs(22, [change]))
    expect(await publish({ type: 'reorg', from: 10 }, before)).toEqual(['seal 10/0 as transfer'])
    expect(await publish(sealedEventOfLogs(22, [], { hash: blockHash(1_022) }))).toEqual([
      'retract 22/0 reorg now {"multiplier":"1"}',
      'amend 21/0 multiplier,shares: 1 sealed',
    ])
  })

  it('scheduled in a block with logs that cannot be read takes effect, and only once', async () => {
    const { publish } = await openListed()
    const change = uiMultiplierUpdated(positionAt(5, 0), '1', '2', timestampOf(20))
    await publish(transactionEvent([change]))
    expect(await publish(...agreedHead(20))).toEqual(['effective 1 to 2 by clock'])
    expect(await publish(transactionEvent([transfer(positionAt(21, 0), 1n)]))).toEqual(['preconfirmed 21/0 1 x 2 = 0.00000002'])
    expect(await publish(holeEvent(5, 5), partialEventOfLogs(5, []))).toEqual(['hole'])
    expect(await publish(sealedEventOfLogs(5, [change]))).toEqual(['seal 5/0 as multiplier'])
  })

  it('in a replaced block does not count until the new block can be read whole', async () => {
    const { publish } = await openListed()
    const options = { hash: blockHash(1_005) }
    const change = uiMultiplierUpdated(positionAt(5, 1), '1', '2', timestampOf(5))
    await publish(sealedEventOfLogs(5, [transfer(positionAt(5, 0), 1n)]), { type: 'reorg', from: 5 })
    expect(await publish(holeEvent(5, 5), partialEventOfLogs(5, [change], options))).toEqual(['hole'])
    expect(await publish(transactionEvent([transfer(positionAt(8, 0), 1n)]))).toEqual(['preconfirmed 8/0 1 x 1 = 0.00000001'])
    expect(await publish(sealedEventOfLogs(5, [change], options))).toEqual([
      'retract 5/0 reorg now null',
      'effective 1 to 2 by log late',
      'seal 5/1 as multiplier',
      'amend 8/0 multiplier,shares: 2 preconfirmed',
    ])
  })

  it('scheduled in a transaction that only a second reading of its block can read waits until the block can be read whole', async () => {
    const { publish } = await openListed()
    const moved = transfer(positionAt(4, 0), 1n)
    const change = uiMultiplierUpdated(positionAt(4, 1), '1', '2', timestampOf(5))
    await publish(holeEvent(4, 4), partialEventOfLogs(4, [moved]))
    expect(await publish(partialEventOfLogs(4, [change]), ...agreedHead(5))).toEqual([])
    expect(await publish(transactionEvent([transfer(positionAt(6, 0), 1n)]))).toEqual(['preconfirmed 6/0 1 x 1 = 0.00000001'])
    expect(await publish(sealedEventOfLogs(4, [moved, change]), ...agreedHead(5))).toEqual([
      'scheduled 1 to 2 by log late',
      'seal 4/0,4/1 as transfer,multiplier',
      'effective 1 to 2 by clock',
      'amend 6/0 multiplier,shares: 2 preconfirmed',
    ])
  })

  it('by the old event does not correct the multiplier before it', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([transfer(positionAt(10, 0), 1n)]))
    await publish(listEvent(apple({ multiplier: 2 })))
    expect(await publish(transactionEvent([multiplierUpdated(positionAt(11, 0), '2')]))).toEqual(['effective 1 to 2 by log'])
    expect(await publish(sealedEventOfLogs(10, [transfer(positionAt(10, 0), 1n)]))).toEqual(['seal 10/0 as transfer'])
  })

  it('that is not sealed does not count as the value before the next change', async () => {
    const { publish } = await openListed()
    const later = uiMultiplierUpdated(positionAt(12, 0), '2', '4', timestampOf(50))
    await publish(
      transactionEvent([transfer(positionAt(10, 0), 1n)]),
      transactionEvent(splitLogs(11, 1)),
      transactionEvent([later]),
    )
    expect(await publish(sealedEventOfLogs(10, [transfer(positionAt(10, 0), 1n)]))).toEqual(['seal 10/0 as transfer'])
    expect(await publish(sealedEventOfLogs(11, []))).toEqual(['retract 11/2 not_sealed now {"multiplier":"1"}'])
  })
})

describe('a multiplier of the list', () => {
  it('does not replace a log if it is still the old one', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent(splitLogs(11, 1)))
    expect(await publish(listEvent(apple()), listEvent(apple()))).toEqual([])
    expect(await publish(transactionEvent([transfer(positionAt(12, 0), 1n)]))).toEqual(['preconfirmed 12/0 1 x 2 = 0.00000002'])
  })

  it('publishes nothing if it repeats a log', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent(splitLogs(11, 1)))
    expect(await publish(listEvent(apple({ multiplier: 2 })))).toEqual([])
  })

  it('is ignored if it goes back to a value that a log replaced', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent(splitLogs(11, 1)), listEvent(apple({ multiplier: 2 })))
    expect(await publish(listEvent(apple()), listEvent(apple({ multiplier: 2 })))).toEqual([])
    expect(await publish(transactionEvent([transfer(positionAt(12, 0), 1n)]))).toEqual(['preconfirmed 12/0 1 x 2 = 0.00000002'])
  })

  it('that contradicts the logs is published and holds from then on', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent(splitLogs(11, 1)))
    expect(await publish(listEvent(apple({ multiplier: 3 })))).toEqual(['effective 2 to 3 by list'])
    expect(await publish(transactionEvent([transfer(positionAt(11, 5), 1n)]))).toEqual(['preconfirmed 11/5 1 x 3 = 0.00000003'])
    expect(await publish(transactionEvent([transfer(positionAt(11, 0), 1n)]))).toEqual(['preconfirmed 11/0 1 x 1 = 0.00000001'])
  })

  it('that includes a second change early is corrected by the log of the first', async () => {
    const { publish } = await openListed('sealed')
    await publish(listEvent(apple({ multiplier: 4 })))
    const newer = { via: 'backfill', newest: 500, cursor: 400 } as const
    expect(
      await publish(
        sealedEventOfLogs(15, [transfer(positionAt(15, 0), 1n)], newer),
        sealedEventOfLogs(20, [uiMultiplierUpdated(positionAt(20, 0), '1', '2', timestampOf(20))], newer),
        sealedEventOfLogs(30, [uiMultiplierUpdated(positionAt(30, 0), '2', '4', timestampOf(30))], newer),
      ),
    ).toEqual([
      'sealed 15/0 1 x 4 = 0.00000004 late',
      'seal 15/0 as transfer',
      'effective 1 to 2 by log late',
      'seal 20/0 as multiplier',
      'amend 15/0 multiplier,shares: 1 sealed',
      'effective 2 to 4 by log late',
      'seal 30/0 as multiplier',
    ])
  })

  it('that comes first after a restart does not amend published facts', async () => {
    const { publish, openedTape } = await openListed()
    const moved = transfer(positionAt(10, 0), 1n)
    await publish(headEvent(9), sealedEventOfLogs(9, []), transactionEvent([moved]))
    const again = await openReducer(openedTape.tape)
    const batch = [listEvent(apple({ multiplier: 4 })), sealedEventOfLogs(10, [moved])]
    expect((await again.publish(...batch)).map(summarise)).toEqual(['effective 1 to 4 by list', 'seal 10/0 as transfer'])
  })

  it('that comes first after a restart says nothing about the blocks of the outage', async () => {
    const { publish, openedTape } = await openListed()
    await publish(headEvent(9), sealedEventOfLogs(9, []))
    const again = await openReducer(openedTape.tape)
    const [missed, next] = [transfer(positionAt(10, 0), 1n), transfer(positionAt(51, 0), 1n)]
    const batch = [
      listEvent(apple({ multiplier: 4 })),
      headEvent(50),
      sealedEventOfLogs(10, [missed], { via: 'backfill', newest: 50 }),
      transactionEvent([next]),
    ]
    expect((await again.publish(...batch)).map(summarise)).toEqual([
      'effective 1 to 4 by list',
      'sealed 10/0 1 x 1 = 0.00000001 late',
      'seal 10/0 as transfer',
      'preconfirmed 51/0 1 x 4 = 0.00000004',
    ])
  })

  it('that lags behind two changes of the outage does not undo the second', async () => {
    const { publish, openedTape } = await openListed()
    await publish(headEvent(9), sealedEventOfLogs(9, []))
    const again = await openReducer(openedTape.tape)
    const changes = [
      uiMultiplierUpdated(positionAt(10, 0), '1', '4', timestampOf(10)),
      uiMultiplierUpdated(positionAt(20, 0), '4', '6', timestampOf(20)),
    ] as const
    await again.publish(
      ...[listEvent(apple({ multiplier: 4 })), headEvent(50)],
      ...changes.map((log) => sealedEventOfLogs(log.blockNumber, [log], { via: 'backfill', newest: 50 })),
    )
    expect((await again.publish(transactionEvent([transfer(positionAt(51, 0), 1n)]))).map(summarise)).toEqual([
      'preconfirmed 51/0 1 x 6 = 0.00000006',
    ])
  })

  it.each([
    ['does not outlast that log', 15, '6'],
    ['stays where it may tell of unread blocks after that log', 30, '3'],
  ])('that was read before a log arrives %s', async (_name, hole, multiplier) => {
    const { publish, openedTape } = await openListed()
    await publish(headEvent(9), sealedEventOfLogs(9, []))
    const again = await openReducer(openedTape.tape)
    await again.publish(listEvent(apple({ multiplier: 3 })), headEvent(50), holeEvent(hole - 5, hole))
    const change = uiMultiplierUpdated(positionAt(20, 0), '4', '6', timestampOf(20))
    await again.publish(sealedEventOfLogs(20, [change], { via: 'backfill', newest: 50 }))
    expect((await again.publish(transactionEvent([transfer(positionAt(51, 0), 1n)]))).map(summarise)).toEqual([
      `preconfirmed 51/0 1 x ${multiplier} = 0.0000000${multiplier}`,
    ])
  })
})

describe('a multiplier of the list', () => {
  const movement = (block: number) => transfer(positionAt(block, 5), 100_000_000n)

  it.each([
    [10_000, ['sealed 12/5 100000000 x 3 = 3 late', 'sealed 30/5 100000000 x 3 = 3 late']],
    [10_001, ['sealed 12/5 100000000 x 1 = 1 late', 'sealed 30/5 100000000 x 3 = 3 late']],
  ])(
    'read %i ms after the chain was last seen stands behind the blocks that are read later, if that is long',
    async (ms, expected) => {
      const { publish, clock } = await openListed('poll')
      await publish(...agreedHead(10), sealedEventOfLogs(10, []))
      clock.now += ms
      expect(await publish(listEvent(apple({ multiplier: 3 })))).toEqual(['effective 1 to 3 by list'])
      await publish(...agreedHead(20))
      const lines = await publish(sealedEventOfLogs(12, [movement(12)]), sealedEventOfLogs(30, [movement(30)]))
      expect(lines.filter((line) => line.startsWith('sealed'))).toEqual(expected)
    },
  )
})
