import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import type { Update } from '../../../../src/protocol/updates.ts'
import { txHash, word } from '../chain/node-json.ts'
import { APPLE, apple, TESLA, tesla } from '../tokens/stock-records.ts'
import {
  type LogPosition,
  listEvent,
  openIngest,
  openReducer,
  partial,
  pendingLogEvent,
  play,
  type Step,
  sealedEvent,
  statusEvent,
  subscribedEvent,
} from './reducer-fixture.ts'

type Moved = LogPosition & { readonly index: number }
const transactions = { A: txHash(5, 1), B: txHash(5, 2), C: txHash(5, 3) }
const nameOf = new Map<string, string>(Object.entries(transactions).map(([name, hash]) => [hash, name]))
/** A transfer of a transaction, in block 5 unless moved to another. */
const movedBy =
  (name: keyof typeof transactions) =>
  (index: number, raw = 1n): Moved => ({ block: 5, index, raw, tx: transactions[name] })
const [A, B, C] = [movedBy('A'), movedBy('B'), movedBy('C')]
const ofTesla = (moved: Moved): Moved => ({ ...moved, address: TESLA as Hex })
const inBlock = (block: number, moved: Moved): Moved => ({ ...moved, block })

const push = (...moved: readonly LogPosition[]) => moved.map((one) => pendingLogEvent(one))
const block = (...moved: readonly Moved[]) => sealedEvent(5, moved)
const block6 = (...moved: readonly Moved[]) => sealedEvent(6, moved)
const fork = (...moved: readonly Moved[]) => sealedEvent(5, moved, { hash: word(0xf0) })
const reorg = { type: 'reorg', from: 5 } as const
const delisting = listEvent()

/** `A0` is the first log of transaction A in block 5, `A0 in 6` the one of block 6. */
const nameOfKey = (key: string): string => {
  const [number, tx = '', index] = key.split('-')
  return `${nameOf.get(tx) ?? tx}${index}${number === '5' ? '' : ` in ${number}`}`
}
const tell = (update: Update): string => {
  switch (update.type) {
    case 'retract':
      return `retract ${nameOfKey(update.key)} ${update.reason}${update.replaced_by ? ` by ${nameOfKey(update.replaced_by)}` : ''}`
    case 'amend':
      return `amend ${nameOfKey(update.key)} ${update.changed.join()}`
    case 'seal': {
      const late = update.late_keys.length > 0 ? ` late ${update.late_keys.map(nameOfKey).join()}` : ''
      return `seal ${update.symbol === 'AAPLc' ? '' : `${update.symbol} `}${update.keys.map(nameOfKey).join()}${late}`
    }
    default:
      return 'stage' in update && 'key' in update
        ? `${update.stage} ${nameOfKey(update.key ?? '')}${update.late ? ' late' : ''}`
        : update.type
  }
}
const listing = [listEvent(apple(), tesla()), subscribedEvent, statusEvent('pendingLogs')]
const openListed = (retentionMs?: number) => openIngest(tell, { first: listing, ...(retentionMs && { retentionMs }) })
const CONTENT = 'raw,amount,shares'

