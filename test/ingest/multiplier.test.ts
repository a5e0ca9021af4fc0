import { describe, expect, it, onTestFinished } from 'vitest'
import type { Log } from '../../src/chain/log.ts'
import type { Arrival } from '../../src/ingest/teller.ts'
import type { Hex } from '../../src/protocol/parts.ts'
import { Update } from '../../src/protocol/updates.ts'
import type { Entry } from '../../src/tape/tape.ts'
import { blockHash, secondOf, txHash } from '../chain/wire.ts'
import { APPLE, apple } from '../stocks/records.ts'
import { openEmbedded } from '../tape/embedded.ts'
import { hearing, listed, restore, sealedWith, status, transaction } from './house.ts'
import { cancelled, multiplied, multipliedOnce, transfer } from './words.ts'

const address = APPLE as Hex
const at = (block: number, index: number) => ({ block, index })
/** A two-for-one split at once, as the token says it: first in the old way, then in the new. */
const split = (block: number, index: number): readonly [Log, Log] => {
  const tx = txHash(block, index)
  return [
    multipliedOnce({ block, index, tx }, '2'),
    multiplied({ block, index: index + 1, tx }, '1', '2', secondOf(block)),
  ]
}
const iso = (second: number) => new Date(second * 1_000).toISOString()

/** What is told, in few words; everything that is told is checked against the contract first. */
const short = ({ update, text }: Entry): string => {
  expect(JSON.stringify(Update.parse(JSON.parse(text)))).toBe(text)
  switch (update.type) {
    case 'transfer':
      return `${update.stage} ${place(update.key)} ${update.raw} x ${update.multiplier} = ${update.shares}${update.late ? ' late' : ''}`
    case 'multiplier':
      return `${update.phase} ${update.from} to ${update.to} by ${update.source}${update.late ? ' late' : ''}`
    case 'retract':
      return `retract ${place(update.key)} ${update.reason} now ${JSON.stringify(update.now)}`
    case 'amend':
      return `amend ${place(update.key)} ${update.changed.join()}: ${'multiplier' in update.update ? update.update.multiplier : ''} ${'stage' in update.update ? update.update.stage : ''}`
    case 'seal':
      return `seal ${update.keys.map(place).join()} as ${update.types.join()}`
    default:
      return update.type
  }
}
const place = (key: string): string => key.replace(/-0x[0-9a-f]+-/, '/')

const begin = async (source: 'pendingLogs' | 'poll' | 'sealed' = 'pendingLogs') => {
  const embedded = await openEmbedded()
  onTestFinished(() => embedded.close())
  const house = await restore(embedded.tape)
  await house.tell(listed(apple()), hearing, status(source))
  const tell = async (...turn: Arrival[]) => (await house.tell(...turn)).map(short)
  return { embedded, ...house, tell }
}
const head = (block: number): Arrival => ({ type: 'head', sealed: block, pending: null, timestamp: secondOf(block) })

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

