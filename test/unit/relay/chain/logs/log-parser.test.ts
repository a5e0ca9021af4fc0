import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { decodeLog } from '../../../../../src/relay/chain/logs/event-decoder.ts'
import { parseLogs } from '../../../../../src/relay/chain/logs/log-parser.ts'
import { alice, apple, bob, keyOf, pendingLog, sealedLog, TRANSFER, word, ZERO_WORD } from '../node-json.ts'

const readOne = (value: unknown) => {
  const { logs, unreadable } = parseLogs(value)
  expect(unreadable).toBe(0)
  expect(logs).toHaveLength(1)
  const [log] = logs
  if (!log) throw new Error('no log')
  return log
}

describe('a log of a node', () => {
  it('is the same whether or not it was received before', () => {
    const known = readOne(pendingLog({ block: 5, index: 1 }))
    const sealed = sealedLog({ block: 5, index: 1 })
    const upperCase = (value: unknown) => `0x${String(value).slice(2).toUpperCase()}`
    const changes: readonly Record<string, unknown>[] = [
      ...[{}, { address: bob }, { address: upperCase(apple) }, { data: word(2) }, { data: 'none' }, { topics: TRANSFER }],
      ...[{ topics: [TRANSFER, word(alice)] }, { topics: [TRANSFER, word(alice), word(apple)] }, { transactionIndex: '0x9' }],
      ...[{ blockHash: ZERO_WORD }, { blockTimestamp: '0x1' }, { removed: true }, { more: 1 }],
      { transactionHash: upperCase(sealed.transactionHash) },
    ]
    for (const change of changes) {
      const wire = { ...sealed, ...change }
      expect(parseLogs(wire, () => known)).toEqual(parseLogs(wire))
    }
  })

  it('keeps only a few extra fields', () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`field${at}`, at]))
    expect(Object.keys(readOne({ ...pendingLog({ block: 5 }), ...many })?.more ?? {})).toHaveLength(8)
  })

  it('that is unreadable never drops the good ones beside it', () => {
    const good = [pendingLog({ block: 5 }), pendingLog({ block: 5, index: 2 })]
    const { logs, unreadable } = parseLogs([good[0], { ...good[0], data: '0x1' }, null, good[1], 'log'])
    expect(logs.map(({ key }) => key)).toEqual([keyOf({ block: 5 }), keyOf({ block: 5, index: 2 })])
    expect(unreadable).toBe(3)
  })

  it('is not read from an answer with too many logs', () => {
    expect(parseLogs(Array(200_001).fill(null))).toEqual({ logs: [], unreadable: 1 })
  })
})

/** What a log must be, as a schema. The relay checks by hand, which is faster. */
const hexSchema = (pattern: RegExp) =>
  z
    .string()
    .regex(pattern)
    .transform((text) => text.toLowerCase())
const QuantitySchema = z
  .string()
  .regex(/^0x[0-9a-fA-F]{1,64}$/)
  .transform(Number)
  .refine(Number.isSafeInteger)
const WordSchema = hexSchema(/^0x[0-9a-fA-F]{64}$/)
const LogSchema = z
  .looseObject({
    address: hexSchema(/^0x[0-9a-fA-F]{40}$/),
    topics: z.array(WordSchema).max(4),
    data: hexSchema(/^0x([0-9a-fA-F]{2})*$/),
    blockNumber: QuantitySchema,
    blockHash: WordSchema.nullish(),
    blockTimestamp: QuantitySchema.refine((seconds) => seconds <= Date.UTC(9999, 11, 31, 23, 59, 59) / 1_000)
      .nullish()
      .catch(null),
    transactionHash: WordSchema,
    transactionIndex: QuantitySchema,
    logIndex: QuantitySchema,
    removed: z.boolean().nullish(),
  })
  .transform(({ blockHash, blockTimestamp, removed, ...wire }) => {
    const { address, topics, data, blockNumber, transactionHash, transactionIndex, logIndex, ...others } = wire
    const primitive = z.union([z.string().max(128), z.number(), z.boolean(), z.null()])
    const plain = Object.entries(others).filter(([, value]) => primitive.safeParse(value).success)
    return {
      key: `${blockNumber}-${transactionHash}-${logIndex}`,
      ...{ address, topics, data, blockNumber, transactionHash, transactionIndex, logIndex },
      blockHash: blockHash && blockHash !== ZERO_WORD ? blockHash : null,
      blockTimestamp: blockTimestamp ?? null,
      removed: removed ?? false,
      ...(plain.length > 0 && { more: Object.fromEntries(plain.slice(0, 8)) }),
    }
  })

