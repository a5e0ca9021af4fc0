import { describe, expect, it } from 'vitest'
import { blockHash, secondOf, txHash } from '../chain/node-json.ts'
import { apple } from '../tokens/stock-records.ts'
import { at, begin, head, iso, short, split } from './multiplier-fixture.ts'
import { listed, restore, sealedWith, transaction } from './reducer-fixture.ts'
import { multiplied, multipliedOnce, transfer } from './token-logs.ts'

describe('a transfer before, in the block of, and after a split', () => {
  const before = transfer(at(10, 0), 100_000_000n)
  const first = transfer(at(11, 0), 100_000_000n)
  const [once, change] = split(11, 1)
  const last = transfer(at(11, 3), 100_000_000n)
  const after = transfer(at(12, 0), 100_000_000n)

  const told = (stage: string, late = '') => [
    `${stage} 10/0 100000000 x 1 = 1${late}`,
    `${stage} 11/0 100000000 x 1 = 1${late}`,
    `effective 1 to 2 by log${late}`,
    `${stage} 11/3 100000000 x 2 = 2${late}`,
    `${stage} 12/0 100000000 x 2 = 2${late}`,
  ]

  it.each(['pendingLogs', 'poll'] as const)('has the multiplier of its place: %s', async (via) => {
    const { tell } = await begin(via)
    const groups = [[before], [first], [once, change], [last], [after]]
    expect(await tell(...groups.map((logs) => transaction(logs, via)))).toEqual(told('preconfirmed'))
    expect(await tell(sealedWith(10, [before]))).toEqual(['seal 10/0 as transfer'])
    expect(await tell(sealedWith(11, [first, once, change, last]))).toEqual([
      'seal 11/0,11/1,11/2,11/3 as transfer,part,multiplier,transfer',
    ])
  })

  it('has it when it is told late', async () => {
    const { tell } = await begin()
    const told11 = [sealedWith(10, [before]), sealedWith(11, [first, once, change, last]), sealedWith(12, [after])]
    expect((await tell(...told11)).filter((line) => !line.startsWith('seal '))).toEqual(told('sealed', ' late'))
  })

  it('has it when its block is caught up long after', async () => {
    const { tell } = await begin('sealed')
    const newer = { via: 'backfill', newest: 500, cursor: 400 } as const
    await tell(sealedWith(500, []))
    const lines = await tell(
      sealedWith(10, [before], newer),
      sealedWith(11, [first, once, change, last], newer),
      sealedWith(12, [after], newer),
    )
    expect(lines.filter((line) => !line.startsWith('seal '))).toEqual(told('sealed', ' late'))
  })

  it('has it after a restart between the two', async () => {
    const { tell, embedded } = await begin()
    await tell(transaction([before]), transaction([first]), transaction([once, change]))
    const again = await restore(embedded.tape)
    expect((await again.tell(transaction([last]), transaction([after]))).map(short)).toEqual(
      told('preconfirmed').slice(3),
    )
  })

  it('is amended after a reorganisation that moves the split', async () => {
    const { tell } = await begin()
    await tell(sealedWith(10, [before]), sealedWith(11, [first, once, change, last]), sealedWith(12, [after]))
    const hash = (block: number) => blockHash(block + 1_000)
    const [lateOnce, lateChange] = split(12, 1)
    expect(
      await tell(
        sealedWith(11, [first, transfer({ ...at(11, 3), tx: txHash(11, 3) }, 100_000_000n)], { hash: hash(11) }),
      ),
    ).toEqual([
      'retract 11/2 reorg now "1"',
      'amend 11/3 multiplier,shares: 1 sealed',
      'seal 11/0,11/3 as transfer,transfer',
    ])
    expect(
      await tell(sealedWith(12, [after, lateOnce, lateChange, transfer(at(12, 3), 1n)], { hash: hash(12) })),
    ).toEqual([
      'amend 12/0 multiplier,shares: 1 sealed',
      'effective 1 to 2 by log late',
      'sealed 12/3 1 x 2 = 0.00000002 late',
      'seal 12/0,12/1,12/2,12/3 as transfer,part,multiplier,transfer',
    ])
  })

  it('is amended when the split was lost and is found with its block', async () => {
    const { tell } = await begin()
    await tell(transaction([first]), transaction([last]), transaction([after]))
    expect(await tell(sealedWith(11, [first, once, change, last]))).toEqual([
      'amend 11/3 multiplier,shares: 2 sealed',
      'effective 1 to 2 by log late',
      'seal 11/0,11/1,11/2,11/3 as transfer,part,multiplier,transfer',
      'amend 12/0 multiplier,shares: 2 preconfirmed',
    ])
    expect(await tell(sealedWith(12, [after]))).toEqual(['seal 12/0 as transfer'])
  })

  it('is amended when the split is pre-confirmed out of order', async () => {
    const { tell } = await begin()
    await tell(transaction([first]), transaction([last]))
    expect(await tell(transaction([once, change]))).toEqual([
      'effective 1 to 2 by log',
      'amend 11/3 multiplier,shares: 2 preconfirmed',
    ])
  })

  it('is amended when the split was pre-confirmed and is not sealed', async () => {
    const { tell } = await begin()
    await tell(transaction([once, change]), transaction([last]), transaction([after]))
    expect(await tell(sealedWith(11, [last]))).toEqual([
      'retract 11/2 not_sealed now "1"',
      'amend 11/3 multiplier,shares: 1 sealed',
      'seal 11/3 as transfer',
      'amend 12/0 multiplier,shares: 1 preconfirmed',
    ])
  })

  it('is amended as it stands by then: in its block, and behind the transactions that are left', async () => {
    const { tell, embedded } = await begin()
    const moved = transfer(at(11, 3), 5n)
    await tell(transaction([moved]), sealedWith(11, [{ ...moved, transactionIndex: 2 }], { timestamp: null }))
    await tell(sealedWith(10, split(10, 1), { newest: 11, cursor: 10 }))
    const [last] = (await embedded.tape.since(embedded.tape.end() - 1, 1)).map(({ update }) => update)
    expect(last).toMatchObject({
      type: 'amend',
      update: { tx: { index: 2, log_index: 3 }, block: { hash: blockHash(11), timestamp: iso(secondOf(11)) } },
    })
  })

  it('whose split says another value before it once it is sealed is amended', async () => {
    const { tell } = await begin()
    await tell(transaction([multiplied(at(11, 1), '1', '2', secondOf(11))]))
    expect(await tell(sealedWith(11, [multiplied(at(11, 1), '1.5', '2', secondOf(11))]))).toEqual([
      'amend 11/1 from:  sealed',
      'seal 11/1 as multiplier',
    ])
  })

  it('that is sealed above is amended when the split is caught up beneath it', async () => {
    const { tell } = await begin()
    await tell(sealedWith(500, [transfer(at(500, 0), 1n)]))
    const beneath = { via: 'backfill', newest: 500, cursor: 11 } as const
    expect(await tell(sealedWith(11, [once, change], beneath))).toEqual([
      'effective 1 to 2 by log late',
      'seal 11/1,11/2 as part,multiplier',
      'amend 500/0 multiplier,shares: 2 sealed',
    ])
  })
})

