import { createReadStream, existsSync } from 'node:fs'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compile } from 'svelte/compiler'
import { type Alias, build, type Plugin } from 'vite'
import { packageExports } from '../../../src/build/package-exports.ts'
import { createTempFolder } from '../../support/child-program.ts'
import { serve } from '../../support/loopback-server.ts'
import type { TestLifecycle } from '../../support/test-stack.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const source = (entry: string): string => join(root, 'src/sdk', entry, 'index.ts')

const types: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript' }

const packages = ['vue', 'lightweight-charts', 'react', 'react-dom', '@types/react', '@types/react-dom', 'svelte', 'viem']

/** A folder with pages, as a user has it after `npm install`, and its web server. */
export class ExampleSite {
  readonly folder: string
  readonly url: string
  readonly #aliases: Alias[]

  /** Without a folder that has the package, it gets the library from the sources. */
  static async open(test: TestLifecycle, installed?: string): Promise<ExampleSite> {
    const folder = installed ?? (await createTempFolder(test))
    const modules = join(folder, 'node_modules')
    await mkdir(join(modules, '@types'), { recursive: true })
    for (const name of packages.filter((name) => !existsSync(join(modules, name)))) {
      const [place = ''] = ['test/node_modules', 'node_modules'].map((of) => join(root, of, name)).filter(existsSync)
      await symlink(place, join(modules, name))
    }
    if (!installed) await installLibrary(folder)
    const url = await serve(test.onTestFinished, ({ url = '/' }, response) => {
      response.setHeader('content-type', types[extname(url)] ?? 'text/plain')
      createReadStream(join(folder, url))
        .on('error', () => response.writeHead(404).end())
        .pipe(response)
    })
    return new ExampleSite(folder, url, installed ? [] : ['client', 'react'].map(aliasOf))
  }

  private constructor(folder: string, url: string, aliases: Alias[]) {
    this.folder = folder
    this.url = url
    this.#aliases = aliases
  }

  /** Writes a page that needs no tool. Returns its address. */
  async addPage(name: string, html: string): Promise<string> {
    await writeFile(join(this.folder, `${name}.html`), html)
    return `${this.url}/${name}.html`
  }

  /** Bundles a program for a page. Returns the address of the page. */
  async addBundle(file: string, text: string): Promise<string> {
    const entry = join(this.folder, file)
    await writeFile(entry, text)
    await bundle(entry, join(this.folder, `${file}.js`), this.#aliases)
    return this.addPage(file, `<!doctype html><div id="root"></div><script type="module" src="${file}.js"></script>`)
  }
}

/** Puts the library into a folder, as `npm install` does. */
export async function installLibrary(folder: string): Promise<void> {
  const root = join(folder, 'node_modules/stocktape')
  await bundle(source('client'), join(root, 'client/index.js'))
  await writeFile(join(root, 'package.json'), JSON.stringify({ type: 'module', exports: packageExports }))
}

/** What svelte's own plugin does, for one component. */
const compileSvelte: Plugin = {
  name: 'svelte',
  transform: (text, id) => (id.endsWith('.svelte') ? compile(text, { filename: id }).js.code : null),
}

const aliasOf = (name: string): Alias => ({ find: `stocktape/${name}`, replacement: source(name) })

const bundle = (entry: string, file: string, alias: Alias[] = []) =>
  build({
    configFile: false,
    logLevel: 'silent',
    plugins: [compileSvelte],
    resolve: { alias, conditions: ['browser', 'module'] },
    define: { 'process.env.NODE_ENV': '"production"' },
    oxc: { jsx: { runtime: 'automatic', development: false } },
    build: {
      outDir: join(file, '..'),
      emptyOutDir: false,
      lib: { entry, formats: ['es'], fileName: () => file.split('/').at(-1) ?? '' },
    },
  })
