import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { type Draft, type DraftOf, Update } from '../../../../../src/protocol/updates.ts'
import { decodeLog } from '../../../../../src/relay/chain/logs/event-decoder.ts'
import { foldAlone } from '../../../../../src/relay/chain/logs/fold-logs.ts'
import { openMoment } from '../../../../../src/relay/ingest/batch-values.ts'
import { makeFact, type Origin } from '../../../../../src/relay/ingest/facts/make-fact.ts'
import { newMultiplierHistory } from '../../../../../src/relay/tokens/multiplier-history.ts'
import { addListReading, emptyNavHistory } from '../../../../../src/relay/tokens/nav-history.ts'
import type { Token } from '../../../../../src/relay/tokens/token.ts'
import { alice, bob, keyOf, pendingLog, sealedLog, timestampOf, txHash, word } from '../../chain/node-json.ts'
import { APPLE, listTime, NOON, tokenOf } from '../../tokens/stock-records.ts'
import { readLog } from '../reducer-fixture.ts'

const ZERO: Hex = `0x${'0'.repeat(40)}`
const apple = APPLE as Hex
const token = tokenOf()

const origin: Origin & { readonly now: number } = {
  via: 'pendingLogs',
  sealed: false,
  late: false,
  receivedAt: NOON - 7,
  now: NOON,
  chainTime: null,
}

/** The draft of a log, checked against the contract. */
const enrichLog = (
  nodeLog: Record<string, unknown>,
  overrides: Partial<Token> = {},
  overriddenOrigin: Partial<typeof origin> = {},
): Draft => {
  const { navReading, multiplier } = { ...token, ...overrides }
  const histories = {
    multiplierHistory: newMultiplierHistory(multiplier),
    navHistory: addListReading(emptyNavHistory, navReading, listTime),
  }
  const log = readLog(nodeLog)
  const { now, ...rest } = { ...origin, ...overriddenOrigin }
  const decodedLog = foldAlone({ log, decoded: decodeLog(log) })
  const draft = makeFact(
    decodedLog,
    { token: { ...token, ...overrides, ...histories }, venue: null },
    rest,
    openMoment({ at: now, wallTime: now }, 93_600_000),
  )
  expect(Update.parse({ ...draft, id: 'a.1', prev: null })).toMatchObject(draft)
  return draft
}
const enrichTransfer = (
  raw: bigint,
  overrides: Partial<Token> = {},
  parties: { from?: Hex; to?: Hex } = {},
): DraftOf<'transfer'> => {
  const draft = enrichLog(pendingLog({ block: 5, address: apple, raw, ...parties }), overrides)
  if (!('raw' in draft) || !('shares' in draft)) throw new Error('no movement')
  return draft as DraftOf<'transfer'>
}

