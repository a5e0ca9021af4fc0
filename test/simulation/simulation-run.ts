import { type Fault, scheduleOf } from './fault-table.ts'
import type { Broken } from './laws/law.ts'
import { type Between, World } from './simulation.ts'
import { type Settings, settingsOf } from './simulation-settings.ts'

/** How long all must have been well before the relay has to be well too. */
const RECOVERY_MS = 60_000
/** What a safety run goes on for beyond the last fault's beginning. */
const AFTERMATH_MS = 10_000
/** Steps of one run at most: a world that does not get on is broken. */
const STEPS_BOUND = 2_000_000

export type Outcome = {
  readonly broken: readonly Broken[]
  /** The same for the same seed and schedule. */
  readonly trace: string
  readonly written: number
  readonly asked: number
  readonly most: Readonly<Record<string, number>>
}

export type Run = {
  readonly settings: Settings
  readonly faults: readonly Fault[]
  readonly between?: Between
  readonly say?: (at: number, kind: string, detail: unknown) => void
  readonly wrote?: (at: number, text: string) => void
}

/** The run that a seed stands for. */
export function runOf(seed: number): Run {
  const settings = settingsOf(seed)
  return { settings, faults: scheduleOf(seed, settings.spanMs) }
}

/** Lets one world run, one action at a time, until something is broken or its time is over. */
export async function run({ settings, faults, ...rest }: Run): Promise<Outcome> {
  const ends = faults.map((fault) => fault.at + fault.for)
  const lastEnd = Math.max(settings.spanMs, ...ends)
  const end = settings.liveness ? lastEnd + RECOVERY_MS : settings.spanMs + AFTERMATH_MS
  const world = new World({ settings, faults, ...rest })
  try {
    let steps = 0
    while (world.broken.length === 0 && world.clocks.due <= end) {
      const thrown = world.clocks.step()
      if (thrown !== undefined)
        world.broken.push({ law: 'I12', at: world.clocks.world.frame, said: `thrown: ${thrown}` })
      // Whatever was promised is kept before the clock moves on.
      await new Promise(setImmediate)
      steps += 1
      if (steps > STEPS_BOUND) world.broken.push({ law: 'I9', at: world.clocks.world.frame, said: `${steps} steps` })
    }
    if (world.broken.length === 0) world.checker.end(settings.liveness)
  } finally {
    world.close()
  }
  const { broken, trace, written } = world
  return { broken, trace, written, asked: world.way.count, most: world.bounds.most }
}
