import { digest } from '../chain/hashes.ts'

/** Returns numbers from 0 to below 1. */
export type RandomSource = () => number

/** Pseudo-random numbers that the seed determines (sfc32, seeded with SHA-256). */
export const seededRandom = (...seedParts: readonly (string | number)[]): RandomSource => {
  const seed = digest(...seedParts)
  const seedWord = (index: number) => Number.parseInt(seed.slice(2 + index * 8, 10 + index * 8), 16) | 0
  let [a, b, c, count] = [seedWord(0), seedWord(1), seedWord(2), seedWord(3)]
  return () => {
    const sum = (a + b + count) | 0
    count = (count + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = ((c << 21) | (c >>> 11)) + sum
    return (sum >>> 0) / 2 ** 32
  }
}

export const pick = <T>(random: RandomSource, from: readonly T[]): T => {
  const picked = from[Math.floor(random() * from.length)]
  if (picked === undefined) throw new Error('nothing to pick from')
  return picked
}

/** Draws a count from zero to twice the average. */
export const drawCount = (random: RandomSource, average: number): number => Math.floor(random() * 2 * average + random())

/** Returns the list in a random order: no item keeps its index, unless it is the only one. */
export const shuffled = <T>(random: RandomSource, list: readonly T[]): T[] => {
  const randomOrder = list
    .map((item, position) => ({ item, at: position, sortKey: random() }))
    .toSorted((left, right) => left.sortKey - right.sortKey)
  return randomOrder
    .map(({ item }, index) => ({ item, at: randomOrder.at(index - 1)?.at ?? 0 }))
    .toSorted((left, right) => left.at - right.at)
    .map(({ item }) => item)
}
