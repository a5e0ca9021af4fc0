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
  const first = await runSimulation(inputFor(seed))
  const again = twice && first.violations.length === 0 ? [await runSimulation(inputFor(seed))] : []
  const failure: SimulationFailure | null = first.violations.length > 0 ? await shrinkFailure(seed, undefined, runsBound) : null
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
