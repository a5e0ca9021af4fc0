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
  uiMultiplierUpdateCancelled,
  uiMultiplierUpdated,
} from './fold-fixture.ts'

const [twice, thrice] = [multiplierUpdated(2), multiplierUpdated(3)]
const [uiTwice, uiThrice] = [uiMultiplierUpdated(2), uiMultiplierUpdated(3)]
const aSchedule = uiMultiplierUpdated(2, timestampOf(5) + 1)
const other = (content: LogContent) => atAddress(tesla, content)
const [start, end, startB, endB] = [announcement('a'), endAnnouncement('a'), announcement('b'), endAnnouncement('b')]
const long = 'x'.repeat(3_000)

/** What is not among the decoded logs is folded into one of them: see the last test. */
type FoldRow = [what: string, contents: readonly LogContent[], decodedLogs: readonly string[]]

describe('a memo', () => {
  it.each<FoldRow>([
    ['the transfer right before it', [transfer(), memo(7)], ['0 Transfer, memo 7']],
    ['each of two transfers', [transfer(), memo(7), transfer(), memo(8)], ['0 Transfer, memo 7', '2 Transfer, memo 8']],
    ['the last of two transfers', [transfer(), transfer(), memo(8)], ['0 Transfer', '1 Transfer, memo 8']],
    ['nothing alone', [memo(7)], ['0 Memo']],
    ['nothing before the transfer', [memo(7), transfer()], ['0 Memo', '1 Transfer']],
    ['nothing after another log', [transfer(), filler, memo(7)], ['0 Transfer', '2 Memo']],
    ['no transfer of another token', [other(transfer()), memo(7)], ['0 Transfer', '1 Memo']],
    ['no transfer of another transaction', [inTx(1, transfer()), memo(7)], ['0 Transfer', '1 Memo']],
    ['no other log', [paused, memo(7)], ['0 Paused', '1 Memo']],
    ['nothing as the second', [transfer(), memo(6), memo(7)], ['0 Transfer, memo 6', '2 Memo']],
  ])('is folded into %s', (_, contents, decodedLogs) => {
    expect(foldLogs(...contents)).toEqual(decodedLogs)
  })
})

describe('a seizure', () => {
  it.each<FoldRow>([
    ['its transfer after the memo', [transfer(), memo(7), seized()], ['0 Transfer, memo 7, seized']],
    ['its transfer without a memo', [transfer(), seized()], ['0 Transfer, seized']],
    ['its transfer before that', [seized(), transfer(), memo(7)], ['1 Transfer, memo 7, seized']],
    ['its transfer after another log', [transfer(), filler, paused, seized()], ['0 Transfer, seized', '2 Paused']],
    [
      'its transfer after another transfer',
      [transfer(5), memo(7), transfer(6), memo(8), seized(5)],
      ['0 Transfer, memo 7, seized', '2 Transfer, memo 8'],
    ],
    ['the nearest of two transfers', [transfer(), transfer(), seized()], ['0 Transfer', '1 Transfer, seized']],
    ['each of two equal transfers', [transfer(), seized(), transfer(), seized()], ['0 Transfer, seized', '2 Transfer, seized']],
    [
      'both transfers, if two follow at once',
      [transfer(), transfer(), seized(), seized()],
      ['0 Transfer, seized', '1 Transfer, seized'],
    ],
    ['nothing without a transfer', [seized()], ['0 Seized']],
    ['no transfer of another amount', [transfer(5), seized(6)], ['0 Transfer', '1 Seized']],
    ['no transfer of another holder', [transfer(5, bob), seized(5)], ['0 Transfer', '1 Seized']],
    ['no transfer of another token', [other(transfer()), seized()], ['0 Transfer', '1 Seized']],
    ['no transfer of another transaction', [inTx(1, transfer()), seized()], ['0 Transfer', '1 Seized']],
    ['nothing if it is repeated', [transfer(), seized(), seized()], ['0 Transfer, seized', '2 Seized']],
  ])('is folded into %s', (_, contents, decodedLogs) => {
    expect(foldLogs(...contents)).toEqual(decodedLogs)
  })
})

