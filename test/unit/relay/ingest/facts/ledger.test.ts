import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { DEPTH_BOUND_BLOCKS, RECENT_BLOCKS_BOUND } from '../../../../../src/relay/chain/blocks/block-bounds.ts'
import { decodeLog } from '../../../../../src/relay/chain/logs/event-decoder.ts'
import { foldAlone } from '../../../../../src/relay/chain/logs/fold-logs.ts'
import { openMoment } from '../../../../../src/relay/ingest/batch-values.ts'
import type { FactDraft } from '../../../../../src/relay/ingest/facts/fact.ts'
import { Ledger } from '../../../../../src/relay/ingest/facts/ledger.ts'
import { makeFact } from '../../../../../src/relay/ingest/facts/make-fact.ts'
import { blockHash } from '../../chain/node-json.ts'
import { APPLE, NOON, tokenOf } from '../../tokens/stock-records.ts'
import { logAt } from '../reducer-fixture.ts'

const address = APPLE as Hex
const addresses: ReadonlySet<Hex> = new Set([address])

const moment = openMoment({ at: NOON, wallTime: NOON }, 1)
const factAt = (block: number, index = 0, raw = 1n): FactDraft => {
  const log = logAt({ block, index, raw, address })
  const origin = { via: 'sealed', sealed: true, late: true, receivedAt: NOON, chainTime: null } as const
  return makeFact(foldAlone({ log, decoded: decodeLog(log) }), { token: tokenOf(), venue: null }, origin, moment)
}
const publish = (ledger: Ledger, block: number, index = 0, end = 0) => {
  const fact = factAt(block, index)
  const isNew = ledger.canPublish(block, fact.key)
  if (isNew) ledger.add(fact, 'open', end, 0)
  return isNew
}
const settle = (ledger: Ledger, block: number, facts: readonly FactDraft[] = []) => {
  ledger.setSettled(block)
  return ledger.settle({ number: block, hash: blockHash(block), timestamp: null }, { facts, parts: [] }, addresses, 0)
}

describe('a pre-confirmed log', () => {
  it('may arrive late and out of order while its block is open', () => {
    const ledger = new Ledger()
    const isNew = [9, 7, 8, 7].map((block) => publish(ledger, block))
    expect([...isNew, publish(ledger, 7, 1)]).toEqual([true, true, true, false, true])
  })

  it('of a settled block is not new, published or not', () => {
    const ledger = new Ledger()
    publish(ledger, 5)
    settle(ledger, 5, [factAt(5)])
    expect([publish(ledger, 5), publish(ledger, 5, 1), publish(ledger, 4), publish(ledger, 6)]).toEqual([false, false, false, true])
  })

  it('of an impossibly high block is not new', () => {
    const ledger = new Ledger()
    settle(ledger, 5)
    expect(publish(ledger, 2 ** 50)).toBe(false)
  })
})

describe('an open key', () => {
  it('is found by its block', () => {
    const ledger = new Ledger()
    for (const block of [7, 5, 9, 4]) publish(ledger, block)
    expect(ledger.publishedBlocksBetween(5, 7)).toEqual([5, 7])
    expect(ledger.at(7)).toEqual([{ key: factAt(7).key, address, tx: factAt(7).tx.hash }])
  })

  it('is never forgotten, however old it is', () => {
    const ledger = new Ledger()
    publish(ledger, 5)
    ledger.setSettled(10 * DEPTH_BOUND_BLOCKS)
    expect(ledger.openSeq).not.toBeNull()
    const block = { number: 5, hash: blockHash(5), timestamp: null }
    expect(ledger.settle(block, { facts: [], parts: [] }, addresses, 0).retractions).toHaveLength(1)
  })

  it('beyond the bound waits until its block is settled', () => {
    const ledger = new Ledger()
    const bound = 100_000
    const fact = factAt(7)
    for (let index = 0; index < bound; index += 1) ledger.add({ ...fact, key: `7-${index}` }, 'open', 0, 0)
    expect(publish(ledger, 8)).toBe(false)
    settle(ledger, 7)
    expect(settle(ledger, 8, [factAt(8)]).additions).toHaveLength(1)
    expect(publish(ledger, 9)).toBe(true)
  })
})

