import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { DEPTH_BLOCKS } from '../../src/ingest/ledger.ts'
import type { Arrival } from '../../src/ingest/teller.ts'
import type { Hex } from '../../src/protocol/parts.ts'
import { noteNames, type Tape } from '../../src/tape/tape.ts'
import { keyOf } from '../chain/wire.ts'
import { APPLE, apple, listOf, NOON, TESLA, tesla } from '../stocks/records.ts'
import { openEmbedded } from '../tape/embedded.ts'
import { keysOf, listed, logHeard, restore, updatesOf } from './house.ts'

const address = APPLE as Hex
const hearing: Arrival = { type: 'hearing', addresses: [address, TESLA as Hex] }
const cursor = (sealed: number): Arrival => ({ type: 'cursor', sealed })
const status = (source: 'pendingLogs' | 'poll' | 'sealed' | 'down'): Arrival => ({
  type: 'status',
  source,
  reason: source === 'sealed' ? 'no_pending' : source === 'down' ? 'unreachable' : 'ok',
})

const open = async () => {
  const place = await openEmbedded()
  onTestFinished(() => place.close())
  return place
}
/** A teller on a fresh tape, with one listed token. */
const begin = async () => {
  const place = await open()
  const house = await restore(place.tape)
  await house.tell(listed(apple()), hearing)
  return { place, ...house }
}

describe('a log', () => {
  it('that comes again, by another way or another stage, is told once', async () => {
    const { tell, counted, place } = await begin()
    const log = { block: 5, address }
    await tell(logHeard(log), logHeard(log), logHeard(log, { via: 'poll' }))
    await tell(logHeard(log, { via: 'sealed', sealed: true }))
    expect(await keysOf(place.tape)).toEqual([keyOf(log)])
    expect(counted.repeated).toBe(3)
  })

  it('of a token that is not listed, or that is taken back, is not told but counted', async () => {
    const { tell, counted, place } = await begin()
    await tell(logHeard({ block: 5, address: TESLA as Hex }), logHeard({ block: 5, address }, { removed: true }))
    expect(await keysOf(place.tape)).toEqual([])
    expect(counted.foreign).toBe(2)
  })

  it('that was taken back is told when it comes after all', async () => {
    const { tell, place } = await begin()
    await tell(logHeard({ block: 5, address }, { removed: true }))
    await tell(logHeard({ block: 5, address }))
    expect(await keysOf(place.tape)).toEqual([keyOf({ block: 5 })])
  })

  it('of a token that was delisted is not told', async () => {
    const { tell, place } = await begin()
    await tell({ type: 'list', tokens: [] })
    await tell(logHeard({ block: 5, address }))
    expect(await keysOf(place.tape)).toEqual([])
  })

  it.each<[string, Parameters<typeof logHeard>[1], Parameters<typeof status>[0], boolean]>([
    ['pre-confirmed', {}, 'pendingLogs', false],
    ['sealed while pendingLogs should have told it', { sealed: true, via: 'sealed' }, 'pendingLogs', true],
    ['sealed while it should have been polled', { sealed: true, via: 'poll' }, 'poll', true],
    ['sealed where nothing is pre-confirmed', { sealed: true, via: 'sealed' }, 'sealed', false],
    ['sealed after all was down', { sealed: true, via: 'poll' }, 'down', false],
    ['caught up', { sealed: true, via: 'backfill' }, 'sealed', true],
  ])('%s: whether it is late', async (_, heard, source, late) => {
    const { tell, place } = await begin()
    await tell(status(source))
    await tell(logHeard({ block: 5, address }, heard))
    expect((await updatesOf(place.tape)).at(-1)).toMatchObject({ type: 'transfer', late })
  })

  it('is joined with its token as it is in the order of arrival, inside a turn too', async () => {
    const { tell, place } = await begin()
    await tell(
      logHeard({ block: 5, address }),
      listed(apple({ symbol: 'APPL', multiplier: 2 })),
      logHeard({ block: 5, index: 1, address }),
    )
    expect((await updatesOf(place.tape)).slice(2)).toMatchObject([
      { type: 'transfer', symbol: 'AAPLc', multiplier: '1' },
      { type: 'token', symbol: 'APPL', changed: ['symbol'] },
      { type: 'multiplier', from: '1', to: '2' },
      { type: 'transfer', symbol: 'APPL', multiplier: '2' },
    ])
  })
})

