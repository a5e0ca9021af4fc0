import { createHash } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import { Update } from '../../../../src/protocol/updates.ts'
import type { IngestEvent } from '../../../../src/relay/ingest/fold-batch.ts'
import type { Entry } from '../../../../src/relay/tape/tape.ts'
import { blockHash, txHash, word } from '../chain/node-json.ts'
import { openTestTape } from '../tape/test-tape.ts'
import { APPLE, apple, TESLA, tesla } from '../tokens/stock-records.ts'
import {
  type LogPosition,
  listEvent,
  openReducer,
  pendingLogEvent,
  sealedEvent,
  statusEvent,
  subscribedEvent,
} from './reducer-fixture.ts'

const other = TESLA as Hex
const A = txHash(5, 1)
const B = txHash(5, 2)
const key = (index: number, tx: Hex = A, block = 5): string => `${block}-${tx}-${index}`
/** A transfer in block 5, of transaction A unless named. */
const movedAt = (index: number, raw: bigint, tx: Hex = A): LogPosition & { index: number } => ({ block: 5, index, raw, tx })

/** A reducer with two listed tokens that summarises what it publishes. */
const openListed = async () => {
  const openedTape = await openTestTape()
  onTestFinished(() => openedTape.close())
  const fixture = await openReducer(openedTape.tape)
  await fixture.publish(listEvent(apple(), tesla()), subscribedEvent, statusEvent('pendingLogs'))
  const publish = async (...batch: IngestEvent[]) => (await fixture.publish(...batch)).map(summarise)
  return { openedTape, ...fixture, publish }
}

/** Checks an update against the contract and summarises it. */
const summarise = ({ update, text }: Entry): string => {
  expect(JSON.stringify(Update.parse(JSON.parse(text)))).toBe(text)
  switch (update.type) {
    case 'retract':
      return `retract ${update.key} ${update.reason}${update.replaced_by ? ` by ${update.replaced_by}` : ''}`
    case 'amend':
      return `amend ${update.key} ${update.changed.join()}`
    case 'seal':
      return `seal ${update.symbol} ${update.keys.join()}${update.late_keys.length > 0 ? ` late ${update.late_keys.join()}` : ''}`
    default:
      return 'stage' in update && 'key' in update ? `${update.stage} ${update.key}${update.late ? ' late' : ''}` : update.type
  }
}

