import { describe, expect, it } from 'vitest'
import { decodeLogs } from '../../../src/chain/logs/fold-transaction.ts'
import { DEPTH_BOUND_BLOCKS, RECENT_BLOCKS_BOUND } from '../../../src/chain/sealed/recent-blocks.ts'
import { enrich } from '../../../src/ingest/enrich.ts'
import { contentOf, detailOf, factLocation } from '../../../src/ingest/fact.ts'
import { Ledger, type PublishedFact, type SealedFact } from '../../../src/ingest/ledger.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import { blockHash } from '../chain/node-json.ts'
import { APPLE, NOON, tokenOf } from '../tokens/stock-records.ts'
import { logAt } from './reducer-fixture.ts'

const address = APPLE as Hex
const addresses: ReadonlySet<Hex> = new Set([address])

const factAt = (block: number, index = 0, raw = 1n): SealedFact => {
  const log = logAt({ block, index, raw, address })
  const joinContext = {
    via: 'sealed',
    sealed: true,
    late: true,
    receivedAt: NOON,
    now: NOON,
    staleMs: 1,
    chainTime: null,
  } as const
  const [decodedLog] = decodeLogs([log]).decodedLogs
  if (!decodedLog) throw new Error('nothing said')
  const draft = enrich(decodedLog, tokenOf(), joinContext)
  return { ...factLocation(draft), content: contentOf(draft), detail: detailOf(draft), draft }
}
const publishedFactAt = (block: number, index = 0, state: PublishedFact['state'] = 'open'): PublishedFact => {
  const { draft, ...fact } = factAt(block, index)
  return { ...fact, symbol: draft.symbol, type: draft.type, state, seq: 1 }
}
const publish = (ledger: Ledger, block: number, index = 0, end = 0) => {
  const published = publishedFactAt(block, index)
  const isNew = ledger.canPublish(block, published.key)
  if (isNew) ledger.add(block, published, end)
  return isNew
}
const settle = (ledger: Ledger, block: number, facts: readonly SealedFact[] = []) => {
  ledger.setSettled(block)
  return ledger.settle(
    { number: block, hash: blockHash(block), timestamp: null },
    { facts: facts, parts: [] },
    addresses,
    0,
  )
}

describe('a pre-confirmed log', () => {
  it('is news once', () => {
    const ledger = new Ledger()
    expect([1, 2, 3].map(() => publish(ledger, 5))).toEqual([true, false, false])
  })

  it('is another at another place', () => {
    const ledger = new Ledger()
    expect([publish(ledger, 5, 0), publish(ledger, 5, 1), publish(ledger, 6, 0)]).toEqual([true, true, true])
  })

  it('may come late and out of order, while its block is open', () => {
    const ledger = new Ledger()
    expect([9, 7, 8, 7].map((block) => publish(ledger, block))).toEqual([true, true, true, false])
  })

  it('of a block that is settled is no news, told or not', () => {
    const ledger = new Ledger()
    publish(ledger, 5)
    settle(ledger, 5, [factAt(5)])
    expect([publish(ledger, 5), publish(ledger, 5, 1), publish(ledger, 4), publish(ledger, 6)]).toEqual([
      false,
      false,
      false,
      true,
    ])
  })

  it('of a block that nobody can be building is no news', () => {
    const ledger = new Ledger()
    settle(ledger, 5)
    expect(publish(ledger, 2 ** 50)).toBe(false)
  })
})

