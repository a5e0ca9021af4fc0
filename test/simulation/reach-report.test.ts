import { expect, it } from 'vitest'
import { ReachReport } from './reach-report.ts'
import { inputFor } from './simulation-run.ts'
import { runTasks } from './worker-pool.ts'

/** Its world has pools. */
const SEED = 4

it('a report of what a seed reaches lists faults, pairs of them, changes of the source and branches', async () => {
  const reach = new ReachReport()
  reach.addFaults(inputFor(SEED))
  await runTasks({
    tasks: [{ seed: SEED }],
    workers: 1,
    onResult: ({ statuses }) => reach.addStatuses(statuses),
    onReach: (reached) => reach.addWorker(reached),
  })
  const text = reach.lines().join('\n')
  for (const { kind } of inputFor(SEED).faults) expect(text).toMatch(new RegExp(`^${kind} +1 +\\d+$`, 'm'))
  expect(text).toMatch(/^pairs of faults at once: \d+ of \d+$/m)
  expect(text).toMatch(/^ {2}start → \w+ ok: 1$/m)
  expect(text).toMatch(/^trades by source and reason\n {2}\w+ \w+: [1-9]/m)
  expect(text).toMatch(/^ {2}src\/relay\/chain\/sealed\/\S+\.ts:\d+ .+$/m)
})
