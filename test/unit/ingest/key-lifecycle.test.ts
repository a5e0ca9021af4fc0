import { createHash } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Arrival } from '../../../src/ingest/reducer.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import { Update } from '../../../src/protocol/updates.ts'
import type { Entry } from '../../../src/tape/tape.ts'
import { blockHash, txHash, word } from '../chain/node-json.ts'
import { openEmbedded } from '../tape/test-tape.ts'
import { APPLE, apple, TESLA, tesla } from '../tokens/stock-records.ts'
import { hearing, listed, logHeard, type Place, restore, sealedHeard, status } from './reducer-fixture.ts'

const other = TESLA as Hex
const A = txHash(5, 1)
const B = txHash(5, 2)
const key = (index: number, tx: Hex = A, block = 5): string => `${block}-${tx}-${index}`
/** A log of transaction A in block 5, told by its place and what it moves. */
const moved = (index: number, raw: bigint, tx: Hex = A): Place & { index: number } => ({ block: 5, index, raw, tx })

/** A teller that has listed two tokens, and the short of what it tells. */
const begin = async () => {
  const place = await openEmbedded()
  onTestFinished(() => place.close())
  const house = await restore(place.tape)
  await house.tell(listed(apple(), tesla()), hearing, status('pendingLogs'))
  const tell = async (...turn: Arrival[]) => (await house.tell(...turn)).map(short)
  return { place, ...house, tell }
}

/** What is told, in few words; everything that is told is checked against the contract first. */
const short = ({ update, text }: Entry): string => {
  expect(JSON.stringify(Update.parse(JSON.parse(text)))).toBe(text)
  switch (update.type) {
    case 'retract':
      return `retract ${update.key} ${update.reason}${update.by ? ` by ${update.by}` : ''}`
    case 'amend':
      return `amend ${update.key} ${update.changed.join()}`
    case 'seal':
      return `seal ${update.symbol} ${update.keys.join()}${update.late.length > 0 ? ` late ${update.late.join()}` : ''}`
    default:
      return 'stage' in update && 'key' in update
        ? `${update.stage} ${update.key}${update.late ? ' late' : ''}`
        : update.type
  }
}

