import { GENESIS_MS } from './chain.ts'

/** How many due steps run before the event loop continues. Many are due after the machine slept. */
const STEPS_PER_TICK_BOUND = 1_000

/** A block every `blockMs`, with `flashblocksPerBlock` flashblocks, `flashblockMs` apart. */
export type BlockTiming = { blockMs: number; flashblockMs: number; flashblocksPerBlock: number }

/** The next step is a flashblock of the block, or its seal once it has all of them. */
export type NextStep = { blockNumber: number; flashblocksMade: number }

export const nextStepDueMs = (
  { blockMs, flashblockMs, flashblocksPerBlock }: BlockTiming,
  { blockNumber, flashblocksMade }: NextStep,
): number =>
  GENESIS_MS +
  (flashblocksMade < flashblocksPerBlock ? (blockNumber - 1) * blockMs + flashblocksMade * flashblockMs : blockNumber * blockMs)

/** Runs each step when it is due. Returns the function that stops it. */
export const runOnSchedule = (now: () => number, nextDueMs: () => number, step: () => void): (() => void) => {
  let timer: NodeJS.Timeout | undefined
  const tick = () => {
    for (let steps = 0; steps < STEPS_PER_TICK_BOUND && nextDueMs() <= now(); steps++) step()
    timer = setTimeout(tick, Math.max(0, nextDueMs() - now()))
  }
  tick()
  return () => clearTimeout(timer)
}