describe('a scheduled split', () => {
  // Five blocks share a second.
  const soon = secondOf(20)
  const schedule = multiplied(at(10, 0), '1', '2', soon)

  it('takes effect at the first block whose time has reached it, before what moves there', async () => {
    const { tell, teller } = await begin()
    expect(await tell(transaction([schedule]))).toEqual(['scheduled 1 to 2 by log'])
    expect(teller.board.get(address)?.scheduled).toEqual({ to: '2', effectiveAt: soon })
    expect(await tell(transaction([transfer(at(19, 0), 1n)]), head(19))).toEqual([
      'preconfirmed 19/0 1 x 1 = 0.00000001',
    ])
    expect(await tell(transaction([transfer(at(20, 0), 1n)]))).toEqual([
      'effective 1 to 2 by clock',
      'preconfirmed 20/0 1 x 2 = 0.00000002',
    ])
    expect(await tell(transaction([transfer(at(19, 1), 1n)]), head(25))).toEqual([
      'preconfirmed 19/1 1 x 1 = 0.00000001',
    ])
    expect(teller.board.get(address)).toMatchObject({ multiplier: '2', multiplierSource: 'log', scheduled: null })
  })

  it.each(['head', 'block'])('takes effect with a %s that brings no log', async (how) => {
    const { tell } = await begin()
    await tell(transaction([schedule]))
    expect(await tell(how === 'head' ? head(19) : sealedWith(10, [schedule]))).toEqual(
      how === 'head' ? [] : ['seal 10/0 as multiplier'],
    )
    expect(await tell(how === 'head' ? head(20) : sealedWith(20, []))).toEqual(['effective 1 to 2 by clock'])
  })

  it('says when, as a time', async () => {
    const { tell, embedded } = await begin()
    await tell(transaction([schedule]), head(20))
    const told = (await embedded.tape.since(0, 100)).map(({ update }) => update)
    expect(told.filter(({ type }) => type === 'multiplier')).toMatchObject([
      { phase: 'scheduled', effective_at: iso(soon), source: 'log', key: `10-${txHash(10, 0)}-0` },
      { phase: 'effective', effective_at: iso(soon), source: 'clock' },
    ])
  })

  it('takes effect after a restart, and for what is caught up only from its block on', async () => {
    const { tell, embedded } = await begin()
    await tell(transaction([schedule]), sealedWith(10, [schedule]))
    const again = await restore(embedded.tape)
    const caught = [
      sealedWith(19, [transfer(at(19, 0), 1n)], { via: 'backfill' }),
      sealedWith(20, [transfer(at(20, 0), 1n)], { via: 'backfill' }),
    ]
    // The head is far beyond by then, and says nothing of what moved before.
    expect((await again.tell(head(30), ...caught)).map(short)).toEqual([
      'sealed 19/0 1 x 1 = 0.00000001 late',
      'seal 19/0 as transfer',
      'effective 1 to 2 by clock',
      'sealed 20/0 1 x 2 = 0.00000002 late',
      'seal 20/0 as transfer',
    ])
  })

  it('that took effect before a restart does not do so again', async () => {
    const { tell, embedded } = await begin()
    await tell(transaction([schedule]), head(20))
    const again = await restore(embedded.tape)
    expect((await again.tell(head(21), transaction([transfer(at(22, 0), 1n)]))).map(short)).toEqual([
      'preconfirmed 22/0 1 x 2 = 0.00000002',
    ])
  })

  it('that is cancelled does not take effect', async () => {
    const { tell } = await begin()
    await tell(transaction([schedule]))
    expect(await tell(transaction([cancelled(at(12, 0), '2', soon)]))).toEqual(['cancelled 1 to 2 by log'])
    expect(await tell(sealedWith(25, []), head(26))).toEqual([])
  })

  it('that is not sealed is disarmed', async () => {
    const { tell } = await begin()
    await tell(transaction([schedule]))
    expect(await tell(sealedWith(10, []))).toEqual(['retract 10/0 not_sealed now "1"'])
    expect(await tell(sealedWith(25, []), head(26))).toEqual([])
  })

  it('that had taken effect and turns out not to be so is taken back with all that it touched', async () => {
    const { tell } = await begin()
    await tell(transaction([schedule]), transaction([transfer(at(20, 0), 1n)]))
    expect(await tell(sealedWith(10, []))).toEqual([
      'retract 10/0 not_sealed now "1"',
      'amend 20/0 multiplier,shares: 1 preconfirmed',
    ])
  })

  it('that is found when its time has passed is told, takes effect, and corrects what moved since', async () => {
    const { tell } = await begin()
    await tell(transaction([transfer(at(19, 0), 1n)]), transaction([transfer(at(20, 0), 1n)]))
    expect(await tell(sealedWith(10, [schedule], { newest: 18, cursor: 18 }))).toEqual([
      'scheduled 1 to 2 by log late',
      'seal 10/0 as multiplier',
      'effective 1 to 2 by clock',
      'amend 20/0 multiplier,shares: 2 preconfirmed',
    ])
  })

  it('is held against the time of the block, where the log that was pre-confirmed did not say it', async () => {
    const { tell, embedded } = await begin()
    const timeless = { ...transfer(at(19, 0), 1n), blockTimestamp: null }
    await tell(transaction([schedule]), transaction([timeless]), sealedWith(19, [timeless]), head(20))
    expect(await tell(sealedWith(24, [multiplied(at(24, 0), '2', '4', secondOf(24))]))).toEqual([
      'effective 2 to 4 by log late',
      'seal 24/0 as multiplier',
    ])
    expect(await tell(sealedWith(10, [multiplied(at(10, 0), '3', '2', soon)], { newest: 24, cursor: 10 }))).toEqual([
      'amend 10/0 from:  sealed',
      'seal 10/0 as multiplier',
      'amend 19/0 multiplier,shares: 3 sealed',
    ])
    const [last] = (await embedded.tape.since(embedded.tape.end() - 1, 1)).map(({ update }) => update)
    expect(last).toMatchObject({ update: { block: { number: 19, timestamp: iso(secondOf(19)) } } })
  })

  it('is known to the list before any block has shown it, and that is no news', async () => {
    const { tell } = await begin()
    await tell(transaction([schedule]))
    expect(await tell(listed(apple({ multiplier: 2 })))).toEqual([])
    expect(await tell(head(20))).toEqual(['effective 1 to 2 by clock'])
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

  it('that contradicts is told, and holds for what comes after', async () => {
    const { tell } = await begin()
    await tell(transaction(split(11, 1)))
    expect(await tell(listed(apple({ multiplier: 3 })))).toEqual(['effective 2 to 3 by list'])
    expect(await tell(transaction([transfer(at(11, 5), 1n)]))).toEqual(['preconfirmed 11/5 1 x 3 = 0.00000003'])
    expect(await tell(transaction([transfer(at(11, 0), 1n)]))).toEqual(['preconfirmed 11/0 1 x 1 = 0.00000001'])
  })
})