describe('a pre-confirmed key', () => {
  it('is sealed if its block contains it', async () => {
    const { publish } = await openListed()
    expect(await publish(pendingLogEvent(movedAt(0, 1n)))).toEqual([`preconfirmed ${key(0)}`])
    expect(await publish(sealedEvent(5, [movedAt(0, 1n)]))).toEqual([`seal AAPLc ${key(0)}`])
  })

  it('is retracted if its block lacks it', async () => {
    const { publish } = await openListed()
    await publish(pendingLogEvent(movedAt(0, 1n)))
    expect(await publish(sealedEvent(5, []))).toEqual([`retract ${key(0)} not_sealed`])
  })

  it('is replaced if its content has another index, and that key is not late', async () => {
    const { publish } = await openListed()
    await publish(pendingLogEvent(movedAt(0, 1n)), pendingLogEvent(movedAt(1, 2n)))
    expect(await publish(sealedEvent(5, [movedAt(0, 2n)]))).toEqual([
      `retract ${key(0)} not_sealed`,
      `retract ${key(1)} replaced by ${key(0)}`,
      `sealed ${key(0)}`,
      `seal AAPLc ${key(0)}`,
    ])
  })

  it('that shifts with others is published again in log order', async () => {
    const { publish } = await openListed()
    await publish(...[0, 1, 2].map((index) => pendingLogEvent(movedAt(index, BigInt(index) + 1n))))
    expect(await publish(sealedEvent(5, [movedAt(0, 2n), movedAt(1, 3n)]))).toEqual([
      `retract ${key(0)} not_sealed`,
      `retract ${key(1)} replaced by ${key(0)}`,
      `retract ${key(2)} replaced by ${key(1)}`,
      `sealed ${key(0)}`,
      `sealed ${key(1)}`,
      `seal AAPLc ${key(0)},${key(1)}`,
    ])
  })

  it('with the same content as another keeps its index', async () => {
    const { publish } = await openListed()
    await publish(pendingLogEvent(movedAt(1, 7n)), pendingLogEvent(movedAt(2, 7n)))
    expect(await publish(sealedEvent(5, [movedAt(0, 7n), movedAt(1, 7n)]))).toEqual([
      `retract ${key(2)} replaced by ${key(0)}`,
      `sealed ${key(0)}`,
      `seal AAPLc ${key(0)},${key(1)}`,
    ])
  })

  it('is amended while it is open if other content is pushed, and sealed with that', async () => {
    const { publish, openedTape } = await openListed()
    await publish(pendingLogEvent(movedAt(0, 1n)))
    expect(await publish(pendingLogEvent(movedAt(0, 2n)), pendingLogEvent(movedAt(0, 2n)))).toEqual([
      `amend ${key(0)} raw,amount,shares`,
    ])
    expect(await publish(pendingLogEvent(movedAt(0, 30n)))).toEqual([`amend ${key(0)} raw,amount,shares`])
    const [amend] = (await openedTape.tape.readAfter(0, 100)).slice(-1).map(({ update }) => update)
    expect(amend).toMatchObject({ update: { stage: 'preconfirmed', block: { hash: null }, raw: '30' } })
    const again = await openReducer(await openedTape.crash())
    expect((await again.publish(sealedEvent(5, [movedAt(0, 30n)]))).map(summarise)).toEqual([`seal AAPLc ${key(0)}`])
  })

  it('keeps its first content if a poll returns other content', async () => {
    const { publish, counts } = await openListed()
    await publish(pendingLogEvent(movedAt(0, 1n)))
    expect(await publish(pendingLogEvent(movedAt(0, 2n), { via: 'poll' }))).toEqual([])
    expect(counts.repeated).toBe(1)
  })

  it('is replaced by the other key of the same content if one of them is gone', async () => {
    const { publish } = await openListed()
    await publish(pendingLogEvent(movedAt(1, 7n)), pendingLogEvent(movedAt(2, 7n)))
    expect(await publish(sealedEvent(5, [movedAt(1, 7n)]))).toEqual([
      `retract ${key(2)} replaced by ${key(1)}`,
      `seal AAPLc ${key(1)}`,
    ])
  })

  it('is never amended if its content moved within the transaction', async () => {
    const { publish } = await openListed()
    await publish(pendingLogEvent(movedAt(1, 7n)), pendingLogEvent(movedAt(2, 7n)), pendingLogEvent(movedAt(3, 8n)))
    expect(await publish(sealedEvent(5, [movedAt(2, 9n), movedAt(3, 7n), movedAt(4, 8n)]))).toEqual([
      `retract ${key(1)} replaced by ${key(3)}`,
      `retract ${key(2)} replaced by ${key(3)}`,
      `retract ${key(3)} replaced by ${key(4)}`,
      `sealed ${key(2)} late`,
      `sealed ${key(3)}`,
      `sealed ${key(4)}`,
      `seal AAPLc ${key(2)},${key(3)},${key(4)} late ${key(2)}`,
    ])
  })

  it('is amended if its block has other content', async () => {
    const { publish } = await openListed()
    await publish(pendingLogEvent(movedAt(0, 1n)))
    expect(await publish(sealedEvent(5, [movedAt(0, 9n)]))).toEqual([`amend ${key(0)} raw,amount,shares`, `seal AAPLc ${key(0)}`])
  })

  it('is amended if its type changes, and sealed as that type', async () => {
    const { publish, openedTape } = await openListed()
    await publish(pendingLogEvent(movedAt(0, 1n)))
    const sealed = sealedEvent(5, [movedAt(0, 1n)])
    const [block] = sealed.blocks
    const logs = (block?.logs ?? []).map((log) => ({ ...log, topics: [word(1)] }))
    await publish({ ...sealed, blocks: sealed.blocks.map((sealedBlock) => ({ ...sealedBlock, logs })) })
    const [amend, seal] = (await openedTape.tape.readAfter(0, 100)).slice(-2).map(({ update }) => update)
    expect(amend).toMatchObject({ type: 'amend', fact_type: 'transfer', update: { type: 'log', stage: 'sealed' } })
    expect(seal).toMatchObject({ type: 'seal', types: ['log'] })
  })

  it('is retracted if the log is of another token, and the other is published', async () => {
    const { publish } = await openListed()
    await publish(pendingLogEvent(movedAt(0, 1n)))
    expect(await publish(sealedEvent(5, [{ ...movedAt(0, 1n), address: other }]))).toEqual([
      `retract ${key(0)} not_sealed`,
      `sealed ${key(0)} late`,
      `seal TSLAc ${key(0)} late ${key(0)}`,
    ])
  })

  it('is replaced if its transaction is sealed in an earlier block', async () => {
    const { publish } = await openListed()
    await publish(pendingLogEvent({ ...movedAt(0, 1n), block: 6 }))
    expect(await publish(sealedEvent(5, [movedAt(3, 1n)]))).toEqual([
      `sealed ${key(3)} late`,
      `seal AAPLc ${key(3)} late ${key(3)}`,
    ])
    expect(await publish(sealedEvent(6, []))).toEqual([`retract ${key(0, A, 6)} replaced by ${key(3)}`])
  })

  it('is retracted with its own block if its transaction moves to a later one', async () => {
    const { publish } = await openListed()
    await publish(pendingLogEvent(movedAt(0, 1n)))
    expect(await publish(sealedEvent(5, []))).toEqual([`retract ${key(0)} not_sealed`])
    expect(await publish(pendingLogEvent({ ...movedAt(0, 1n), block: 6 }))).toEqual([`preconfirmed ${key(0, A, 6)}`])
    expect(await publish(sealedEvent(6, [movedAt(0, 1n)]))).toEqual([`seal AAPLc ${key(0, A, 6)}`])
  })

  it('is not replaced by a key that is only pre-confirmed', async () => {
    const { publish } = await openListed()
    await publish(pendingLogEvent(movedAt(0, 1n)), pendingLogEvent({ ...movedAt(0, 1n), block: 6 }))
    expect(await publish(sealedEvent(5, []))).toEqual([`retract ${key(0)} not_sealed`])
  })

  it('that is pushed after its block was settled is dropped', async () => {
    const { publish, counts } = await openListed()
    await publish(sealedEvent(5, [movedAt(0, 1n)]))
    expect(await publish(pendingLogEvent(movedAt(0, 1n)), pendingLogEvent(movedAt(1, 1n)), pendingLogEvent({ block: 4 }))).toEqual(
      [],
    )
    expect(counts.repeated).toBe(3)
  })

  it('of a token that was delisted meanwhile is still sealed or retracted', async () => {
    const { publish } = await openListed()
    await publish(pendingLogEvent(movedAt(0, 1n)), pendingLogEvent(movedAt(1, 1n, B)), { type: 'list', tokens: [] })
    expect(await publish(sealedEvent(5, [movedAt(1, 1n, B)], { addresses: [APPLE as Hex] }))).toEqual([
      `retract ${key(0)} not_sealed`,
      `seal AAPLc ${key(1, B)}`,
    ])
  })

  it('of a block with logs that cannot be read stays open until the block can be read, and what can be read is sealed', async () => {
    const { publish } = await openListed()
    await publish(pendingLogEvent(movedAt(0, 1n)), pendingLogEvent(movedAt(1, 1n, B)))
    const partial = sealedEvent(5, [movedAt(1, 1n, B)])
    const blocks = partial.blocks.map((block) => ({ ...block, isPartial: true as const }))
    expect(await publish({ ...partial, blocks })).toEqual([`seal AAPLc ${key(1, B)}`])
    expect(await publish(sealedEvent(5, [movedAt(0, 1n), movedAt(1, 1n, B)]))).toEqual([`seal AAPLc ${key(0)},${key(1, B)}`])
  })

  it('of a sealed token keeps its seal when its block is read again and cannot be read whole', async () => {
    const { publish } = await openListed()
    const whole = sealedEvent(5, [movedAt(0, 1n), movedAt(1, 1n, B)])
    await publish(whole)
    for (const logs of [[movedAt(0, 1n)], []]) {
      const partial = sealedEvent(5, logs)
      expect(
        await publish({ ...partial, blocks: partial.blocks.map((block) => ({ ...block, isPartial: true as const })) }),
      ).toEqual([])
    }
    expect(await publish(whole)).toEqual([])
  })

  it('of a block that a reorg replaced keeps its seal until the new block can be read whole', async () => {
    const { publish } = await openListed()
    await publish(sealedEvent(5, [movedAt(0, 1n)]), { type: 'reorg', from: 5 })
    const replaced = sealedEvent(5, [movedAt(1, 1n, B)], { hash: blockHash(99) })
    const blocks = replaced.blocks.map((block) => ({ ...block, isPartial: true as const }))
    expect(await publish({ ...replaced, blocks })).toEqual([])
    expect(await publish(replaced)).toEqual([
      `retract ${key(0)} reorg`,
      `sealed ${key(1, B)} late`,
      `seal AAPLc ${key(1, B)} late ${key(1, B)}`,
    ])
  })

  it('of such a block is amended by its own log', async () => {
    const { publish } = await openListed()
    await publish(pendingLogEvent(movedAt(0, 1n)))
    const partial = sealedEvent(5, [movedAt(0, 2n)])
    const blocks = partial.blocks.map((block) => ({ ...block, isPartial: true as const }))
    expect(await publish({ ...partial, blocks })).toEqual([`amend ${key(0)} raw,amount,shares`, `seal AAPLc ${key(0)}`])
  })

  it('of a token outside the settled addresses stays open', async () => {
    const { publish } = await openListed()
    await publish(pendingLogEvent(movedAt(0, 1n)))
    expect(await publish(sealedEvent(5, [], { addresses: [other] }))).toEqual([])
    expect(await publish(sealedEvent(5, [movedAt(0, 1n)]))).toEqual([`seal AAPLc ${key(0)}`])
  })
})

