import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LogFilter, logMatcher, methods } from '../../../../src/chain/rpc/methods.ts'

const addresses = ['0xaa', '0xbb', '0xcc'].map((start) => start.padEnd(42, '0'))
const words = ['0x11', '0x22', '0xee'].map((start) => start.padEnd(66, '0'))

describe('a filter', () => {
  const upper = (text: string): string => `0x${text.slice(2).toUpperCase()}`
  const cased = (texts: readonly string[]) => fc.constantFrom(...texts, ...texts.map(upper))
  const wanted = (texts: readonly string[]) =>
    fc.oneof(fc.constant(null), cased(texts), fc.array(cased(texts), { maxLength: 3 }))
  const filter = fc.record(
    { address: wanted(addresses), topics: fc.option(fc.array(wanted(words), { maxLength: 4 })) },
    { requiredKeys: [] },
  )
  const log = fc.record({
    address: fc.constantFrom(...addresses),
    topics: fc.array(fc.constantFrom(...words), { maxLength: 4 }),
  })

  it('lets through what a reader of its rules would', () => {
    const names = (one: unknown, text: string | undefined): boolean => {
      if (one === null || one === undefined || (Array.isArray(one) && one.length === 0)) return true
      return text !== undefined && [one].flat().some((each) => String(each).toLowerCase() === text)
    }
    fc.assert(
      fc.property(filter, log, (given, { address, topics }) => {
        const expected =
          names(given.address, address) && (given.topics ?? []).every((one, at) => names(one, topics[at]))
        expect(logMatcher(LogFilter.parse(given))({ address, topics })).toBe(expected)
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
  ])('of another form is refused (%#)', (given) => {
    expect(LogFilter.safeParse(given).success).toBe(false)
  })
})

describe('a block', () => {
  const { params } = methods.eth_getBlockByNumber
  const isBlock = (at: unknown): boolean => params.safeParse([at, true]).success

  it.each(['latest', 'pending', 'safe', 'finalized', 'earliest', '0x0', '0x1f', '0xABC', '0x100'])(
    'may be %s',
    (at) => {
      expect(isBlock(at)).toBe(true)
    },
  )

  it.each(['', 'Latest', '0x', '0x01', '0x00', '1', 'x1', '0x1g', ' 0x1', '0x1\n', 1, null, {}])('is not %j', (at) => {
    expect(isBlock(at)).toBe(false)
  })

  it('may be named by its hash where state is read', () => {
    const at = (block: unknown) => methods.eth_getCode.params.safeParse([addresses[0], block]).success
    const hash = words[0]
    for (const one of [hash, { blockHash: hash }, { blockHash: hash, requireCanonical: false }, { blockNumber: '0x1' }])
      expect(at(one)).toBe(true)
    for (const one of [
      {},
      { blockHash: '0x1' },
      { blockHash: hash, blockNumber: '0x1' },
      { requireCanonical: true },
      [hash],
    ])
      expect(at(one)).toBe(false)
  })
})

it('each number that a node writes is one that it can be asked with', () => {
  const { params } = methods.eth_getBlockByNumber
  const number = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n })
  fc.assert(fc.property(number, (one) => params.safeParse([`0x${one.toString(16)}`, false]).success))
})
