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

/** The house: each room and the rooms, or single files, that it may import from. A room may always import itself. */
const leaves = ['backoff.ts', 'bounded-map.ts', 'config.ts', 'log.ts', 'metrics.ts']
const ground = ['protocol']
const first = ['chain', 'tokens', 'tape']
const house: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  'backoff.ts': [],
  'bounded-map.ts': [],
  'config.ts': [],
  'log.ts': [],
  'metrics.ts': [],
  chain: [...ground, ...first, ...leaves],
  tokens: [...ground, ...first, ...leaves],
  tape: [...ground, ...first, ...leaves],
  ingest: [...ground, ...first, ...leaves],
  gateway: [...ground, ...first, ...leaves, 'edge'],
  docs: [...ground],
  edge: [...ground, ...first, ...leaves, 'gateway', 'docs'],
  'relay.ts': [...ground, ...first, ...leaves, 'ingest', 'edge', 'gateway'],
  'main.ts': [...ground, ...first, ...leaves, 'ingest', 'edge', 'docs', 'relay.ts', 'devnet'],
  devnet: ['protocol', 'chain/rpc/methods.ts'],
  client: ['protocol'],
  cli: ['client'],
  web: ['client'],
}
/** What a room may import from npm or Node, where that is bounded. */
const outside: Readonly<Record<string, readonly string[]>> = { protocol: ['zod'] }
/** Who listens to an Observable where the river ends; the rooms beside the house have none. */
const subscriber = 'relay.ts'
const beside = ['client', 'web', 'devnet', 'cli']
/** Who reads the environment. */
const readers = ['main.ts', 'cli']

const roomOf = (path: string): string => path.split('/')[0] ?? path
const isOwn = (specifier: string): boolean => specifier.startsWith('.')

/** Every import, re-export and dynamic import, however many lines it takes. */
const statement =
  /^[ \t]*(?:import\s+(?:[\w\s{},*$]+?\sfrom\s+)?|export\s+(?:type\s+)?(?:\*(?:\s+as\s+\w+)?|\{[^}]*\})\s+from\s+)['"]([^'"]+)['"]/gm