describe('a pre-confirmed key', () => {
  it.each<[string, ...Step[]]>([
    ['is sealed if its block contains it', [push(A(0)), 'preconfirmed A0'], [block(A(0)), 'seal A0']],
    ['is retracted if its block lacks it', [push(A(0)), 'preconfirmed A0'], [block(), 'retract A0 not_sealed']],
    [
      'that shifts with others is published again in log order',
      [push(A(0, 1n), A(1, 2n), A(2, 3n)), 'preconfirmed A0, preconfirmed A1, preconfirmed A2'],
      [
        block(A(0, 2n), A(1, 3n)),
        'retract A0 not_sealed, retract A1 replaced by A0, retract A2 replaced by A1, sealed A0, sealed A1, seal A0,A1',
      ],
    ],
    [
      'is amended if its block has other content',
      [push(A(0)), 'preconfirmed A0'],
      [block(A(0, 9n)), `amend A0 ${CONTENT}, seal A0`],
    ],
    [
      'is retracted if the log is of another token, and the other is published',
      [push(A(0)), 'preconfirmed A0'],
      [block(ofTesla(A(0))), 'retract A0 not_sealed, sealed A0 late, seal TSLAc A0 late A0'],
    ],
    [
      'of a token that was delisted meanwhile is still sealed or retracted',
      [[...push(A(0), B(1)), delisting], 'preconfirmed A0, preconfirmed B1, token, token'],
      [sealedEvent(5, [B(1)], { addresses: [APPLE as Hex] }), 'retract A0 not_sealed, seal B1'],
    ],
    [
      'of a block with logs that cannot be read stays open until the block can be read, and what can be read is sealed',
      [push(A(0), B(1)), 'preconfirmed A0, preconfirmed B1'],
      [partial(block(B(1))), 'seal B1'],
      [block(A(0), B(1)), 'seal A0,B1'],
    ],
    [
      'of a sealed token keeps its seal when its block is read again and cannot be read whole',
      [block(A(0), B(1)), 'sealed A0 late, sealed B1 late, seal A0,B1 late A0,B1'],
      [partial(block(A(0))), ''],
      [partial(block()), ''],
      [block(A(0), B(1)), ''],
    ],
    [
      'of a block that a reorg replaced keeps its seal until the new block can be read whole',
      [[block(A(0)), reorg], 'sealed A0 late, seal A0 late A0'],
      [partial(fork(B(1))), ''],
      [fork(B(1)), 'retract A0 reorg, sealed B1 late, seal B1 late B1'],
    ],
    [
      'of such a block is amended by its own log',
      [push(A(0)), 'preconfirmed A0'],
      [partial(block(A(0, 2n))), `amend A0 ${CONTENT}, seal A0`],
    ],
    [
      'of a token outside the settled addresses stays open',
      [push(A(0)), 'preconfirmed A0'],
      [sealedEvent(5, [], { addresses: [TESLA as Hex] }), ''],
      [block(A(0)), 'seal A0'],
    ],
  ])('%s', async (_, ...steps) => {
    await play(await openListed(), steps)
  })

  it('is amended while it is open if other content is pushed, and sealed with that', async () => {
    const ingest = await openListed()
    await play(ingest, [
      [push(A(0, 1n)), 'preconfirmed A0'],
      [push(A(0, 2n), A(0, 2n)), `amend A0 ${CONTENT}`],
      [push(A(0, 30n)), `amend A0 ${CONTENT}`],
    ])
    const amend = (await ingest.updates()).at(-1)
    expect(amend).toMatchObject({ update: { stage: 'preconfirmed', block: { hash: null }, raw: '30' } })
    await play(ingest, ['crash', [block(A(0, 30n)), 'seal A0']])
  })

  it('keeps its first content if a poll returns other content', async () => {
    const ingest = await openListed()
    await play(ingest, [
      [push(A(0, 1n)), 'preconfirmed A0'],
      [pendingLogEvent(A(0, 2n), { via: 'poll' }), ''],
    ])
    expect(ingest.counts.repeated).toBe(1)
  })

  it('that is pushed after its block was settled is dropped', async () => {
    const ingest = await openListed()
    await play(ingest, [
      [block(A(0)), 'sealed A0 late, seal A0 late A0'],
      [push(A(0), A(1), { block: 4 }), ''],
    ])
    expect(ingest.counts.repeated).toBe(3)
  })
})

