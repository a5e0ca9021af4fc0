import { spawn, spawnSync } from 'node:child_process'
import { appendFileSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { EXIT_FAILED, EXIT_OK, runToExitCode, UsageError } from '../../src/lib/exit-codes.ts'
import { commonFlags, readFlags, switchFlag, textFlag } from '../../src/lib/flags.ts'
import { flagTerms, helpText } from '../../src/lib/help.ts'
import { drawMutants } from './draw-mutants.ts'
import { LIST_FILE, type Mutant, plantMutant, readLines, readMutants } from './mutant-list.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const RESULTS_FILE = new URL('./results.ndjson', import.meta.url)
const layers = ['unit', 'simulation', 'journeys'] as const
type Layer = (typeof layers)[number]

/** Kind of the mutants that are not drawn: what costs time alone, and so has a test that counts. */
const BY_HAND = 'by hand'
/** Journeys are slow: they are tried with what neither of the other layers found. */
const SLOWEST_LAYER = 'journeys'
/** Two mutants are tried at the same time, each in a copy of the project. */
const COPIES = 2
/** A layer that finds nothing in this time is stopped. */
const LAYER_MS = 60_000
/** A run in which no test ends for this long is stuck: the mutant is found. */
const STUCK_MS = 25_000
const STUCK = 'no test ended any more'
/** Files whose tests pass without a mutant. */
const soundFiles = new Set<string>()
const copiedNames = [
  'src',
  'test',
  'docs',
  '.ci',
  '.github',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'vitest.config.ts',
]
const copiedToo = ['README.md', 'CHANGELOG.md', 'LICENSE', 'Dockerfile', 'fly.toml', 'biome.json', '.nvmrc', '.gitignore', '.npmrc']

/** `stopped`: the layer did not end in time, and no test had failed. */
type Outcome = 'killed' | 'survived' | 'stopped'
type Result = {
  readonly mutant: string
  readonly layer: Layer
  readonly outcome: Outcome
  readonly by?: string
  readonly s: number
}

const flags = {
  layer: { type: 'string', choices: layers, description: `one of ${layers.join(', ')}; all if it is absent` },
  mutant: textFlag('one mutant, by its id'),
  since: textFlag('try again the mutants that were found by tests that changed since this commit, and those that nothing found'),
  table: switchFlag('print only the table'),
  draw: textFlag('draw a new list with this seed, and forget all results'),
  ...commonFlags,
} as const

const help = helpText(
  'npm run mutants -- [--layer unit] [--mutant chain-03] [--since COMMIT] | --table | --draw SEED',
  'Plants small mistakes into the source, one at a time, and runs the tests that depend on the file. Each result is a line of test/mutants/results.ndjson; what has a result is not run again, so a run can be ended and continued.',
  flagTerms(flags),
  'Exit codes: 0 every mutant is found or accepted, 1 some are not, 2 a mistake.',
)

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(EXIT_FAILED))
const isOwn = (path: string): boolean => basename(path) !== 'node_modules'
const print = (line = '') => process.stdout.write(`${line}\n`)
process.exitCode = await runToExitCode('mutants', run)

async function run(): Promise<number> {
  const { layer, mutant, since, table, draw } = readFlags(flags, process.argv.slice(2), { help }).values
  if (draw !== undefined) return drawList(draw)
  if (layer !== undefined && !layers.some((name) => name === layer)) throw new UsageError(`--layer is one of ${layers.join(', ')}`)
  const mutants = readMutants().filter(({ id }) => mutant === undefined || id === mutant)
  if (mutants.length === 0) throw new UsageError(`--mutant: there is no ${mutant ?? 'list; draw one'}`)
  if (since !== undefined) forgetTouched(since)
  if (!table) await tryAll(mutants, layer === undefined ? layers : [layer as Layer])
  return printTable(mutants)
}

function drawList(seed: string): number {
  const byHand = readMutants().filter(({ kind }) => kind === BY_HAND)
  const lines = [...drawMutants(seed), ...byHand].map((mutant) => JSON.stringify(mutant))
  writeFileSync(LIST_FILE, `${lines.join('\n')}\n`)
  rmSync(RESULTS_FILE, { force: true })
  print(`${lines.length} mutants`)
  return EXIT_OK
}

