import { parentPort, workerData } from 'node:worker_threads'
import { startCoverage } from './branch-coverage.ts'
import { countSourceSteps } from './source-steps.ts'
import type { WorkerReach, WorkerTask } from './worker-pool.ts'

/** Runs simulations one after the other, on request of another thread. */

const measuring = workerData.measuresReach ? { steps: countSourceSteps(), endCoverage: await startCoverage() } : null
// Loaded only now, so that it is measured.
const { runTask } = await import('./worker-tasks.ts')

parentPort?.on('message', async (task: WorkerTask | 'end') => {
  parentPort?.postMessage(task === 'end' ? await endMeasuring() : await runTask(task))
})

async function endMeasuring(): Promise<WorkerReach | null> {
  return measuring && { steps: measuring.steps, unreached: await measuring.endCoverage() }
}
