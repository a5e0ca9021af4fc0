import fc from 'fast-check'
import { expect, it } from 'vitest'
import { binarySearch } from '../../../src/lib/binary-search.ts'

it('a binary search finds the lowest match anywhere, in as few steps as possible', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(10_000), fc.nat(10_000), fc.nat(20_000), async (low, length, first) => {
      const high = low + length
      let steps = 0
      const result = await binarySearch(low, high, async (number) => {
        steps += 1
        expect(number).toBeGreaterThanOrEqual(low)
        expect(number).toBeLessThan(high)
        return number >= first
      })
      expect(result).toBe(Math.min(high, Math.max(low, first)))
      expect(steps).toBeLessThanOrEqual(Math.ceil(Math.log2(length + 2)))
    }),
  )
})