describe('a pre-confirmed key', () => {
  it('that its block holds is sealed', async () => {
    const { tell } = await begin()
    expect(await tell(logHeard(moved(0, 1n)))).toEqual([`preconfirmed ${key(0)}`])
    expect(await tell(sealedHeard(5, [moved(0, 1n)]))).toEqual([`seal AAPLc ${key(0)}`])
  })

  it('that its block lacks is retracted', async () => {
    const { tell } = await begin()
    await tell(logHeard(moved(0, 1n)))
    expect(await tell(sealedHeard(5, []))).toEqual([`retract ${key(0)} not_sealed`])
  })

  it('whose content is under another index is replaced, and told there as no late one', async () => {
    const { tell } = await begin()
    await tell(logHeard(moved(0, 1n)), logHeard(moved(1, 2n)))
    expect(await tell(sealedHeard(5, [moved(0, 2n)]))).toEqual([
      `retract ${key(0)} not_sealed`,
      `retract ${key(1)} replaced by ${key(0)}`,
      `sealed ${key(0)}`,
      `seal AAPLc ${key(0)}`,
    ])
  })

  it('that shifts along with others is told anew in log order', async () => {
    const { tell } = await begin()
    await tell(...[0, 1, 2].map((index) => logHeard(moved(index, BigInt(index) + 1n))))
    expect(await tell(sealedHeard(5, [moved(0, 2n), moved(1, 3n)]))).toEqual([
      `retract ${key(0)} not_sealed`,
      `retract ${key(1)} replaced by ${key(0)}`,
      `retract ${key(2)} replaced by ${key(1)}`,
      `sealed ${key(0)}`,
      `sealed ${key(1)}`,
      `seal AAPLc ${key(0)},${key(1)}`,
    ])
  })

  it('of which the same content stands twice stays where it stands', async () => {
    const { tell } = await begin()
    await tell(logHeard(moved(1, 7n)), logHeard(moved(2, 7n)))
    expect(await tell(sealedHeard(5, [moved(0, 7n), moved(1, 7n)]))).toEqual([
      `retract ${key(2)} replaced by ${key(0)}`,
      `sealed ${key(0)}`,
      `seal AAPLc ${key(0)},${key(1)}`,
    ])
  })

  it('that is pushed once more with other content is amended while it is open, and sealed as that', async () => {
    const { tell, place } = await begin()
    await tell(logHeard(moved(0, 1n)))
    expect(await tell(logHeard(moved(0, 2n)), logHeard(moved(0, 2n)))).toEqual([`amend ${key(0)} raw,amount,shares`])
    expect(await tell(logHeard(moved(0, 30n)))).toEqual([`amend ${key(0)} raw,amount,shares`])
    const [amend] = (await place.tape.since(0, 100)).slice(-1).map(({ update }) => update)
    expect(amend).toMatchObject({ update: { stage: 'preconfirmed', block: { hash: null }, raw: '30' } })
    const again = await restore(await place.crash())
    expect((await again.tell(sealedHeard(5, [moved(0, 30n)]))).map(short)).toEqual([`seal AAPLc ${key(0)}`])
  })

  it('that a poll finds with other content stays as it was told first', async () => {
    const { tell, counted } = await begin()
    await tell(logHeard(moved(0, 1n)))
    expect(await tell(logHeard(moved(0, 2n), { via: 'poll' }))).toEqual([])
    expect(counted.repeated).toBe(1)
  })

  it('of which the same content stood twice and stands once is replaced by what is left', async () => {
    const { tell } = await begin()
    await tell(logHeard(moved(1, 7n)), logHeard(moved(2, 7n)))
    expect(await tell(sealedHeard(5, [moved(1, 7n)]))).toEqual([
      `retract ${key(2)} replaced by ${key(1)}`,
      `seal AAPLc ${key(1)}`,
    ])
  })

  it('whose content is elsewhere in its transaction is never amended, whatever stands in its place', async () => {
    const { tell } = await begin()
    await tell(logHeard(moved(1, 7n)), logHeard(moved(2, 7n)), logHeard(moved(3, 8n)))
    expect(await tell(sealedHeard(5, [moved(2, 9n), moved(3, 7n), moved(4, 8n)]))).toEqual([
      `retract ${key(1)} replaced by ${key(3)}`,
      `retract ${key(2)} replaced by ${key(3)}`,
      `retract ${key(3)} replaced by ${key(4)}`,
      `sealed ${key(2)} late`,
      `sealed ${key(3)}`,
      `sealed ${key(4)}`,
      `seal AAPLc ${key(2)},${key(3)},${key(4)} late ${key(2)}`,
    ])
  })

  it('with other content than its block has is amended', async () => {
    const { tell } = await begin()
    await tell(logHeard(moved(0, 1n)))
    expect(await tell(sealedHeard(5, [moved(0, 9n)]))).toEqual([
      `amend ${key(0)} raw,amount,shares`,
      `seal AAPLc ${key(0)}`,
    ])
  })

  it('that becomes another kind of thing is amended, and sealed as that', async () => {
    const { tell, place } = await begin()
    await tell(logHeard(moved(0, 1n)))
    const sealed = sealedHeard(5, [moved(0, 1n)])
    const [block] = sealed.blocks
    const logs = (block?.logs ?? []).map((log) => ({ ...log, topics: [word(1)] }))
    await tell({ ...sealed, blocks: sealed.blocks.map((one) => ({ ...one, logs })) })
    const [amend, seal] = (await place.tape.since(0, 100)).slice(-2).map(({ update }) => update)
    expect(amend).toMatchObject({ type: 'amend', of: 'transfer', update: { type: 'log', stage: 'sealed' } })
    expect(seal).toMatchObject({ type: 'seal', types: ['log'] })
  })

  it('whose transaction says the same of another token is retracted, and the other told', async () => {
    const { tell } = await begin()
    await tell(logHeard(moved(0, 1n)))
    expect(await tell(sealedHeard(5, [{ ...moved(0, 1n), address: other }]))).toEqual([
      `retract ${key(0)} not_sealed`,
      `sealed ${key(0)} late`,
      `seal TSLAc ${key(0)} late ${key(0)}`,
    ])
  })

  it('of a transaction that was sealed in an earlier block than its own is replaced by that key', async () => {
    const { tell } = await begin()
    await tell(logHeard({ ...moved(0, 1n), block: 6 }))
    expect(await tell(sealedHeard(5, [moved(3, 1n)]))).toEqual([
      `sealed ${key(3)} late`,
      `seal AAPLc ${key(3)} late ${key(3)}`,
    ])
    expect(await tell(sealedHeard(6, []))).toEqual([`retract ${key(0, A, 6)} replaced by ${key(3)}`])
  })

  it('of a transaction that moves to a later block ends with its own', async () => {
    const { tell } = await begin()
    await tell(logHeard(moved(0, 1n)))
    expect(await tell(sealedHeard(5, []))).toEqual([`retract ${key(0)} not_sealed`])
    expect(await tell(logHeard({ ...moved(0, 1n), block: 6 }))).toEqual([`preconfirmed ${key(0, A, 6)}`])
    expect(await tell(sealedHeard(6, [moved(0, 1n)]))).toEqual([`seal AAPLc ${key(0, A, 6)}`])
  })

  it('is not replaced by what is only pre-confirmed elsewhere', async () => {
    const { tell } = await begin()
    await tell(logHeard(moved(0, 1n)), logHeard({ ...moved(0, 1n), block: 6 }))
    expect(await tell(sealedHeard(5, []))).toEqual([`retract ${key(0)} not_sealed`])
  })

  it('that is pushed after its block was settled is no news', async () => {
    const { tell, counted } = await begin()
    await tell(sealedHeard(5, [moved(0, 1n)]))
    expect(await tell(logHeard(moved(0, 1n)), logHeard(moved(1, 1n)), logHeard({ block: 4 }))).toEqual([])
    expect(counted.repeated).toBe(3)
  })

  it('of a token that was delisted meanwhile gets its end', async () => {
    const { tell } = await begin()
    await tell(logHeard(moved(0, 1n)), logHeard(moved(1, 1n, B)), { type: 'list', tokens: [] })
    expect(await tell(sealedHeard(5, [moved(1, 1n, B)], { asked: [APPLE as Hex] }))).toEqual([
      `retract ${key(0)} not_sealed`,
      `seal AAPLc ${key(1, B)}`,
    ])
  })

  it('of a token that was not asked for waits for an answer that says something of it', async () => {
    const { tell } = await begin()
    await tell(logHeard(moved(0, 1n)))
    expect(await tell(sealedHeard(5, [], { asked: [other] }))).toEqual([])
    expect(await tell(sealedHeard(5, [moved(0, 1n)]))).toEqual([`seal AAPLc ${key(0)}`])
  })
})

