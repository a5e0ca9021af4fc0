import fc from 'fast-check'
import { type Fault, schedulesOf } from './fault-table.ts'
import type { Broken } from './laws/law.ts'
import type { Between } from './simulation.ts'
import { run } from './simulation-run.ts'
import { type Settings, settingsOf } from './simulation-settings.ts'

/** A seed that breaks a law, with the shortest schedule that was found to do so. */
export type Prey = {
  readonly settings: Settings
  readonly faults: readonly Fault[]
  readonly broken: readonly Broken[]
}

/** Worlds that are run to make one schedule shorter. */
const RUNS_BOUND = 300

/** Runs a seed; if it breaks a law, looks for a shorter schedule that breaks the same. */
export async function hunt(seed: number, between?: Between, runsBound = RUNS_BOUND): Promise<Prey | null> {
  const settings = settingsOf(seed)
  let prey: Prey | null = null
  let runs = 0
  const property = fc.asyncProperty(schedulesOf(seed, settings.spanMs), async (faults) => {
    runs += 1
    // Beyond the bound whatever is shorter counts as harmless, so that the search ends.
    if (runs > runsBound) return true
    const { broken } = await run({ settings, faults, ...(between ? { between } : {}) })
    const [first] = broken
    if (!first || (prey && prey.broken[0]?.law !== first.law)) return true
    prey = { settings, faults, broken }
    return false
  })
  await fc.check(property, { seed, numRuns: 1 })
  return prey
}

/** A prey as it is put down: what broke, and a line for the list of regressions. */
export function described({ settings, faults, broken }: Prey): string {
  const said = broken.slice(0, 3).map(({ law, at, said }) => `  ${law} at ${Math.round(at)} ms: ${said}`)
  return [`seed ${settings.seed}`, ...said, `  ${JSON.stringify({ settings, faults })}`].join('\n')
}
