import { describe, expect, it } from 'vitest'
import { plantedBugs } from '../simulation/planted-bugs.ts'
import { describeFailure } from '../simulation/shrink-failure.ts'
import { runTasks, type WorkerResult } from '../simulation/worker-pool.ts'

/** So many worlds, each run twice; planted bugs have to be found within as many. */
const SEEDS = 200
const WORKERS = 2
/** A failure is made short here too, but somebody is waiting. */
const RUNS_BOUND = 100

describe(`${SEEDS} worlds`, () => {
  it('keep every law, and each does the same when it runs again', async () => {
    const broken: string[] = []
    const uneven: (number | undefined)[] = []
    await runTasks({
      tasks: Array.from({ length: SEEDS }, (_, nth) => ({ seed: nth + 1, twice: true, runsBound: RUNS_BOUND })),
      workers: WORKERS,
      onResult: ({ task, failure, traces }) => {
        if (failure) broken.push(describeFailure(failure))
        if (new Set(traces).size > 1) uneven.push(task.seed)
      },
    })
    expect(broken).toEqual([])
    expect(uneven).toEqual([])
  })
})

describe('a bug that is planted', () => {
  it(`is found within ${SEEDS} worlds, whichever it is`, async () => {
    const names = Object.keys(plantedBugs)
    const found: WorkerResult[] = []
    await runTasks({
      tasks: names.map((plant) => ({ plant, seeds: SEEDS })),
      workers: WORKERS,
      onResult: (done) => found.push(done),
    })
    expect(found.filter((done) => done.found !== null).map(({ task }) => task.plantedBug)).toHaveLength(names.length)
  })
})