describe('a settled block', () => {
  it('tells retracts, amends, what is new in log order, then one seal for each token', async () => {
    const { tell } = await begin()
    const C = txHash(5, 3)
    await tell(
      logHeard(moved(0, 1n)),
      logHeard(moved(1, 1n, B)),
      logHeard({ ...moved(2, 1n, C), address: other }),
      logHeard(moved(3, 1n, C)),
    )
    const sealed = [
      { ...moved(0, 4n, txHash(5, 9)), address: other },
      moved(1, 2n, B),
      { ...moved(2, 1n, C), address: other },
      moved(3, 5n, C),
      moved(4, 6n, C),
    ]
    expect(await tell(sealedHeard(5, sealed))).toEqual([
      `retract ${key(0)} not_sealed`,
      `amend ${key(1, B)} raw,amount,shares`,
      `amend ${key(3, C)} raw,amount,shares`,
      `sealed ${key(0, txHash(5, 9))} late`,
      `sealed ${key(4, C)} late`,
      `seal TSLAc ${key(0, txHash(5, 9))},${key(2, C)} late ${key(0, txHash(5, 9))}`,
      `seal AAPLc ${key(1, B)},${key(3, C)},${key(4, C)} late ${key(4, C)}`,
    ])
  })

  it('without a log of ours, and of which nothing was told, tells nothing', async () => {
    const { tell } = await begin()
    expect(await tell(sealedHeard(5, []))).toEqual([])
  })

  it('of which a log comes twice tells it once', async () => {
    const { tell } = await begin()
    expect(await tell(sealedHeard(5, [moved(0, 1n), moved(1, 2n, B), moved(1, 2n, B)]))).toEqual([
      `sealed ${key(0)} late`,
      `sealed ${key(1, B)} late`,
      `seal AAPLc ${key(0)},${key(1, B)} late ${key(0)},${key(1, B)}`,
    ])
  })

  it('settled once more as it was tells nothing', async () => {
    const { tell } = await begin()
    await tell(logHeard(moved(0, 1n)), sealedHeard(5, [moved(0, 1n), moved(1, 2n, B)]))
    expect(await tell(sealedHeard(5, [moved(0, 1n), moved(1, 2n, B)]))).toEqual([])
  })

  it('that turns out to hold more tells it, and is sealed again for that token alone', async () => {
    const { tell } = await begin()
    const first = [moved(0, 1n), { ...moved(1, 1n, B), address: other }]
    await tell(sealedHeard(5, first))
    expect(await tell(sealedHeard(5, [...first, moved(2, 2n, B)], { newest: 8 }))).toEqual([
      `sealed ${key(2, B)} late`,
      `seal AAPLc ${key(0)},${key(2, B)} late ${key(2, B)}`,
    ])
  })

  it.each<[string, Parameters<typeof status>[0], 'sealed' | 'backfill', boolean]>([
    ['while pendingLogs should have told it', 'pendingLogs', 'sealed', true],
    ['while it should have been polled', 'poll', 'sealed', true],
    ['where nothing is pre-confirmed', 'sealed', 'sealed', false],
    ['caught up', 'sealed', 'backfill', true],
  ])('tells what is new as late: %s', async (_, source, via, late) => {
    const { tell } = await begin()
    await tell(status(source))
    const told = await tell(sealedHeard(5, [moved(0, 1n)], { via }))
    expect(told).toEqual(
      late
        ? [`sealed ${key(0)} late`, `seal AAPLc ${key(0)} late ${key(0)}`]
        : [`sealed ${key(0)}`, `seal AAPLc ${key(0)}`],
    )
  })

  it('is told with its hash, and its time where the log has none', async () => {
    const { tell, place } = await begin()
    const sealed = sealedHeard(5, [moved(0, 1n)], { timestamp: 1_795_000_001 })
    const blocks = sealed.blocks.map((block) => ({
      ...block,
      logs: block.logs.map((log) => ({ ...log, blockTimestamp: null, blockHash: null })),
    }))
    await tell({ ...sealed, blocks })
    const block = { number: 5, hash: blockHash(5), timestamp: '2026-11-18T11:06:41.000Z' }
    expect((await place.tape.since(0, 100)).slice(-2).map(({ update }) => update)).toMatchObject([
      { type: 'transfer', block, ingest: { source: 'sealed' } },
      { type: 'seal', block },
    ])
  })

  it('is sealed with a digest that anybody can make from its keys', async () => {
    const { tell, place } = await begin()
    await tell(sealedHeard(5, [moved(0, 1n), moved(1, 2n, B)]))
    const seal = (await place.tape.since(0, 100)).at(-1)?.update
    if (seal?.type !== 'seal') throw new Error('no seal')
    const digest = createHash('sha256')
      .update(`${key(0)}\n${key(1, B)}`)
      .digest('hex')
    expect(seal).toMatchObject({ count: 2, types: ['transfer', 'transfer'], digest: digest.slice(0, 32) })
  })
})

