import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { apple, blockHash, bob, tesla, timestampOf } from '../node-json.ts'
import {
  announcement,
  atAddress,
  buildLogs,
  decodeLogs,
  endAnnouncement,
  filler,
  foldLogs,
  inTx,
  type LogContent,
  memo,
  multiplierUpdated,
  paused,
  seized,
  transfer,
  uiMultiplierUpdated,
} from './fold-fixture.ts'

describe('a memo', () => {
  it('is folded into the transfer right before it', () => {
    expect(foldLogs(transfer(), memo(7))).toEqual({ decodedLogs: ['0 Transfer, memo 7'], folded: [1] })
  })

  it('is folded into the right one of two transfers', () => {
    expect(foldLogs(transfer(), memo(7), transfer(), memo(8))).toEqual({
      decodedLogs: ['0 Transfer, memo 7', '2 Transfer, memo 8'],
      folded: [1, 3],
    })
    expect(foldLogs(transfer(), transfer(), memo(8)).decodedLogs).toEqual(['0 Transfer', '1 Transfer, memo 8'])
  })

  it.each<[string, readonly LogContent[]]>([
    ['is alone', [memo(7)]],
    ['comes first', [memo(7), transfer()]],
    ['comes later', [transfer(), filler, memo(7)]],
    ['follows a transfer of another token', [atAddress(tesla, transfer()), memo(7)]],
    ['follows a transfer of another transaction', [inTx(1, transfer()), memo(7)]],
    ['follows another log', [paused, memo(7)]],
    ['is the second', [transfer(), memo(6), memo(7)]],
  ])('that %s is its own log', (_, contents) => {
    expect(foldLogs(...contents).decodedLogs).toContain(
      `${contents.findLastIndex((content) => content.data === '0x' && content !== filler)} Memo`,
    )
  })
})

describe('a seizure', () => {
  it.each<[string, readonly LogContent[], readonly string[], readonly number[]]>([
    ['after the memo', [transfer(), memo(7), seized()], ['0 Transfer, memo 7, seized'], [1, 2]],
    ['without a memo', [transfer(), seized()], ['0 Transfer, seized'], [1]],
    ['before the transfer', [seized(), transfer(), memo(7)], ['1 Transfer, memo 7, seized'], [0, 2]],
    ['after another log', [transfer(), filler, paused, seized()], ['0 Transfer, seized', '2 Paused'], [3]],
    [
      'after another transfer',
      [transfer(5), memo(7), transfer(6), memo(8), seized(5)],
      ['0 Transfer, memo 7, seized', '2 Transfer, memo 8'],
      [1, 3, 4],
    ],
    ['of the nearest of two', [transfer(), transfer(), seized()], ['0 Transfer', '1 Transfer, seized'], [2]],
    [
      'of each of two equal ones',
      [transfer(), seized(), transfer(), seized()],
      ['0 Transfer, seized', '2 Transfer, seized'],
      [1, 3],
    ],
    ['of two at once', [transfer(), transfer(), seized(), seized()], ['0 Transfer, seized', '1 Transfer, seized'], [2, 3]],
  ])('is folded into its transfer %s', (_, contents, decodedLogs, folded) => {
    expect(foldLogs(...contents)).toEqual({ decodedLogs, folded })
  })

  it.each<[string, readonly LogContent[]]>([
    ['of no transfer', [seized()]],
    ['of another amount', [transfer(5), seized(6)]],
    ['of another holder', [transfer(5, bob), seized(5)]],
    ['of another token', [atAddress(tesla, transfer()), seized()]],
    ['of another transaction', [inTx(1, transfer()), seized()]],
    ['that is repeated', [transfer(), seized(), seized()]],
  ])('%s is its own log', (_, contents) => {
    expect(foldLogs(...contents).decodedLogs).toContain(`${contents.length - 1} Seized`)
  })
})

