import { expect, it } from 'vitest'
import { RateBucket } from '../../../../../src/relay/edge/limits/rate-bucket.ts'

const countTaken = (bucket: RateBucket, times: number, now: number): number => {
  let count = 0
  for (let time = 0; time < times; time += 1) if (bucket.take(now)) count += 1
  return count
}

it('gives its capacity at once, and then its rate', () => {
  const bucket = new RateBucket(50, 10, 0)
  expect(countTaken(bucket, 100, 0)).toBe(50)
  expect(countTaken(bucket, 100, 1_000)).toBe(10)
  expect(countTaken(bucket, 100, 1_050)).toBe(0)
  expect(countTaken(bucket, 100, 1_150)).toBe(1)
  expect(countTaken(bucket, 100, 3_600_000)).toBe(50)
})

it('loses no tokens when the clock goes back', () => {
  const bucket = new RateBucket(2, 10, 1_000)
  expect(countTaken(bucket, 5, 500)).toBe(2)
  expect(countTaken(bucket, 5, 600)).toBe(1)
})
