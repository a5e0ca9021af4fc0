import { describe, expect, it } from 'vitest'
import {
  addHole,
  addLogChange,
  addReportedChange,
  dropUnsealedMultiplierChanges,
  isForgotten,
  isSameDouble,
  type MultiplierChange,
  type MultiplierHistory,
  markScheduleApplied,
  multiplierAt,
  newMultiplierHistory,
  pendingSchedules,
} from '../../../../src/relay/tokens/multiplier-history.ts'

const logChange = (block: number, logIndex: number, change: Partial<MultiplierChange>): MultiplierChange => ({
  block,
  logIndex,
  key: `${block}-${logIndex}`,
  source: 'log',
  phase: 'effective',
  from: null,
  to: '1',
  effectiveAt: null,
  timestamp: block * 10,
  isApplied: false,
  ...change,
})
const reportedChange = (block: number, source: 'list' | 'call', to: string | null): MultiplierChange =>
  logChange(block, 999, { key: null, source, to, timestamp: null })
const positionAt = (block: number, logIndex = 0) => ({ block, logIndex, timestamp: block * 10 })
const multiplierFrom = (base: string | null, ...changes: readonly MultiplierChange[]): MultiplierHistory =>
  changes.reduce<MultiplierHistory>(
    (history, change) => (change.source === 'log' ? addLogChange : addReportedChange)(history, change),
    newMultiplierHistory(base),
  )
const unread = (from: number, to: number) => ({ from, to })
const valueAt = (history: MultiplierHistory, block: number, logIndex = 0) =>
  multiplierAt(history, positionAt(block, logIndex)).value

describe('a multiplier', () => {
  it('has the old value before a change and the new one after it', () => {
    const history = multiplierFrom('1', logChange(5, 3, { from: '1', to: '2' }))
    expect([valueAt(history, 4, 9), valueAt(history, 5, 2), valueAt(history, 5, 3), valueAt(history, 5, 4)]).toEqual([
      '1',
      '1',
      '1',
      '2',
    ])
    expect(multiplierAt(history, null)).toEqual({ value: '2', source: 'log', scheduled: null })
  })

  it('takes the exact value before the first log from that log', () => {
    const history = multiplierFrom('1.0005379395763694', logChange(5, 1, { from: '1.000537939576369481', to: '2' }))
    expect(valueAt(history, 4)).toBe('1.000537939576369481')
  })

  it('takes all digits from the contract, also for the time before the call where the list has the same number', () => {
    const history = multiplierFrom('1.0005379395763694', reportedChange(5, 'call', '1.000537939576369481'))
    expect(valueAt(history, 4)).toBe('1.000537939576369481')
    expect(multiplierAt(history, null)).toMatchObject({ value: '1.000537939576369481', source: 'call' })
    expect(valueAt(multiplierFrom('1', reportedChange(5, 'call', '4')), 4)).toBe('1')
  })

  it('keeps the exact value of a log where the list rounds it', () => {
    const exact = logChange(5, 1, { from: '1', to: '1.000537939576369481' })
    expect(multiplierAt(multiplierFrom('1', exact, reportedChange(6, 'list', '1.0005379395763694')), null)).toMatchObject({
      value: '1.000537939576369481',
      source: 'log',
    })
    expect(multiplierAt(multiplierFrom('1', exact, reportedChange(6, 'list', '2')), null)).toMatchObject({
      value: '2',
      source: 'list',
    })
  })

  it.each(['1.0005379395763694', '1.0005379395763696'])('equals %s, to which the list may round it', (double) => {
    expect(isSameDouble('1.000537939576369481', double)).toBe(true)
    expect(isSameDouble(double, '1.000537939576369481')).toBe(true)
    expect(isSameDouble('1.00053793957636', double)).toBe(false)
    expect(isSameDouble('1.00053793957636948112345', double)).toBe(true)
  })

  it('keeps its value before unread blocks, in spite of a log after them', () => {
    const gap = addHole(multiplierFrom('1', logChange(2, 0, { from: '1', to: '1.5' })), unread(8, 10))
    const history = addLogChange(gap, logChange(12, 0, { from: '3', to: '4' }))
    expect([2, 9, 10, 11, 13].map((block) => valueAt(history, block))).toEqual(['1', '1.5', '1.5', '3', '4'])
    const first = addLogChange(addHole(multiplierFrom('1'), unread(8, 10)), logChange(12, 0, { from: '3', to: '4' }))
    expect([9, 11, 13].map((block) => valueAt(first, block))).toEqual(['1', '3', '4'])
    expect(addLogChange(first, logChange(14, 0, { from: '4', to: '5' })).changes.length).toBe(3)
    expect(addHole(multiplierFrom('1', logChange(12, 0, { from: '3', to: '4' })), unread(8, 10))).toEqual(first)
    const twoHoles = addHole(addHole(multiplierFrom('1', logChange(12, 0, { from: '3', to: '4' })), unread(5, 5)), unread(10, 10))
    expect([5, 6, 10, 11].map((block) => valueAt(twoHoles, block))).toEqual(['1', '1', '1', '3'])
    const latePart = addLogChange(twoHoles, logChange(11, 0, { from: '1', to: '3' }))
    expect([10, 11, 12].map((block) => valueAt(latePart, block))).toEqual(['1', '1', '3'])
  })

  it('is not derived from a log where an earlier one after unread blocks arrives later, with or without its previous value', () => {
    const gap = addLogChange(addHole(multiplierFrom('1'), unread(8, 10)), logChange(12, 0, { from: '3', to: '4' }))
    expect([11, 13].map((block) => valueAt(gap, block))).toEqual(['3', '4'])
    for (const from of [null, '1']) {
      const history = addLogChange(gap, logChange(11, 5, { from, to: '3' }))
      expect([11, 12, 13].map((block) => valueAt(history, block))).toEqual(['1', '3', '4'])
    }
    const cancelled = addLogChange(gap, logChange(11, 5, { phase: 'cancelled', from: null, to: '2', effectiveAt: 130 }))
    expect(valueAt(cancelled, 12)).toBe('3')
    expect(valueAt(addLogChange(cancelled, logChange(11, 7, { from: '1', to: '3' })), 11)).toBe('1')
  })

  it('is unknown again if only the list had it and drops it', () => {
    expect(multiplierAt(multiplierFrom('1', reportedChange(4, 'list', null)), null)).toEqual({
      value: null,
      source: null,
      scheduled: null,
    })
  })

  it('keeps a bounded number of changes, and folds older ones into the initial value', () => {
    const many = Array.from({ length: 200 }, (_, block) => logChange(block, 0, { to: String(block + 2) }))
    const history = multiplierFrom('1', ...many)
    expect(history.changes.length).toBeLessThanOrEqual(64)
    expect(multiplierAt(history, null).value).toBe('201')
    expect(valueAt(history, 199)).toBe('200')
    const isForgottenAt = (known: MultiplierHistory) => [134, 136, 199].map((block) => isForgotten(known, positionAt(block)))
    expect(isForgottenAt(history)).toEqual([true, false, false])
    expect(isForgottenAt(addHole(history, unread(150, 151)))).toEqual([true, false, false])
    // An older change is of other blocks, which replace those of the forgotten ones.
    expect(isForgottenAt(addLogChange(history, logChange(130, 1, { to: '7' })))).toEqual([false, false, false])
  })
})

