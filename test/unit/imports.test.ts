import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { describe, expect, it } from 'vitest'

/** The text of every file by its path under `src`. */
type Files = ReadonlyMap<string, string>
type Arrow = { readonly from: string; readonly to: string }

const src = new URL('../../src/', import.meta.url)
const files: Files = new Map(
  readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') || path.endsWith('.tsx'))
    .map((path) => [path.replaceAll('\\', '/'), readFileSync(new URL(path, src), 'utf8')]),
)

const leaves = [
  'config.ts',
  'key-settings.ts',
  'pool-settings.ts',
  'log.ts',
  'metrics.ts',
  'async-loop.ts',
  'backoff.ts',
  'bounded-map.ts',
  'turns.ts',
  'nearest-name.ts',
  'recurring-window.ts',
  'setting-readers.ts',
  'steady-clock.ts',
  'version.ts',
]
const chain = ['chain/rpc', 'chain/logs']
const data = ['protocol', 'tokens', 'tape']
const edgeBase = ['edge/limits', 'edge/transport']
/**
 * Every room, from the bottom up, with the rooms or single files that it may import from. A room may always import
 * itself. A path belongs to the longest room that it begins with.
 */
const rooms: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(leaves.map((leaf) => [leaf, []])),
  // The text of FAULTS is read where the faults are, for the relay and for the devnet alone.
  'config.ts': [
    'nearest-name.ts',
    'setting-readers.ts',
    'key-settings.ts',
    'pool-settings.ts',
    'devnet/faults/requested-faults.ts',
  ],
  'key-settings.ts': ['setting-readers.ts'],
  'pool-settings.ts': ['setting-readers.ts'],
  market: [],
  protocol: ['nearest-name.ts'],
  'chain/logs': ['protocol', ...leaves],
  'chain/rpc': ['protocol', 'chain/logs', ...leaves],
  'chain/link': ['protocol', ...chain, ...leaves],
  'chain/contracts': ['protocol', ...chain, ...leaves],
  'chain/pools': ['protocol', ...chain, ...leaves],
  'chain/sealed': ['protocol', ...chain, ...leaves],
  'chain/source': ['protocol', ...chain, 'chain/link', 'chain/sealed', ...leaves],
  tokens: ['protocol', ...chain, 'chain/pools', ...leaves],
  tape: ['protocol', 'tokens', 'market', ...leaves],
  ingest: [...data, ...chain, 'chain/contracts', 'chain/pools', 'chain/sealed', 'chain/source', 'market', ...leaves],
  docs: ['protocol', 'version.ts'],
  // A built program has the documents in it. Its bill of materials is made from what was built.
  'build-program.ts': ['docs'],
  'build-sbom.ts': [],
  'edge/limits': ['protocol', ...leaves],
  'edge/transport': ['protocol', 'edge/limits', ...leaves],
  'edge/select': [...data, ...edgeBase, ...leaves],
  'edge/live': [...data, ...edgeBase, 'edge/select', ...leaves],
  'edge/history': [...data, ...edgeBase, 'edge/select', 'edge/live', ...leaves],
  'edge/status': [...data, ...edgeBase, 'edge/select', 'edge/live', ...leaves],
  'edge/http': [...data, ...edgeBase, 'edge/select', 'edge/live', 'edge/history', 'edge/status', 'docs', ...leaves],
  gateway: ['protocol', ...chain, 'chain/link', 'chain/sealed', 'chain/source', ...edgeBase, ...leaves],
  // The tape carries what ingesters send each other, and does not read it.
  'configured-tape.ts': ['tape', 'ingest/peers.ts', ...leaves],
  'serving.ts': [...data, 'chain', 'edge', 'gateway', ...leaves],
  'relay.ts': [...data, 'configured-tape.ts', 'serving.ts', 'chain', 'ingest', 'edge/limits', 'gateway', ...leaves],
  workers: [...data, 'relay.ts', 'chain/source', 'edge/http', 'edge/limits', ...leaves],
  'start-relay.ts': ['relay.ts', ...leaves],
  // The doctor runs the parts of the relay that read an upstream, without the relay.
  doctor: ['protocol', 'tokens', 'chain', 'gateway/redact.ts', 'cli/command.ts', 'upstream.ts', ...leaves],
  'upstream.ts': ['config.ts', 'tokens', 'devnet'],
  'serve.ts': [...data, 'edge/http', 'docs', 'relay.ts', 'start-relay.ts', 'workers', 'upstream.ts', 'cli/command.ts', ...leaves],
  'main.ts': ['serve.ts', 'cli', 'conform', 'doctor', 'config.ts', 'nearest-name.ts', 'version.ts'],
  devnet: ['protocol', 'chain/rpc/method-params.ts', 'nearest-name.ts', 'recurring-window.ts', 'setting-readers.ts'],
  client: [],
  // An entry of the package, for pages that use React.
  react: ['client'],
  conform: ['protocol', 'cli/command.ts', 'nearest-name.ts'],
  cli: ['client', 'protocol', 'nearest-name.ts', 'bounded-map.ts'],
  // A page, and the script that builds it.
  web: ['client'],
}
/** What a room may import from npm or Node, where that is bounded. */
const allowedPackages: Readonly<Record<string, readonly string[]>> = { protocol: ['zod'], client: [], react: ['react'] }
/** The relay subscribes in one place; the programs beside it subscribe where they want. */
const subscribers = ['relay.ts', 'client', 'web', 'devnet', 'cli', 'doctor', 'tape/jetstream/nats-stream.ts']
const environmentReaders = ['serve.ts', 'cli', 'doctor', 'conform']
/** Everything else is handed its clocks, so that nothing measures time with a clock that can be set. */
const wallClockReaders = ['relay.ts', 'devnet', 'doctor', 'web']

