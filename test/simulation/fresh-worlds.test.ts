import { availableParallelism } from 'node:os'
import { expect, it } from 'vitest'
import { commitOf } from '../long-tests.ts'
import { describeFailure } from './shrink-failure.ts'
import { runTasks, type WorkerTask } from './worker-pool.ts'

/** Each commit runs worlds that no other commit has run. */
const SECONDS = 60
const FIRST_SEED = Number.parseInt(commitOf('HEAD').slice(0, 7), 16)
/** A failure is shrunk briefly; `npm run simulate -- --seed` shows it whole. */
const RUNS_BOUND = 100
/** A run that finds no world that it can run in a minute would otherwise pass. */
const WORLDS_LEAST = 50

function* fresh(): Generator<WorkerTask> {
  const end = performance.now() + SECONDS * 1_000
  for (let seed = FIRST_SEED; performance.now() < end; seed += 1) yield { seed, runsBound: RUNS_BOUND }
}

it(`the ingest keeps every law in ${SECONDS} seconds of fresh worlds, from seed ${FIRST_SEED}`, async () => {
  const failures: string[] = []
  let worlds = 0
  await runTasks({
    tasks: fresh(),
    workers: Math.min(2, availableParallelism()),
    onResult: ({ failure }) => {
      worlds += 1
      if (failure) failures.push(describeFailure(failure))
    },
  })
  process.stdout.write(`${worlds} worlds from seed ${FIRST_SEED}\n`)
  expect(failures).toEqual([])
  expect(worlds).toBeGreaterThan(WORLDS_LEAST)
})
