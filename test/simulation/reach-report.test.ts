import { expect, it } from 'vitest'
import { ReachReport } from './reach-report.ts'
import { inputFor } from './simulation-run.ts'
import { runTasks } from './worker-pool.ts'

it('a report of what a seed reaches lists faults, pairs of them, changes of the source and branches', async () => {
  const reach = new ReachReport()
  reach.addFaults(inputFor(1))
  await runTasks({
    tasks: [{ seed: 1 }],
    workers: 1,
    onResult: ({ statuses }) => reach.addStatuses(statuses),
    onReach: (reached) => reach.addWorker(reached),
  })
  const text = reach.lines().join('\n')
  for (const { kind } of inputFor(1).faults) expect(text).toMatch(new RegExp(`^${kind} +1 +\\d+$`, 'm'))
  expect(text).toMatch(/^pairs of faults at once: \d+ of \d+$/m)
  expect(text).toMatch(/^ {2}start → \w+ ok: 1$/m)
  expect(text).toMatch(/^ {2}src\/relay\/chain\/sealed\/\S+\.ts:\d+ .+$/m)
})
