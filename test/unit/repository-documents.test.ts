import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { quickStartLines } from '../../src/protocol/routes.ts'
import { Update } from '../../src/protocol/updates.ts'
import { faultTable } from '../simulation/fault-table.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const documents = globSync(['*.md', '.github/*.md', 'docs/**/*.md', 'src/**/*.md', 'test/*.md'], { cwd: root })
const readme = read('README.md')

describe('the README', () => {
  it('gives the lines that a start prints', () => {
    for (const line of quickStartLines('127.0.0.1:8080', 'AAPLc')) expect(readme).toContain(line)
  })

  it('has at most 150 lines and 1,200 words, and pictures of at most 300 KB for light and dark', () => {
    expect(readme.trim().split('\n').length).toBeLessThanOrEqual(150)
    expect(readme.trim().split(/\s+/).length).toBeLessThanOrEqual(1_200)
    const pictures = [...readme.matchAll(/(?:src|srcset)="([^"]+)"/g)].map(([, path = '']) => path)
    expect(pictures).toEqual(['dark', 'light'].map((scheme) => `docs/pictures/two-seconds-${scheme}.png`))
    for (const path of pictures) expect(statSync(join(root, path)).size).toBeLessThanOrEqual(300_000)
  })

  it('names how many laws there are', () => {
    const laws = [...read('docs/laws.md').matchAll(/^\| I\d+ \|/gm)]
    expect(readme).toContain(`[${laws.length} laws](docs/laws.md)`)
  })

  it('shows an excerpt of a message that the contract allows', () => {
    const [, text = ''] = /```json\n([\s\S]+?)\n```/.exec(readme) ?? []
    const excerpt = JSON.parse(text)
    const schema = Update.options.find((option) => option.shape.type.safeParse(excerpt.type).success)
    expect(schema?.partial().parse(excerpt)).toEqual(excerpt)
  })
})

it('docs/operate.md has a heading for each alert, in their order, to which its runbook_url leads', () => {
  const page = read('docs/operate.md')
  const rules = ['relay', 'market'].map((name) => read(`docs/monitoring/${name}-rules.yaml`)).join('')
  const alerts = [...rules.matchAll(/^ +- alert: (\w+)\n(?:(?!^ +- alert).*\n)*? +runbook_url: (\S+)$/gm)]
  expect(alerts.length).toBe([...rules.matchAll(/^ +- alert:/gm)].length)
  expect([...page.matchAll(/^### (Stocktape\w+)$/gm)].map(([, name]) => name)).toEqual(alerts.map(([, name]) => name))
  const runbook = packageJson.homepage.replace('#readme', '/blob/main/docs/operate.md#')
  for (const [, name = '', url] of alerts) expect(url).toBe(runbook + name.toLowerCase())
})

describe('the architecture page', () => {
  const page = read('docs/architecture.md')
  const pathOf = (file: string): string | undefined =>
    ['src/relay', 'src'].map((folder) => join(folder, file)).find((path) => existsSync(join(root, path)))
  const importsOf = (path: string): readonly string[] =>
    [...read(path).matchAll(/from '(\.[^']+)'/g)].map(([, specifier = '']) => join(dirname(path), specifier))

  it.each(['log', 'sealed block', 'resume'])('follows the path of a %s from file to file', (what) => {
    const [, section = ''] = new RegExp(`^## The path of a ${what}\\n([\\s\\S]+?)^## `, 'm').exec(page) ?? []
    const lines = section.split('\n').filter((line) => /^\d+\. /.test(line))
    expect(lines.length).toBeGreaterThan(5)
    expect(lines.length).toBeLessThanOrEqual(12)
    const named = [...new Set([...lines.join('\n').matchAll(/`([\w/-]+\.ts)`/g)].map(([, file = '']) => pathOf(file) ?? file))]
    const areJoined = (one: string, other: string) => importsOf(one).includes(other) || importsOf(other).includes(one)
    const apart = named.filter((path, index) => index > 0 && !named.slice(0, index).some((before) => areJoined(before, path)))
    expect(apart).toEqual([])
  })
})

describe('the documents', () => {
  it('name only scripts that exist', () => {
    const known = [...Object.keys(packageJson.scripts), 'ci', 'exec', 'install', 'publish']
    const named = documents.flatMap((path) =>
      [...read(path).matchAll(/`?npm (?:run )?([a-z]+)/g)].map(([, script = '']) => `${path}: ${script}`),
    )
    expect(named.filter((name) => !known.includes(name.split(': ')[1] ?? ''))).toEqual([])
    expect(named.length).toBeGreaterThan(10)
  })

  it('link only to files and headings that exist', () => {
    expect(documents.flatMap((path) => brokenLinks(path))).toEqual([])
  })

  it('name only source and test files that exist', () => {
    const missing = documents.flatMap((path) =>
      [...read(path).matchAll(/`((?:src|test|docs)\/[\w/.-]+\.(?:ts|md|ndjson|c))`/g)]
        .map(([, file = '']) => file)
        .filter((file) => !existsSync(join(root, file)))
        .map((file) => `${path}: ${file}`),
    )
    expect(missing).toEqual([])
  })

  it('name files in the overview as src has them, and quote the pipeline', () => {
    const overview = read('docs/architecture.md')
    const named = [...overview.matchAll(/`([\w-]+\/[\w/-]+\.ts)`/g)].map(([, file = '']) => file)
    expect(named.filter((file) => !['src/relay', 'src', '.'].some((folder) => existsSync(join(root, folder, file))))).toEqual([])
    expect(named.length).toBeGreaterThan(20)
    const [, quote = 'no code'] = /```ts\n([\s\S]+?)```/.exec(overview) ?? []
    expect(read('src/relay/ingest/pipeline.ts')).toContain(quote)
  })

  it.each(['docs/laws.md', 'docs/fault-table.md'])('name only tests that exist: %s', (page) => {
    const named = [...read(page).matchAll(/`(test\/[\w/.-]+)` › (.+?)(?=; `test|\s\|)/g)]
    const missing = named.filter(([, file = '', name = '']) => !read(file).includes(name))
    expect(missing.map(([text]) => text)).toEqual([])
    expect(named.length).toBeGreaterThan(20)
  })

  it('have one glossary, of at most fifty rows', () => {
    const rows = [...read('docs/glossary.md').matchAll(/^\| (?!word|---)/gm)]
    expect(rows.length).toBeGreaterThan(20)
    expect(rows.length).toBeLessThanOrEqual(50)
    expect(documents.filter((path) => /^\| word\b/m.test(read(path)))).toEqual(['docs/glossary.md'])
  })
})

describe('the fault table', () => {
  const rows = read('docs/fault-table.md')
    .split('\n')
    .filter((line) => /^\| \d/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()))

  it('has each fault once, under a number that stays, and documents name how many there are', () => {
    const numbers = rows.map(([, number]) => Number(number)).sort((one, other) => one - other)
    expect(numbers).toEqual(rows.map((_, index) => index + 1))
    for (const page of ['README.md', 'docs/laws.md', 'CHANGELOG.md']) expect(read(page)).toContain(`${rows.length} faults`)
  })

  it('says of each fault what the relay does, and names a test, or why there is none', () => {
    const incomplete = rows.filter(([, , fault, behaviour, test, , ...more]) => {
      const isTested = /^`test\/[\w/.-]+` › |^open: ./.test(test ?? '')
      return !fault || !behaviour || !isTested || more.join() !== ''
    })
    expect(incomplete).toEqual([])
  })

  it('names only faults that the simulation has, and each of them', () => {
    const named = rows.flatMap((row) => [...(row[5] ?? '').matchAll(/`(\w+)`/g)].map(([, kind]) => kind))
    expect([...new Set(named)].toSorted()).toEqual(Object.keys(faultTable).toSorted())
  })
})

/** The links of a document that lead nowhere in this repository. */
function brokenLinks(path: string): string[] {
  const links = [...read(path).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link)
  return links.filter((link) => !/^(https?|wss?|mailto):/.test(link) && !resolves(path, link)).map((link) => `${path}: ${link}`)
}

function resolves(path: string, link: string): boolean {
  const [file = '', heading] = link.split('#')
  const target = file === '' ? path : join(dirname(path), file)
  if (!existsSync(join(root, target))) return false
  return heading === undefined || headingsOf(target).includes(heading)
}

/** The anchors that a Markdown renderer gives the headings. */
const headingsOf = (path: string): string[] =>
  [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .trim()
      .replaceAll(' ', '-'),
  )
