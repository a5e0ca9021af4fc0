import { describe, expect, it } from 'vitest'
import type { Log } from '../../../src/chain/logs/log-schema.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import { secondOf, txHash } from '../chain/node-json.ts'
import { APPLE, apple, tesla } from '../tokens/stock-records.ts'
import { at, begin, head, iso, short } from './multiplier-fixture.ts'
import { hearing, listed, restore, sealedWith, transaction } from './reducer-fixture.ts'
import { cancelled, multiplied, transfer } from './token-logs.ts'

const address = APPLE as Hex
const timeless = (log: Log): Log => ({ ...log, blockTimestamp: null })

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

  it('takes effect also for a token whose listing is not told yet, where a log that was told has scheduled it', async () => {
    const { tell } = await begin('pendingLogs', [])
    const caught = [
      sealedWith(10, [schedule], { via: 'backfill' }),
      sealedWith(20, [transfer(at(20, 0), 1n)], { via: 'backfill' }),
    ]
    expect(await tell(...caught)).toEqual([
      'scheduled 1 to 2 by log late',
      'seal 10/0 as multiplier',
      'effective 1 to 2 by clock',
      'sealed 20/0 1 x 2 = 0.00000002 late',
      'seal 20/0 as transfer',
    ])
  })

  it('takes effect also for a token that was delisted meanwhile, where something told waits for its block', async () => {
    const { tell } = await begin('pendingLogs')
    await tell(listed(apple(), tesla()), hearing)
    await tell(transaction([schedule]), transaction([transfer(at(10, 1), 1n)]))
    await tell(listed(tesla()))
    expect(await tell(head(20))).toEqual(['effective 1 to 2 by clock'])
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

  it.each(['head', 'log'])(
    'that was cancelled while nobody listened does not take effect by a %s that comes first',
    async (by) => {
      const { tell, embedded } = await begin()
      await tell(transaction([schedule]), sealedWith(10, [schedule]))
      const again = await restore(embedded.tape)
      const first = by === 'head' ? head(40) : transaction([transfer(at(41, 0), 1n)])
      const lines = await again.tell(first, sealedWith(15, [cancelled(at(15, 0), '2', soon)], { newest: 15 }))
      const told = ['cancelled 1 to 2 by log late', 'seal 15/0 as multiplier']
      expect(lines.map(short)).toEqual(by === 'head' ? told : ['preconfirmed 41/0 1 x 1 = 0.00000001', ...told])
      expect((await again.tell(sealedWith(40, []), head(41))).map(short)).toEqual([])
    },
  )

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

  it('that is found beneath what was told takes effect once all up to its time is settled, and corrects it then', async () => {
    const { tell, embedded } = await begin()
    await tell(transaction([transfer(at(31, 0), 1n)]))
    const again = await restore(embedded.tape)
    const lines = await again.tell(sealedWith(10, [schedule], { newest: 30, cursor: 10 }))
    expect(lines.map(short)).toEqual(['scheduled 1 to 2 by log late', 'seal 10/0 as multiplier'])
    expect((await again.tell(sealedWith(30, []))).map(short)).toEqual([
      'effective 1 to 2 by clock',
      'amend 31/0 multiplier,shares: 2 preconfirmed',
    ])
  })

  it('that another had followed by then is told as in force all the same', async () => {
    const { tell } = await begin()
    await tell(transaction([multiplied(at(30, 0), '2', '4', secondOf(50))]), transaction([transfer(at(31, 0), 1n)]))
    const lines = await tell(sealedWith(10, [schedule], { newest: 29, cursor: 10 }))
    expect(lines).toEqual(['scheduled 1 to 2 by log late', 'seal 10/0 as multiplier', 'effective 1 to 2 by clock'])
  })

  it('is known to the list before any block has shown it, and that is no news', async () => {
    const { tell } = await begin()
    await tell(transaction([schedule]))
    expect(await tell(listed(apple({ multiplier: 2 })))).toEqual([])
    expect(await tell(head(20))).toEqual(['effective 1 to 2 by clock'])
  })

  it('holds from its block on for what was pre-confirmed without a time and is sealed', async () => {
    const { tell } = await begin()
    await tell(transaction([schedule]), sealedWith(10, [schedule]))
    const moved = transfer(at(19, 0), 1n)
    await tell(transaction([timeless(moved)]), sealedWith(19, [moved]), head(20))
    expect(await tell(transaction([multiplied(at(25, 0), '2', '4', secondOf(25))]))).toEqual([
      'effective 2 to 4 by log',
    ])
  })

  it('is told as effective before what moved since, where a later change was known before it', async () => {
    const { tell } = await begin()
    await tell(sealedWith(500, [multiplied(at(500, 0), '2', '4', secondOf(500))]))
    const beneath = { via: 'backfill', newest: 500 } as const
    expect(
      await tell(
        sealedWith(10, [schedule], { ...beneath, cursor: 10 }),
        sealedWith(21, [transfer(at(21, 0), 1n)], { ...beneath, cursor: 21 }),
      ),
    ).toEqual([
      'scheduled 1 to 2 by log late',
      'seal 10/0 as multiplier',
      'effective 1 to 2 by clock',
      'sealed 21/0 1 x 2 = 0.00000002 late',
      'seal 21/0 as transfer',
    ])
  })

  it('is told as effective before what moved since, where the list spoke of a later change first', async () => {
    const { tell } = await begin()
    await tell(transaction([schedule]), sealedWith(10, [schedule]))
    await tell(listed(apple({ multiplier: 4 })))
    const next = multiplied(at(21, 1), '2', '4', secondOf(21))
    expect(await tell(sealedWith(21, [transfer(at(21, 0), 1n), next]))).toEqual([
      'effective 1 to 2 by clock',
      'sealed 21/0 1 x 2 = 0.00000002 late',
      'effective 2 to 4 by log late',
      'seal 21/0,21/1 as transfer,multiplier',
    ])
  })

  it('is told as effective before the block that shows that nothing had ended it', async () => {
    const { tell } = await begin()
    await tell(transaction([schedule]), sealedWith(10, [schedule]))
    const early = { ...multiplied(at(20, 0), '1', '3', secondOf(19)), blockTimestamp: secondOf(19) }
    await tell(transaction([early]))
    expect(await tell(sealedWith(20, [transfer(at(20, 1), 1n)]))).toEqual([
      'effective 1 to 2 by clock',
      'retract 20/0 not_sealed now "2"',
      'sealed 20/1 1 x 2 = 0.00000002 late',
      'seal 20/1 as transfer',
    ])
  })
})
