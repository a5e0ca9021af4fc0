import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { LATELY_BLOCKS } from '../../../src/chain/sealed/recent-blocks.ts'
import type { Arrival } from '../../../src/ingest/reducer.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import { noteNames, type Tape } from '../../../src/tape/tape.ts'
import { blockHash, keyOf } from '../chain/node-json.ts'
import { openEmbedded } from '../tape/test-tape.ts'
import { APPLE, apple, listOf, NOON, TESLA, tesla } from '../tokens/stock-records.ts'
import { hearing, keysOf, listed, logHeard, restore, sealedHeard, status, updatesOf } from './reducer-fixture.ts'

const address = APPLE as Hex
const cursor = (number: number): Arrival => ({ type: 'cursor', cursor: { number, hash: blockHash(number) } })

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
  it('that comes again, by another way or after its block, is told once', async () => {
    const { tell, counted, place } = await begin()
    const log = { block: 5, address }
    await tell(logHeard(log), logHeard(log), logHeard(log, { via: 'poll' }))
    await tell(sealedHeard(5, [{ address }]), logHeard(log))
    expect(await keysOf(place.tape)).toEqual([keyOf(log)])
    expect(counted.repeated).toBe(3)
  })

  it('of a token that is not listed is not told but counted, sealed or not', async () => {
    const { tell, counted, place } = await begin()
    await tell(logHeard({ block: 5, address: TESLA as Hex }), sealedHeard(5, [{ address: TESLA as Hex }]))
    expect(await keysOf(place.tape)).toEqual([])
    expect(counted.foreign).toBe(2)
  })

  it('of a token that was delisted is not told', async () => {
    const { tell, place } = await begin()
    await tell({ type: 'list', tokens: [] })
    await tell(logHeard({ block: 5, address }), sealedHeard(5, [{ address }]))
    expect(await keysOf(place.tape)).toEqual([])
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
    await tell({ type: 'head', sealed: 100, pending: null, timestamp: null }, status('poll'))
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
    const { tell, place } = await begin()
    const blocks = { from: 3, to: 9 }
    const hole: Arrival = { type: 'hole', blocks, reason: 'backfill_bound', cursor: { number: 9, hash: null } }
    expect(await tell(hole)).toMatchObject([
      { update: { type: 'hole', symbol: '*', address: null, blocks, reason: 'backfill_bound' } },
    ])
    expect(place.tape.note(noteNames.mark)).toMatchObject({ block: 9 })
  })

  it('is a watermark, told to everyone and kept with the head', async () => {
    const { tell, place } = await begin()
    const block = { number: 90, hash: blockHash(90), parentHash: null, timestamp: 1_795_000_018 }
    expect(await tell({ type: 'finality', stage: 'safe', block })).toMatchObject([
      {
        update: {
          type: 'finality',
          symbol: '*',
          address: null,
          stage: 'safe',
          block: { number: 90, hash: blockHash(90), timestamp: '2026-11-18T11:06:58.000Z' },
        },
      },
    ])
    expect(place.tape.note(noteNames.head)).toMatchObject({ safe: 90, finalized: null })
  })

  it('is counted where it cannot be read', async () => {
    const { tell, counted } = await begin()
    expect(await tell({ type: 'unreadable', count: 3 })).toEqual([])
    expect(counted.unreadable).toBe(3)
  })

  it('is a head that only rises, kept beside the tape', async () => {
    const { tell, place } = await begin()
    await tell({ type: 'head', sealed: 100, pending: 101, timestamp: null })
    await tell({ type: 'head', sealed: 98, pending: null, timestamp: null })
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

  it('goes on at the block up to which all was settled', async () => {
    const { tell, teller, place } = await begin()
    expect(teller.cursor).toBeNull()
    await tell(sealedHeard(100, []))
    const cursor = { number: 100, hash: blockHash(100) }
    expect((await restore(await place.crash())).teller.cursor).toEqual(cursor)
    expect((await restore(await place.reopen())).teller.cursor).toEqual(cursor)
  })

  it('goes on behind the newest blocks where what lies before them is still to be read', async () => {
    const { tell, place } = await begin()
    await tell(sealedHeard(200, [{ address }], { cursor: 100 }))
    const { teller } = await restore(await place.crash())
    expect(teller.cursor).toEqual({ number: 100, hash: null })
    expect(teller.ledger.find(200, keyOf({ block: 200 }))).toMatchObject({ state: 'sealed' })
  })

  it('knows what was told since the mark, and before it as deep as it matters', async () => {
    const { tell, place } = await begin()
    await tell(logHeard({ block: 90, address }))
    await tell(sealedHeard(90, [{ address }]), cursor(99))
    await tell(logHeard({ block: 100, address }))
    await tell(sealedHeard(100, [{ address }]))
    await tell(logHeard({ block: 101, address }), logHeard({ block: 101, index: 1, address }))
    for (const end of [place.reopen, place.crash]) {
      const { tell: again, teller } = await restore(await end())
      expect(await again(sealedHeard(90, [{ address }]), sealedHeard(100, [{ address }]))).toEqual([])
      expect(teller.ledger.open).toBe(2)
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
    await once.tell({ type: 'list', tokens: null })
    const twice = await restore(await place.crash())
    await twice.tell(logHeard({ block: 100, address }))
    expect(twice.counted.repeated).toBe(1)
  })

  it('reads no more of the tape than it must', async () => {
    const { tell, place } = await begin()
    await tell(cursor(10))
    const end = 2 * LATELY_BLOCKS
    for (let block = 11; block <= end; block += 1)
      await tell(logHeard({ block, address }), sealedHeard(block, [{ address }]))
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
    expect(first).toMatchObject({ block: { number: end - LATELY_BLOCKS } })
  })

  it('at whatever moment never tells a key twice, never leaves one out, and ends each once', async () => {
    const Step = fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom('log' as const, 'lost log' as const, 'dropped log' as const) },
      { weight: 2, arbitrary: fc.constant('turn' as const) },
      { weight: 3, arbitrary: fc.constant('seal' as const) },
      { weight: 2, arbitrary: fc.constantFrom('crash' as const, 'reopen' as const) },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(Step, { maxLength: 30 }), async (steps) => {
        const place = await openEmbedded()
        try {
          const chain: { block: number; index: number; kept: boolean }[] = []
          let head = 100
          let house = await restore(place.tape)
          let turn: Arrival[] = []
          await house.tell(listed(apple()), hearing, cursor(head))
          const settle = (block: number) => {
            const kept = chain.filter((log) => log.block === block && log.kept)
            turn.push(
              sealedHeard(
                block,
                kept.map(({ index }) => ({ index, address })),
                { newest: head },
              ),
            )
          }
          for (const step of steps) {
            if (step === 'turn') {
              await house.tell(...turn)
              turn = []
            } else if (step === 'seal') settle(++head)
            else if (step === 'crash' || step === 'reopen') {
              // What waited for its turn is lost; the chain is read again from the cursor on.
              turn = []
              house = await restore(await place[step]())
              for (let block = (house.teller.cursor?.number ?? head) + 1; block <= head; block += 1) settle(block)
            } else {
              const log = { block: head + 1, index: chain.filter(({ block }) => block === head + 1).length }
              chain.push({ ...log, kept: step !== 'dropped log' })
              if (step !== 'lost log') turn.push(logHeard({ ...log, address }))
            }
          }
          settle(++head)
          await house.tell(...turn)
          const told = await keysOf(place.tape)
          expect(new Set(told).size).toBe(told.length)
          const updates = await updatesOf(place.tape)
          const sealed = updates.flatMap((update) => (update.type === 'seal' ? update.keys : []))
          const retracted = updates.flatMap((update) => (update.type === 'retract' ? [update.key] : []))
          expect(sealed).toEqual(chain.filter(({ kept }) => kept).map(keyOf))
          expect([...sealed, ...retracted].sort()).toEqual([...told].sort())
          expect(house.teller.ledger.open).toBe(0)
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
  const addresses = Array.from({ length: 130_000 }, (_, at): Hex => `0x${at.toString(16).padStart(40, '0')}`)
  const tokens = addresses.flatMap((one) => (token ? [{ ...token, address: one }] : []))
  const { drafts } = teller.tell([
    { type: 'list', tokens },
    { type: 'hearing', addresses },
  ])
  expect(drafts.length).toBe(2 * addresses.length)
})