describe('what is retracted and amended', () => {
  it('names the message that told it last', async () => {
    const { tell, place } = await begin()
    const positionOf = async (type: string) =>
      (await place.tape.since(0, 100)).findLast(({ update }) => update.type === type)?.update.id
    await tell(logHeard(moved(0, 1n)))
    const told = await positionOf('transfer')
    await tell(sealedHeard(5, [moved(0, 9n)]))
    const amended = await positionOf('amend')
    await tell(sealedHeard(5, [], { hash: word(5) }))
    const updates = (await place.tape.since(0, 100)).map(({ update }) => update)
    expect(updates.find(({ type }) => type === 'amend')).toMatchObject({ was: told, of: 'transfer' })
    expect(updates.find(({ type }) => type === 'retract')).toMatchObject({ was: amended, of: 'transfer' })
  })

  it('in the turn that told it names it all the same', async () => {
    const { tell, place } = await begin()
    await tell(logHeard(moved(0, 1n)), sealedHeard(5, [moved(0, 9n)]), sealedHeard(5, [], { hash: word(5) }))
    const updates = (await place.tape.since(0, 100)).map(({ update }) => update).slice(-4)
    expect(updates.map(({ type }) => type)).toEqual(['transfer', 'amend', 'seal', 'retract'])
    const [transfer, amend, , retract] = updates
    expect(amend).toMatchObject({ was: transfer?.id })
    expect(retract).toMatchObject({ was: amend?.id })
  })

  it('carries the whole new message, sealed under the hash of its block', async () => {
    const { tell, place } = await begin()
    await tell(logHeard(moved(0, 1n)))
    await tell(sealedHeard(5, [moved(0, 150_000_000n)]))
    const amend = (await place.tape.since(0, 100)).map(({ update }) => update).find(({ type }) => type === 'amend')
    expect(amend).toMatchObject({
      key: key(0),
      update: {
        type: 'transfer',
        key: key(0),
        stage: 'sealed',
        late: false,
        raw: '150000000',
        amount: '1.5',
        block: { hash: blockHash(5) },
      },
    })
    expect(amend).not.toHaveProperty('update.time')
  })
})