describe('an immediate multiplier', () => {
  it.each<[string, readonly LogContent[], readonly string[], readonly number[]]>([
    ['the next log', [multiplierUpdated(2), uiMultiplierUpdated(2)], ['1 UIMultiplierUpdated'], [0]],
    ['a later log', [multiplierUpdated(2), paused, filler, uiMultiplierUpdated(2)], ['1 Paused', '3 UIMultiplierUpdated'], [0]],
    [
      'a log after one of another value',
      [multiplierUpdated(2), uiMultiplierUpdated(3), uiMultiplierUpdated(2)],
      ['1 UIMultiplierUpdated', '2 UIMultiplierUpdated'],
      [0],
    ],
    [
      'a log of its second',
      [multiplierUpdated(2), uiMultiplierUpdated(2, timestampOf(5)), uiMultiplierUpdated(2, timestampOf(5) + 1)],
      ['1 UIMultiplierUpdated', '2 UIMultiplierUpdated'],
      [0],
    ],
    [
      'its own of two logs',
      [multiplierUpdated(2), uiMultiplierUpdated(2), multiplierUpdated(3), uiMultiplierUpdated(3)],
      ['1 UIMultiplierUpdated', '3 UIMultiplierUpdated'],
      [0, 2],
    ],
  ])('is folded into %s with the same value', (_, contents, decodedLogs, folded) => {
    expect(foldLogs(...contents)).toEqual({ decodedLogs, folded })
  })

  it.each<[string, readonly LogContent[]]>([
    ['nothing', [multiplierUpdated(2)]],
    ['an earlier log', [uiMultiplierUpdated(2), multiplierUpdated(2)]],
    ['a log of another value', [multiplierUpdated(2), uiMultiplierUpdated(3)]],
    ['a schedule of its value', [multiplierUpdated(2), uiMultiplierUpdated(2, timestampOf(5) + 1)]],
    ['a log of another token', [multiplierUpdated(2), atAddress(tesla, uiMultiplierUpdated(2))]],
    ['a log of another transaction', [multiplierUpdated(2), inTx(1, uiMultiplierUpdated(2))]],
    ['a log after the next multiplier', [multiplierUpdated(2), multiplierUpdated(3), uiMultiplierUpdated(2)]],
    ['a log that repeats another already', [multiplierUpdated(2), multiplierUpdated(2), uiMultiplierUpdated(2)]],
  ])('that %s repeats is its own log', (_, contents) => {
    expect(foldLogs(...contents).decodedLogs).toContain(
      `${contents.findIndex((content) => content.topics[0] === multiplierUpdated(2).topics[0])} MultiplierUpdated`,
    )
  })
})

describe('the logs of a block', () => {
  const contentsArbitrary = fc.array(
    fc
      .tuple(
        fc.constantFrom(
          transfer(),
          transfer(2),
          memo(7),
          seized(),
          announcement('a'),
          endAnnouncement('a'),
          multiplierUpdated(2),
          uiMultiplierUpdated(2),
          paused,
          filler,
        ),
        fc.constantFrom(apple, tesla),
        fc.constantFrom(0, 1),
      )
      .map(([content, address, tx]) => ({ ...content, address, tx })),
    { maxLength: 24 },
  )

  it('are each decoded or folded once, in log order, in any order they come', () => {
    fc.assert(
      fc.property(contentsArbitrary, fc.infiniteStream(fc.nat()), (contents, random) => {
        const logs = buildLogs(contents).map((log) => ({ ...log, blockHash: blockHash(5) }))
        const { decodedLogs, parts } = decodeLogs(logs)
        const all = [...decodedLogs.map(({ log }) => log), ...parts]
        expect(new Set(all)).toEqual(new Set(logs))
        expect(all).toHaveLength(logs.length)
        for (const row of [decodedLogs.map(({ log }) => log), parts])
          expect(row).toEqual(row.toSorted((a, b) => a.logIndex - b.logIndex))
        const shuffled = logs.map((log) => ({ log, at: random.next().value })).sort((a, b) => a.at - b.at)
        expect(decodeLogs(shuffled.map(({ log }) => log))).toEqual({ decodedLogs, parts })
        const keys = new Set(decodedLogs.map(({ log }) => log.key))
        for (const { enclosedKeys } of decodedLogs) for (const key of enclosedKeys) expect(keys).toContain(key)
      }),
      { numRuns: 200 },
    )
  })

  it('may be none', () => {
    expect(decodeLogs([])).toEqual({ decodedLogs: [], parts: [] })
  })
})