describe('a log read by hand', () => {
  const hexText = (minLength: number, maxLength: number) =>
    fc.stringMatching(/^[0-9a-fA-F]*$/, { maxLength }).map((text) => `0x${text.padStart(minLength, '0')}`)
  /** A value that is nearly right: hex of another length, prefix or case, with one foreign character, or not text at all. */
  const spoilt = fc.oneof(
    fc.constantFrom<unknown>(
      ...[null, undefined, true, 0, -1, Number.NaN, Number.POSITIVE_INFINITY, {}, []],
      ...['', '0', '0x', '0X1', '0x 1', ' 0x1', '0x1\n'],
    ),
    fc.constantFrom(
      ...['x'.repeat(128), 'x'.repeat(129), `0x${'0'.repeat(63)}9`, `0x${'0'.repeat(64)}9`],
      ...['0x1fffffffffffff', '0x20000000000000', '0x3afff4417f', '0x3afff44180'],
    ),
    ...[hexText(0, 70), hexText(40, 40), hexText(64, 64), hexText(0, 16)],
    fc
      .tuple(hexText(40, 66), fc.nat(66), fc.constantFrom('g', 'x', '/', ':', '@', 'G', '`', '\u0130', '\uff11', '\u{1f34f}'))
      .map(([text, index, foreign]) => text.slice(0, index) + foreign + text.slice(index + 1)),
    fc.array(fc.oneof(hexText(64, 64), fc.constant('0x1'), fc.constant(null)), { maxLength: 5 }),
    fc.jsonValue(),
  )
  const fields = [...Object.keys(pendingLog({ block: 5 })), 'extra', 'other', '7', 'constructor', '__proto__']
  const mutated = fc
    .tuple(
      fc.constantFrom(pendingLog({ block: 5 }), sealedLog({ block: 0xabc, index: 13 })),
      fc.array(fc.tuple(fc.constantFrom(...fields), spoilt), { maxLength: 3 }),
      fc.boolean(),
    )
    .map(([wire, changes, isShouted]) => {
      const log: Record<string, unknown> = { ...wire }
      for (const [name, value] of changes)
        Object.defineProperty(log, name, { value, enumerable: true, configurable: true, writable: true })
      if (isShouted && typeof log.data === 'string') log.data = `0x${log.data.slice(2).toUpperCase()}`
      return log
    })

  it.each<[string, fc.Arbitrary<unknown>, number]>([
    ['good log with a few changed fields', mutated, 20_000],
    ['value of any kind', fc.anything({ withNullPrototype: true, withBigInt: true, withSparseArray: true }), 3_000],
  ])('is what the schema makes of any %s', (_, values, numRuns) => {
    fc.assert(
      fc.property(values, (value) => {
        const expected = LogSchema.safeParse(value)
        const { logs, unreadable } = parseLogs(Array.isArray(value) ? [value] : value)
        expect({ logs, unreadable }).toEqual(
          expected.success ? { logs: [expected.data], unreadable: 0 } : { logs: [], unreadable: 1 },
        )
        for (const log of logs) expect(() => decodeLog(log)).not.toThrow()
      }),
      { numRuns },
    )
  })
})