describe('settling a block', () => {
  it('publishes retractions, amendments, new facts in log order, then one seal per token', async () => {
    await play(await openListed(), [
      [push(A(0), B(1), ofTesla(C(2)), C(3)), 'preconfirmed A0, preconfirmed B1, preconfirmed C2, preconfirmed C3'],
      [
        block(ofTesla(B(0, 4n)), B(1, 2n), ofTesla(C(2)), C(3, 5n), C(4, 6n)),
        `retract A0 not_sealed, amend B1 ${CONTENT}, amend C3 ${CONTENT}, sealed B0 late, sealed C4 late, ` +
          'seal TSLAc B0,C2 late B0, seal B1,C3,C4 late C4',
      ],
    ])
  })

  it.each<[string, Parameters<typeof statusEvent>[0], 'sealed' | 'backfill', boolean]>([
    ['while pendingLogs is the source', 'pendingLogs', 'sealed', true],
    ['while poll is the source', 'poll', 'sealed', true],
    ['while nothing is pre-confirmed', 'sealed', 'sealed', false],
    ['backfilled', 'sealed', 'backfill', true],
  ])('marks a new fact as late or not: %s', async (_, source, via, late) => {
    const ingest = await openListed()
    await ingest.publish(statusEvent(source))
    await play(ingest, [[sealedEvent(5, [A(0)], { via }), late ? 'sealed A0 late, seal A0 late A0' : 'sealed A0, seal A0']])
  })
})

describe('a reorganisation', () => {
  const sealedA0: Step = [block(A(0)), 'sealed A0 late, seal A0 late A0']

  it.each<[string, ...Step[]]>([
    [
      'publishes a retracted key again if it comes back',
      sealedA0,
      [fork(), 'retract A0 reorg'],
      sealedA0,
      [fork(), 'retract A0 reorg'],
    ],
    [
      'accepts pre-confirmed logs again above the block that it goes back to',
      [[block(), block6()], ''],
      [[reorg, fork()], ''],
      [push(inBlock(6, A(0))), 'preconfirmed A0 in 6'],
    ],
  ])('%s', async (_, ...steps) => {
    await play(await openListed(), steps)
  })
})

describe('a restart', () => {
  it('ends an open key whose publication is older than the retention', async () => {
    const { publish, openedTape } = await openListed(1_000)
    await publish(sealedEvent(4, []), ...push(A(0)))
    openedTape.clock.now += 60_000
    const later = await openReducer(await openedTape.reopen(), openedTape.clock)
    await later.publish(statusEvent('down'))
    await later.publish(statusEvent('poll'))
    const last = await openReducer(await openedTape.crash(), openedTape.clock)
    expect((await last.publish(block())).map(({ update }) => tell(update))).toEqual(['retract A0 not_sealed'])
    await last.publish(statusEvent('down'))
    await last.publish(statusEvent('poll'))
    expect(openedTape.tape.oldest()).toBeGreaterThan(3)
  })

  it('restores what was open, sealed, amended and retracted, and under which hash', async () => {
    const { publish, openedTape, crash } = await openListed()
    await publish(...push(A(0), B(1), C(2), inBlock(6, B(3))))
    await publish(block(A(0, 9n), B(1)))
    const next = await crash()
    expect(next.state.ledger.openSeq).not.toBeNull()
    expect(await next.publish(block(A(0, 9n), B(1)))).toEqual([])
    expect(await next.publish(fork(A(0, 9n)))).toEqual(['retract B1 reorg', 'seal A0'])
    expect(await next.publish(sealedEvent(6, [], { via: 'backfill' }))).toEqual(['retract B3 in 6 not_sealed'])
    expect((await openReducer(await openedTape.reopen())).state.ledger.openSeq).toBeNull()
  })

  it('knows that a replaced block had its keys retracted, so the block is sealed again when it returns', async () => {
    const { publish, crash } = await openListed()
    await publish(block(A(0)))
    expect(await publish(fork())).toEqual(['retract A0 reorg'])
    const next = await crash()
    expect(await next.publish(block(A(0)))).toEqual(['sealed A0 late', 'seal A0 late A0'])
  })
})
