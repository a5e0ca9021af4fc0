import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { ReachReport } from './reach-report.ts'
import { describeFailure } from './shrink-failure.ts'
import { inputFor, runSimulation, type SimulationInput } from './simulation-run.ts'
import { runTasks } from './worker-pool.ts'

/**
 * `npm run simulate -- --seeds 20000` runs that many seeds, from `--from` on. `--reach` prints what they reached: how often each
 * fault was active, which pairs of faults never were at once, how the source changed, which evidence never came in a state of the
 * source, and which branches of src/relay/chain and src/relay/ingest never ran. `--seed 25`, or `--world` with a line that an earlier run
 * printed, runs one simulation and prints what the relay writes and warns. The variables SEEDS, FROM, SEED and WORLD do the same.
 */

const { env } = process
const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: env.SEEDS ?? '200' },
    from: { type: 'string', default: env.FROM ?? '1' },
    seed: { type: 'string', ...(env.SEED === undefined ? {} : { default: env.SEED }) },
    world: { type: 'string', ...(env.WORLD === undefined ? {} : { default: env.WORLD }) },
    reach: { type: 'boolean', default: false },
  },
})
const print = (line: string) => process.stdout.write(`${line}\n`)

// `| head` closes the pipe early, which is not an error.
process.stdout.on('error', () => process.exit())

if (values.seed !== undefined || values.world !== undefined) {
  await runOne(values.world === undefined ? inputFor(Number(values.seed)) : JSON.parse(values.world))
} else await runMany(Number(values.from), Number(values.seeds), values.reach ? new ReachReport() : null)

async function runOne({ settings, faults }: SimulationInput): Promise<void> {
  print(JSON.stringify(settings))
  for (const fault of faults) print(JSON.stringify(fault))
  const result = await runSimulation({
    settings,
    faults,
    onWritten: (at, text) => print(`${Math.round(at)} ${text}`),
    warn: (at, kind, detail) => print(`${at} warns ${kind} ${JSON.stringify(detail)}`),
  })
  for (const { law, at, detail } of result.violations) print(`${law} at ${Math.round(at)} ms: ${detail}`)
}

async function runMany(from: number, count: number, reach: ReachReport | null): Promise<void> {
  const startedAt = performance.now()
  let failed = 0
  await runTasks({
    tasks: Array.from({ length: count }, (_, nth) => ({ seed: from + nth })),
    workers: Math.max(1, Math.min(2, availableParallelism())),
    onResult: ({ task: { seed = 1 }, failure, traces, statuses }) => {
      reach?.addFaults(inputFor(seed))
      reach?.addStatuses(statuses)
      if (traces.length > 1 && new Set(traces).size > 1) print(`seed ${seed}: two runs wrote different tapes`)
      if (!failure) return
      failed += 1
      print(describeFailure(failure))
    },
    ...(reach ? { onReach: (reached) => reach.addWorker(reached) } : {}),
  })
  print(`${count} seeds, ${failed} broke a law, ${Math.round((performance.now() - startedAt) / 1_000)} s`)
  for (const line of reach?.lines() ?? []) print(line)
  if (failed > 0) process.exitCode = 1
}
