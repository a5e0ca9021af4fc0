import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  addLogChange,
  addReportedChange,
  addUnreadGap,
  currentMultiplier,
  dropUnsealedMultiplierChanges,
  isSameDouble,
  type MultiplierChange,
  type MultiplierHistory,
  markScheduleApplied,
  multiplierAt,
  newMultiplierHistory,
  pendingSchedules,
} from '../../../src/tokens/multiplier.ts'

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
const witnessChange = (block: number, source: 'list' | 'call', to: string | null): MultiplierChange =>
  logChange(block, 999, { key: null, source, to, timestamp: null })
const positionAt = (block: number, logIndex = 0) => ({ block, logIndex, timestamp: block * 10 })
const multiplierFrom = (base: string | null, ...changes: readonly MultiplierChange[]): MultiplierHistory =>
  changes.reduce<MultiplierHistory>(
    (factor, change) => (change.source === 'log' ? addLogChange : addReportedChange)(factor, change),
    newMultiplierHistory(base),
  )
const valueAt = (factor: MultiplierHistory, block: number, logIndex = 0) =>
  multiplierAt(factor, positionAt(block, logIndex)).value

describe('a factor', () => {
  it('is what was held before its change, and after it what the change says', () => {
    const factor = multiplierFrom('1', logChange(5, 3, { from: '1', to: '2' }))
    expect([valueAt(factor, 4, 9), valueAt(factor, 5, 2), valueAt(factor, 5, 3), valueAt(factor, 5, 4)]).toEqual([
      '1',
      '1',
      '1',
      '2',
    ])
    expect(currentMultiplier(factor)).toEqual({ value: '2', source: 'log', scheduled: null })
  })

  it('takes changes in the order of the chain, however they come', () => {
    const changes = [logChange(5, 1, { to: '2' }), logChange(7, 0, { to: '3' }), logChange(7, 4, { to: '4' })]
    fc.assert(
      fc.property(fc.shuffledSubarray(changes, { minLength: 3 }), (mixed) => {
        expect(multiplierFrom('1', ...mixed)).toEqual(multiplierFrom('1', ...changes))
      }),
    )
  })

  it('forgets what the block that was said to hold it does not hold', () => {
    const factor = multiplierFrom('1', logChange(5, 1, { to: '2' }), logChange(6, 1, { to: '3' }))
    expect(currentMultiplier(dropUnsealedMultiplierChanges(factor, 6, new Set())).value).toBe('2')
    expect(dropUnsealedMultiplierChanges(factor, 6, new Set(['6-1']))).toBe(factor)
  })

  it('knows from the first log what was held before it, digit for digit', () => {
    const factor = multiplierFrom('1.0005379395763694', logChange(5, 1, { from: '1.000537939576369481', to: '2' }))
    expect(valueAt(factor, 4)).toBe('1.000537939576369481')
  })

  it('is taken from the contract to the last digit, before its answer too where the list said the same number', () => {
    const factor = multiplierFrom('1.0005379395763694', witnessChange(5, 'call', '1.000537939576369481'))
    expect(valueAt(factor, 4)).toBe('1.000537939576369481')
    expect(currentMultiplier(factor)).toMatchObject({ value: '1.000537939576369481', source: 'call' })
    expect(valueAt(multiplierFrom('1', witnessChange(5, 'call', '4')), 4)).toBe('1')
  })

  it('is not what the list says where a log says the same number in more digits', () => {
    const exact = logChange(5, 1, { from: '1', to: '1.000537939576369481' })
    expect(currentMultiplier(multiplierFrom('1', exact, witnessChange(6, 'list', '1.0005379395763694')))).toMatchObject(
      {
        value: '1.000537939576369481',
        source: 'log',
      },
    )
    expect(currentMultiplier(multiplierFrom('1', exact, witnessChange(6, 'list', '2')))).toMatchObject({
      value: '2',
      source: 'list',
    })
  })

  it.each(['1.0005379395763694', '1.0005379395763696'])('is written as %s by a list that rounds it', (double) => {
    expect(isSameDouble('1.000537939576369481', double)).toBe(true)
    expect(isSameDouble(double, '1.000537939576369481')).toBe(true)
    expect(isSameDouble('1.00053793957636', double)).toBe(false)
    expect(isSameDouble('1.00053793957636948112345', double)).toBe(true)
  })

  it('changes with its log where the list was ahead of it', () => {
    const early = multiplierFrom('1', witnessChange(4, 'list', '2'))
    expect(valueAt(early, 5, 0)).toBe('2')
    const factor = addLogChange(early, logChange(5, 3, { from: '1', to: '2' }))
    expect([valueAt(factor, 5, 0), valueAt(factor, 5, 4)]).toEqual(['1', '2'])
  })

  it('is not known before what could not be read by what a log says after it', () => {
    const gap = addUnreadGap(multiplierFrom('1', logChange(2, 0, { from: '1', to: '1.5' })), 10)
    const factor = addLogChange(gap, logChange(12, 0, { from: '3', to: '4' }))
    expect([2, 9, 10, 11, 13].map((block) => valueAt(factor, block))).toEqual(['1', '1.5', '1.5', '3', '4'])
    const first = addLogChange(addUnreadGap(multiplierFrom('1'), 10), logChange(12, 0, { from: '3', to: '4' }))
    expect([9, 11, 13].map((block) => valueAt(first, block))).toEqual(['1', '3', '4'])
    expect(addLogChange(first, logChange(14, 0, { from: '4', to: '5' })).changes.length).toBe(3)
  })

  it('is unknown again where only the list knew it and no longer does', () => {
    expect(currentMultiplier(multiplierFrom('1', witnessChange(4, 'list', null)))).toEqual({
      value: null,
      source: null,
      scheduled: null,
    })
  })

  it('remembers so many changes and folds older ones into what was held at first', () => {
    const many = Array.from({ length: 200 }, (_, block) => logChange(block, 0, { to: String(block + 2) }))
    const factor = multiplierFrom('1', ...many)
    expect(factor.changes.length).toBeLessThanOrEqual(64)
    expect(currentMultiplier(factor).value).toBe('201')
    expect(valueAt(factor, 199)).toBe('200')
  })
})