const dynamic = /\bimport\(\s*['"]([^'"]+)['"]/g

const specifiersOf = (text: string): string[] =>
  [...text.matchAll(statement), ...text.matchAll(dynamic)].map(([, specifier = '']) => specifier)

/** The arrows between our own files. What lies outside of `src`, such as package.json, is no room. */
const arrowsOf = (files: Files): Arrow[] =>
  [...files].flatMap(([from, text]) =>
    specifiersOf(text)
      .filter(isOwn)
      .map((specifier) => ({ from, to: posix.join(posix.dirname(from), specifier) }))
      .filter(({ to }) => !to.startsWith('..')),
  )

const wrongArrows = (files: Files): string[] =>
  arrowsOf(files)
    .filter(({ from, to }) => {
      const room = roomOf(from)
      return roomOf(to) !== room && !house[room]?.some((allowed) => allowed === roomOf(to) || allowed === to)
    })
    .map(({ from, to }) => `${from} → ${to}`)

const wrongPackages = (files: Files): string[] =>
  [...files].flatMap(([from, text]) =>
    specifiersOf(text)
      .filter((specifier) => !isOwn(specifier) && outside[roomOf(from)]?.includes(specifier) === false)
      .map((specifier) => `${from} → ${specifier}`),
  )

/** The files that say something which only `allowed` rooms or files may say. */
const sayers = (files: Files, words: RegExp, allowed: readonly string[]): string[] =>
  [...files]
    .filter(([path, text]) => !allowed.includes(roomOf(path)) && words.test(withoutComments(text)))
    .map(([path]) => path)

const withoutComments = (text: string): string =>
  text.replace(/^\s*\/\*[\s\S]*?\*\//gm, '').replace(/^\s*\/\/.*$/gm, '')
const observing = /\.subscribe\(/
const environment = /\bprocess\s*\.\s*env\b|\benv\b[^\n]*from\s+['"](?:node:)?process['"]/

/** Rings of files of which none can be read without the next, types included. */
function rings(files: Files): string[] {
  const next = Map.groupBy(arrowsOf(files), ({ from }) => from)
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

describe('the house', () => {
  it('has a place for every file', () => {
    expect([...files.keys()].filter((path) => house[roomOf(path)] === undefined)).toEqual([])
  })

  it('is read: the arrows that hold it together are seen', () => {
    const arrows = arrowsOf(files)
    const rooms = new Set(arrows.map(({ from, to }) => `${roomOf(from)} → ${roomOf(to)}`))
    for (const [upper, lower] of [
      ['main.ts', 'relay.ts'],
      ['relay.ts', 'edge'],
      ['relay.ts', 'ingest'],
      ['edge', 'tape'],
      ['ingest', 'tape'],
      ['tape', 'protocol'],
      ['protocol', 'protocol'],
    ]) {
      expect(rooms).toContain(`${upper} → ${lower}`)
    }
    expect(arrows.filter(({ to }) => !files.has(to))).toEqual([])
  })

  it('has arrows that point down or stay on their floor', () => {
    expect(wrongArrows(files)).toEqual([])
  })

  it('stands on zod alone', () => {
    expect(wrongPackages(files)).toEqual([])
  })

  it('has no ring of files', () => {
    expect(rings(files)).toEqual([])
  })

  it('subscribes to an Observable in relay.ts alone', () => {
    expect(sayers(files, observing, [subscriber, ...beside])).toEqual([])
  })

  it('reads the environment in main.ts alone', () => {
    expect(sayers(files, environment, readers)).toEqual([])
  })
})

describe('the law', () => {
  const made = (path: string, text: string): Files => new Map([[path, text]])

  it.each([
    ['protocol/a.ts', "import { b } from '../chain/b.ts'", 'protocol/a.ts → chain/b.ts'],
    ['chain/a.ts', "import { b } from '../ingest/b.ts'", 'chain/a.ts → ingest/b.ts'],
    ['tape/a.ts', "import type { B } from '../edge/b.ts'", 'tape/a.ts → edge/b.ts'],
    ['ingest/a.ts', "import {\n  b,\n  type C,\n} from '../edge/b.ts'", 'ingest/a.ts → edge/b.ts'],
    ['edge/a.ts', "export * from '../ingest/b.ts'", 'edge/a.ts → ingest/b.ts'],
    ['edge/a.ts', "export { b } from '../relay.ts'", 'edge/a.ts → relay.ts'],
    ['edge/deep/a.ts', "import '../../ingest/b.ts'", 'edge/deep/a.ts → ingest/b.ts'],
    ['tokens/a.ts', "const b = await import('../main.ts')", 'tokens/a.ts → main.ts'],
    ['devnet/a.ts', "import { b } from '../chain/rpc/client.ts'", 'devnet/a.ts → chain/rpc/client.ts'],
    ['relay.ts', "import { b } from './devnet/b.ts'", 'relay.ts → devnet/b.ts'],
    ['config.ts', "import { b } from './log.ts'", 'config.ts → log.ts'],
    ['web/a.tsx', "import { b } from '../edge/b.ts'", 'web/a.tsx → edge/b.ts'],
    ['attic/a.ts', "import { b } from '../protocol/b.ts'", 'attic/a.ts → protocol/b.ts'],
  ])('names the wrong arrow of %s', (path, text, arrow) => {
    expect(wrongArrows(made(path, text))).toEqual([arrow])
  })

  it.each([
    ['devnet/a.ts', "import { methods } from '../chain/rpc/methods.ts'"],
    ['edge/a.ts', "import { b } from '../tape/b.ts'\nimport { c } from './c.ts'\nimport { d } from '../log.ts'"],
    ['relay.ts', "import json from '../package.json' with { type: 'json' }"],
    ['edge/a.ts', "// import { b } from '../ingest/b.ts'\nconst text = `reads from '../ingest/b.ts'`"],
  ])('lets a right arrow of %s be', (path, text) => {
    expect(wrongArrows(made(path, text))).toEqual([])
  })

  it('names what the ground floor stands on beside zod', () => {
    const text = "import { z } from 'zod'\nimport { createHash } from 'node:crypto'"
    expect(wrongPackages(made('protocol/a.ts', text))).toEqual(['protocol/a.ts → node:crypto'])
  })

  it('names a ring', () => {
    const ring = new Map([
      ['edge/a.ts', "import { b } from './b.ts'"],
      ['edge/b.ts', "import type { C } from './c.ts'"],
      ['edge/c.ts', "import { a } from './a.ts'"],
    ])
    expect(rings(ring)).toEqual(['edge/a.ts → edge/b.ts → edge/c.ts → edge/a.ts'])
  })

  it('names who subscribes, and who reads the environment, without leave', () => {
    expect(sayers(made('edge/a.ts', 'turns.subscribe(deliver)'), observing, [subscriber])).toEqual(['edge/a.ts'])
    expect(sayers(made('edge/a.ts', '// a.subscribe(b)\nthis.#subscribe(a)'), observing, [subscriber])).toEqual([])
    expect(sayers(made('tape/a.ts', 'const { DATA_DIR } = process.env'), environment, readers)).toEqual(['tape/a.ts'])
    expect(sayers(made('tape/a.ts', "import { env } from 'node:process'"), environment, readers)).toEqual(['tape/a.ts'])
  })
})