describe('settling a block', () => {
  it('publishes retractions, amendments, new facts in log order, then one seal per token', async () => {
    const { publish } = await openListed()
    const C = txHash(5, 3)
    await publish(
      pendingLogEvent(movedAt(0, 1n)),
      pendingLogEvent(movedAt(1, 1n, B)),
      pendingLogEvent({ ...movedAt(2, 1n, C), address: other }),
      pendingLogEvent(movedAt(3, 1n, C)),
    )
    const sealed = [
      { ...movedAt(0, 4n, txHash(5, 9)), address: other },
      movedAt(1, 2n, B),
      { ...movedAt(2, 1n, C), address: other },
      movedAt(3, 5n, C),
      movedAt(4, 6n, C),
    ]
    expect(await publish(sealedEvent(5, sealed))).toEqual([
      `retract ${key(0)} not_sealed`,
      `amend ${key(1, B)} raw,amount,shares`,
      `amend ${key(3, C)} raw,amount,shares`,
      `sealed ${key(0, txHash(5, 9))} late`,
      `sealed ${key(4, C)} late`,
      `seal TSLAc ${key(0, txHash(5, 9))},${key(2, C)} late ${key(0, txHash(5, 9))}`,
      `seal AAPLc ${key(1, B)},${key(3, C)},${key(4, C)} late ${key(4, C)}`,
    ])
  })

  it('publishes nothing without logs or published facts', async () => {
    const { publish } = await openListed()
    expect(await publish(sealedEvent(5, []))).toEqual([])
  })

  it('publishes a log once that the node returns twice', async () => {
    const { publish } = await openListed()
    expect(await publish(sealedEvent(5, [movedAt(0, 1n), movedAt(1, 2n, B), movedAt(1, 2n, B)]))).toEqual([
      `sealed ${key(0)} late`,
      `sealed ${key(1, B)} late`,
      `seal AAPLc ${key(0)},${key(1, B)} late ${key(0)},${key(1, B)}`,
    ])
  })

  it('publishes nothing the second time', async () => {
    const { publish } = await openListed()
    await publish(pendingLogEvent(movedAt(0, 1n)), sealedEvent(5, [movedAt(0, 1n), movedAt(1, 2n, B)]))
    expect(await publish(sealedEvent(5, [movedAt(0, 1n), movedAt(1, 2n, B)]))).toEqual([])
  })

  it('publishes a log that was missing, and seals again for that token only', async () => {
    const { publish } = await openListed()
    const first = [movedAt(0, 1n), { ...movedAt(1, 1n, B), address: other }]
    await publish(sealedEvent(5, first))
    expect(await publish(sealedEvent(5, [...first, movedAt(2, 2n, B)], { newest: 8 }))).toEqual([
      `sealed ${key(2, B)} late`,
      `seal AAPLc ${key(0)},${key(2, B)} late ${key(2, B)}`,
    ])
  })

  it.each<[string, Parameters<typeof statusEvent>[0], 'sealed' | 'backfill', boolean]>([
    ['while pendingLogs is the source', 'pendingLogs', 'sealed', true],
    ['while poll is the source', 'poll', 'sealed', true],
    ['while nothing is pre-confirmed', 'sealed', 'sealed', false],
    ['backfilled', 'sealed', 'backfill', true],
  ])('marks a new fact as late or not: %s', async (_, source, via, late) => {
    const { publish } = await openListed()
    await publish(statusEvent(source))
    const published = await publish(sealedEvent(5, [movedAt(0, 1n)], { via }))
    expect(published).toEqual(
      late ? [`sealed ${key(0)} late`, `seal AAPLc ${key(0)} late ${key(0)}`] : [`sealed ${key(0)}`, `seal AAPLc ${key(0)}`],
    )
  })

  it('adds the block hash, and the block time if the log has none', async () => {
    const { publish, openedTape } = await openListed()
    const sealed = sealedEvent(5, [movedAt(0, 1n)], { timestamp: 1_795_000_001 })
    const blocks = sealed.blocks.map((block) => ({
      ...block,
      logs: block.logs.map((log) => ({ ...log, blockTimestamp: null, blockHash: null })),
    }))
    await publish({ ...sealed, blocks })
    const block = { number: 5, hash: blockHash(5), timestamp: '2026-11-18T11:06:41.000Z' }
    expect((await openedTape.tape.readAfter(0, 100)).slice(-2).map(({ update }) => update)).toMatchObject([
      { type: 'transfer', block, ingest: { source: 'sealed' } },
      { type: 'seal', block },
    ])
  })

  it('adds a digest that clients can compute from the keys', async () => {
    const { publish, openedTape } = await openListed()
    await publish(sealedEvent(5, [movedAt(0, 1n), movedAt(1, 2n, B)]))
    const seal = (await openedTape.tape.readAfter(0, 100)).at(-1)?.update
    if (seal?.type !== 'seal') throw new Error('no seal')
    const digest = createHash('sha256')
      .update(`${key(0)}\n${key(1, B)}`)
      .digest('hex')
    expect(seal).toMatchObject({ count: 2, types: ['transfer', 'transfer'], digest: digest.slice(0, 32) })
  })
})