describe('a movement', () => {
  it('carries every field', () => {
    expect(enrichLog(pendingLog({ block: 5, index: 3, address: apple, raw: 150_000_000n }))).toEqual({
      type: 'transfer',
      symbol: 'AAPLc',
      address: apple,
      time: '2026-11-20T12:00:00.000Z',
      key: keyOf({ block: 5, index: 3 }),
      stage: 'preconfirmed',
      late: false,
      from: alice,
      to: bob,
      raw: '150000000',
      amount: '1.5',
      multiplier: '1',
      shares: '1.5',
      reference_value: '486.45',
      nav: {
        price: '324.3014',
        updated_at: '2026-11-20T11:30:03.000Z',
        age_s: 1_797,
        state: 'fresh',
        stale_after_s: 93_600,
        frozen: null,
      },
      memo: null,
      block: { number: 5, hash: null, timestamp: new Date(timestampOf(5) * 1_000).toISOString() },
      tx: { hash: txHash(5, 3), index: 3, log_index: 3 },
      ingest: { source: 'pendingLogs', received_at: '2026-11-20T11:59:59.993Z', published_at: '2026-11-20T12:00:00.000Z' },
    })
  })

  it('from the zero address is a mint, to it a burn, both a mint', () => {
    expect(enrichTransfer(1n, {}, { from: ZERO }).type).toBe('mint')
    expect(enrichTransfer(1n, {}, { to: ZERO }).type).toBe('burn')
    expect(enrichTransfer(1n, {}, { from: ZERO, to: ZERO }).type).toBe('mint')
    expect(enrichTransfer(1n, {}, { from: bob, to: bob })).toMatchObject({ type: 'transfer', from: bob, to: bob })
  })

  it.each<[string, bigint, Partial<Token>, object]>([
    ['of zero tokens has the value zero', 0n, {}, { raw: '0', amount: '0', shares: '0', reference_value: '0.00' }],
    [
      'beyond the range of a JavaScript number is exact',
      2n ** 256n - 1n,
      {},
      {
        raw: '115792089237316195423570985008687907853269984665640564039457584007913129639935',
        amount: '1157920892373161954235709850086879078532699846656405640394575840079131.29639935',
      },
    ],
    [
      'has its amount times the NAV as value, because the NAV includes the multiplier',
      200_000_000n,
      { multiplier: '2' },
      { amount: '2', shares: '4', reference_value: '648.60' },
    ],
  ])('%s', (_, raw, overrides, expected) => {
    expect(enrichTransfer(raw, overrides)).toMatchObject(expected)
  })
})

describe('an unknown value is null', () => {
  it.each<[string, Partial<Token>, object]>([
    [
      'without decimals: amount, shares and value',
      { decimals: null },
      { raw: '100000000', amount: null, shares: null, reference_value: null, multiplier: '1' },
    ],
    [
      'without a multiplier: multiplier and shares, but not the value',
      { multiplier: null },
      { amount: '1', multiplier: null, shares: null, reference_value: '324.30' },
    ],
    [
      'with a missing NAV: the value',
      { navReading: { price: null, updatedAt: null } },
      { amount: '1', reference_value: null, nav: { price: null, state: 'missing' } },
    ],
  ])('%s', (_, overrides, expected) => {
    expect(enrichTransfer(100_000_000n, overrides)).toMatchObject(expected)
  })
})

describe('the NAV of a movement', () => {
  const blockTimeMs = timestampOf(5) * 1_000
  const backfilled: Partial<typeof origin> = { via: 'backfill', sealed: true, late: true, now: blockTimeMs + 3_600_000 }

  const polled: Partial<typeof origin> = { via: 'poll', sealed: true, now: blockTimeMs + 5_000 }

  it.each<[string, Partial<typeof origin>, number, string | null, object]>([
    ['is the one known when its block was made, if that was backfilled', backfilled, 0, '10.00', { price: '10', age_s: 0 }],
    ['is missing if the known one is newer than its backfilled block', backfilled, 1, null, { price: null, state: 'missing' }],
    ['is the one known now, however new, if it was not backfilled', polled, 1_000, '10.00', { price: '10', age_s: 4 }],
  ])('%s', (_, from, afterBlockMs, reference_value, nav) => {
    const nodeLog = sealedLog({ block: 5, address: apple, raw: 100_000_000n })
    const navReading = { price: '10', updatedAt: blockTimeMs + afterBlockMs }
    expect(enrichLog(nodeLog, { navReading }, from)).toMatchObject({ reference_value, nav })
  })
})

it('a log of an allowance is an approval', () => {
  const topics = ['0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925', word(alice), word(bob)]
  const nodeLog = { ...pendingLog({ block: 5, address: apple, raw: 7n }), topics }
  expect(enrichLog(nodeLog)).toMatchObject({ type: 'approval', owner: alice, spender: bob, raw: '7', amount: '0.00000007' })
  expect(enrichLog(nodeLog, { decimals: null })).toMatchObject({ raw: '7', amount: null })
})