describe('a status', () => {
  it('is told when it changes, with since when and how far the chain is', async () => {
    const { tell, clock, place } = await begin()
    await tell({ type: 'head', sealed: 100, pending: null }, status('poll'))
    clock.now += 1_000
    await tell(status('poll'))
    await tell(status('down'))
    const said = (await updatesOf(place.tape)).filter(({ type }) => type === 'status')
    expect(said).toMatchObject([
      {
        symbol: '*',
        address: null,
        source: 'poll',
        reason: 'ok',
        since: new Date(NOON).toISOString(),
        head: { sealed: 100, pending: null },
      },
      { source: 'down', reason: 'unreachable', since: new Date(NOON + 1_000).toISOString() },
    ])
  })

  it('that is the same after a restart is not told again', async () => {
    const { tell, place } = await begin()
    await tell(status('poll'))
    const again = await restore(await place.crash())
    expect(await again.tell(status('poll'))).toEqual([])
  })
})

describe('what else comes', () => {
  it('is a hole, told to everyone', async () => {
    const { tell } = await begin()
    expect(await tell({ type: 'hole', blocks: { from: 3, to: 9 }, reason: 'backfill_bound' })).toMatchObject([
      { update: { type: 'hole', symbol: '*', address: null, blocks: { from: 3, to: 9 }, reason: 'backfill_bound' } },
    ])
  })

  it('is counted where it cannot be read', async () => {
    const { tell, counted } = await begin()
    expect(await tell({ type: 'unreadable', count: 3 })).toEqual([])
    expect(counted.unreadable).toBe(3)
  })

  it('is a head that only rises, kept beside the tape', async () => {
    const { tell, place } = await begin()
    await tell({ type: 'head', sealed: 100, pending: 101 })
    await tell({ type: 'head', sealed: 98, pending: null })
    expect(place.tape.note(noteNames.head)).toMatchObject({ sealed: 100, pending: 101 })
    await tell(logHeard({ block: 105, address }))
    expect(place.tape.note(noteNames.head)).toMatchObject({ sealed: 100, pending: 105 })
  })

  it('is time: a NAV becomes stale though no list can be read', async () => {
    const { tell, clock } = await begin()
    clock.now += 30 * 3_600_000
    expect(await tell({ type: 'list', tokens: null })).toMatchObject([
      { update: { type: 'nav', nav: { state: 'stale' }, was: { state: 'fresh' } } },
    ])
    expect(await tell({ type: 'list', tokens: null })).toEqual([])
  })
})