describe('a retraction or amendment', () => {
  it('names the last update of the key', async () => {
    const { publish, openedTape } = await openListed()
    const positionOf = async (type: string) =>
      (await openedTape.tape.readAfter(0, 100)).findLast(({ update }) => update.type === type)?.update.id
    await publish(pendingLogEvent(movedAt(0, 1n)))
    const published = await positionOf('transfer')
    await publish(sealedEvent(5, [movedAt(0, 9n)]))
    const amended = await positionOf('amend')
    await publish(sealedEvent(5, [], { hash: word(5) }))
    const updates = (await openedTape.tape.readAfter(0, 100)).map(({ update }) => update)
    expect(updates.find(({ type }) => type === 'amend')).toMatchObject({ fact_id: published, fact_type: 'transfer' })
    expect(updates.find(({ type }) => type === 'retract')).toMatchObject({ fact_id: amended, fact_type: 'transfer' })
  })

  it('names it also within one batch', async () => {
    const { publish, openedTape } = await openListed()
    await publish(pendingLogEvent(movedAt(0, 1n)), sealedEvent(5, [movedAt(0, 9n)]), sealedEvent(5, [], { hash: word(5) }))
    const updates = (await openedTape.tape.readAfter(0, 100)).map(({ update }) => update).slice(-4)
    expect(updates.map(({ type }) => type)).toEqual(['transfer', 'amend', 'seal', 'retract'])
    const [transfer, amend, , retract] = updates
    expect(amend).toMatchObject({ fact_id: transfer?.id })
    expect(retract).toMatchObject({ fact_id: amend?.id })
  })

  it('carries the whole new update with the hash of its block', async () => {
    const { publish, openedTape } = await openListed()
    await publish(pendingLogEvent(movedAt(0, 1n)))
    await publish(sealedEvent(5, [movedAt(0, 150_000_000n)]))
    const amend = (await openedTape.tape.readAfter(0, 100)).map(({ update }) => update).find(({ type }) => type === 'amend')
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
    const { publish } = await openListed()
    await publish(sealedEvent(5, [movedAt(0, 1n)]))
    expect(await publish(sealedEvent(5, [], { hash }))).toEqual([`retract ${key(0)} reorg`])
  })

  it('seals a kept key again under the new hash', async () => {
    const { publish } = await openListed()
    await publish(sealedEvent(5, [movedAt(0, 1n)]))
    expect(await publish(sealedEvent(5, [movedAt(0, 1n)], { hash }))).toEqual([`seal AAPLc ${key(0)}`])
  })

  it('publishes a retracted key again if it comes back', async () => {
    const { publish } = await openListed()
    await publish(sealedEvent(5, [movedAt(0, 1n)]), sealedEvent(5, [], { hash }))
    expect(await publish(sealedEvent(5, [movedAt(0, 1n)]))).toEqual([
      `sealed ${key(0)} late`,
      `seal AAPLc ${key(0)} late ${key(0)}`,
    ])
    expect(await publish(sealedEvent(5, [], { hash }))).toEqual([`retract ${key(0)} reorg`])
  })

  it('replaces the key of a transaction that moves to an earlier block', async () => {
    const { publish } = await openListed()
    await publish(sealedEvent(4, []), sealedEvent(5, [movedAt(0, 1n)]))
    await publish(sealedEvent(4, [movedAt(0, 1n)], { hash }))
    expect(await publish(sealedEvent(5, [], { hash: word(0xf1) }))).toEqual([`retract ${key(0)} replaced by ${key(0, A, 4)}`])
  })

  it('retracts the key of a transaction that moves to a later block', async () => {
    const { publish } = await openListed()
    await publish(sealedEvent(5, [movedAt(0, 1n)]), sealedEvent(6, []))
    expect(await publish(sealedEvent(5, [], { hash }))).toEqual([`retract ${key(0)} reorg`])
    expect(await publish(sealedEvent(6, [movedAt(0, 1n)], { hash: word(0xf1) }))).toEqual([
      `sealed ${key(0, A, 6)} late`,
      `seal AAPLc ${key(0, A, 6)} late ${key(0, A, 6)}`,
    ])
  })

  it('accepts pre-confirmed logs again above the block that it goes back to', async () => {
    const { publish } = await openListed()
    await publish(sealedEvent(5, []), sealedEvent(6, []))
    await publish({ type: 'reorg', from: 5 }, sealedEvent(5, [], { hash }))
    expect(await publish(pendingLogEvent({ ...movedAt(0, 1n), block: 6 }))).toEqual([`preconfirmed ${key(0, A, 6)}`])
  })
})

