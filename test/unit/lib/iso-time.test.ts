import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isoFromSeconds, NEVER_SECONDS } from '../../../src/lib/iso-time.ts'

it('a time is written as Date writes it, whatever was written before', () => {
  const second = fc.integer({ min: -86_400 * 366, max: NEVER_SECONDS - 1 })
  fc.assert(
    fc.property(second, fc.integer({ min: -90_000, max: 90_000 }), (first, after) => {
      for (const time of [first, Math.min(first + after, NEVER_SECONDS - 1), first])
        expect(isoFromSeconds(time)).toBe(new Date(time * 1_000).toISOString())
    }),
  )
})