/** Forgets results of tests that changed, and all results of mutants that nothing found. */
function forgetTouched(commit: string): void {
  const { status, stdout } = spawnSync('git', ['diff', '--name-only', '--no-renames', commit, '--', 'test'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  if (status !== 0) throw new UsageError(`--since: there is no commit ${commit}`)
  const touched = new Set(stdout.split('\n'))
  const results = readLines<Result>(RESULTS_FILE)
  const found = new Set(results.filter(({ outcome }) => outcome === 'killed').map(({ mutant }) => mutant))
  const kept = results.filter(({ mutant, by }) => found.has(mutant) && !touched.has(by?.split(' › ')[0] ?? ''))
  writeFileSync(RESULTS_FILE, kept.map((result) => `${JSON.stringify(result)}\n`).join(''))
}

async function tryAll(mutants: readonly Mutant[], chosen: readonly Layer[]): Promise<void> {
  const done = new Set(readLines<Result>(RESULTS_FILE).map(({ mutant, layer }) => `${mutant} ${layer}`))
  const found = new Set(readLines<Result>(RESULTS_FILE).flatMap(({ mutant, outcome }) => (outcome === 'killed' ? [mutant] : [])))
  const tasks = chosen
    .flatMap((layer) => mutants.map((mutant) => ({ mutant, layer })))
    .filter(({ mutant, layer }) => !done.has(`${mutant.id} ${layer}`) && !(layer === SLOWEST_LAYER && found.has(mutant.id)))
  let begun = 0
  const work = async () => {
    const copy = copyProject()
    try {
      for (let task = tasks[begun]; task; task = tasks[begun]) {
        begun += 1
        const result = await tryMutant(copy, task.mutant, task.layer)
        if (!result) continue
        appendFileSync(RESULTS_FILE, `${JSON.stringify(result)}\n`)
        const { mutant, layer, outcome, by = '', s } = result
        print(`${begun}/${tasks.length} ${mutant} ${layer}: ${outcome} after ${s} s ${by}`)
      }
    } finally {
      rmSync(copy, { recursive: true })
    }
  }
  await Promise.all(Array.from({ length: COPIES }, work))
}

function copyProject(): string {
  const copy = mkdtempSync(join(tmpdir(), 'stocktape-mutant-'))
  for (const name of [...copiedNames, ...copiedToo]) cpSync(join(ROOT, name), join(copy, name), { recursive: true, filter: isOwn })
  for (const modules of ['node_modules', 'test/node_modules'])
    if (existsSync(join(ROOT, modules))) symlinkSync(join(ROOT, modules), join(copy, modules))
  return copy
}

async function tryMutant(copy: string, mutant: Mutant, layer: Layer): Promise<Result | null> {
  const path = join(copy, mutant.file)
  const source = readFileSync(path, 'utf8')
  const planted = plantMutant(source, mutant)
  if (planted === null) return null
  writeFileSync(path, planted)
  const startedAt = performance.now()
  try {
    const env = { MUTANT_LAYER: layer, MUTANT_FILE: mutant.file }
    const { outcome, by } = await runTests(copy, env, ['related', mutant.file])
    const killer = by?.split(' › ')[0] ?? ''
    const fails = async () => (await runTests(copy, env, ['run', killer])).outcome === 'killed'
    // A test that fails now and then, or without the mutant too, does not find it.
    let isSure = outcome !== 'killed' || by?.endsWith(STUCK) || (await fails())
    if (outcome === 'killed' && isSure && !soundFiles.has(killer)) {
      writeFileSync(path, source)
      isSure = !(await fails())
      if (isSure) soundFiles.add(killer)
    }
    const s = Math.round((performance.now() - startedAt) / 1_000)
    return { mutant: mutant.id, layer, outcome: isSure ? outcome : 'stopped', ...(isSure && by !== undefined && { by }), s }
  } finally {
    writeFileSync(path, source)
  }
}

type Message = { readonly failed: { readonly file: string; readonly name: string } } | { readonly passed: string }

/** Runs tests until one fails. */
async function runTests(
  cwd: string,
  settings: Readonly<Record<string, string>>,
  args: readonly string[],
): Promise<{ readonly outcome: Outcome; readonly by?: string }> {
  const env = { ...process.env, ...settings }
  const command = ['node_modules/vitest/vitest.mjs', ...args, '--run', '--bail', '1', '--config', 'test/mutants/layers.config.ts']
  const child = spawn(process.execPath, command, { cwd, env, stdio: ['ignore', 'ignore', 'ignore', 'pipe'], detached: true })
  const end = () => killTree(child.pid ?? 0)
  process.once('exit', end)
  let lastEndedAt = performance.now()
  let [killer, lastFile] = ['', '']
  createInterface({ input: child.stdio[3] as Readable }).on('line', (line) => {
    const message = JSON.parse(line) as Message
    lastEndedAt = performance.now()
    if ('passed' in message) lastFile = message.passed
    else if (killer === '') {
      killer = `${message.failed.file} › ${message.failed.name}`
      end()
    }
  })
  let isStopped = false
  const deadline = setTimeout(() => {
    isStopped = true
    end()
  }, LAYER_MS)
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  clearTimeout(deadline)
  process.off('exit', end)
  if (killer !== '') return { outcome: 'killed', by: killer }
  if (isStopped) {
    const isStuck = performance.now() - lastEndedAt > STUCK_MS
    return isStuck ? { outcome: 'killed', by: `${lastFile} › ${STUCK}` } : { outcome: 'stopped' }
  }
  return code === 0 ? { outcome: 'survived' } : { outcome: 'killed', by: `${lastFile} › an error outside of a test` }
}

/** Kills a process and all that it started: programs of a test have process groups of their own. */
function killTree(root: number): void {
  const { stdout } = spawnSync('ps', ['-eo', 'pid=,ppid='], { encoding: 'utf8' })
  const parents = stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
  const found = [root]
  for (const parent of found) found.push(...parents.filter(([, other]) => other === parent).map(([pid = 0]) => pid))
  for (const pid of found) {
    try {
      if (pid > 0) process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended already.
    }
  }
}

/** Prints what each layer found in each folder, and what nothing found. */
function printTable(mutants: readonly Mutant[]): number {
  const results = readLines<Result>(RESULTS_FILE)
  const isFoundBy = (id: string, layer: Layer) =>
    results.some(({ mutant, layer: tried, outcome }) => mutant === id && tried === layer && outcome === 'killed')
  const isFound = ({ id }: Mutant) => layers.some((layer) => isFoundBy(id, layer))
  const isGone = (mutant: Mutant) => plantMutant(readFileSync(join(ROOT, mutant.file), 'utf8'), mutant) === null
  const row = (name: string, cells: readonly (string | number)[]) => print(`| ${[name, ...cells].join(' | ')} |`)
  row('folder', ['mutants', ...layers, 'one layer alone', 'nothing'])
  row('---', Array(layers.length + 3).fill('--:'))
  const folders = new Set(mutants.map(({ id }) => id.replace(/-\d+$/, '')))
  for (const folder of [...folders, 'all']) {
    const inside = mutants.filter(({ id }) => folder === 'all' || id.startsWith(`${folder}-`))
    const alone = inside.filter(({ id }) => layers.filter((layer) => isFoundBy(id, layer)).length === 1)
    const found = layers.map((layer) => inside.filter(({ id }) => isFoundBy(id, layer)).length)
    row(folder, [inside.length, ...found, alone.length, inside.filter((mutant) => !isFound(mutant)).length])
  }
  const missed = mutants.filter((mutant) => !isFound(mutant))
  print()
  for (const mutant of missed) {
    const state = isGone(mutant) ? 'its line is gone' : (mutant.accepted ?? 'not accepted')
    print(`${mutant.id} ${mutant.kind}, ${mutant.file}: ${mutant.line}  →  ${mutant.changed}  (${state})`)
  }
  return missed.every((mutant) => mutant.accepted !== undefined || isGone(mutant)) ? EXIT_OK : EXIT_FAILED
}
