import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { UnparsedLogs } from '../../../../../src/relay/chain/rpc/unparsed-logs.ts'
import { blockHash, sealedLog } from '../node-json.ts'

const longListOf = (text: string, partBytes: number, parseWhole: () => unknown = () => JSON.parse(text)) =>
  new UnparsedLogs(Buffer.from(text), parseWhole, partBytes)

const partsOf = (list: UnparsedLogs): Promise<readonly unknown[]> => Array.fromAsync(list.parts())

describe('a long list', () => {
  it('in parts is the whole list, with items of any kind', async () => {
    const item = fc.oneof(
      fc.record({ text: fc.oneof(fc.string(), fc.constantFrom('},{', '"},{"', '\\"},{', ']', 'é},{é')), more: fc.jsonValue() }),
      fc.constantFrom({}, { list: [{ a: 1 }, { b: 2 }] }),
      fc.jsonValue(),
    )
    const anyList = fc.array(item, { maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(anyList, fc.nat(60), fc.constantFrom(0, 1), async (items, partBytes, indent) => {
        const text = JSON.stringify(items, null, indent)
        const parts = await partsOf(longListOf(text, partBytes))
        expect(parts.flat(1)).toEqual(JSON.parse(text))
      }),
      { numRuns: 500 },
    )
  })

  it('of logs is cut into parts of about the asked size', async () => {
    const logs = Array.from({ length: 300 }, (_, index) => sealedLog({ block: 5, index }))
    const text = JSON.stringify(logs)
    const parts = await partsOf(longListOf(text, text.length / 10, () => expect.unreachable()))
    expect(parts.flat(1)).toEqual(logs)
    expect(parts).toHaveLength(10)
    for (const part of parts) expect((part as readonly unknown[]).length).toBeLessThanOrEqual(31)
  })

  it.each(['[{"a":1},{"b":2}', '[{"a":1},{"b":2]', '[{"a":1},,{"b":2}]', '[{"a":1}],"more":[{"b":2}]'])(
    'that is none is left to those who parse the whole answer: %s',
    async (text) => {
      for (const partBytes of [0, 4, 100]) {
        const list = longListOf(text, partBytes, () => ['from', 'the', 'answer'])
        const parts = await partsOf(list)
        expect(parts.at(-1)).toEqual(['from', 'the', 'answer'].slice(parts.length - 1))
      }
      expect((await partsOf(longListOf(text, 100, () => null))).at(-1)).toBeNull()
    },
  )

  it.each([0, 1])('is counted by block hash (indent %d)', async (indent) => {
    const logs = [5, 7, 5, 5, 9].map((block, index) => sealedLog({ block, index }))
    const [first, ...others] = logs
    const upperCase = { ...first, blockHash: `0x${String(first?.blockHash).slice(2).toUpperCase()}` }
    const counts = await longListOf(JSON.stringify([upperCase, ...others], null, indent), 100).countByBlockHash()
    expect(counts).toEqual(new Map([5, 7, 9].map((block) => [blockHash(block), block === 5 ? 3 : 1])))
  })
})
