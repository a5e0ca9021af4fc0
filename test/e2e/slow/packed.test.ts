import { existsSync, globSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import packageJson from '../../../package.json' with { type: 'json' }
import lock from '../../../package-lock.json' with { type: 'json' }
import { recipes } from '../../../src/docs/recipes.ts'
import { ORIGIN } from '../../../src/docs/snippets.ts'
import { loadBoard } from '../../support/board-page.ts'
import type { ChildProgram } from '../../support/child-program.ts'
import { PackedPackage, repositoryRoot } from '../../support/packed-package.ts'
import { openChromium } from './chromium-readers.ts'
import { ExampleSite } from './example-site.ts'

/** The package as npm would publish it, installed in an empty folder. */

/** All packages that the program needs are in it. */
const SIZE_BOUND_BYTES = 6 * 2 ** 20

let installed: PackedPackage
let relay: ChildProgram
let url: string

beforeAll(async () => {
  installed = new PackedPackage()
  relay = installed.spawn('npx', 'stocktape', 'serve', '--port', '0')
  url = await relay.listeningUrl()
})

afterAll(async () => {
  await relay?.kill()
  installed?.remove()
})

describe('the files of the package', () => {
  const files = (pattern: string) => globSync(pattern, { cwd: installed.root })

  it('are the program, and the declarations of what can be imported', () => {
    const all = files('**/*').filter((file) => statSync(join(installed.root, file)).isFile())
    expect(all).toEqual(
      expect.arrayContaining([...['main.js', 'serve.js', 'client/index.d.ts', 'licenses.md', 'LICENSE', 'README.md']]),
    )
    expect(all.filter((file) => /\.map$|(^|\/)tests?\/|\.test\.|(?<!\.d)\.tsx?$/.test(file))).toEqual([])
    expect(files('**/*.d.ts').filter((file) => !/^(client|react|testing|generated)\//.test(file))).toEqual([])
    expect(
      files('{client,react,testing,generated}/**/*.js').filter((file) =>
        readFileSync(join(installed.root, file), 'utf8').includes('sourceMappingURL'),
      ),
    ).toEqual([])
  })

  it('are the whole package: nothing else is installed', () => {
    expect(readdirSync(join(installed.folder, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['stocktape'])
  })

  it('include what the program reads, and are few bytes', () => {
    const read = globSync('**/*', { cwd: join(repositoryRoot, 'src') }).filter(
      (file) => /\.(?!tsx?$)\w+$/.test(file) && !file.startsWith('board/'),
    )
    expect(read).toContain('protocol/README.md')
    const missing = read.filter((file) => file !== 'tsconfig.json' && !existsSync(join(installed.root, file)))
    expect(missing).toEqual([])
    const bytes = files('**/*').map((file) => statSync(join(installed.root, file)).size)
    expect(bytes.reduce((sum, size) => sum + size)).toBeLessThan(SIZE_BOUND_BYTES)
  })
})

describe('what the manifest says', () => {
  it('is all that the program and the board hold: no package that an audit of production would not see', () => {
    const licenses = ['licenses.md', 'board/licenses.md'].map((file) => readFileSync(join(installed.root, file), 'utf8'))
    const bundled = [...licenses.join('\n').matchAll(/^## (\S+) - /gm)].map(([, name]) => name)
    const isForDevelopment = new Map(Object.entries(lock.packages).map(([path, entry]) => [path, 'dev' in entry]))
    expect(bundled).toEqual(expect.arrayContaining(['ws', 'viem', 'preact']))
    expect(bundled.filter((name) => isForDevelopment.get(`node_modules/${name}`) !== false)).toEqual([])
  })

  it('leads to files: every link of its README has an address', () => {
    const readme = readFileSync(join(installed.root, 'README.md'), 'utf8')
    expect(
      [...readme.matchAll(/\]\(([^)]+)\)|(?:src|srcset)="([^"]+)"/g)].map(([, link, source]) => link ?? source),
    ).not.toContainEqual(expect.not.stringMatching(/^(https?:|#)/))
  })
})

describe('the program of the package', () => {
  it('prints its version and its help', async () => {
    expect(await installed.run('--version')).toEqual({
      code: 0,
      stdout: `${packageJson.version} (Node ${process.versions.node})\n`,
      stderr: '',
    })
    expect((await installed.run('help', 'conform')).stdout).toMatch(/^stocktape conform /)
  })

  it('serves the built-in chain and its documents', async () => {
    for (const path of ['/healthz', '/docs', '/docs/contract', '/openapi.json', '/asyncapi.json', '/types.ts', '/v1/status'])
      expect([path, (await fetch(`${url}${path}`)).status]).toEqual([path, 200])
  })

  it('serves the board, built, and has the licenses of what is in its script', async () => {
    expect(await loadBoard(url)).toContain('pendingLogs')
    const licenses = readFileSync(join(installed.root, 'board/licenses.md'), 'utf8')
    expect([...licenses.matchAll(/^## (\S+)/gm)].map(([, name]) => name)).toEqual(['fancy-canvas', 'lightweight-charts', 'preact'])
  })

  it('examines the built-in chain', async () => {
    const { code, stdout } = await installed.run('doctor')
    expect(stdout).toMatch(/source +pendingLogs/)
    expect(code).toBe(0)
  })

  it('tails it', async () => {
    const tail = installed.spawn('npx', 'stocktape', 'tail', 'AAPLc', '--url', url)
    onTestFinished(() => tail.kill())
    await tail.waitForOutput('stdout', /AAPLc +transfer /)
  })
})

describe('the client of the package', () => {
  const examples = ['README.md', 'docs/client.md'].flatMap((page) => {
    const text = readFileSync(join(repositoryRoot, page), 'utf8')
    return [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, source = '']) => source)
  })
  const firstExample = examples.find((source) => source.includes("from 'stocktape/client'")) ?? ''
  const small = "import { book, connect } from 'stocktape/client'\nexport default book(connect('http://localhost').updates('*'))\n"
  const strictest = ['--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess', '--noPropertyAccessFromIndexSignature']

  it('has types for a page, without those of Node', () => {
    const sources = { 'page.ts': small, 'mistake.ts': `${small}connect(1)\n` }
    const mistakes = installed.typeMistakes(sources, '--lib', 'es2022,dom', ...strictest)
    expect(mistakes).toMatch(/^mistake\.ts\(3,9\): error TS2345: [^\n]+\n$/)
  })

  it('has types for a program, without those of a browser, and runs the first example of the documents', async () => {
    // Every value, because a large transfer may take a while.
    const bot = firstExample.replace(/http:[^'"`]+/, url).replace(/, minValue: [\d_]+/, '')
    const nodeTypes = ['--types', 'node', '--typeRoots', join(repositoryRoot, 'node_modules/@types'), '--skipLibCheck']
    const sources = { 'program.ts': small, 'bot.ts': bot }
    expect(installed.typeMistakes(sources, '--lib', 'es2022', ...nodeTypes, ...strictest)).toBe('')
    const program = installed.spawn('node', 'bot.ts')
    onTestFinished(() => program.kill())
    await program.waitForOutput('stdout', /AAPLc/)
    expect(program.stderr).toBe('')
  })

  it('has a relay for tests, with which the example of the documents passes', async () => {
    const example = examples.find((source) => source.includes("from 'stocktape/test'")) ?? ''
    const nodeTypes = ['--types', 'node', '--typeRoots', join(repositoryRoot, 'node_modules/@types'), '--skipLibCheck']
    expect(installed.typeMistakes({ 'movement.test.ts': example }, '--lib', 'es2022', ...nodeTypes, ...strictest)).toBe('')
    const program = installed.spawn('node', '--test', '--test-reporter=tap', 'movement.test.ts')
    expect([await program.waitForExit(), program.stdout]).toEqual([0, expect.stringMatching(/^# pass 1$/m)])
  })
})

describe('the React entry of the package', () => {
  const example = recipes.find(({ id }) => id === 'react')?.source ?? ''

  it('has types, and renders live data in Chromium', async () => {
    const site = await ExampleSite.open({ onTestFinished }, installed.folder)
    const page = await site.addBundle('tape.jsx', example.replace(ORIGIN, url))
    const browser = await openChromium()
    onTestFinished(() => browser.close())
    const tab = await browser.newPage()
    await tab.goto(page)
    await tab.getByText(/^ready; live, source pendingLogs, 0 gaps$/).waitFor()
    await tab
      .getByText(/ AAPLc [\d.]+ shares, (preconfirmed|sealed)$/)
      .first()
      .waitFor()
    await tab.getByText(/^TSLAc [\d.]+ fresh$/).waitFor()
    const types = ['--jsx', 'react-jsx', '--lib', 'es2022,dom', '--skipLibCheck']
    const mistake = "import { useStock } from 'stocktape/react'\nexport const price: number = useStock('AAPLc').data?.nav.price\n"
    const typed = example.replace("document.getElementById('root')", '$&!')
    const mistakes = installed.typeMistakes({ 'tape.tsx': typed, 'price.ts': mistake }, ...types)
    expect(mistakes.match(/^\S+: error \S+/gm)).toEqual(['price.ts(2,14): error TS2322:'])
  })
})
