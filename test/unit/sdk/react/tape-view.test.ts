import { expect, it } from 'vitest'
import type { StreamItem, Update } from '../../../../src/sdk/client/index.ts'
import { SharedTape } from '../../../../src/sdk/react/shared-tape.ts'
import { covers, type TapeSelection, type TapeUnion, unionOf, unite } from '../../../../src/sdk/react/tape-selection.ts'
import { emptyState, type TapeFeed } from '../../../../src/sdk/react/tape-state.ts'
import { emptyView, type TapeView, viewOf } from '../../../../src/sdk/react/tape-view.ts'
import { amendOf, approvalAt, retractOf, sealOf, transferAt } from '../../relay/edge/fact-drafts.ts'
import { apple } from '../../relay/tape/update-drafts.ts'

const [small, large, growing] = [1, 2, 3].map((index) => transferAt({ index }, { reference_value: index === 2 ? '20' : '5' }))
if (!small || !large || !growing) throw new Error('three drafts')
const grown = amendOf(growing, { ...growing, reference_value: '30' })

const snapshot = { type: 'snapshot', id: 'k.1', as_of: 'k.1', symbol: 'AAPLc', address: apple, token: { symbol: 'AAPLc' } }

const newTape = () => new SharedTape(() => ({ want() {}, close() {} }))

/** A tape that took these drafts, in order. */
function memoryOf(...drafts: readonly object[]): SharedTape {
  const memory = newTape()
  memory.startUnion(union(['*'], '*'), false)
  for (const [at, draft] of [snapshot, ...drafts].entries()) {
    const item: StreamItem = JSON.parse(JSON.stringify({ ...(draft !== snapshot && { prev: null }), id: `k.${at + 1}`, ...draft }))
    memory.take(item)
  }
  memory.change({ isComplete: true })
  return memory
}

const view = (memory: SharedTape, selection: TapeSelection, before: TapeView = emptyView) =>
  viewOf(memory.state, selection, unionOf(selection), before)
const typesOf = (updates: readonly Update[]) => updates.map(({ type }) => type)

it.each<[string, TapeSelection, readonly Update['type'][], number]>([
  [
    'all types but approval and log',
    { symbols: '*' },
    ['seal', 'retract', 'retract', 'amend', 'transfer', 'transfer', 'transfer'],
    3,
  ],
  ['named types', { symbols: 'AAPLc', types: ['approval', 'amend'] }, ['approval', 'amend'], 0],
  ['every type', { symbols: [apple], types: '*', limit: 2 }, ['approval', 'seal'], 2],
  // The fact that grew came under the bound at first, and the small one never passed it.
  ['a value', { symbols: 'aapl', minValue: 10 }, ['seal', 'retract', 'amend', 'transfer'], 2],
  ['another stock', { symbols: 'TSLAc' }, [], 0],
])('a view selects %s', (_, selection, types, movements) => {
  const memory = memoryOf(
    small,
    large,
    growing,
    grown,
    retractOf(small),
    retractOf(large),
    sealOf([growing]),
    approvalAt({ index: 9 }),
  )
  const { data: found } = view(memory, selection)
  expect(typesOf(found.updates)).toEqual(types)
  expect(found.movements).toHaveLength(movements)
})

it('each part of a view is the same object until it changes', () => {
  const memory = memoryOf(small)
  const selection: TapeSelection = { symbols: '*', types: ['transfer'] }
  const first = view(memory, selection)
  expect(view(memory, selection, first)).toBe(first)
  // Neither the connection nor another stock changes the view.
  memory.takeFeed({ ...memory.state.feed, queued: 0, phase: 'live', position: 'k.9' })
  expect(view(memory, selection, first)).toBe(first)
  const error = { code: 'lost', reason: 'lost', message: 'The connection has ended.' }
  memory.takeFeed({ ...memory.state.feed, queued: 0, phase: 'waiting', error })
  const second = view(memory, selection, first)
  expect(second).toEqual({ ...first, error })
  expect(second.data).toBe(first.data)
})

it('a gap is counted, and the position goes on where it says', () => {
  const memory = memoryOf(small)
  memory.take({ type: 'gap', id: 'l.7', reason: 'epoch', after: 'k.2', through: 'l.7', backfill: null })
  expect(memory.state.feed).toMatchObject({ gaps: 1, position: 'l.7', lastGap: { reason: 'epoch' } })
})

it.each<[string, Partial<TapeFeed>, TapeView['status']]>([
  ['has no snapshots yet', { phase: 'replaying' }, 'loading'],
  ['comes back', { phase: 'waiting', error: { code: 'lost', reason: 'lost', message: '' } }, 'loading'],
  ['is refused', { phase: 'closed', error: { code: 401, reason: 'unauthorized', message: '' } }, 'failed'],
  ['knows none of the symbols', { phase: 'closed', error: { code: 404, reason: 'unknown_symbol', message: '' } }, 'unknown'],
  ['knows other symbols alone', { rejected: [{ symbol: 'AAPLc', reason: 'unknown_symbol', suggest: [] }] }, 'unknown'],
])('a stream that %s is not ready', (_, feed, status) => {
  const selection = { symbols: 'AAPLc' }
  const state = { ...emptyState, feed: { ...emptyState.feed, ...feed } }
  expect(viewOf(state, selection, unionOf(selection), emptyView)).toMatchObject({ status, data: { stocks: [] } })
  const disabled = { ...selection, enabled: false }
  expect(viewOf(state, disabled, unionOf(disabled), emptyView).status).toBe('disabled')
})

