import { digest } from '../chain/hex.ts'

/** Rolls between 0 (included) and 1 (excluded), the same ones in the same order for the same name. */
export type Dice = () => number

/** Dice that always fall the same way for the same name (sfc32, seeded with SHA-256). */
export const diceOf = (...name: readonly (string | number)[]): Dice => {
  const seed = digest(...name)
  const part = (at: number) => Number.parseInt(seed.slice(2 + at * 8, 10 + at * 8), 16) | 0
  let [a, b, c, count] = [part(0), part(1), part(2), part(3)]
  return () => {
    const sum = (a + b + count) | 0
    count = (count + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = ((c << 21) | (c >>> 11)) + sum
    return (sum >>> 0) / 2 ** 32
  }
}

/** One of a list; the list must not be empty. */
export const pick = <T>(dice: Dice, from: readonly T[]): T => {
  const picked = from[Math.floor(dice() * from.length)]
  if (picked === undefined) throw new Error('nothing to pick from')
  return picked
}

/** How many things happen now when `average` do: between none and twice as many. */
export const howMany = (dice: Dice, average: number): number => Math.floor(dice() * 2 * average + dice())

/** A list in another order: each takes the place of the one before it in a random round, so nothing stays that is not alone. */
export const shuffled = <T>(dice: Dice, list: readonly T[]): T[] => {
  const round = list.map((one, at) => ({ one, at, roll: dice() })).toSorted((left, right) => left.roll - right.roll)
  return round
    .map(({ one }, turn) => ({ one, at: round.at(turn - 1)?.at ?? 0 }))
    .toSorted((left, right) => left.at - right.at)
    .map(({ one }) => one)
}
