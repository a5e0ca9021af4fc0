import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Broken } from './laws/law.ts'
import type { Prey } from './shrink-failure.ts'

/** What a worker is to do: run a seed, twice perhaps, or look for a planted bug in so many seeds. */
export type Task = {
  readonly seed?: number
  readonly twice?: boolean
  /** How many worlds may be run to make a failing schedule short. */
  readonly runsBound?: number
  readonly plant?: string
  readonly seeds?: number
}

export type Done = {
  readonly task: Task
  readonly prey: Prey | null
  readonly traces: readonly string[]
  /** Where a planted bug was found. */
  readonly found: (Broken & { readonly seed: number }) | null
}

type Crowd = { readonly tasks: readonly Task[]; readonly workers: number; readonly done: (done: Done) => void }

/** Spreads tasks over threads: whoever is free takes the next. The source runs unbuilt there, as everywhere. */
export async function crowd({ tasks, workers, done }: Crowd): Promise<void> {
  const left = [...tasks]
  const work = async () => {
    const worker = new Worker(new URL('./simulation-worker.ts', import.meta.url))
    try {
      for (let task = left.shift(); task; task = left.shift()) {
        worker.postMessage(task)
        const [answer] = await once(worker, 'message')
        done(answer as Done)
      }
    } finally {
      await worker.terminate()
    }
  }
  await Promise.all(Array.from({ length: Math.min(workers, tasks.length) }, work))
}