describe('a change of the multiplier', () => {
  it('to nothing leaves no shares', async () => {
    const { tell } = await begin()
    const nothing = multiplied(at(11, 0), '1', '0', secondOf(11))
    expect(await tell(transaction([nothing]), transaction([transfer(at(12, 0), 5n)]))).toEqual([
      'effective 1 to 0 by log',
      'preconfirmed 12/0 5 x 0 = 0',
    ])
  })

  it('whose former value is another when its block is sealed is amended', async () => {
    const { tell } = await begin()
    const again = (from: string) => multiplied({ ...at(12, 0), tx: txHash(12, 0) }, from, '4', secondOf(12))
    await tell(transaction(split(11, 1)), transaction([again('2')]))
    expect(await tell(sealedWith(11, []))).toEqual(['retract 11/2 not_sealed now "4"'])
    expect(await tell(sealedWith(12, [again('1')]))).toEqual(['amend 12/0 from:  sealed', 'seal 12/0 as multiplier'])
  })

  it('is forgotten where its key holds something else when its block is sealed', async () => {
    const { tell } = await begin()
    await tell(transaction([multiplied({ ...at(10, 0), tx: txHash(10, 0) }, '1', '2', secondOf(20))]))
    await tell(sealedWith(10, [transfer({ ...at(10, 0), tx: txHash(10, 0) }, 1n)]))
    expect(await tell(sealedWith(20, [transfer(at(20, 0), 1n)]))).toEqual([
      'sealed 20/0 1 x 1 = 0.00000001 late',
      'seal 20/0 as transfer',
    ])
  })

  it('that lies in what could not be read changes nothing of what moved before it', async () => {
    const { tell } = await begin()
    await tell(sealedWith(10, [transfer(at(10, 0), 1n)]))
    await tell({
      type: 'hole',
      blocks: { from: 11, to: 20 },
      reason: 'pruned',
      cursor: { number: 20, hash: null },
    })
    expect(await tell(transaction([transfer(at(21, 0), 1n)]))).toEqual(['preconfirmed 21/0 1 x 1 = 0.00000001'])
    expect(await tell(transaction([multiplied(at(22, 0), '2', '4', secondOf(22))]))).toEqual([
      'effective 2 to 4 by log',
      'amend 21/0 multiplier,shares: 2 preconfirmed',
    ])
  })

  it('in the old way does not say what held before it', async () => {
    const { tell } = await begin()
    await tell(transaction([transfer(at(10, 0), 1n)]))
    await tell(listed(apple({ multiplier: 2 })))
    expect(await tell(transaction([multipliedOnce(at(11, 0), '2')]))).toEqual(['effective 1 to 2 by log'])
    expect(await tell(sealedWith(10, [transfer(at(10, 0), 1n)]))).toEqual(['seal 10/0 as transfer'])
  })

  it('that fell away is not what held before the next', async () => {
    const { tell } = await begin()
    const later = multiplied(at(12, 0), '2', '4', secondOf(50))
    await tell(transaction([transfer(at(10, 0), 1n)]), transaction(split(11, 1)), transaction([later]))
    expect(await tell(sealedWith(10, [transfer(at(10, 0), 1n)]))).toEqual(['seal 10/0 as transfer'])
    expect(await tell(sealedWith(11, []))).toEqual(['retract 11/2 not_sealed now "1"'])
  })
})

