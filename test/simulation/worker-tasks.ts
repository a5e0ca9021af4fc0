import { plantedBugs } from './planted-bugs.ts'
import { type SimulationFailure, shrinkFailure } from './shrink-failure.ts'
import { inputFor, runSimulation } from './simulation-run.ts'
import type { WorkerResult, WorkerTask } from './worker-pool.ts'

type TaskResult = Omit<WorkerResult, 'task'>

export const runTask = async (task: WorkerTask): Promise<WorkerResult> => ({
  task,
  ...(task.plantedBug === undefined ? await runSeed(task) : await findPlantedBug(task.plantedBug, task.seeds ?? 1)),
})

async function runSeed({ seed = 1, twice = false, runsBound }: WorkerTask): Promise<TaskResult> {
  const { settings, faults } = inputFor(seed)
  const first = await runSimulation({ settings, faults })
  const again = twice && first.violations.length === 0 ? [await runSimulation(inputFor(seed))] : []
  const { violations } = first
  // If no schedule breaks the law again, a run differs from the one before, which is a failure too.
  const failure: SimulationFailure | null =
    violations.length > 0 ? ((await shrinkFailure(seed, undefined, runsBound)) ?? { settings, faults, violations }) : null
  return { failure, traces: [first, ...again].map(({ trace }) => trace), found: null, statuses: first.statuses }
}

/** The first seed that finds a planted bug. */
async function findPlantedBug(name: string, seeds: number): Promise<TaskResult> {
  const modifyInputs = plantedBugs[name]
  if (!modifyInputs) throw new Error(`no bug called ${name}`)
  for (let seed = 1; seed <= seeds; seed += 1) {
    const { violations } = await runSimulation({ ...inputFor(seed), modifyInputs })
    const [first] = violations
    if (first) return { failure: null, traces: [], found: { seed, ...first }, statuses: [] }
  }
  return { failure: null, traces: [], found: null, statuses: [] }
}
