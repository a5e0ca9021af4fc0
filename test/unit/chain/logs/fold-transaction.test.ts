import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeLogs } from '../../../../src/chain/logs/fold-transaction.ts'
import { apple, bob, tesla } from '../node-json.ts'
import {
  announcement,
  atAddress,
  buildLogs,
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
  it('belongs to the movement that it directly follows', () => {
    expect(foldLogs(transfer(), memo(7))).toEqual({ decodedLogs: ['0 Transfer, memo 7'], parts: [1] })
  })

  it('belongs to its own movement where one transaction makes two', () => {
    expect(foldLogs(transfer(), memo(7), transfer(), memo(8))).toEqual({
      decodedLogs: ['0 Transfer, memo 7', '2 Transfer, memo 8'],
      parts: [1, 3],
    })
    expect(foldLogs(transfer(), transfer(), memo(8)).decodedLogs).toEqual(['0 Transfer', '1 Transfer, memo 8'])
  })

  it.each<[string, readonly LogContent[]]>([
    ['stands alone', [memo(7)]],
    ['comes first', [memo(7), transfer()]],
    ['comes later', [transfer(), filler, memo(7)]],
    ['follows the movement of another token', [atAddress(tesla, transfer()), memo(7)]],
    ['follows the movement of another transaction', [inTx(1, transfer()), memo(7)]],
    ['follows no movement', [paused, memo(7)]],
    ['is the second', [transfer(), memo(6), memo(7)]],
  ])('that %s is told by itself', (_, some) => {
    expect(foldLogs(...some).decodedLogs).toContain(
      `${some.findLastIndex((one) => one.data === '0x' && one !== filler)} Memo`,
    )
  })
})

describe('a seizure', () => {
  it.each<[string, readonly LogContent[], readonly string[], readonly number[]]>([
    ['after the memo', [transfer(), memo(7), seized()], ['0 Transfer, memo 7, seized'], [1, 2]],
    ['without a memo', [transfer(), seized()], ['0 Transfer, seized'], [1]],
    ['before the movement', [seized(), transfer(), memo(7)], ['1 Transfer, memo 7, seized'], [0, 2]],
    ['after something else', [transfer(), filler, paused, seized()], ['0 Transfer, seized', '2 Paused'], [3]],
    [
      'after another movement',
      [transfer(5), memo(7), transfer(6), memo(8), seized(5)],
      ['0 Transfer, memo 7, seized', '2 Transfer, memo 8'],
      [1, 3, 4],
    ],
    ['of the nearest of two', [transfer(), transfer(), seized()], ['0 Transfer', '1 Transfer, seized'], [2]],
    [
      'of each of two that are equal',
      [transfer(), seized(), transfer(), seized()],
      ['0 Transfer, seized', '2 Transfer, seized'],
      [1, 3],
    ],
    [
      'of two at once',
      [transfer(), transfer(), seized(), seized()],
      ['0 Transfer, seized', '1 Transfer, seized'],
      [2, 3],
    ],
  ])('is told by its movement, said %s', (_, some, decodedLogs, parts) => {
    expect(foldLogs(...some)).toEqual({ decodedLogs, parts })
  })

  it.each<[string, readonly LogContent[]]>([
    ['of no movement', [seized()]],
    ['of another amount', [transfer(5), seized(6)]],
    ['of another holder', [transfer(5, bob), seized(5)]],
    ['of another token', [atAddress(tesla, transfer()), seized()]],
    ['of another transaction', [inTx(1, transfer()), seized()]],
    ['said twice', [transfer(), seized(), seized()]],
  ])('%s is told by itself', (_, some) => {
    expect(foldLogs(...some).decodedLogs).toContain(`${some.length - 1} Seized`)
  })
})

describe('a multiplier that is set at once', () => {
  it.each<[string, readonly LogContent[], readonly string[], readonly number[]]>([
    ['the next log', [multiplierUpdated(2), uiMultiplierUpdated(2)], ['1 UIMultiplierUpdated'], [0]],
    [
      'one after others',
      [multiplierUpdated(2), paused, filler, uiMultiplierUpdated(2)],
      ['1 Paused', '3 UIMultiplierUpdated'],
      [0],
    ],
    [
      'one after that of another value',
      [multiplierUpdated(2), uiMultiplierUpdated(3), uiMultiplierUpdated(2)],
      ['1 UIMultiplierUpdated', '2 UIMultiplierUpdated'],
      [0],
    ],
    [
      'its own of two',
      [multiplierUpdated(2), uiMultiplierUpdated(2), multiplierUpdated(3), uiMultiplierUpdated(3)],
      ['1 UIMultiplierUpdated', '3 UIMultiplierUpdated'],
      [0, 2],
    ],
  ])('is told by %s that says so', (_, some, decodedLogs, parts) => {
    expect(foldLogs(...some)).toEqual({ decodedLogs, parts })
  })

  it.each<[string, readonly LogContent[]]>([
    ['nothing', [multiplierUpdated(2)]],
    ['what came before it', [uiMultiplierUpdated(2), multiplierUpdated(2)]],
    ['one of another value', [multiplierUpdated(2), uiMultiplierUpdated(3)]],
    ['one of another token', [multiplierUpdated(2), atAddress(tesla, uiMultiplierUpdated(2))]],
    ['one of another transaction', [multiplierUpdated(2), inTx(1, uiMultiplierUpdated(2))]],
    ['one after the next', [multiplierUpdated(2), multiplierUpdated(3), uiMultiplierUpdated(2)]],
    ['one that told another already', [multiplierUpdated(2), multiplierUpdated(2), uiMultiplierUpdated(2)]],
  ])('that %s repeats is told by itself', (_, some) => {
    expect(foldLogs(...some).decodedLogs).toContain(
      `${some.findIndex((one) => one.topics[0] === multiplierUpdated(2).topics[0])} MultiplierUpdated`,
    )
  })
})

describe('the logs of a block', () => {
  const Words = fc.array(
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
      .map(([one, address, tx]) => ({ ...one, address, tx })),
    { maxLength: 24 },
  )

  it('are each told once, by themselves or as a part, in log order, and the same in whatever order they come', () => {
    fc.assert(
      fc.property(Words, fc.infiniteStream(fc.nat()), (some, random) => {
        const logs = buildLogs(some)
        const { decodedLogs, foldedLogs } = decodeLogs(logs)
        const told = [...decodedLogs.map(({ log }) => log), ...foldedLogs]
        expect(new Set(told)).toEqual(new Set(logs))
        expect(told).toHaveLength(logs.length)
        for (const row of [decodedLogs.map(({ log }) => log), foldedLogs])
          expect(row).toEqual(row.toSorted((a, b) => a.logIndex - b.logIndex))
        const shuffled = logs.map((log) => ({ log, at: random.next().value })).sort((a, b) => a.at - b.at)
        expect(decodeLogs(shuffled.map(({ log }) => log))).toEqual({ decodedLogs, foldedLogs })
        const keys = new Set(decodedLogs.map(({ log }) => log.key))
        for (const { enclosedKeys } of decodedLogs) for (const key of enclosedKeys) expect(keys).toContain(key)
      }),
      { numRuns: 200 },
    )
  })

  it('are none', () => {
    expect(decodeLogs([])).toEqual({ decodedLogs: [], foldedLogs: [] })
  })
})