it.each<[string, Partial<TapeSelection>, number]>([
  ['a number of shares', { minShares: 1_000_000 }, 0],
  ['an account', { account: '0x0000000000000000000000000000000000000001' }, 0],
  ['its own account', { account: large.from.toUpperCase().replace('0X', '0x') }, 2],
  ['the sealed view', { stage: 'sealed' }, 1],
])('movements and updates are filtered by %s', (_, filter, count) => {
  const { data } = view(memoryOf(small, large, sealOf([large])), { symbols: '*', types: ['transfer'], ...filter })
  expect([data.movements.length, data.updates.length]).toEqual([count, count])
})

it('a view has its stored updates with their stages, each once, in the order of the tape', () => {
  const memory = memoryOf(small, sealOf([large]), retractOf(small))
  const selection: TapeSelection = { symbols: '*', since: '5m', types: ['transfer'] }
  expect(view(memory, selection).status).toBe('loading')
  memory.startUnion(unionOf(selection), false)
  const stored = [{ ...large, id: 'a.1', prev: null }, { ...memory.state.recent[0] }] as unknown as Update[]
  const past = memory.takePast(stored, {})
  memory.take(JSON.parse(JSON.stringify(snapshot)), past)
  memory.change({ isComplete: true })
  const { status, data } = view(memory, selection)
  expect(status).toBe('ready')
  expect(data.movements.map(({ key, stage }) => `${key} ${stage}`)).toEqual([`${small.key} retracted`, `${large.key} sealed`])
  expect(data.updates.map((update) => update.id)).toEqual(['k.2', 'a.1'])
})

it('a view keeps its updates, though the tape forgets them for those of others', () => {
  const memory = memoryOf()
  const selection: TapeSelection = { symbols: '*', types: ['nav'], since: '1h', limit: 2_000 }
  memory.startUnion(unionOf(selection), false)
  const navAt = (seq: number): Update =>
    JSON.parse(JSON.stringify({ type: 'nav', id: `k.${seq}`, prev: null, address: apple, symbol: 'AAPLc' }))
  const [first = 0, last = 0, others = 0] = [10, 1_009, 2_500]
  memory.takePast(
    Array.from({ length: 1_000 }, (_, nth) => navAt(first + nth)),
    {},
  )
  memory.change({ isComplete: true })
  const seen = view(memory, selection)
  const transfer = { ...small, prev: null }
  for (let nth = 1; nth <= others; nth += 1) memory.take(JSON.parse(JSON.stringify({ ...transfer, id: `k.${last + nth}` })))
  memory.take(navAt(last + others + 1))
  const ids = view(memory, selection, seen).data.updates.map(({ id }) => id)
  expect([ids.length, ids[0], ids[1], ids.at(-1)]).toEqual([1_001, `k.${last + others + 1}`, `k.${last}`, `k.${first}`])
  expect(memory.state.recent.length).toBeLessThanOrEqual(1_000)
  const many = Array.from({ length: 21_000 }, (_, nth) => navAt(10_000 + nth))
  memory.takePast(many, {})
  expect(memory.state.recent).toEqual(many.slice(1_000))
})

it('a view whose stored updates cannot be read says why, and no other does', () => {
  const memory = memoryOf(small)
  const selection: TapeSelection = { symbols: '*', since: 'yesterday' }
  const error = { code: 400, reason: 'bad_parameter', message: 'since: give a time.' }
  memory.startUnion(unionOf(selection), true)
  memory.takePast([], { [unionOf(selection).pasts[0] ?? '']: error })
  expect(view(memory, selection)).toMatchObject({ status: 'failed', error })
  expect(view(memory, { symbols: '*' })).toMatchObject({ status: 'ready', error: null })
})

it('a tape is not complete after a gap of the relay, until its stream is live', () => {
  const memory = memoryOf(small)
  memory.take({ type: 'gap', id: 'k.2', reason: 'missed', after: 'k.1', through: 'k.2', backfill: null })
  expect(memory.state.isComplete).toBe(true)
  memory.take({ type: 'gap', id: 'k.9', reason: 'long', after: 'k.2', through: 'k.9', backfill: null })
  expect(memory.state.isComplete).toBe(false)
})

it('a server and the page begin with the snapshots that they are given', () => {
  const given = JSON.parse(JSON.stringify({ ...snapshot, supply: { tokens: '7', shares: '14' } }))
  const memory = new SharedTape(() => ({ want() {}, close() {} }), [given])
  const { status, data } = view(memory, { symbols: 'AAPLc' })
  expect([status, data.stocks[0]?.supply.shares, memory.state.feed.position]).toEqual(['ready', '14', 'k.1'])
  expect(view(memory, { symbols: 'TSLAc' }).status).toBe('loading')
})

const union = (symbols: readonly string[], types?: '*', pasts: readonly string[] = []): TapeUnion => ({ symbols, types, pasts })

it('a union has each symbol once, and * alone', () => {
  expect(unite([union(['B', 'A'], undefined, ['p']), union(['A'], '*', ['p'])])).toEqual(union(['A', 'B'], '*', ['p']))
  expect(unite([union(['B']), union(['*'])])).toEqual(union(['*']))
})

it.each([
  [union(['A', 'B']), union(['A']), true],
  [union(['A']), union(['A', 'B']), false],
  [union(['*']), union(['A']), true],
  [union(['A']), union(['*']), false],
  [union(['A']), union(['A'], '*'), false],
  [union(['A']), union(['A'], undefined, ['p']), false],
  [union(['A'], '*', ['p', 'q']), union(['A'], undefined, ['q']), true],
])('%j covers %j: %s', (wide, narrow, expected) => {
  expect(covers(wide, narrow)).toBe(expected)
})
