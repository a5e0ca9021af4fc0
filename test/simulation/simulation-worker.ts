import { parentPort, workerData } from 'node:worker_threads'
import { startCoverage } from './branch-coverage.ts'
import type { WorkerTask } from './worker-pool.ts'

/** Runs simulations one after the other, on request of another thread. */

const endCoverage = workerData.measuresReach ? await startCoverage() : null
// Loaded only now, so that it is measured.
const { runTask } = await import('./worker-tasks.ts')

parentPort?.on('message', async (task: WorkerTask | 'end') => {
  parentPort?.postMessage(task === 'end' ? await endCoverage?.() : await runTask(task))
})