describe('a restart', () => {
  it('knows the board, and tells none of it again', async () => {
    const { tell, teller, place } = await begin()
    await tell(listed(apple({ symbol: 'APPL' }), tesla()), hearing)
    const { board } = teller
    const again = await restore(await place.crash())
    expect(again.teller.board).toEqual(board)
    expect(
      await again.tell(listed(apple({ symbol: 'APPL' }), tesla()), hearing, { type: 'list', tokens: null }),
    ).toEqual([])
  })

  it('lists what was awaited when it ended, once it is heard', async () => {
    const { tell, place } = await begin()
    await tell(listed(apple(), tesla()))
    const again = await restore(await place.crash())
    expect(await again.tell(hearing)).toMatchObject([
      { update: { type: 'token', symbol: 'TSLAc', change: 'listed' } },
      { update: { type: 'nav' } },
    ])
  })

  it('goes on at the block up to which all was heard', async () => {
    const { tell, teller, place } = await begin()
    expect(teller.cursor).toBeNull()
    await tell(cursor(100))
    expect((await restore(await place.crash())).teller.cursor).toBe(100)
    expect((await restore(await place.reopen())).teller.cursor).toBe(100)
  })

  it('knows what was told since the mark, and before it as deep as it matters', async () => {
    const { tell, place } = await begin()
    await tell(logHeard({ block: 90, address }))
    await tell(cursor(99))
    await tell(logHeard({ block: 100, address }))
    await tell(cursor(100))
    await tell(logHeard({ block: 101, address }), logHeard({ block: 101, index: 1, address }))
    for (const end of [place.reopen, place.crash]) {
      const { tell: again, counted } = await restore(await end())
      for (const log of [{ block: 90 }, { block: 100 }, { block: 101 }, { block: 101, index: 1 }]) {
        await again(logHeard({ ...log, address }, { sealed: true, via: 'backfill' }))
      }
      expect(counted.repeated).toBe(4)
    }
    expect(await keysOf(place.tape)).toHaveLength(4)
  })

  it('before the first mark knows what was told', async () => {
    const { tell, place } = await begin()
    await tell(logHeard({ block: 100, address }))
    const { tell: again, counted } = await restore(await place.crash())
    await again(logHeard({ block: 100, address }))
    expect(counted.repeated).toBe(1)
    expect(await keysOf(place.tape)).toHaveLength(1)
  })

  it('twice in a row knows it still', async () => {
    const { tell, place } = await begin()
    await tell(cursor(99))
    await tell(logHeard({ block: 100, address }))
    const once = await restore(await place.crash())
    await once.tell(cursor(101))
    const twice = await restore(await place.crash())
    await twice.tell(logHeard({ block: 100, address }, { sealed: true, via: 'backfill' }))
    expect(twice.counted.repeated).toBe(1)
  })

  it('reads no more of the tape than it must', async () => {
    const { tell, place } = await begin()
    await tell(cursor(10))
    const end = 2 * DEPTH_BLOCKS
    for (let block = 11; block <= end; block += 1) await tell(logHeard({ block, address }), cursor(block))
    const asked: number[] = []
    const { tape } = place
    const watched: Tape = Object.assign(Object.create(tape), {
      epoch: tape.epoch,
      note: (name: string) => tape.note(name),
      notes: (prefix: string) => tape.notes(prefix),
      end: () => tape.end(),
      since: (seq: number, limit: number) => {
        asked.push(seq)
        return tape.since(seq, limit)
      },
    })
    await restore(watched)
    const first = (await tape.since(asked[0] ?? 0, 1))[0]?.update
    expect(first).toMatchObject({ block: { number: end - DEPTH_BLOCKS } })
  })

  it('at whatever moment never tells a key twice, and never leaves one out', async () => {
    const Step = fc.oneof(
      { weight: 4, arbitrary: fc.constant('log' as const) },
      { weight: 2, arbitrary: fc.constant('turn' as const) },
      { weight: 3, arbitrary: fc.constant('seal' as const) },
      { weight: 1, arbitrary: fc.constant('many seals' as const) },
      { weight: 2, arbitrary: fc.constantFrom('crash' as const, 'reopen' as const) },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(Step, { maxLength: 30 }), async (steps) => {
        const place = await openEmbedded()
        try {
          const chain: { block: number; index: number }[] = []
          let head = 100
          let house = await restore(place.tape)
          let turn: Arrival[] = []
          await house.tell(listed(apple()), hearing, cursor(head))
          const flush = async () => {
            await house.tell(...turn)
            turn = []
          }
          for (const step of steps) {
            if (step === 'log') {
              const log = { block: head + 1, index: chain.filter(({ block }) => block === head + 1).length }
              chain.push(log)
              turn.push(logHeard({ ...log, address }))
            } else if (step === 'turn') await flush()
            else if (step === 'seal' || step === 'many seals') {
              head += step === 'seal' ? 1 : 70
              turn.push({ type: 'head', sealed: head, pending: null }, cursor(head))
            } else {
              // What waited for its turn is lost; the chain is read again from the cursor on.
              turn = []
              house = await restore(await place[step]())
              const since = house.teller.cursor ?? head
              for (const log of chain.filter(({ block }) => block >= since)) {
                const sealed = log.block <= head
                turn.push(logHeard({ ...log, address }, { sealed, via: sealed ? 'backfill' : 'poll' }))
              }
              turn.push(cursor(head))
            }
          }
          await flush()
          const told = await keysOf(place.tape)
          expect(new Set(told).size).toBe(told.length)
          expect(new Set(told)).toEqual(new Set(chain.map(keyOf)))
        } finally {
          await place.close()
        }
      }),
      { numRuns: 40 },
    )
  })
})

it('a list longer than any call has arguments is told whole', async () => {
  const place = await open()
  const { teller } = await restore(place.tape)
  const [token] = listOf(apple())
  const addresses = Array.from({ length: 150_000 }, (_, at): Hex => `0x${at.toString(16).padStart(40, '0')}`)
  const tokens = addresses.flatMap((one) => (token ? [{ ...token, address: one }] : []))
  const { drafts } = teller.tell([
    { type: 'list', tokens },
    { type: 'hearing', addresses },
  ])
  expect(drafts.length).toBe(2 * addresses.length)
})
