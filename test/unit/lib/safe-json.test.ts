import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { isNestedDeeper, parseShallowJson } from '../../../src/lib/safe-json.ts'

afterEach(() => vi.restoreAllMocks())

const nested = (levels: number, [open, close] = ['[', ']']) => open?.repeat(levels) + (close?.repeat(levels) ?? '')
const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0

describe('a text from an upstream', () => {
  it.each<[string, string]>([
    ['1,024 levels', nested(1_024)],
    ['2,000 lists beside each other', `[${Array(2_000).fill('[]').join()}]`],
    ['2,000 brackets in a string', `["${nested(2_000)}"]`],
    ['2,000 brackets in a string after an escaped quote', `["\\"${nested(2_000)}\\\\"]`],
  ])('with %s is parsed', (_, text) => {
    expect(parseShallowJson(Buffer.from(text))).toEqual(JSON.parse(text))
  })

  it.each<[string, string]>([
    ['1,025 levels', nested(1_025)],
    ['1,025 levels of objects', nested(1_025, ['{"a":', '}']).replace(':}', ':0}')],
    ['1,100 levels between closing brackets in strings', `${'["]",'.repeat(1_100)}0${']'.repeat(1_100)}`],
    ['1,100 levels after a string that ends with a backslash', `["\\\\",${nested(1_100)}]`],
    ['14,000,000 brackets that never close', '['.repeat(14_000_000)],
  ])('with %s is not parsed', (_, text) => {
    const parse = vi.spyOn(JSON, 'parse')
    expect(parseShallowJson(Buffer.from(text))).toBeUndefined()
    expect(parse).not.toHaveBeenCalled()
  })

  it('is as deep as its value', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue({ maxDepth: 6 })), fc.constantFrom(0, 1), (value, indent) => {
        const json = Buffer.from(JSON.stringify(value, null, indent))
        const depth = depthOf(value)
        expect([depth - 1, depth].map((levels) => isNestedDeeper(json, levels))).toEqual([true, false])
      }),
    )
  })
})
