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

/** Every room of `src`, with the rooms that it may import from. It may always import itself. */
const rooms: Readonly<Record<string, readonly string[]>> = {
  lib: [],
  protocol: ['lib'],
  relay: ['protocol', 'lib'],
  devnet: ['protocol', 'lib'],
  sdk: [],
  board: ['sdk'],
  tools: ['relay', 'sdk', 'devnet', 'protocol', 'lib'],
  docs: ['protocol', 'relay/config', 'lib'],
  build: ['board', 'docs', 'protocol', 'relay', 'sdk', 'lib'],
  'main.ts': ['relay', 'tools', 'devnet', 'docs', 'lib'],
}
/** A part may import the parts in the lines above its own. Those in one line never import each other. */
const layers: Readonly<Record<string, readonly (readonly string[])[]>> = {
  relay: [
    ['commit.ts', 'log-lines.ts'],
    ['host.ts'],
    ['config', 'logger.ts', 'metrics.ts'],
    ['tape', 'market', 'chain'],
    ['tokens'],
    ['notes'],
    ['ingest', 'edge'],
    ['gateway'],
    ['relay.ts'],
    ['workers'],
    ['serve.ts'],
  ],
  'relay/chain': [['logs'], ['rpc'], ['blocks'], ['contracts', 'link', 'pools', 'sealed'], ['source']],
  'relay/edge': [['limits'], ['transport'], ['clients'], ['select'], ['live'], ['bars', 'history', 'status'], ['http']],
}
/** What a room may import from npm or Node, where that is bounded. */
const allowedPackages: Readonly<Record<string, readonly string[]>> = {
  // It reads the contract page, for the documents and the tools.
  'protocol/contract-examples.ts': ['node:fs'],
  'protocol/bars/bar-fold.ts': [],
  'protocol/decimal.ts': [],
  'protocol/key-life.ts': [],
  protocol: ['zod'],
  'sdk/client': [],
  'sdk/generated': [],
  'sdk/react': ['react'],
  'sdk/testing': ['node:crypto'],
}
/** The relay subscribes in one place; the programs beside it subscribe where they want. */
const subscribers = ['relay/relay.ts', 'relay/tape/jetstream/nats-link.ts', 'sdk', 'board', 'devnet', 'tools']
/** The last one prints a program that reads it. */
const environmentReaders = ['relay/serve.ts', 'tools', 'board/pages/program-for-filter.ts']
/** Everything else is handed its clocks, so that nothing measures time with a clock that can be set. */
const wallClockReaders = ['relay/relay.ts', 'devnet', 'tools/doctor', 'tools/tail', 'board', 'sdk/client/connect.ts', 'sdk/testing']

const FOLDER_BOUND_FILES = 20
/** Folders of files that are no code of ours to find the way in. */
const widerFolders = ['docs/programs', 'sdk/generated']
/** Names that may occur twice: every folder may have its entry, every class its options. */
const repeatableFileNames = ['index.ts', 'main.ts']
const repeatableTypes = ['Options']
/** The types of the protocol once more, printed from its schemas for clients that do not have them. */
const generatedFolder = 'sdk/generated'

const contains = (room: string, path: string): boolean => path === room || path.startsWith(`${room}/`)
const roomOf = (path: string): string | undefined => Object.keys(rooms).find((room) => contains(room, path))
/** The line of a folder's layers in which a path lies; -1 outside of them. */
const layerOf = (folder: string, path: string): number =>
  (layers[folder] ?? []).findIndex((line) => line.some((part) => contains(`${folder}/${part}`, path)))
const isSamePart = (folder: string, one: string, other: string): boolean =>
  (layers[folder] ?? []).flat().some((part) => contains(`${folder}/${part}`, one) && contains(`${folder}/${part}`, other))
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
    .filter((arrow) => !isBetweenRooms(arrow) || Object.keys(layers).some((folder) => isUpIn(folder, arrow)))
    .map(({ from, to }) => `${from} → ${to}`)

/** Whether the table of the rooms has the arrow. */
function isBetweenRooms({ from, to }: Arrow): boolean {
  const room = roomOf(from)
  return room !== undefined && [room, ...(rooms[room] ?? [])].some((allowed) => contains(allowed, to))
}

/** Whether both ends lie in a folder with layers, and the arrow does not point to a line above its own. */
function isUpIn(folder: string, { from, to }: Arrow): boolean {
  if (!contains(folder, from) || !contains(folder, to) || isSamePart(folder, from, to)) return false
  const [own, other] = [layerOf(folder, from), layerOf(folder, to)]
  return own < 0 || other < 0 || other >= own
}

const forbiddenPackages = (files: Files): string[] =>
  [...files].flatMap(([from, text]) => {
    const allowed = Object.entries(allowedPackages).find(([folder]) => contains(folder, from))?.[1]
    return specifiersIn(text)
      .filter((specifier) => !isOwn(specifier) && allowed?.includes(specifier) === false)
      .map((specifier) => `${from} → ${specifier}`)
  })

