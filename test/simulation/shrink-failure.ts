import fc from 'fast-check'
import { type Fault, scheduleArbitrary } from './fault-table.ts'
import type { Violation } from './laws/law.ts'
import type { ModifyInputs } from './simulation.ts'
import { runSimulation } from './simulation-run.ts'
import { type Settings, settingsOf } from './simulation-settings.ts'

/** A seed that breaks a law, with the shortest schedule that was found to do so. */
export type SimulationFailure = {
  readonly settings: Settings
  readonly faults: readonly Fault[]
  readonly violations: readonly Violation[]
}

/** Worlds that are run to make one schedule shorter. */
const RUNS_BOUND = 300

/** Runs a seed; if it breaks a law, looks for a shorter schedule that breaks the same. */
export async function shrinkFailure(
  seed: number,
  modifyInputs?: ModifyInputs,
  runsBound = RUNS_BOUND,
): Promise<SimulationFailure | null> {
  const settings = settingsOf(seed)
  let failure: SimulationFailure | null = null
  let runs = 0
  const property = fc.asyncProperty(scheduleArbitrary(seed, settings.spanMs), async (faults) => {
    runs += 1
    // Beyond the bound whatever is shorter counts as harmless, so that the search ends.
    if (runs > runsBound) return true
    const { violations } = await runSimulation({ settings, faults, ...(modifyInputs ? { modifyInputs } : {}) })
    const [first] = violations
    if (!first || (failure && failure.violations[0]?.law !== first.law)) return true
    failure = { settings, faults, violations }
    return false
  })
  await fc.check(property, { seed, numRuns: 1 })
  return failure
}

/** A prey as it is put down: what broke, and a line for the list of regressions. */
export function describeFailure({ settings, faults, violations }: SimulationFailure): string {
  const said = violations.slice(0, 3).map(({ law, at, detail }) => `  ${law} at ${Math.round(at)} ms: ${detail}`)
  return [`seed ${settings.seed}`, ...said, `  ${JSON.stringify({ settings, faults })}`].join('\n')
}
