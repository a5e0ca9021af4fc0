import { fileURLToPath } from 'node:url'
import { build } from 'vite'

type ClientBundle = {
  /** The code that a page loads at first: minified modules with all their exports, without React. */
  readonly first: string
  /** The code that it loads when it reads bars. */
  readonly bars: string
}

/** Entries of `src/sdk` as a page downloads them. */
export async function bundleClient(...entries: readonly string[]): Promise<ClientBundle> {
  const result = await build({
    configFile: false,
    logLevel: 'silent',
    // In a build for browsers Vite adds code of its own, which loads the styles of a chunk.
    ssr: { noExternal: true },
    build: {
      ssr: true,
      minify: true,
      write: false,
      rolldownOptions: {
        input: entries.map((entry) => fileURLToPath(new URL(`../../src/sdk/${entry}`, import.meta.url))),
        external: /^react/,
        preserveEntrySignatures: 'strict',
        output: { chunkFileNames: '[name].js' },
      },
    },
  })
  const chunks = [result].flat().flatMap((bundle) => ('output' in bundle ? bundle.output : []))
  const textOf = (isLater: boolean) =>
    chunks.map((chunk) => (chunk.type === 'chunk' && chunk.isDynamicEntry === isLater ? chunk.code : '')).join('')
  return { first: textOf(false), bars: textOf(true) }
}
