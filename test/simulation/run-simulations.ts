import { availableParallelism } from 'node:os'
import { describeFailure } from './shrink-failure.ts'
import { inputFor, runSimulation, type SimulationInput } from './simulation-run.ts'
import { runTasks } from './worker-pool.ts'

/**
 * `SEEDS=20000 npm run simulate` runs that many seeds, from `FROM` on. `SEED=25`, or `WORLD` with a line that an
 * earlier run printed, runs one simulation and prints what the relay writes and warns.
 */

const { SEED, WORLD, SEEDS = '200', FROM = '1' } = process.env
const print = (line: string) => process.stdout.write(`${line}\n`)

// `| head` closes the pipe early, which is not an error.
process.stdout.on('error', () => process.exit())

if (SEED !== undefined || WORLD !== undefined) {
  const { settings, faults }: SimulationInput = WORLD === undefined ? inputFor(Number(SEED)) : JSON.parse(WORLD)
  print(JSON.stringify(settings))
  for (const fault of faults) print(JSON.stringify(fault))
  const result = await runSimulation({
    settings,
    faults,
    onWritten: (at, text) => print(`${Math.round(at)} ${text}`),
    warn: (at, kind, detail) => print(`${at} warns ${kind} ${JSON.stringify(detail)}`),
  })
  for (const { law, at, detail } of result.violations) print(`${law} at ${Math.round(at)} ms: ${detail}`)
} else {
  const startedAt = performance.now()
  let failed = 0
  await runTasks({
    tasks: Array.from({ length: Number(SEEDS) }, (_, nth) => ({ seed: Number(FROM) + nth })),
    workers: Math.max(1, Math.min(2, availableParallelism())),
    onResult: ({ task, failure, traces }) => {
      if (traces.length > 1 && new Set(traces).size > 1) print(`seed ${task.seed}: two runs wrote different tapes`)
      if (!failure) return
      failed += 1
      print(describeFailure(failure))
    },
  })
  print(`${SEEDS} seeds, ${failed} broke a law, ${Math.round((performance.now() - startedAt) / 1_000)} s`)
  if (failed > 0) process.exitCode = 1
}