describe('the list', () => {
  it('that goes on saying the old value displaces no log', async () => {
    const { tell } = await begin()
    await tell(transaction(split(11, 1)))
    expect(await tell(listed(apple()), listed(apple()))).toEqual([])
    expect(await tell(transaction([transfer(at(12, 0), 1n)]))).toEqual(['preconfirmed 12/0 1 x 2 = 0.00000002'])
  })

  it('that follows a log says nothing new', async () => {
    const { tell } = await begin()
    await tell(transaction(split(11, 1)))
    expect(await tell(listed(apple({ multiplier: 2 })))).toEqual([])
  })

  it('that goes back to what a log has replaced was read before the log', async () => {
    const { tell } = await begin()
    await tell(transaction(split(11, 1)), listed(apple({ multiplier: 2 })))
    expect(await tell(listed(apple()), listed(apple({ multiplier: 2 })))).toEqual([])
    expect(await tell(transaction([transfer(at(12, 0), 1n)]))).toEqual(['preconfirmed 12/0 1 x 2 = 0.00000002'])
  })

  it('that contradicts is told, and holds for what comes after', async () => {
    const { tell } = await begin()
    await tell(transaction(split(11, 1)))
    expect(await tell(listed(apple({ multiplier: 3 })))).toEqual(['effective 2 to 3 by list'])
    expect(await tell(transaction([transfer(at(11, 5), 1n)]))).toEqual(['preconfirmed 11/5 1 x 3 = 0.00000003'])
    expect(await tell(transaction([transfer(at(11, 0), 1n)]))).toEqual(['preconfirmed 11/0 1 x 1 = 0.00000001'])
  })

  it('that knew of the second of two changes before the first was heard is refuted by what the first says', async () => {
    const { tell } = await begin('sealed')
    await tell(listed(apple({ multiplier: 4 })))
    const newer = { via: 'backfill', newest: 500, cursor: 400 } as const
    expect(
      await tell(
        sealedWith(15, [transfer(at(15, 0), 1n)], newer),
        sealedWith(20, [multiplied(at(20, 0), '1', '2', secondOf(20))], newer),
        sealedWith(30, [multiplied(at(30, 0), '2', '4', secondOf(30))], newer),
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

  it('that speaks first after a restart does not touch what had been told before', async () => {
    const { tell, embedded } = await begin()
    const moved = transfer(at(10, 0), 1n)
    await tell(head(9), sealedWith(9, []), transaction([moved]))
    const again = await restore(embedded.tape)
    const turn = [listed(apple({ multiplier: 4 })), sealedWith(10, [moved])]
    expect((await again.tell(...turn)).map(short)).toEqual(['effective 1 to 4 by list', 'seal 10/0 as transfer'])
  })
})