/** Names that may occur twice: every folder may have its entry, every class its options. */
const repeatableFileNames = ['index.ts', 'main.ts']
const repeatableTypes = ['Options']
/** The types of the protocol once more, printed from its schemas for clients that do not have them. */
const generatedFile = 'client/messages.ts'

const contains = (room: string, path: string): boolean => path === room || path.startsWith(`${room}/`)
const roomOf = (path: string): string | undefined =>
  Object.keys(rooms)
    .filter((room) => contains(room, path))
    .sort((a, b) => b.length - a.length)[0]
const isOwn = (specifier: string): boolean => specifier.startsWith('.')

/** Every import, re-export and dynamic import, however many lines it takes. */
const statement =
  /^[ \t]*(?:import\s+(?:[\w\s{},*$]+?\sfrom\s+)?|export\s+(?:type\s+)?(?:\*(?:\s+as\s+\w+)?|\{[^}]*\})\s+from\s+)['"]([^'"]+)['"]/gm
const dynamicImport = /\bimport\(\s*['"]([^'"]+)['"]/g

const specifiersIn = (text: string): string[] =>
  [...text.matchAll(statement), ...text.matchAll(dynamicImport)].map(([, specifier = '']) => specifier)

/** The imports between our own files. What lies outside of `src`, such as package.json, is no room. */
const arrowsIn = (files: Files): Arrow[] =>
  [...files].flatMap(([from, text]) =>
    specifiersIn(text)
      .filter(isOwn)
      .map((specifier) => ({ from, to: posix.join(posix.dirname(from), specifier) }))
      .filter(({ to }) => !to.startsWith('..')),
  )

const arrowsUp = (files: Files): string[] =>
  arrowsIn(files)
    .filter(({ from, to }) => {
      const room = roomOf(from)
      return room === undefined || ![room, ...(rooms[room] ?? [])].some((allowed) => contains(allowed, to))
    })
    .map(({ from, to }) => `${from} → ${to}`)

const forbiddenPackages = (files: Files): string[] =>
  [...files].flatMap(([from, text]) =>
    specifiersIn(text)
      .filter((specifier) => !isOwn(specifier) && allowedPackages[roomOf(from) ?? '']?.includes(specifier) === false)
      .map((specifier) => `${from} → ${specifier}`),
  )

/** The files whose code matches, outside of the rooms and files where it may. */
const filesWith = (files: Files, pattern: RegExp, allowed: readonly string[]): string[] =>
  [...files]
    .filter(([path, text]) => !allowed.some((room) => contains(room, path)) && pattern.test(withoutComments(text)))
    .map(([path]) => path)

const withoutComments = (text: string): string => text.replace(/^\s*\/\*[\s\S]*?\*\//gm, '').replace(/^\s*\/\/.*$/gm, '')
const subscribing = /\.subscribe\(/
const readingWallClock = /\bDate\.now\b|\bnew Date\(\)|(?<!new )\bDate\(/
const readingEnvironment = /\bprocess\s*\.\s*env\b|\benv\b[^\n]*from\s+['"](?:node:)?process['"]/

/** Cycles of files, type imports included. */
function cyclesIn(files: Files): string[] {
  const next = Map.groupBy(arrowsIn(files), ({ from }) => from)
  const found: string[] = []
  const done = new Set<string>()
  const walk = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path)
    if (start >= 0) {
      found.push([...trail.slice(start), path].join(' → '))
      return
    }
    if (done.has(path)) return
    for (const { to } of next.get(path) ?? []) walk(to, [...trail, path])
    done.add(path)
  }
  for (const path of files.keys()) walk(path, [])
  return found
}

const declaration = /^(?:export )?(?:declare )?(?:abstract )?(?:type|class|interface|enum) (\w+)/gm

/** The top-level types, classes and interfaces that several files declare. */
const repeatedTypes = (files: Files): string[] =>
  repeated(
    [...files]
      .filter(([path]) => path !== generatedFile)
      .flatMap(([, text]) => [...new Set([...text.matchAll(declaration)].map(([, name = '']) => name))]),
    repeatableTypes,
  )

const repeatedFileNames = (files: Files): string[] =>
  repeated(
    [...files.keys()].map((path) => posix.basename(path)),
    repeatableFileNames,
  )

const repeated = (names: readonly string[], allowed: readonly string[]): string[] =>
  [...Map.groupBy(names, (name) => name)]
    .filter(([name, all]) => all.length > 1 && !allowed.includes(name))
    .map(([name]) => name)
    .sort()

describe('src', () => {
  it('has a room for every file', () => {
    expect([...files.keys()].filter((path) => roomOf(path) === undefined)).toEqual([])
  })

  it('is read completely: the imports between its rooms are found', () => {
    const arrows = arrowsIn(files)
    const found = new Set(arrows.map(({ from, to }) => `${roomOf(from)} → ${roomOf(to)}`))
    for (const arrow of [
      'main.ts → serve.ts',
      'serve.ts → relay.ts',
      'serving.ts → edge/live',
      'relay.ts → ingest',
      'edge/http → edge/history',
      'edge/live → tape',
      'ingest → tape',
      'tape → protocol',
      'protocol → protocol',
    ])
      expect(found).toContain(arrow)
    expect(arrows.filter(({ to }) => !files.has(to))).toEqual([])
  })

  it('has no arrow up', () => {
    expect(arrowsUp(files)).toEqual([])
  })

  it('imports zod alone in protocol, and nothing in client', () => {
    expect(forbiddenPackages(files)).toEqual([])
  })

  it('has no cycle of files', () => {
    expect(cyclesIn(files)).toEqual([])
  })

  it('subscribes to Observables in relay.ts alone', () => {
    expect(filesWith(files, subscribing, subscribers)).toEqual([])
    expect(files.get('relay.ts')?.match(new RegExp(subscribing, 'g'))).toHaveLength(1)
  })

  it('reads the environment in serve.ts and cli alone', () => {
    expect(filesWith(files, readingEnvironment, environmentReaders)).toEqual([])
  })

  it('asks the wall clock in relay.ts alone', () => {
    expect(filesWith(files, readingWallClock, wallClockReaders)).toEqual([])
  })

  it('declares each type name in one file', () => {
    expect(repeatedTypes(files)).toEqual([])
  })

  it('has each file name once', () => {
    expect(repeatedFileNames(files)).toEqual([])
  })
})

describe('a check of the imports', () => {
  const fileOf = (path: string, text: string): Files => new Map([[path, text]])

  it.each([
    ['protocol/a.ts', "import { b } from '../chain/logs/b.ts'", 'protocol/a.ts → chain/logs/b.ts'],
    ['chain/rpc/a.ts', "import { b } from '../source/b.ts'", 'chain/rpc/a.ts → chain/source/b.ts'],
    ['chain/source/a.ts', "import { b } from '../../ingest/b.ts'", 'chain/source/a.ts → ingest/b.ts'],
    ['tape/a.ts', "import type { B } from '../edge/live/b.ts'", 'tape/a.ts → edge/live/b.ts'],
    ['market/a.ts', "import { b } from '../protocol/b.ts'", 'market/a.ts → protocol/b.ts'],
    ['tape/index/a.ts', "import type { B } from '../../ingest/b.ts'", 'tape/index/a.ts → ingest/b.ts'],
    ['ingest/a.ts', "import {\n  b,\n  type C,\n} from '../edge/select/b.ts'", 'ingest/a.ts → edge/select/b.ts'],
    ['edge/live/a.ts', "export * from '../../ingest/b.ts'", 'edge/live/a.ts → ingest/b.ts'],
    ['edge/http/a.ts', "export { b } from '../../relay.ts'", 'edge/http/a.ts → relay.ts'],
    ['edge/http/a.ts', "import { b } from '../../gateway/b.ts'", 'edge/http/a.ts → gateway/b.ts'],
    ['edge/limits/a.ts', "import '../transport/b.ts'", 'edge/limits/a.ts → edge/transport/b.ts'],
    ['edge/select/a.ts', "import '../live/b.ts'", 'edge/select/a.ts → edge/live/b.ts'],
    ['gateway/a.ts', "import { b } from '../edge/select/b.ts'", 'gateway/a.ts → edge/select/b.ts'],
    ['tokens/a.ts', "const b = await import('../main.ts')", 'tokens/a.ts → main.ts'],
    ['devnet/a.ts', "import { b } from '../chain/rpc/client.ts'", 'devnet/a.ts → chain/rpc/client.ts'],
    ['relay.ts', "import { b } from './devnet/b.ts'", 'relay.ts → devnet/b.ts'],
    ['config.ts', "import { b } from './log.ts'", 'config.ts → log.ts'],
    ['web/a.tsx', "import { b } from '../edge/live/b.ts'", 'web/a.tsx → edge/live/b.ts'],
    ['attic/a.ts', "import { b } from '../protocol/b.ts'", 'attic/a.ts → protocol/b.ts'],
    ['edge/attic/a.ts', "import { b } from '../../protocol/b.ts'", 'edge/attic/a.ts → protocol/b.ts'],
  ])('names the arrow up of %s: %s', (path, text, arrow) => {
    expect(arrowsUp(fileOf(path, text))).toEqual([arrow])
  })

  it.each([
    ['devnet/a.ts', "import { methods } from '../chain/rpc/method-params.ts'"],
    ['edge/live/a.ts', "import { b } from '../../tape/b.ts'\nimport { c } from './c.ts'\nimport { d } from '../../log.ts'"],
    ['relay.ts', "import json from '../package.json' with { type: 'json' }"],
    ['edge/live/a.ts', "// import { b } from '../../ingest/b.ts'\nconst text = `reads from '../../ingest/b.ts'`"],
  ])('accepts %s: %s', (path, text) => {
    expect(arrowsUp(fileOf(path, text))).toEqual([])
  })

  it('names a package that protocol must not import', () => {
    const text = "import { z } from 'zod'\nimport { createHash } from 'node:crypto'"
    expect(forbiddenPackages(fileOf('protocol/a.ts', text))).toEqual(['protocol/a.ts → node:crypto'])
  })

  it('names a cycle', () => {
    const cycle = new Map([
      ['edge/live/a.ts', "import { b } from './b.ts'"],
      ['edge/live/b.ts', "import type { C } from './c.ts'"],
      ['edge/live/c.ts', "import { a } from './a.ts'"],
    ])
    expect(cyclesIn(cycle)).toEqual(['edge/live/a.ts → edge/live/b.ts → edge/live/c.ts → edge/live/a.ts'])
  })

  it('names a file that subscribes, or reads the environment or the wall clock, and must not', () => {
    const subscribed = (path: string, text: string) => filesWith(fileOf(path, text), subscribing, subscribers)
    expect(subscribed('edge/live/a.ts', 'batches.subscribe(deliver)')).toEqual(['edge/live/a.ts'])
    expect(subscribed('edge/live/a.ts', '// a.subscribe(b)\nthis.#subscribe(a)')).toEqual([])
    const read = (path: string, text: string) => filesWith(fileOf(path, text), readingEnvironment, environmentReaders)
    expect(read('tape/a.ts', 'const { DATA_DIR } = process.env')).toEqual(['tape/a.ts'])
    expect(read('tape/a.ts', "import { env } from 'node:process'")).toEqual(['tape/a.ts'])
    for (const text of ['Date.now()', 'openClock(Date.now)', 'new Date()', 'Date()'])
      expect(filesWith(fileOf('tape/a.ts', text), readingWallClock, wallClockReaders), text).toEqual(['tape/a.ts'])
    expect(filesWith(fileOf('tape/a.ts', 'new Date(time)'), readingWallClock, wallClockReaders)).toEqual([])
  })

  it('names a type that two files declare, and a file name that occurs twice', () => {
    const twins = new Map([
      ['chain/rpc/one.ts', 'type Twin = 1\ntype Options = 1\nfunction f() {\n  type Inner = 1\n}'],
      ['devnet/one.ts', 'export class Twin {}\nexport type Options = 2\ntype Inner = 1'],
      ['chain/index.ts', 'type Twinned = 1\ntype Overload = 1\ntype Overload = 1'],
      ['tape/index.ts', 'const Twinned = 1'],
    ])
    expect(repeatedTypes(twins)).toEqual(['Twin'])
    expect(repeatedFileNames(twins)).toEqual(['one.ts'])
  })
})
