import { availableParallelism } from 'node:os'
import { EXIT_FAILED, EXIT_OK, runToExitCode, UsageError } from '../../src/lib/exit-codes.ts'
import { type CommandFlags, commonFlags, readFlags } from '../../src/lib/flags.ts'
import { flagTerms, helpText } from '../../src/lib/help.ts'
import { parseJson } from '../../src/lib/safe-json.ts'
import { ReachReport } from './reach-report.ts'
import { describeFailure } from './shrink-failure.ts'
import { inputFor, runSimulation, type SimulationInput } from './simulation-run.ts'
import { runTasks } from './worker-pool.ts'

const flags = {
  seeds: { type: 'string', description: 'how many seeds to run, two at the same time (200)' },
  from: { type: 'string', description: 'the first of them (1)' },
  reach: {
    type: 'boolean',
    description:
      'what they reached: how long each fault was active, pairs that never were at once, how the source changed, which evidence never came, branches of src/relay/chain and src/relay/ingest that never ran',
  },
  seed: { type: 'string', description: 'run one seed, and print what the relay writes and warns' },
  world: { type: 'string', description: 'the same for a world that an earlier run printed' },
  ...commonFlags,
} as const satisfies CommandFlags

const help = helpText(
  "npm run simulate -- [--seeds 20000] [--from 1] [--reach] | --seed 25 | --world '{…}'",
  'Runs simulated worlds: the relay on a chain, a node and a network with faults, in virtual time. Each seed is one world, and each law that it breaks is printed with the smallest world that still breaks it.',
  flagTerms(flags),
  'The variables SEEDS, FROM, SEED and WORLD do the same. Exit codes: 0 all laws held, 1 some did not, 2 a mistake.',
)

const { env } = process
const print = (line: string) => process.stdout.write(`${line}\n`)

// `| head` closes the pipe early, which is not an error.
process.stdout.on('error', () => process.exit())

process.exitCode = await runToExitCode('simulate', run)

async function run(): Promise<number> {
  const { reach, ...given } = readFlags(flags, process.argv.slice(2), { help }).values
  const { seeds = env.SEEDS ?? '200', from = env.FROM ?? '1', seed = env.SEED, world = env.WORLD } = given
  if (world !== undefined) return runOne(readWorld(world))
  if (seed !== undefined) return runOne(inputFor(wholeNumber('--seed', seed)))
  return runMany(wholeNumber('--from', from), wholeNumber('--seeds', seeds), reach ? new ReachReport() : null)
}

function wholeNumber(flag: string, text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new UsageError(`${flag} must be a whole number, not ${text}`)
}

function readWorld(text: string): SimulationInput {
  const world: unknown = parseJson(text)
  if (typeof world === 'object' && world !== null && 'settings' in world && 'faults' in world) return world as SimulationInput
  throw new UsageError('--world must be a line that an earlier run printed, such as {"settings":{…},"faults":[…]}')
}

async function runOne({ settings, faults }: SimulationInput): Promise<number> {
  print(JSON.stringify(settings))
  for (const fault of faults) print(JSON.stringify(fault))
  const result = await runSimulation({
    settings,
    faults,
    onWritten: (at, text) => print(`${Math.round(at)} ${text}`),
    log: (at, kind, detail) => print(`${at} logs ${kind} ${JSON.stringify(detail)}`),
  })
  for (const { law, at, detail } of result.violations) print(`${law} at ${Math.round(at)} ms: ${detail}`)
  return result.violations.length > 0 ? EXIT_FAILED : EXIT_OK
}

async function runMany(from: number, count: number, reach: ReachReport | null): Promise<number> {
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
  return failed > 0 ? EXIT_FAILED : EXIT_OK
}
