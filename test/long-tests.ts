import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { missingPackages } from './support/debian-programs.ts'

/** The tests that take longer than `npm test` may, in groups, and the slice of them that a landing runs. */

/** Each landing runs one slice, chosen by the hash of its commit, and what is in no slice. */
const SLICES = 6

/** Waits end with their event. Their limit is the same on every machine, and longer than any event takes. */
export const patience = {
  setupFiles: [join(import.meta.dirname, 'support/patient-waits.ts')],
  expect: { poll: { timeout: 15_000 } },
}

type Group = {
  readonly include: readonly string[]
  readonly exclude?: readonly string[]
  readonly workers: number
  /** Groups with a lower number run before. */
  readonly order: number
  readonly env?: Readonly<Record<string, string>>
  readonly globalSetup?: readonly string[]
  /** Whether every landing runs the whole group. */
  readonly isInEachLanding?: boolean
}

/** Files that wait for real deadlines, processes and nodes: too slow for `npm test`. */
export const slowFiles = [
  'test/integration/http/**/*.test.ts',
  'test/integration/stream/{connection-start,heartbeat,refused-requests,resume,since,slow-listeners,transports,websocket-requests}.test.ts',
  'test/e2e/{client-bars,history,metrics,quotes,real-node,relay-downtime,requested-faults}.test.ts',
  'test/e2e/{restart,source-failover,test-token,upstream-outage}.test.ts',
  'test/e2e/{bars,gateway}/**/*.test.ts',
  'test/bench/stream-readers.test.ts',
  'test/simulation/{client-streams,reach-report}.test.ts',
  'test/unit/{argument-bounds,relay/chain/any-json,relay/edge/history/history-export}.test.ts',
  'test/unit/{main.test.ts,tools/{backup/backup,completion,tail/tail}.test.ts,build/build-board.test.ts}',
  'test/unit/devnet/{devnet-main,devnet-restart}.test.ts',
  'test/unit/relay/tape/{open-tape,jetstream/unreadable-messages}.test.ts',
  'test/unit/docs/{asyncapi,typescript-types}.test.ts',
]
/** Too slow for `npm test` as well, and each landing runs them: fresh simulated worlds, and the store that `npm test` omits. */
export const gateFiles = [
  'test/simulation/{fresh-worlds,replay,request-counts,slow-regressions}.test.ts',
  'test/unit/relay/tape/jetstream/jetstream-tape.test.ts',
]
/** Clients reconnect at once, and the waits of clients and the start of the relay are measured: all need the whole machine. */
const alone = ['test/e2e/slow/{deploy,conform,newcomer,rolling-upgrade}.test.ts']

export const groups: Readonly<Record<string, Group>> = {
  'in each landing': { include: gateFiles, workers: 1, order: 0, isInEachLanding: true },
  /** Every rule of the contract on every form of the relay, and processes that restart, stop, fork and report, as the image runs them. */
  built: {
    include: [
      'test/conformance/*.test.ts',
      'test/e2e/{restart,gateway/redacted-secrets}.test.ts',
      'test/e2e/slow/{stopping,workers}.test.ts',
    ],
    workers: 2,
    order: 1,
    env: { STOCKTAPE_FORM: 'built' },
    globalSetup: [join(import.meta.dirname, 'support/built-setup.ts')],
    isInEachLanding: true,
  },
  // A third worker saves a minute of all slices, and lets waits end too early on a slow machine.
  'in parallel': { include: [...slowFiles, 'test/e2e/slow/**/*.test.ts'], exclude: alone, workers: 2, order: 2 },
  /** What measures time or memory. */
  'one by one': { include: ['test/nightly/**/*.test.ts', ...alone], workers: 1, order: 3 },
}

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** Seconds of each file of each group, as a whole run with `SLICE=all` last measured them. */
export const SECONDS_FILE = new URL('./long-tests.json', import.meta.url)
const seconds = JSON.parse(readFileSync(SECONDS_FILE, 'utf8')) as Readonly<Record<string, number>>
const NEW_FILE_SECONDS = 10

/** Returns the number of the slice that runs now, from 0; null for all of them. */
export function chosenSlice(): number | null {
  const { SLICE = '' } = process.env
  if (SLICE === 'all') return null
  if (/^[1-6]$/.test(SLICE)) return Number(SLICE) - 1
  if (SLICE !== '') throw new Error(`SLICE must be a number from 1 to ${SLICES}, or all, not ${SLICE}`)
  return Number.parseInt(commitOf('HEAD').slice(0, 8), 16) % SLICES
}

export const commitOf = (name: string): string => execFileSync('git', ['rev-parse', name], { cwd: ROOT, encoding: 'utf8' }).trim()

type GroupFile = { readonly group: string; readonly file: string; readonly cost: number }

/** Returns the files of each group that a slice runs. */
export function filesOfSlice(slice: number | null): ReadonlyMap<string, readonly string[]> {
  const files = Object.entries(groups).flatMap(([group, { include, exclude = [], workers }]) => {
    const excluded = new Set(exclude.flatMap((pattern) => globSync(pattern, { cwd: ROOT })))
    const found = include.flatMap((pattern) => globSync(pattern, { cwd: ROOT })).filter((file) => !excluded.has(file))
    return found.map((file): GroupFile => ({ group, file, cost: (seconds[`${group}: ${file}`] ?? NEW_FILE_SECONDS) / workers }))
  })
  const sliced = files.filter(({ group }) => !groups[group]?.isInEachLanding)
  const slices = spread(sliced)
  const chosen = slice === null ? files : files.filter((file) => !sliced.includes(file) || slices[slice]?.includes(file))
  return new Map(Object.keys(groups).map((name) => [name, chosen.filter(({ group }) => group === name).map(({ file }) => file)]))
}

/** The most expensive first, each to the slice that is the cheapest by then. */
function spread(files: readonly GroupFile[]): readonly (readonly GroupFile[])[] {
  const slices = Array.from({ length: SLICES }, () => ({ cost: 0, files: [] as GroupFile[] }))
  for (const file of files.toSorted((a, b) => b.cost - a.cost || (a.file < b.file ? -1 : 1))) {
    const [cheapest] = slices.toSorted((a, b) => a.cost - b.cost)
    cheapest?.files.push(file)
    if (cheapest) cheapest.cost += file.cost
  }
  return slices.map((slice) => slice.files)
}

/** Returns the texts of files, and of the helpers that they import. */
function sourcesOf(files: Iterable<string>): readonly string[] {
  const texts = new Map<string, string>()
  const read = (file: string): void => {
    if (texts.has(file) || !file.startsWith('test/') || !existsSync(join(ROOT, file))) return
    const text = readFileSync(join(ROOT, file), 'utf8')
    texts.set(file, text)
    for (const [, path = ''] of text.matchAll(/from '(\.[^']+)'/g)) read(normalize(join(dirname(file), path)))
  }
  for (const file of files) read(file)
  return [...texts.values()]
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.stdout.write(`${missingPackages(sourcesOf([...filesOfSlice(chosenSlice()).values()].flat()))}\n`)
}
