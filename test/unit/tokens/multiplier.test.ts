import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Factor,
  type FactorChange,
  factorAt,
  factorKept,
  factorNow,
  factorOf,
  sameDouble,
  waiting,
  withGap,
  withLog,
  withMatured,
  withWitness,
} from '../../../src/tokens/multiplier.ts'

const log = (block: number, logIndex: number, change: Partial<FactorChange>): FactorChange => ({
  block,
  logIndex,
  key: `${block}-${logIndex}`,
  source: 'log',
  phase: 'effective',
  from: null,
  to: '1',
  effectiveAt: null,
  timestamp: block * 10,
  matured: false,
  ...change,
})
const witness = (block: number, source: 'list' | 'call', to: string | null): FactorChange =>
  log(block, 999, { key: null, source, to, timestamp: null })
const at = (block: number, logIndex = 0) => ({ block, logIndex, timestamp: block * 10 })
const from = (base: string | null, ...changes: readonly FactorChange[]): Factor =>
  changes.reduce<Factor>(
    (factor, change) => (change.source === 'log' ? withLog : withWitness)(factor, change),
    factorOf(base),
  )
const valueAt = (factor: Factor, block: number, logIndex = 0) => factorAt(factor, at(block, logIndex)).value

describe('a factor', () => {
  it('is what was held before its change, and after it what the change says', () => {
    const factor = from('1', log(5, 3, { from: '1', to: '2' }))
    expect([valueAt(factor, 4, 9), valueAt(factor, 5, 2), valueAt(factor, 5, 3), valueAt(factor, 5, 4)]).toEqual([
      '1',
      '1',
      '1',
      '2',
    ])
    expect(factorNow(factor)).toEqual({ value: '2', source: 'log', scheduled: null })
  })

  it('takes changes in the order of the chain, however they come', () => {
    const changes = [log(5, 1, { to: '2' }), log(7, 0, { to: '3' }), log(7, 4, { to: '4' })]
    fc.assert(
      fc.property(fc.shuffledSubarray(changes, { minLength: 3 }), (mixed) => {
        expect(from('1', ...mixed)).toEqual(from('1', ...changes))
      }),
    )
  })

  it('forgets what the block that was said to hold it does not hold', () => {
    const factor = from('1', log(5, 1, { to: '2' }), log(6, 1, { to: '3' }))
    expect(factorNow(factorKept(factor, 6, new Set())).value).toBe('2')
    expect(factorKept(factor, 6, new Set(['6-1']))).toBe(factor)
  })

  it('knows from the first log what was held before it, digit for digit', () => {
    const factor = from('1.0005379395763694', log(5, 1, { from: '1.000537939576369481', to: '2' }))
    expect(valueAt(factor, 4)).toBe('1.000537939576369481')
  })

  it('is taken from the contract to the last digit, before its answer too where the list said the same number', () => {
    const factor = from('1.0005379395763694', witness(5, 'call', '1.000537939576369481'))
    expect(valueAt(factor, 4)).toBe('1.000537939576369481')
    expect(factorNow(factor)).toMatchObject({ value: '1.000537939576369481', source: 'call' })
    expect(valueAt(from('1', witness(5, 'call', '4')), 4)).toBe('1')
  })

  it('is not what the list says where a log says the same number in more digits', () => {
    const exact = log(5, 1, { from: '1', to: '1.000537939576369481' })
    expect(factorNow(from('1', exact, witness(6, 'list', '1.0005379395763694')))).toMatchObject({
      value: '1.000537939576369481',
      source: 'log',
    })
    expect(factorNow(from('1', exact, witness(6, 'list', '2')))).toMatchObject({ value: '2', source: 'list' })
  })

  it.each(['1.0005379395763694', '1.0005379395763696'])('is written as %s by a list that rounds it', (double) => {
    expect(sameDouble('1.000537939576369481', double)).toBe(true)
    expect(sameDouble(double, '1.000537939576369481')).toBe(true)
    expect(sameDouble('1.00053793957636', double)).toBe(false)
    expect(sameDouble('1.00053793957636948112345', double)).toBe(true)
  })

  it('changes with its log where the list was ahead of it', () => {
    const early = from('1', witness(4, 'list', '2'))
    expect(valueAt(early, 5, 0)).toBe('2')
    const factor = withLog(early, log(5, 3, { from: '1', to: '2' }))
    expect([valueAt(factor, 5, 0), valueAt(factor, 5, 4)]).toEqual(['1', '2'])
  })

  it('is not known before what could not be read by what a log says after it', () => {
    const gap = withGap(from('1', log(2, 0, { from: '1', to: '1.5' })), 10)
    const factor = withLog(gap, log(12, 0, { from: '3', to: '4' }))
    expect([2, 9, 10, 11, 13].map((block) => valueAt(factor, block))).toEqual(['1', '1.5', '1.5', '3', '4'])
    const first = withLog(withGap(from('1'), 10), log(12, 0, { from: '3', to: '4' }))
    expect([9, 11, 13].map((block) => valueAt(first, block))).toEqual(['1', '3', '4'])
    expect(withLog(first, log(14, 0, { from: '4', to: '5' })).changes.length).toBe(3)
  })

  it('is unknown again where only the list knew it and no longer does', () => {
    expect(factorNow(from('1', witness(4, 'list', null)))).toEqual({ value: null, source: null, scheduled: null })
  })

  it('remembers so many changes and folds older ones into what was held at first', () => {
    const many = Array.from({ length: 200 }, (_, block) => log(block, 0, { to: String(block + 2) }))
    const factor = from('1', ...many)
    expect(factor.changes.length).toBeLessThanOrEqual(64)
    expect(factorNow(factor).value).toBe('201')
    expect(valueAt(factor, 199)).toBe('200')
  })
})