/** The folders that hold too many files to find one by reading their names. */
const wideFolders = (paths: Iterable<string>): string[] =>
  [...Map.groupBy(paths, (path) => posix.dirname(path))]
    .filter(([folder, inside]) => inside.length > FOLDER_BOUND_FILES && !widerFolders.includes(folder))
    .map(([folder]) => folder)

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
      .filter(([path]) => !contains(generatedFolder, path))
      .flatMap(([, text]) => [...new Set([...text.matchAll(declaration)].map(([, name = '']) => name))]),
    repeatableTypes,
  )

/** File names are unique in a product, so that a name alone says which file is meant. */
const repeatedFileNames = (files: Files): string[] =>
  [...Map.groupBy(files.keys(), roomOf).values()].flatMap((paths) =>
    repeated(
      paths.map((path) => posix.basename(path)),
      repeatableFileNames,
    ),
  )

const repeated = (names: readonly string[], allowed: readonly string[]): string[] =>
  [...Map.groupBy(names, (name) => name)]
    .filter(([name, all]) => all.length > 1 && !allowed.includes(name))
    .map(([name]) => name)
    .sort()

describe('src', () => {
  it('has a room for every file', () => {
    expect([...files.keys()].filter((path) => roomOf(path) === undefined)).toEqual([])
    expect([...files.keys()].filter((path) => !path.includes('/'))).toEqual(['main.ts'])
  })

  it('has no folder with more files than one can look through', () => {
    expect(wideFolders(readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((path) => /\.\w+$/.test(path)))).toEqual([])
  })

  it('is read completely: the imports between its rooms are found', () => {
    const arrows = arrowsIn(files)
    const partOf = (path: string) => path.split('/').slice(0, -1).slice(0, 2).join('/') || path
    const found = new Set(arrows.map(({ from, to }) => `${partOf(from)} → ${partOf(to)}`))
    for (const arrow of [
      'main.ts → relay',
      'relay → relay/ingest',
      'relay/edge → relay/tape',
      'relay/ingest → relay/tape',
      'relay/tape → protocol',
      'protocol → protocol',
      'board/feed → sdk/client',
      'tools/doctor → relay/chain',
    ])
      expect(found).toContain(arrow)
    expect(arrows.filter(({ to }) => !files.has(to))).toEqual([])
  })

  it('has no arrow up', () => {
    expect(arrowsUp(files)).toEqual([])
  })

  it('imports no package in protocol but zod, and none in the SDK but React', () => {
    expect(forbiddenPackages(files)).toEqual([])
  })

  it('has no cycle of files', () => {
    expect(cyclesIn(files)).toEqual([])
  })

  it('subscribes to Observables in relay.ts alone', () => {
    expect(filesWith(files, subscribing, subscribers)).toEqual([])
    expect(files.get('relay/relay.ts')?.match(new RegExp(subscribing, 'g'))).toHaveLength(1)
  })

  it('reads the environment in serve.ts and the tools alone', () => {
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
    ['protocol/a.ts', "import { b } from '../relay/chain/b.ts'", 'protocol/a.ts → relay/chain/b.ts'],
    ['relay/ingest/a.ts', "import {\n  b,\n  type C,\n} from '../edge/b.ts'", 'relay/ingest/a.ts → relay/edge/b.ts'],
    ['relay/edge/live/a.ts', "export * from '../../ingest/b.ts'", 'relay/edge/live/a.ts → relay/ingest/b.ts'],
    ['relay/edge/history/a.ts', "import '../status/b.ts'", 'relay/edge/history/a.ts → relay/edge/status/b.ts'],
    ['relay/tape/a.ts', "import type { b } from '../tokens/b.ts'", 'relay/tape/a.ts → relay/tokens/b.ts'],
    ['relay/tape/a.ts', "import type { b } from '../market/b.ts'", 'relay/tape/a.ts → relay/market/b.ts'],
    ['relay/tokens/a.ts', "const b = await import('../../main.ts')", 'relay/tokens/a.ts → main.ts'],
    ['relay/relay.ts', "import { b } from '../devnet/b.ts'", 'relay/relay.ts → devnet/b.ts'],
    ['attic/a.ts', "import { b } from '../protocol/b.ts'", 'attic/a.ts → protocol/b.ts'],
  ])('names the arrow up of %s: %s', (path, text, arrow) => {
    expect(arrowsUp(fileOf(path, text))).toEqual([arrow])
  })

  it('names a folder with too many files, a package that protocol must not import, and a cycle', () => {
    const paths = Array.from({ length: FOLDER_BOUND_FILES + 1 }, (_, index) => `relay/tape/${index}.ts`)
    expect([wideFolders(paths.slice(1)), wideFolders(paths)]).toEqual([[], ['relay/tape']])
    const text = "import { z } from 'zod'\nimport { createHash } from 'node:crypto'"
    expect(forbiddenPackages(fileOf('protocol/a.ts', text))).toEqual(['protocol/a.ts → node:crypto'])
    const cycle = new Map(['a.ts', 'b.ts', 'c.ts'].map((name, at) => [name, `import type { B } from './${'bca'[at]}.ts'`]))
    expect(cyclesIn(cycle)).toEqual(['a.ts → b.ts → c.ts → a.ts'])
  })
})
