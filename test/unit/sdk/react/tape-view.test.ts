import { expect, it } from 'vitest'
import type { StreamItem, Update } from '../../../../src/sdk/client/index.ts'
import { covers, type TapeSelection, type TapeUnion, unite } from '../../../../src/sdk/react/tape-selection.ts'
import { TapeMemory } from '../../../../src/sdk/react/tape-state.ts'
import { emptyView, type TapeView, viewOf } from '../../../../src/sdk/react/tape-view.ts'
import { amendOf, approvalAt, retractOf, sealOf, transferAt } from '../../relay/edge/fact-drafts.ts'
import { apple } from '../../relay/tape/update-drafts.ts'

const [small, large, growing] = [1, 2, 3].map((index) => transferAt({ index }, { reference_value: index === 2 ? '20' : '5' }))
if (!small || !large || !growing) throw new Error('three drafts')
const grown = amendOf(growing, { ...growing, reference_value: '30' })

const snapshot = { type: 'snapshot', id: 'k.1', as_of: 'k.1', symbol: 'AAPLc', address: apple, token: { symbol: 'AAPLc' } }

/** A memory that took these drafts, in order. */
function memoryOf(...drafts: readonly object[]): TapeMemory {
  const memory = new TapeMemory(() => {})
  for (const [at, draft] of [snapshot, ...drafts].entries()) {
    const item: StreamItem = JSON.parse(JSON.stringify({ ...(draft !== snapshot && { prev: null }), id: `k.${at + 1}`, ...draft }))
    memory.take(item)
  }
  return memory
}

const view = (memory: TapeMemory, selection: TapeSelection, before: TapeView = emptyView) => viewOf(memory.state, selection, before)
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
  const found = view(memory, selection)
  expect(typesOf(found.updates)).toEqual(types)
  expect(found.movements).toHaveLength(movements)
})

it('movements have the stage that they reached', () => {
  const { movements } = view(memoryOf(small, large, retractOf(small), sealOf([large])), { symbols: '*' })
  expect(movements.map(({ key, stage }) => [key, stage]).sort()).toEqual(
    [
      [small.key, 'retracted'],
      [large.key, 'sealed'],
    ].sort(),
  )
})

it('each part of a view is the same object until it changes', () => {
  const memory = memoryOf(small)
  const selection: TapeSelection = { symbols: '*', types: ['transfer'] }
  const first = view(memory, selection)
  expect(view(memory, selection, first)).toBe(first)
  memory.takeFeed({ ...memory.state.feed, queued: 0, phase: 'live' })
  const second = view(memory, selection, first)
  expect(second).not.toBe(first)
  expect({ ...second, feed: first.feed }).toEqual(first)
  for (const part of ['stocks', 'movements', 'updates'] as const) expect(second[part]).toBe(first[part])
})

it('a gap is counted, and the position goes on where it says', () => {
  const memory = memoryOf(small)
  memory.take({ type: 'gap', id: 'l.7', reason: 'epoch', after: 'k.2', through: 'l.7', backfill: null })
  expect(memory.state.feed).toMatchObject({ gaps: 1, position: 'l.7', lastGap: { reason: 'epoch' } })
})

it('a stream that ends before all snapshots came is not complete', () => {
  const memory = memoryOf()
  expect(memory.state.isComplete).toBe(false)
  memory.take({ type: 'gap', id: 'k.2', reason: 'missed', after: 'k.1', through: 'k.2', backfill: null })
  expect(memory.state.isComplete).toBe(false)
  const other = memoryOf(small)
  expect(other.state.isComplete).toBe(true)
  other.startUnion(union(['*']), true)
  expect(other.state.isComplete).toBe(true)
  other.take({ type: 'gap', id: 'k.9', reason: 'long', after: 'k.2', through: 'k.9', backfill: null })
  expect(other.state.isComplete).toBe(false)
})

it('a memory that loads the state of another has all of it', () => {
  const one = memoryOf(small, large, retractOf(small))
  const other = new TapeMemory(() => {})
  other.load(structuredClone(one.state))
  expect(other.state).toEqual(one.state)
  expect(other.position).toBe(one.position)
})

const union = (symbols: readonly string[], isEveryType = false): TapeUnion => ({ symbols, isEveryType })

it('a union has each symbol once, and * alone', () => {
  expect(unite([union(['B', 'A']), union(['A'], true)])).toEqual(union(['A', 'B'], true))
  expect(unite([union(['B']), union(['*'])])).toEqual(union(['*']))
})

it.each([
  [union(['A', 'B']), union(['A']), true],
  [union(['A']), union(['A', 'B']), false],
  [union(['*']), union(['A']), true],
  [union(['A']), union(['*']), false],
  [union(['A']), union(['A'], true), false],
])('%j covers %j: %s', (wide, narrow, expected) => {
  expect(covers(wide, narrow)).toBe(expected)
})
