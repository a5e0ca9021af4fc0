import { GENESIS_MS } from './chain.ts'

/** How many steps are taken before the rest of the process gets its turn, when many are due: after a sleep of the machine. */
const STEPS_BOUND = 1_000

/** When things are due: a block every `blockMs`, in it so many flashblocks, `flashMs` apart. */
export type Rhythm = { blockMs: number; flashMs: number; flashes: number }

/** What is made next: a flashblock of the block `number`, or, when it has all of them, its seal. */
export type Score = { number: number; made: number }

/** When the next step is due. */
export const dueMs = ({ blockMs, flashMs, flashes }: Rhythm, { number, made }: Score): number =>
  GENESIS_MS + (made < flashes ? (number - 1) * blockMs + made * flashMs : number * blockMs)

/** Takes each step when it is due, until it is stopped. */
export const keepPace = (now: () => number, dueNextMs: () => number, step: () => void): (() => void) => {
  let timer: NodeJS.Timeout | undefined
  const tick = () => {
    for (let steps = 0; steps < STEPS_BOUND && dueNextMs() <= now(); steps++) step()
    timer = setTimeout(tick, Math.max(0, dueNextMs() - now()))
  }
  tick()
  return () => clearTimeout(timer)
}