describe('a reorganisation', () => {
  const hash = word(0xf0)

  it('retracts a sealed key that the new block lacks', async () => {
    const { tell } = await begin()
    await tell(sealedHeard(5, [moved(0, 1n)]))
    expect(await tell(sealedHeard(5, [], { hash }))).toEqual([`retract ${key(0)} reorg`])
  })

  it('seals again, under the new hash, a key that it has', async () => {
    const { tell } = await begin()
    await tell(sealedHeard(5, [moved(0, 1n)]))
    expect(await tell(sealedHeard(5, [moved(0, 1n)], { hash }))).toEqual([`seal AAPLc ${key(0)}`])
  })

  it('that brings a retracted key back tells it again, and it lives anew', async () => {
    const { tell } = await begin()
    await tell(sealedHeard(5, [moved(0, 1n)]), sealedHeard(5, [], { hash }))
    expect(await tell(sealedHeard(5, [moved(0, 1n)]))).toEqual([
      `sealed ${key(0)} late`,
      `seal AAPLc ${key(0)} late ${key(0)}`,
    ])
    expect(await tell(sealedHeard(5, [], { hash }))).toEqual([`retract ${key(0)} reorg`])
  })

  it('that moves a transaction to an earlier block has its old key replaced', async () => {
    const { tell } = await begin()
    await tell(sealedHeard(4, []), sealedHeard(5, [moved(0, 1n)]))
    await tell(sealedHeard(4, [moved(0, 1n)], { hash }))
    expect(await tell(sealedHeard(5, [], { hash: word(0xf1) }))).toEqual([
      `retract ${key(0)} replaced by ${key(0, A, 4)}`,
    ])
  })

  it('that moves one to a later block says that it was sealed no more', async () => {
    const { tell } = await begin()
    await tell(sealedHeard(5, [moved(0, 1n)]), sealedHeard(6, []))
    expect(await tell(sealedHeard(5, [], { hash }))).toEqual([`retract ${key(0)} reorg`])
    expect(await tell(sealedHeard(6, [moved(0, 1n)], { hash: word(0xf1) }))).toEqual([
      `sealed ${key(0, A, 6)} late`,
      `seal AAPLc ${key(0, A, 6)} late ${key(0, A, 6)}`,
    ])
  })

  it('lets what is pre-confirmed above the block that it goes back to be news again', async () => {
    const { tell } = await begin()
    await tell(sealedHeard(5, []), sealedHeard(6, []))
    await tell(sealedHeard(5, [], { hash }))
    expect(await tell(logHeard({ ...moved(0, 1n), block: 6 }))).toEqual([`preconfirmed ${key(0, A, 6)}`])
  })
})

describe('a restart', () => {
  it('gives what was open its end, however the process went', async () => {
    for (const end of ['reopen', 'crash'] as const) {
      const { tell, place } = await begin()
      await tell(sealedHeard(4, []), logHeard(moved(0, 1n)), logHeard(moved(1, 1n, B)))
      const again = await restore(await place[end]())
      expect(again.teller.ledger.open).toBe(2)
      const told = await again.tell(sealedHeard(5, [moved(0, 1n)], { via: 'backfill' }))
      expect(told.map(short)).toEqual([`retract ${key(1, B)} not_sealed`, `seal AAPLc ${key(0)}`])
      expect(again.teller.ledger.open).toBe(0)
      const third = await restore(await place.crash())
      expect(third.teller.ledger.open).toBe(0)
    }
  })

  it('gives it its end even where the tape no longer holds the telling', async () => {
    const place = await openEmbedded({ retentionMs: 1_000 })
    onTestFinished(() => place.close())
    const { tell } = await restore(place.tape)
    await tell(listed(apple()), hearing, status('pendingLogs'), sealedHeard(4, []), logHeard(moved(0, 1n)))
    place.clock.now += 60_000
    const later = await restore(await place.reopen(), place.clock)
    await later.tell(status('down'))
    await later.tell(status('poll'))
    expect(place.tape.oldest()).toBeGreaterThan(3)
    const again = await restore(await place.crash(), place.clock)
    expect((await again.tell(sealedHeard(5, []))).map(short)).toEqual([`retract ${key(0)} not_sealed`])
  })

  it('knows what was sealed, amended and retracted, and under which hash', async () => {
    const { tell, place } = await begin()
    await tell(logHeard(moved(0, 1n)), logHeard(moved(1, 1n, B)), logHeard(moved(2, 1n, txHash(5, 7))))
    const sealed = [moved(0, 9n), moved(1, 1n, B)]
    await tell(sealedHeard(5, sealed))
    const again = await restore(await place.crash())
    expect(await again.tell(sealedHeard(5, sealed))).toEqual([])
    expect((await again.tell(sealedHeard(5, [moved(0, 9n)], { hash: word(3) }))).map(short)).toEqual([
      `retract ${key(1, B)} reorg`,
      `seal AAPLc ${key(0)}`,
    ])
  })
})
