import { config } from 'rxjs'
import { type Fault, scheduleOf } from './fault-table.ts'
import type { Violation } from './laws/law.ts'
import { type ModifyInputs, Simulation, type SourcePeriod } from './simulation.ts'
import { type Settings, settingsOf } from './simulation-settings.ts'

/** How long after the last fault the relay has to be well again. */
const RECOVERY_MS = 60_000
/** How long a run without recovery goes on after the last fault may have begun. */
const EXTRA_RUN_MS = 10_000
/** Steps of one run at most: a simulation that does not advance is broken. */
const STEPS_BOUND = 2_000_000

export type SimulationResult = {
  readonly violations: readonly Violation[]
  /** Equal for the same seed and schedule. */
  readonly trace: string
  readonly writtenCount: number
  readonly requestCount: number
  readonly peaks: Readonly<Record<string, number>>
  readonly statuses: readonly SourcePeriod[]
  /** What the program with the SDK received; null in a world without one. */
  readonly client: Simulation['clientCounts']
}

export type SimulationInput = {
  readonly settings: Settings
  readonly faults: readonly Fault[]
  readonly modifyInputs?: ModifyInputs
  readonly log?: (at: number, kind: string, detail: unknown) => void
  readonly onWritten?: (at: number, text: string) => void
}

/** The settings and faults of a seed. */
export function inputFor(seed: number): SimulationInput {
  const settings = settingsOf(seed)
  return { settings, faults: scheduleOf(seed, settings.spanMs) }
}

/** Runs one simulation, one action at a time, until a law is broken or its time is over. */
export async function runSimulation({ settings, faults, ...rest }: SimulationInput): Promise<SimulationResult> {
  const faultEnds = faults.map((fault) => fault.at + fault.for)
  const lastEnd = Math.max(settings.spanMs, ...faultEnds)
  const end = settings.liveness ? lastEnd + RECOVERY_MS : settings.spanMs + EXTRA_RUN_MS
  const simulation = new Simulation({ settings, faults, ...rest })
  const fail = (law: string, detail: string) =>
    simulation.violations.push({ law, at: simulation.clocks.environment.elapsedMs, detail })
  // RxJS throws what an observer throws in a turn of its own, where it would end the whole hunt without the name of the seed.
  config.onUnhandledError = (thrown) => fail('I12', `thrown: ${thrown}`)
  try {
    let steps = 0
    while (simulation.violations.length === 0 && simulation.clocks.nextDueAt <= end) {
      const thrown = simulation.clocks.step()
      if (thrown !== undefined) fail('I12', `thrown: ${thrown}`)
      // Let all promises settle before the clock moves on.
      await new Promise(setImmediate)
      steps += 1
      if (steps > STEPS_BOUND) fail('I9', `${steps} steps`)
    }
    if (simulation.violations.length === 0) simulation.onEnd(settings.liveness)
  } finally {
    config.onUnhandledError = null
    simulation.close()
  }
  const { violations, trace, writtenCount, statuses } = simulation
  const { requestCount } = simulation.rpc
  return {
    violations,
    trace,
    writtenCount,
    requestCount,
    peaks: simulation.resourceBounds.peaks,
    statuses,
    client: simulation.clientCounts,
  }
}