describe('an immediate multiplier', () => {
  it.each<FoldRow>([
    ['the next log', [twice, uiTwice], ['1 UIMultiplierUpdated']],
    ['a later log', [twice, paused, filler, uiTwice], ['1 Paused', '3 UIMultiplierUpdated']],
    ['a log after another value', [twice, uiThrice, uiTwice], ['1 UIMultiplierUpdated', '2 UIMultiplierUpdated']],
    [
      'a log of its second',
      [twice, uiMultiplierUpdated(2, timestampOf(5)), aSchedule],
      ['1 UIMultiplierUpdated', '2 UIMultiplierUpdated'],
    ],
    ['its own of two', [twice, uiTwice, thrice, uiThrice], ['1 UIMultiplierUpdated', '3 UIMultiplierUpdated']],
    ['nothing alone', [twice], ['0 MultiplierUpdated']],
    ['nothing before it', [uiTwice, twice], ['0 UIMultiplierUpdated', '1 MultiplierUpdated']],
    ['nothing of another value', [twice, uiThrice], ['0 MultiplierUpdated', '1 UIMultiplierUpdated']],
    ['no schedule', [twice, aSchedule], ['0 MultiplierUpdated', '1 UIMultiplierUpdated']],
    ['nothing of another token', [twice, other(uiTwice)], ['0 MultiplierUpdated', '1 UIMultiplierUpdated']],
    ['nothing of another transaction', [twice, inTx(1, uiTwice)], ['0 MultiplierUpdated', '1 UIMultiplierUpdated']],
    [
      'nothing after the next multiplier',
      [twice, thrice, uiTwice],
      ['0 MultiplierUpdated', '1 MultiplierUpdated', '2 UIMultiplierUpdated'],
    ],
    ['nothing that repeats another already', [twice, twice, uiTwice], ['0 MultiplierUpdated', '2 UIMultiplierUpdated']],
  ])('is folded into %s with the same value', (_, contents, decodedLogs) => {
    expect(foldLogs(...contents)).toEqual(decodedLogs)
  })
})

describe('two tokens in one transaction', () => {
  it('are folded separately, even if their logs alternate', () => {
    const decodedLogs = ['0 Announcement, closed around 4', '1 Announcement, closed around 3', '3 Paused', '4 UIMultiplierUpdated']
    expect(foldLogs(start, other(start), twice, other(paused), uiTwice, other(end), end)).toEqual(decodedLogs)
  })
})

describe('an announcement', () => {
  it.each<FoldRow>([
    [
      'encloses the decoded logs before its end, without the folded ones',
      [start, uiMultiplierUpdateCancelled, twice, uiTwice, paused, transfer(), memo(7), end, transfer()],
      [
        '0 Announcement, closed around 1,3,4,5',
        '1 UIMultiplierUpdateCancelled',
        '3 UIMultiplierUpdated',
        '4 Paused',
        '5 Transfer, memo 7',
        '8 Transfer',
      ],
    ],
    ['may enclose nothing', [start, end], ['0 Announcement, closed around ']],
    [
      'may enclose another',
      [start, startB, paused, endB, end],
      ['0 Announcement, closed around 1,2', '1 Announcement, closed around 2', '2 Paused'],
    ],
    [
      'may overlap another',
      [start, startB, paused, end, transfer(), endB],
      ['0 Announcement, closed around 1,2', '1 Announcement, closed around 2,4', '2 Paused', '4 Transfer'],
    ],
    [
      'ends with its own end where its id occurs again after it',
      [start, end, start, paused, end],
      ['0 Announcement, closed around ', '2 Announcement, closed around 3', '3 Paused'],
    ],
    [
      'stays open where its id occurs again before its end',
      [start, start, paused, end],
      ['0 Announcement', '1 Announcement, closed around 2', '2 Paused'],
    ],
    ['with a truncated id is still closed', [announcement(long), endAnnouncement(long)], ['0 Announcement, closed around ']],
    ['stays open without an end', [start, paused], ['0 Announcement', '1 Paused']],
    ['stays open with the end of another', [start, endB], ['0 Announcement', '1 EndAnnouncement']],
    ['stays open with an end before it', [end, start], ['0 EndAnnouncement', '1 Announcement']],
    ['stays open with the end of another token', [start, other(end)], ['0 Announcement', '1 EndAnnouncement']],
    ['stays open with the end of another transaction', [start, inTx(1, end)], ['0 Announcement', '1 EndAnnouncement']],
  ])('%s', (_, contents, decodedLogs) => {
    expect(foldLogs(...contents)).toEqual(decodedLogs)
  })

  it('stays open when too many others are open inside it', () => {
    const ids = Array.from({ length: 17 }, (_, at) => `id-${at}`)
    const decodedLogs = foldLogs(...ids.map(announcement), ...ids.toReversed().map(endAnnouncement))
    expect(decodedLogs[0]).toBe('0 Announcement')
    expect(decodedLogs[1]).toMatch(/^1 Announcement, closed around 2,3,/)
    expect(decodedLogs.at(-1)).toBe('33 EndAnnouncement')
  })
})

describe('the logs of a block', () => {
  const contentsArbitrary = fc.array(
    fc
      .tuple(
        fc.constantFrom(
          ...[transfer(), transfer(2), memo(7), seized(), announcement('a'), endAnnouncement('a')],
          ...[twice, uiTwice, paused, filler],
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
})