describe('a schedule', () => {
  const schedule = logChange(5, 1, { phase: 'scheduled', from: '1', to: '2', effectiveAt: 75 })
  const cancellation = (block: number) => logChange(block, 0, { phase: 'cancelled', to: '2', effectiveAt: 75 })
  /** Chain time has reached the schedules, and they were published as effective. */
  const markApplied = (history: MultiplierHistory) => pendingSchedules(history).reduce(markScheduleApplied, history)

  it('never counts if it is cancelled before its time, and is no longer pending', () => {
    const history = multiplierFrom('1', schedule, cancellation(6))
    expect(pendingSchedules(history)).toEqual([])
    expect(valueAt(markApplied(history), 9)).toBe('1')
    expect(multiplierAt(history, null).scheduled).toBeNull()
  })

  it('is pending again where its cancellation was not sealed', () => {
    const history = dropUnsealedMultiplierChanges(multiplierFrom('1', schedule, cancellation(6)), 6, new Set())
    expect(pendingSchedules(history)).toMatchObject([{ to: '2' }])
    expect(valueAt(markApplied(history), 9)).toBe('2')
  })

  it('takes effect once, though its log and an answer of the contract both have it', () => {
    const answer = { ...schedule, block: 6, key: null, source: 'call' as const }
    const history = markApplied(multiplierFrom('1', schedule, answer))
    const { changes } = history
    expect(pendingSchedules({ ...history, changes: changes.filter(({ source }) => source === 'log') })).toEqual([])
  })

  it('counts in spite of a cancellation after its time', () => {
    expect(valueAt(markApplied(multiplierFrom('1', schedule, cancellation(9))), 10)).toBe('2')
  })
})