describe('a scheduled change', () => {
  const schedule = log(5, 1, { phase: 'scheduled', from: '1', to: '2', effectiveAt: 75 })
  const cancellation = (block: number) => log(block, 0, { phase: 'cancelled', to: '2', effectiveAt: 75 })
  /** Its time has come, and that was told. */
  const reached = (factor: Factor) => waiting(factor).reduce(withMatured, factor)

  it('counts once that was told, from the first block whose own time has reached it', () => {
    const factor = from('1', schedule)
    expect(valueAt(factor, 8)).toBe('1')
    expect([6, 7, 8].map((block) => valueAt(reached(factor), block))).toEqual(['1', '1', '2'])
  })

  it('stands until it was told as effective', () => {
    const factor = from(null, schedule)
    expect(factorNow(factor)).toEqual({ value: '1', source: 'log', scheduled: schedule })
    expect(factorNow(reached(factor))).toEqual({ value: '2', source: 'log', scheduled: null })
  })

  it('that is cancelled before its time never counts, and is waited for no more', () => {
    const factor = from('1', schedule, cancellation(6))
    expect(waiting(factor)).toEqual([])
    expect(valueAt(reached(factor), 9)).toBe('1')
    expect(factorNow(factor).scheduled).toBeNull()
  })

  it('is waited for again where its cancellation was not so', () => {
    const factor = factorKept(from('1', schedule, cancellation(6)), 6, new Set())
    expect(waiting(factor)).toMatchObject([{ to: '2' }])
    expect(valueAt(reached(factor), 9)).toBe('2')
  })

  it('is the ground for what comes after its time', () => {
    expect(valueAt(reached(from('1', schedule, cancellation(9))), 10)).toBe('2')
  })

  it('gives way to another, and to a change at once', () => {
    const other = reached(from('1', schedule, log(6, 0, { phase: 'scheduled', to: '4', effectiveAt: 95 })))
    expect([valueAt(other, 8), valueAt(other, 10)]).toEqual(['1', '4'])
    const once = reached(from('1', schedule, log(6, 0, { to: '3' })))
    expect([valueAt(once, 7), valueAt(once, 10)]).toEqual(['3', '3'])
  })
})
