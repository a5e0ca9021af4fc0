import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { UnreachedParts } from './branch-coverage.ts'
import type { Violation } from './laws/law.ts'
import type { SimulationFailure } from './shrink-failure.ts'
import type { SourcePeriod } from './simulation.ts'
import type { SourceSteps } from './source-steps.ts'

/** A task of a worker: run one seed (perhaps twice), or search a planted bug in the first seeds. */
export type WorkerTask = {
  readonly seed?: number
  readonly twice?: boolean
  /** How many simulations shrinking a failure may run. */
  readonly runsBound?: number
  readonly plantedBug?: string
  readonly seeds?: number
}

export type WorkerResult = {
  readonly task: WorkerTask
  readonly failure: SimulationFailure | null
  readonly traces: readonly string[]
  /** The first seed that found the planted bug, and the law it broke. */
  readonly found: (Violation & { readonly seed: number }) | null
  /** The statuses that the seed's run published, and the trades under each. */
  readonly statuses: readonly SourcePeriod[]
}

/** What all tasks of a worker reached, and what never ran in it. */
export type WorkerReach = { readonly steps: SourceSteps; readonly unreached: UnreachedParts }

type PoolOptions = {
  readonly tasks: Iterable<WorkerTask>
  readonly workers: number
  readonly onResult: (done: WorkerResult) => void
  /** Receives what each worker reached. Measuring that takes time, so it is done on request only. */
  readonly onReach?: (reach: WorkerReach) => void
}

/** Spreads tasks over threads: an idle worker takes the next one. Workers run the TypeScript source directly. */
export async function runTasks({ tasks, workers, onResult, onReach }: PoolOptions): Promise<void> {
  const left = tasks[Symbol.iterator]()
  const work = async () => {
    const workerData = { measuresReach: onReach !== undefined }
    const worker = new Worker(new URL('./simulation-worker.ts', import.meta.url), { workerData })
    try {
      for (let next = left.next(); !next.done; next = left.next()) {
        worker.postMessage(next.value)
        const [answer] = await once(worker, 'message')
        onResult(answer as WorkerResult)
      }
      if (!onReach) return
      worker.postMessage('end')
      const [reach] = await once(worker, 'message')
      onReach(reach as WorkerReach)
    } finally {
      await worker.terminate()
    }
  }
  await Promise.all(Array.from({ length: workers }, work))
}