describe('a restart', () => {
  it('ends every open key, after a clean end and a crash', async () => {
    for (const end of ['reopen', 'crash'] as const) {
      const { publish, openedTape } = await openListed()
      await publish(sealedEvent(4, []), pendingLogEvent(movedAt(0, 1n)), pendingLogEvent(movedAt(1, 1n, B)))
      const again = await openReducer(await openedTape[end]())
      expect(again.state.ledger.openCount).toBe(2)
      const published = await again.publish(sealedEvent(5, [movedAt(0, 1n)], { via: 'backfill' }))
      expect(published.map(summarise)).toEqual([`retract ${key(1, B)} not_sealed`, `seal AAPLc ${key(0)}`])
      expect(again.state.ledger.openCount).toBe(0)
      const third = await openReducer(await openedTape.crash())
      expect(third.state.ledger.openCount).toBe(0)
    }
  })

  it('ends an open key whose publication is older than the retention', async () => {
    const openedTape = await openTestTape({ tapeRetentionMs: 1_000 })
    onTestFinished(() => openedTape.close())
    const { publish } = await openReducer(openedTape.tape)
    const lists = [listEvent(apple()), subscribedEvent, statusEvent('pendingLogs')]
    await publish(...lists, sealedEvent(4, []), pendingLogEvent(movedAt(0, 1n)))
    openedTape.clock.now += 60_000
    const later = await openReducer(await openedTape.reopen(), openedTape.clock)
    await later.publish(statusEvent('down'))
    await later.publish(statusEvent('poll'))
    const again = await openReducer(await openedTape.crash(), openedTape.clock)
    expect((await again.publish(sealedEvent(5, []))).map(summarise)).toEqual([`retract ${key(0)} not_sealed`])
    await again.publish(statusEvent('down'))
    await again.publish(statusEvent('poll'))
    expect(openedTape.tape.oldest()).toBeGreaterThan(3)
  })

  it('restores what was sealed, amended and retracted, and under which hash', async () => {
    const { publish, openedTape } = await openListed()
    await publish(
      pendingLogEvent(movedAt(0, 1n)),
      pendingLogEvent(movedAt(1, 1n, B)),
      pendingLogEvent(movedAt(2, 1n, txHash(5, 7))),
    )
    const sealed = [movedAt(0, 9n), movedAt(1, 1n, B)]
    await publish(sealedEvent(5, sealed))
    const again = await openReducer(await openedTape.crash())
    expect(await again.publish(sealedEvent(5, sealed))).toEqual([])
    expect((await again.publish(sealedEvent(5, [movedAt(0, 9n)], { hash: word(3) }))).map(summarise)).toEqual([
      `retract ${key(1, B)} reorg`,
      `seal AAPLc ${key(0)}`,
    ])
  })

  it('publishes an evicted fact of a block that is settled again with a seal', async () => {
    const openedTape = await openTestTape({ tapeRetentionMs: 1_000 })
    onTestFinished(() => openedTape.close())
    const { publish } = await openReducer(openedTape.tape, openedTape.clock)
    await publish(listEvent(apple()), subscribedEvent, statusEvent('pendingLogs'), pendingLogEvent(movedAt(0, 1n)))
    openedTape.clock.now += 60_000
    const later = await openReducer(await openedTape.reopen(), openedTape.clock)
    const sealed = sealedEvent(5, [movedAt(0, 1n), movedAt(1, 1n, B)], { restartCursor: 4 })
    await later.publish(pendingLogEvent(movedAt(1, 1n, B)), sealed)
    expect(openedTape.tape.readKey(key(0))).toEqual([])
    const again = await openReducer(await openedTape.crash(), openedTape.clock)
    expect((await again.publish(sealed)).map(summarise)).toEqual([
      `sealed ${key(0)} late`,
      `seal AAPLc ${key(0)},${key(1, B)} late ${key(0)}`,
    ])
  })
})
