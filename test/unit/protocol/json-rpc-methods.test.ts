import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LogFilter, logMatcher, methods } from '../../../src/protocol/json-rpc-methods.ts'

const addresses = ['0xaa', '0xbb', '0xcc'].map((start) => start.padEnd(42, '0'))
const words = ['0x11', '0x22', '0xee'].map((start) => start.padEnd(66, '0'))

describe('a log filter', () => {
  const upper = (text: string): string => `0x${text.slice(2).toUpperCase()}`
  const cased = (texts: readonly string[]) => fc.constantFrom(...texts, ...texts.map(upper))
  const criterion = (texts: readonly string[]) =>
    fc.oneof(fc.constant(null), cased(texts), fc.array(cased(texts), { maxLength: 3 }))
  const filter = fc.record(
    { address: criterion(addresses), topics: fc.option(fc.array(criterion(words), { maxLength: 4 })) },
    { requiredKeys: [] },
  )
  const log = fc.record({ address: fc.constantFrom(...addresses), topics: fc.array(fc.constantFrom(...words), { maxLength: 4 }) })

  it('matches the same logs as a plain reading of its rules', () => {
    const matches = (criterion: unknown, text: string | undefined): boolean => {
      if (criterion == null || (Array.isArray(criterion) && criterion.length === 0)) return true
      return text !== undefined && [criterion].flat().some((value) => String(value).toLowerCase() === text)
    }
    fc.assert(
      fc.property(filter, log, (filterValue, { address, topics }) => {
        const expected =
          matches(filterValue.address, address) &&
          (filterValue.topics ?? []).every((criterion, at) => matches(criterion, topics[at]))
        expect(logMatcher(LogFilter.parse(filterValue))({ address, topics })).toBe(expected)
      }),
      { numRuns: 500 },
    )
  })

  it.each([
    { address: '0x12' },
    { address: [addresses[0], '0x12'] },
    { topics: ['0x1'] },
    { topics: [null, null, null, null, null] },
    { topics: [[[words[0]]]] },
    { address: Array.from({ length: 10_001 }, () => addresses[0]) },
  ])('of another form is refused (%#)', (filterValue) => {
    expect(LogFilter.safeParse(filterValue).success).toBe(false)
  })
})

describe('a block parameter', () => {
  const { params } = methods.eth_getBlockByNumber
  const isBlock = (at: unknown): boolean => params.safeParse([at, true]).success

  it.each(['latest', 'pending', 'safe', 'finalized', 'earliest', '0x0', '0x1f', '0xABC', '0x100'])('may be %s', (at) => {
    expect(isBlock(at)).toBe(true)
  })

  it.each(['', 'Latest', '0x', '0x01', '0x00', '1', 'x1', '0x1g', ' 0x1', '0x1\n', 1, null, {}])('may not be %j', (at) => {
    expect(isBlock(at)).toBe(false)
  })

  it('may be a hash for methods that read state', () => {
    const at = (block: unknown) => methods.eth_getCode.params.safeParse([addresses[0], block]).success
    const hash = words[0]
    for (const block of [hash, { blockHash: hash }, { blockHash: hash, requireCanonical: false }, { blockNumber: '0x1' }])
      expect(at(block)).toBe(true)
    for (const block of [{}, { blockHash: '0x1' }, { blockHash: hash, blockNumber: '0x1' }, { requireCanonical: true }, [hash]])
      expect(at(block)).toBe(false)
  })
})