describe('a scheduled change', () => {
  const schedule = logChange(5, 1, { phase: 'scheduled', from: '1', to: '2', effectiveAt: 75 })
  const cancellation = (block: number) => logChange(block, 0, { phase: 'cancelled', to: '2', effectiveAt: 75 })
  /** Its time has come, and that was told. */
  const reached = (factor: MultiplierHistory) => pendingSchedules(factor).reduce(markScheduleApplied, factor)

  it('counts once that was told, from the first block whose own time has reached it', () => {
    const factor = multiplierFrom('1', schedule)
    expect(valueAt(factor, 8)).toBe('1')
    expect([6, 7, 8].map((block) => valueAt(reached(factor), block))).toEqual(['1', '1', '2'])
  })

  it('stands until it was told as effective', () => {
    const factor = multiplierFrom(null, schedule)
    expect(currentMultiplier(factor)).toEqual({ value: '1', source: 'log', scheduled: schedule })
    expect(currentMultiplier(reached(factor))).toEqual({ value: '2', source: 'log', scheduled: null })
  })

  it('that is cancelled before its time never counts, and is waited for no more', () => {
    const factor = multiplierFrom('1', schedule, cancellation(6))
    expect(pendingSchedules(factor)).toEqual([])
    expect(valueAt(reached(factor), 9)).toBe('1')
    expect(currentMultiplier(factor).scheduled).toBeNull()
  })

  it('is waited for again where its cancellation was not so', () => {
    const factor = dropUnsealedMultiplierChanges(multiplierFrom('1', schedule, cancellation(6)), 6, new Set())
    expect(pendingSchedules(factor)).toMatchObject([{ to: '2' }])
    expect(valueAt(reached(factor), 9)).toBe('2')
  })

  it('is the ground for what comes after its time', () => {
    expect(valueAt(reached(multiplierFrom('1', schedule, cancellation(9))), 10)).toBe('2')
  })

  it('gives way to another, and to a change at once', () => {
    const other = reached(
      multiplierFrom('1', schedule, logChange(6, 0, { phase: 'scheduled', to: '4', effectiveAt: 95 })),
    )
    expect([valueAt(other, 8), valueAt(other, 10)]).toEqual(['1', '4'])
    const once = reached(multiplierFrom('1', schedule, logChange(6, 0, { to: '3' })))
    expect([valueAt(once, 7), valueAt(once, 10)]).toEqual(['3', '3'])
  })
})
