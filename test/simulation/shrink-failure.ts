import fc from 'fast-check'
import { type Fault, scheduleArbitrary } from './fault-table.ts'
import type { Violation } from './laws/law.ts'
import type { ModifyInputs } from './simulation.ts'
import { runSimulation } from './simulation-run.ts'
import { type Settings, settingsOf } from './simulation-settings.ts'

/** A seed that breaks a law, with the shortest schedule found that still breaks it. */
export type SimulationFailure = {
  readonly settings: Settings
  readonly faults: readonly Fault[]
  readonly violations: readonly Violation[]
}

/** Simulations that shrinking one schedule may run, and the time after which it begins no other. */
const [RUNS_BOUND, SHRINK_MS] = [300, 120_000]

/** Runs a seed. If it breaks a law, searches for a shorter schedule that breaks the same law. */
export async function shrinkFailure(
  seed: number,
  modifyInputs?: ModifyInputs,
  runsBound = RUNS_BOUND,
): Promise<SimulationFailure | null> {
  const settings = settingsOf(seed)
  let failure: SimulationFailure | null = null
  let runs = 0
  const endsAt = performance.now() + SHRINK_MS
  const property = fc.asyncProperty(scheduleArbitrary(seed, settings.spanMs), async (faults) => {
    runs += 1
    // Beyond the bound every shorter schedule counts as harmless, so that the search ends.
    if (runs > runsBound || performance.now() > endsAt) return true
    const { violations } = await runSimulation({ settings, faults, ...(modifyInputs ? { modifyInputs } : {}) })
    const [first] = violations
    if (!first || (failure && failure.violations[0]?.law !== first.law)) return true
    failure = { settings, faults, violations }
    return false
  })
  await fc.check(property, { seed, numRuns: 1 })
  return failure
}

/** What broke, and a line for regressions.ndjson. */
export function describeFailure({ settings, faults, violations }: SimulationFailure): string {
  const lines = violations.slice(0, 3).map(({ law, at, detail }) => `  ${law} at ${Math.round(at)} ms: ${detail}`)
  return [`seed ${settings.seed}`, ...lines, `  ${JSON.stringify({ settings, faults })}`].join('\n')
}
