import { GENESIS_MS } from './chain.ts'

/** How many steps are taken before the rest of the process gets its turn, when many are due: after a sleep of the machine. */
const STEPS_PER_TICK_BOUND = 1_000

/** When things are due: a block every `blockMs`, in it so many flashblocks, `flashMs` apart. */
export type BlockTiming = { blockMs: number; flashblockMs: number; flashblocksPerBlock: number }

/** What is made next: a flashblock of the block `number`, or, when it has all of them, its seal. */
export type NextStep = { blockNumber: number; flashblocksMade: number }

/** When the next step is due. */
export const nextStepDueMs = (
  { blockMs, flashblockMs, flashblocksPerBlock }: BlockTiming,
  { blockNumber, flashblocksMade }: NextStep,
): number =>
  GENESIS_MS +
  (flashblocksMade < flashblocksPerBlock
    ? (blockNumber - 1) * blockMs + flashblocksMade * flashblockMs
    : blockNumber * blockMs)

/** Takes each step when it is due, until it is stopped. */
export const runOnSchedule = (now: () => number, nextDueMs: () => number, step: () => void): (() => void) => {
  let timer: NodeJS.Timeout | undefined
  const tick = () => {
    for (let steps = 0; steps < STEPS_PER_TICK_BOUND && nextDueMs() <= now(); steps++) step()
    timer = setTimeout(tick, Math.max(0, nextDueMs() - now()))
  }
  tick()
  return () => clearTimeout(timer)
}
