import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import type { Plugin } from 'vite'

/** Builds the board into dist/board, unless the board there was built from the same sources. */

const root = fileURLToPath(new URL('../..', import.meta.url))
const outDir = join(root, 'dist/board')
const digestName = 'sources.sha256'

/** The board, and the card of a symbol for the pages of others. */
const pages = ['index.html', 'embed/index.html']

type NewFile = { readonly name: string; readonly content: string | Uint8Array }

/** Puts the script of the theme into the head of the page. It is no module, because those run after the first paint. */
const blockingTheme = (): Plugin => ({
  name: 'blocking theme',
  buildStart() {
    this.emitFile({ type: 'asset', name: 'theme.js', source: readFileSync(join(root, 'src/board/theme.js'), 'utf8') })
  },
  transformIndexHtml: {
    order: 'post',
    handler: (_, { bundle, path }) => {
      const file = Object.values(bundle ?? {}).find((output) => output.type === 'asset' && output.names.includes('theme.js'))
      if (!file) throw new Error('the script of the theme is missing')
      return [
        { tag: 'script', attrs: { src: `${'../'.repeat(path.split('/').length - 2) || './'}${file.fileName}` }, injectTo: 'head' },
      ]
    },
  },
})

/** The license of the fonts must be part of every copy, as those of the packages. */
const fontLicense = (): Plugin => ({
  name: 'license of the fonts',
  buildStart() {
    this.emitFile({ type: 'asset', fileName: 'OFL.txt', source: readFileSync(join(root, 'src/board/fonts/OFL.txt'), 'utf8') })
  },
})

const digest = digestOfSources()
if (digest !== readDigest()) await replaceBoard()

/** Returns a digest of all that the build reads: the packages, the settings of TypeScript, and the sources. */
function digestOfSources(): string {
  const hash = createHash('sha256')
  for (const path of globSync(['package-lock.json', 'tsconfig.json', 'src/{board,sdk}/**/*.*'], { cwd: root }).sort())
    hash.update(`${path}\n`).update(readFileSync(join(root, path)))
  return hash.digest('hex')
}

function readDigest(): string | null {
  try {
    return readFileSync(join(outDir, digestName), 'utf8')
  } catch {
    return null
  }
}

/** A relay also runs without a board, so only a mistake in the sources makes the build fail. */
async function replaceBoard(): Promise<void> {
  const vite = await import('vite').catch((failure: unknown) => report('its tools are development dependencies', failure))
  if (!vite) return
  const files = await build(vite).catch((failure: unknown) => report('its sources have a mistake', failure))
  if (files) await write(files).catch((failure: unknown) => report('its folder cannot be written', failure))
  else process.exitCode = 1
}

function report(reason: string, failure: unknown): null {
  const details = failure instanceof Error ? failure.message : String(failure)
  process.stderr.write(`stocktape: the board is not built: ${reason}: ${stripVTControlCharacters(details).trim()}\n`)
  return null
}

/** Builds in memory, so that an interrupted build leaves no files. */
async function build(vite: typeof import('vite')): Promise<readonly NewFile[]> {
  const result = await vite.build({
    configFile: false,
    root: join(root, 'src/board'),
    base: './',
    logLevel: 'warn',
    // Ignores settings of PostCSS in folders above the board.
    css: { postcss: {} },
    // Some packages have other files for development, and the environment may ask for them.
    resolve: { conditions: ['module', 'browser', 'production'] },
    plugins: [blockingTheme(), fontLicense()],
    // A development build would contain the names of folders of this machine.
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact', development: false } },
    build: {
      write: false,
      assetsInlineLimit: 0,
      modulePreload: false,
      reportCompressedSize: false,
      rolldownOptions: { input: pages.map((page) => join(root, 'src/board', page)) },
      // The licenses of the bundled packages must be part of every copy.
      license: { fileName: 'licenses.md' },
    },
  })
  if (!('output' in result)) throw new Error('one build was asked for')
  return result.output.map((file) => ({ name: file.fileName, content: 'code' in file ? file.code : file.source }))
}

/** A relay that starts during the build reads the old board or the new one, never files of both. */
async function write(files: readonly NewFile[]): Promise<void> {
  await mkdir(dirname(outDir), { recursive: true })
  const scratch = await mkdtemp(`${outDir}-`)
  try {
    const newDir = join(scratch, 'new')
    for (const { name, content } of [...files, { name: digestName, content: digest }]) {
      await mkdir(dirname(join(newDir, name)), { recursive: true })
      await writeFile(join(newDir, name), content)
    }
    await moveIntoPlace(newDir, join(scratch, 'old'))
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

/** Replaces the old board. Another build may put its board in place at any moment: it stays if its sources are the same. */
async function moveIntoPlace(newDir: string, oldDir: string): Promise<void> {
  while (digest !== readDigest()) {
    await rm(oldDir, { recursive: true, force: true })
    await renameUnless(['ENOENT'], outDir, oldDir)
    if (await renameUnless(['ENOTEMPTY', 'EEXIST'], newDir, outDir)) return
  }
}

/** Renames a folder; returns false if it fails with one of these codes. */
async function renameUnless(codes: readonly unknown[], from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to)
    return true
  } catch (failure) {
    if (failure instanceof Error && 'code' in failure && codes.includes(failure.code)) return false
    throw failure
  }
}
