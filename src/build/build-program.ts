import { cp, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'vite'
import { documents } from '../docs/documents.ts'
import { version } from '../lib/version.ts'
import { readCommit } from '../relay/commit.ts'

/** Builds dist: main.js, the chunks that it loads on demand, and the files that they read. The program then needs no packages. */

const root = fileURLToPath(new URL('../..', import.meta.url))
const src = join(root, 'src')
const dist = join(root, 'dist')

/** Files that the program reads while it runs. */
const filesRead = ['protocol/README.md', 'docs/programs']

const TARGET = 'node22.18'

/** Replaces the module that makes the documents, because making them in each process would take time and megabytes. */
const builtDocuments: Plugin = {
  name: 'built documents',
  load: (id) => (id === join(src, 'docs/documents.ts') ? builtDocumentsModule : null),
}

/** Module that reads a document when it is first requested. */
const builtDocumentsModule = `import { readFileSync } from 'node:fs'
const read = (name) => readFileSync(new URL('./built/' + name, import.meta.url))
const lazily = (document, name) => {
  let bytes = null
  return { ...document, get bytes() { return (bytes ??= read(name)) } }
}
export const documents = new Map(
  JSON.parse(read('index.json')).map(([path, name, document]) => [path, lazily(document, name)]),
)`

/** All that the program reads of the manifest, and the commit that it is built from. */
const ownVersion: Plugin = {
  name: 'own version',
  load: (id) => {
    if (id === join(root, 'package.json')) return JSON.stringify({ version })
    return id === join(src, 'relay/commit.ts') ? `export const readCommit = () => ${JSON.stringify(readCommit())}` : null
  },
}

/** Lets a bundled module find its files: what the build makes beside the chunks, all else at the paths that it has in src. */
const ownPlaces: Plugin = {
  name: 'own places',
  transform(code, id) {
    if (!id.startsWith(`${src}/`) || !code.includes('import.meta.url')) return null
    const place = `new URL('./${relative(src, id).replace(/\.ts$/, '.js')}', import.meta.url)`
    const moved = code.replaceAll(/(?:["'][./]+\/dist\/([^"']+)["'], )?import\.meta\.url/g, (_, built) =>
      built ? `'./${built}', import.meta.url` : place,
    )
    return { code: moved, map: null }
  },
}

const result = await build({
  configFile: false,
  root,
  logLevel: 'warn',
  envDir: false,
  publicDir: false,
  // Ignores settings of PostCSS in folders above the source.
  css: { postcss: {} },
  plugins: [builtDocuments, ownVersion, ownPlaces],
  ssr: { noExternal: true },
  build: {
    ssr: join(src, 'main.ts'),
    write: false,
    target: TARGET,
    // Keeps names for stack traces.
    minify: false,
    sourcemap: true,
    license: { fileName: 'licenses.md' },
    rolldownOptions: { output: { entryFileNames: 'main.js', chunkFileNames: '[name].js' } },
  },
})
if (!('output' in result)) throw new Error('one build was asked for')
for (const file of result.output) await put(file.fileName, 'code' in file ? file.code : file.source)
await putDocuments()
for (const path of filesRead) await cp(join(src, path), join(dist, path), { recursive: true })

async function putDocuments(): Promise<void> {
  const named = [...documents].map(([path, document], index) => ({ path, name: `${index}.txt`, document }))
  const index = named.map(({ path, name, document: { bytes: _, ...rest } }) => [path, name, rest])
  await put('docs/built/index.json', JSON.stringify(index))
  for (const { name, document } of named) await put(`docs/built/${name}`, document.bytes)
}

async function put(name: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(join(dist, name)), { recursive: true })
  await writeFile(join(dist, name), content)
}