describe('what is open', () => {
  it('is found by its block', () => {
    const ledger = new Ledger()
    for (const block of [7, 5, 9]) publish(ledger, block)
    expect(ledger.publishedBlocksBetween(5, 8)).toEqual([5, 7])
    expect(ledger.at(7)).toMatchObject([{ key: publishedFactAt(7).key, address, tx: publishedFactAt(7).tx }])
    settle(ledger, 5, [factAt(5)])
    expect([ledger.openCount, ledger.size]).toEqual([2, 3])
  })

  it('is never forgotten, however old it is', () => {
    const ledger = new Ledger()
    publish(ledger, 5)
    ledger.setSettled(10 * DEPTH_BOUND_BLOCKS)
    expect(ledger.openCount).toBe(1)
    expect(
      ledger.settle({ number: 5, hash: blockHash(5), timestamp: null }, { facts: [], parts: [] }, addresses, 0)
        .retractions,
    ).toHaveLength(1)
  })

  it('is bounded: beyond it a log waits for its block, and is told then', () => {
    const ledger = new Ledger()
    const bound = 100_000
    const { key: _, ...told } = publishedFactAt(7)
    for (let index = 0; index < bound; index += 1) ledger.add(7, { ...told, key: `7-${index}` }, 0)
    expect(publish(ledger, 8)).toBe(false)
    settle(ledger, 7)
    expect(settle(ledger, 8, [factAt(8)]).additions).toHaveLength(1)
    expect(publish(ledger, 9)).toBe(true)
  })
})

describe('what is settled', () => {
  it('is remembered as deep as a reorganisation may reach', () => {
    const ledger = new Ledger()
    settle(ledger, 100, [factAt(100)])
    ledger.setSettled(100 + RECENT_BLOCKS_BOUND)
    expect(ledger.size).toBe(1)
    ledger.setSettled(101 + RECENT_BLOCKS_BOUND)
    expect(ledger.size).toBe(0)
  })

  it('is remembered longer while it is not safe, up to a bound', () => {
    const ledger = new Ledger()
    settle(ledger, 100, [factAt(100)])
    ledger.setSafe(100)
    ledger.setSettled(100 + DEPTH_BOUND_BLOCKS)
    expect(ledger.size).toBe(1)
    ledger.setSettled(101 + DEPTH_BOUND_BLOCKS)
    expect(ledger.size).toBe(0)
  })

  it('is remembered where what lies around it is still caught up', () => {
    const ledger = new Ledger()
    settle(ledger, 100, [factAt(100)])
    ledger.setSettled(101 + RECENT_BLOCKS_BOUND, 50)
    expect(ledger.size).toBe(1)
    ledger.setSettled(102 + RECENT_BLOCKS_BOUND)
    expect(ledger.size).toBe(0)
  })

  it('is bounded by count: the oldest settled block is forgotten first, what is open never', () => {
    const ledger = new Ledger()
    const bound = 262_144
    publish(ledger, 1)
    const { key: _, ...told } = publishedFactAt(2, 0, 'sealed')
    for (let index = 0; index < bound; index += 1) {
      const block = 2 + Math.floor(index / 1_000)
      ledger.add(block, { ...told, key: `${block}-${index}` }, 0)
    }
    expect(ledger.size).toBeLessThanOrEqual(bound)
    expect(ledger.openCount).toBe(1)
    expect(ledger.find(2, '2-0')).toBeUndefined()
    expect(ledger.find(4, '4-2000')).toBeDefined()
  })
})

describe('where a restart finds what is remembered', () => {
  it('is where the oldest remembered block was first heard of', () => {
    const ledger = new Ledger()
    publish(ledger, 100, 0, 40)
    publish(ledger, 101, 0, 50)
    publish(ledger, 100, 1, 60)
    expect(ledger.restartSeq(70)).toBe(40)
  })

  it('is the end where nothing is remembered', () => {
    expect(new Ledger().restartSeq(70)).toBe(70)
  })

  it('moves on as blocks are forgotten', () => {
    const ledger = new Ledger()
    publish(ledger, 100, 0, 40)
    publish(ledger, 150, 0, 50)
    settle(ledger, 100, [factAt(100)])
    settle(ledger, 150, [factAt(150)])
    ledger.setSettled(120 + RECENT_BLOCKS_BOUND)
    expect(ledger.restartSeq(70)).toBe(50)
  })

  it('holds for what came out of order too', () => {
    const ledger = new Ledger()
    publish(ledger, 101, 0, 40)
    publish(ledger, 100, 0, 50)
    expect(ledger.restartSeq(70)).toBe(40)
  })
})
