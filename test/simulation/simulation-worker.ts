import { parentPort } from 'node:worker_threads'
import { plants } from './planted-bugs.ts'
import { hunt, type Prey } from './shrink-failure.ts'
import { run, runOf } from './simulation-run.ts'
import type { Done, Task } from './worker-pool.ts'

/** Runs worlds, one after the other, for whoever asks from another thread. */

parentPort?.on('message', async (task: Task) => {
  const done: Done = {
    task,
    ...(task.plant === undefined ? await seeded(task) : await planted(task.plant, task.seeds ?? 1)),
  }
  parentPort?.postMessage(done)
})

type Answer = Omit<Done, 'task'>

async function seeded({ seed = 1, twice = false, runsBound }: Task): Promise<Answer> {
  const first = await run(runOf(seed))
  const again = twice && first.broken.length === 0 ? [await run(runOf(seed))] : []
  const prey: Prey | null = first.broken.length > 0 ? await hunt(seed, undefined, runsBound) : null
  return { prey, traces: [first, ...again].map(({ trace }) => trace), found: null }
}

/** The first seed that finds a planted bug. */
async function planted(name: string, seeds: number): Promise<Answer> {
  const between = plants[name]
  if (!between) throw new Error(`no bug called ${name}`)
  for (let seed = 1; seed <= seeds; seed += 1) {
    const { broken } = await run({ ...runOf(seed), between })
    const [first] = broken
    if (first) return { prey: null, traces: [], found: { seed, ...first } }
  }
  return { prey: null, traces: [], found: null }
}
