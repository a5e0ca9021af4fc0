import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readTogether } from '../../../../src/chain/logs/fold-transaction.ts'
import { apple, bob, tesla } from '../node-json.ts'
import {
  announced,
  ended,
  gap,
  inTx,
  logsOf,
  memo,
  multiplied,
  of,
  once,
  paused,
  seized,
  tell,
  transfer,
  type Word,
} from './fold-fixture.ts'

describe('a memo', () => {
  it('belongs to the movement that it directly follows', () => {
    expect(tell(transfer(), memo(7))).toEqual({ sayings: ['0 Transfer, memo 7'], parts: [1] })
  })

  it('belongs to its own movement where one transaction makes two', () => {
    expect(tell(transfer(), memo(7), transfer(), memo(8))).toEqual({
      sayings: ['0 Transfer, memo 7', '2 Transfer, memo 8'],
      parts: [1, 3],
    })
    expect(tell(transfer(), transfer(), memo(8)).sayings).toEqual(['0 Transfer', '1 Transfer, memo 8'])
  })

  it.each<[string, readonly Word[]]>([
    ['stands alone', [memo(7)]],
    ['comes first', [memo(7), transfer()]],
    ['comes later', [transfer(), gap, memo(7)]],
    ['follows the movement of another token', [of(tesla, transfer()), memo(7)]],
    ['follows the movement of another transaction', [inTx(1, transfer()), memo(7)]],
    ['follows no movement', [paused, memo(7)]],
    ['is the second', [transfer(), memo(6), memo(7)]],
  ])('that %s is told by itself', (_, some) => {
    expect(tell(...some).sayings).toContain(`${some.findLastIndex((one) => one.data === '0x' && one !== gap)} Memo`)
  })
})

describe('a seizure', () => {
  it.each<[string, readonly Word[], readonly string[], readonly number[]]>([
    ['after the memo', [transfer(), memo(7), seized()], ['0 Transfer, memo 7, seized'], [1, 2]],
    ['without a memo', [transfer(), seized()], ['0 Transfer, seized'], [1]],
    ['before the movement', [seized(), transfer(), memo(7)], ['1 Transfer, memo 7, seized'], [0, 2]],
    ['after something else', [transfer(), gap, paused, seized()], ['0 Transfer, seized', '2 Paused'], [3]],
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
  ])('is told by its movement, said %s', (_, some, sayings, parts) => {
    expect(tell(...some)).toEqual({ sayings, parts })
  })

  it.each<[string, readonly Word[]]>([
    ['of no movement', [seized()]],
    ['of another amount', [transfer(5), seized(6)]],
    ['of another holder', [transfer(5, bob), seized(5)]],
    ['of another token', [of(tesla, transfer()), seized()]],
    ['of another transaction', [inTx(1, transfer()), seized()]],
    ['said twice', [transfer(), seized(), seized()]],
  ])('%s is told by itself', (_, some) => {
    expect(tell(...some).sayings).toContain(`${some.length - 1} Seized`)
  })
})

describe('a multiplier that is set at once', () => {
  it.each<[string, readonly Word[], readonly string[], readonly number[]]>([
    ['the next log', [once(2), multiplied(2)], ['1 UIMultiplierUpdated'], [0]],
    ['one after others', [once(2), paused, gap, multiplied(2)], ['1 Paused', '3 UIMultiplierUpdated'], [0]],
    [
      'one after that of another value',
      [once(2), multiplied(3), multiplied(2)],
      ['1 UIMultiplierUpdated', '2 UIMultiplierUpdated'],
      [0],
    ],
    [
      'its own of two',
      [once(2), multiplied(2), once(3), multiplied(3)],
      ['1 UIMultiplierUpdated', '3 UIMultiplierUpdated'],
      [0, 2],
    ],
  ])('is told by %s that says so', (_, some, sayings, parts) => {
    expect(tell(...some)).toEqual({ sayings, parts })
  })

  it.each<[string, readonly Word[]]>([
    ['nothing', [once(2)]],
    ['what came before it', [multiplied(2), once(2)]],
    ['one of another value', [once(2), multiplied(3)]],
    ['one of another token', [once(2), of(tesla, multiplied(2))]],
    ['one of another transaction', [once(2), inTx(1, multiplied(2))]],
    ['one after the next', [once(2), once(3), multiplied(2)]],
    ['one that told another already', [once(2), once(2), multiplied(2)]],
  ])('that %s repeats is told by itself', (_, some) => {
    expect(tell(...some).sayings).toContain(
      `${some.findIndex((one) => one.topics[0] === once(2).topics[0])} MultiplierUpdated`,
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
          announced('a'),
          ended('a'),
          once(2),
          multiplied(2),
          paused,
          gap,
        ),
        fc.constantFrom(apple, tesla),
        fc.constantFrom(0, 1),
      )
      .map(([one, address, tx]) => ({ ...one, address, tx })),
    { maxLength: 24 },
  )

  it('are each told once, by themselves or as a part, in log order, and the same in whatever order they come', () => {
    fc.assert(
      fc.property(Words, fc.infiniteStream(fc.nat()), (some, dice) => {
        const logs = logsOf(some)
        const { sayings, parts } = readTogether(logs)
        const told = [...sayings.map(({ log }) => log), ...parts]
        expect(new Set(told)).toEqual(new Set(logs))
        expect(told).toHaveLength(logs.length)
        for (const row of [sayings.map(({ log }) => log), parts])
          expect(row).toEqual(row.toSorted((a, b) => a.logIndex - b.logIndex))
        const shuffled = logs.map((log) => ({ log, at: dice.next().value })).sort((a, b) => a.at - b.at)
        expect(readTogether(shuffled.map(({ log }) => log))).toEqual({ sayings, parts })
        const keys = new Set(sayings.map(({ log }) => log.key))
        for (const { inside } of sayings) for (const key of inside) expect(keys).toContain(key)
      }),
      { numRuns: 200 },
    )
  })

  it('are none', () => {
    expect(readTogether([])).toEqual({ sayings: [], parts: [] })
  })
})
