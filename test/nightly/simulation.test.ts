import { describe, expect, it } from 'vitest'
import { plantedBugs } from '../simulation/planted-bugs.ts'
import { describeFailure } from '../simulation/shrink-failure.ts'
import { runTasks, type WorkerResult, type WorkerTask } from '../simulation/worker-pool.ts'
import { isNightly } from '../support/test-length.ts'

/** Each seed runs twice. */
const SEEDS = isNightly ? 200 : 60
/** A planted bug has to be found within as many. The search ends with the first seed that finds it. */
const SEARCHED_SEEDS = 200
/** Limit of the search for all of them: two are found after about 100 seeds, and each seed takes a second. */
const SEARCH_TIMEOUT_MS = 900_000
const WORKERS = 2
/** A failure is shrunk here too, but briefly. */
const RUNS_BOUND = 100

describe(`the simulation with ${SEEDS} seeds`, () => {
  it('keeps every law, and each seed behaves the same when it runs again', async () => {
    const failures: string[] = []
    const irreproducible: (number | undefined)[] = []
    await runTasks({
      tasks: Array.from({ length: SEEDS }, (_, nth) => ({ seed: nth + 1, twice: true, runsBound: RUNS_BOUND })),
      workers: WORKERS,
      onResult: ({ task, failure, traces }) => {
        if (failure) failures.push(describeFailure(failure))
        if (new Set(traces).size > 1) irreproducible.push(task.seed)
      },
    })
    expect(failures).toEqual([])
    expect(irreproducible).toEqual([])
  })
})

describe('every planted bug', () => {
  it(
    `is found within ${SEARCHED_SEEDS} seeds`,
    async () => {
      const names = Object.keys(plantedBugs)
      const results: WorkerResult[] = []
      await runTasks({
        tasks: names.map((plantedBug): WorkerTask => ({ plantedBug, seeds: SEARCHED_SEEDS })),
        workers: WORKERS,
        onResult: (result) => results.push(result),
      })
      const missed = results.filter(({ found }) => found === null).map(({ task }) => task.plantedBug)
      expect(results).toHaveLength(names.length)
      expect(missed).toEqual([])
    },
    SEARCH_TIMEOUT_MS,
  )
})
