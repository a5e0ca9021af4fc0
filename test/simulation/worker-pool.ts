import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Violation } from './laws/law.ts'
import type { SimulationFailure } from './shrink-failure.ts'

/** What a worker is to do: run a seed, twice perhaps, or look for a planted bug in so many seeds. */
export type WorkerTask = {
  readonly seed?: number
  readonly twice?: boolean
  /** How many worlds may be run to make a failing schedule short. */
  readonly runsBound?: number
  readonly plantedBug?: string
  readonly seeds?: number
}

export type WorkerResult = {
  readonly task: WorkerTask
  readonly failure: SimulationFailure | null
  readonly traces: readonly string[]
  /** Where a planted bug was found. */
  readonly found: (Violation & { readonly seed: number }) | null
}

type PoolOptions = {
  readonly tasks: readonly WorkerTask[]
  readonly workers: number
  readonly onResult: (done: WorkerResult) => void
}

/** Spreads tasks over threads: whoever is free takes the next. The source runs unbuilt there, as everywhere. */
export async function runTasks({ tasks, workers, onResult }: PoolOptions): Promise<void> {
  const left = [...tasks]
  const work = async () => {
    const worker = new Worker(new URL('./simulation-worker.ts', import.meta.url))
    try {
      for (let task = left.shift(); task; task = left.shift()) {
        worker.postMessage(task)
        const [answer] = await once(worker, 'message')
        onResult(answer as WorkerResult)
      }
    } finally {
      await worker.terminate()
    }
  }
  await Promise.all(Array.from({ length: Math.min(workers, tasks.length) }, work))
}