describe('a settled key', () => {
  it.each<[string, number | null, number, number?]>([
    ['while a reorganisation can reach it', 101, 100 + RECENT_BLOCKS_BOUND],
    ['longer while the safe block is not above it, up to a bound', 100, 100 + DEPTH_BOUND_BLOCKS],
    ['longer while the safe block is not known, up to a bound', null, 100 + DEPTH_BOUND_BLOCKS],
    ['while blocks around it are being caught up', 200, 101 + RECENT_BLOCKS_BOUND, 50],
  ])('is remembered %s', (_, safe, last, caughtUpFrom) => {
    const ledger = new Ledger()
    settle(ledger, 100, [factAt(100)])
    if (safe !== null) ledger.setSafe(safe)
    ledger.setSettled(last, caughtUpFrom)
    expect(ledger.factsOf(address)).toHaveLength(1)
    ledger.setSettled(last + 1)
    expect(ledger.factsOf(address)).toHaveLength(0)
  })

  it('that waits for its contract after a reorg is not forgotten before the node answers it', () => {
    const ledger = new Ledger()
    const [replacing, unanswered] = [{ number: 5, hash: blockHash(55), timestamp: null }, new Set<Hex>()]
    settle(ledger, 5, [factAt(5)])
    ledger.settle(replacing, { facts: [], parts: [] }, unanswered, 0)
    ledger.setSafe(DEPTH_BOUND_BLOCKS)
    ledger.setSettled(3 * DEPTH_BOUND_BLOCKS)
    const { seals, additions } = ledger.settle(replacing, { facts: [factAt(5)], parts: [] }, addresses, 0)
    expect([seals.map(({ keys }) => keys), additions]).toEqual([[[factAt(5).key]], []])
    ledger.setSettled(4 * DEPTH_BOUND_BLOCKS)
    expect(ledger.publishedBlocksBetween(0, 9)).toEqual([])
  })

  it('that waits for a contract which is never answered is forgotten a day later', () => {
    const ledger = new Ledger()
    settle(ledger, 5, [factAt(5)])
    ledger.settle({ number: 5, hash: blockHash(55), timestamp: null }, { facts: [], parts: [] }, new Set<Hex>(), 0)
    ledger.setSafe(100_000)
    const kept = [43_205, 43_206].map((settled) => {
      ledger.setSettled(settled)
      return ledger.publishedBlocksBetween(0, 9)
    })
    expect(kept).toEqual([[5], []])
  })

  it('beyond the bound is forgotten, oldest block first, but never an open key', () => {
    const ledger = new Ledger()
    const bound = 262_144
    publish(ledger, 1)
    const fact = factAt(2)
    for (let index = 0; index < bound; index += 1) {
      const number = 2 + Math.floor(index / 1_000)
      ledger.add({ ...fact, key: `${number}-${index}`, block: { ...fact.block, number } }, 'sealed', 0, 0)
    }
    expect(ledger.factsOf(address).length).toBeLessThanOrEqual(bound)
    expect(ledger.factsOf(address).filter(({ published }) => published.state === 'open')).toHaveLength(1)
    expect(ledger.find(2, '2-0')).toBeUndefined()
    expect(ledger.find(4, '4-2000')).toBeDefined()
  })
})

describe('the restart position', () => {
  it('is the end of the tape if the ledger is empty', () => {
    expect(new Ledger().restartSeq(70)).toBe(70)
  })

  it('moves on as blocks are forgotten', () => {
    const ledger = new Ledger()
    publish(ledger, 100, 0, 40)
    publish(ledger, 150, 0, 50)
    settle(ledger, 100, [factAt(100)])
    settle(ledger, 150, [factAt(150)])
    ledger.setSafe(200)
    ledger.setSettled(120 + RECENT_BLOCKS_BOUND)
    expect(ledger.restartSeq(70)).toBe(50)
  })

  it('is the lowest one if blocks are added out of order', () => {
    const ledger = new Ledger()
    publish(ledger, 101, 0, 40)
    publish(ledger, 100, 0, 50)
    expect(ledger.restartSeq(70)).toBe(40)
  })
})
