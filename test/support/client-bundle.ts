import { fileURLToPath } from 'node:url'
import { build } from 'vite'

/** An entry of `src/sdk` as a page downloads it: one minified module with all its exports, without React. */
export async function bundleClient(entry: string): Promise<string> {
  const result = await build({
    configFile: false,
    logLevel: 'silent',
    build: {
      write: false,
      modulePreload: false,
      rolldownOptions: {
        input: fileURLToPath(new URL(`../../src/sdk/${entry}`, import.meta.url)),
        external: /^react/,
        preserveEntrySignatures: 'strict',
      },
    },
  })
  const chunks = [result].flat().flatMap((bundle) => ('output' in bundle ? bundle.output : []))
  return chunks.map((chunk) => (chunk.type === 'chunk' ? chunk.code : '')).join('')
}
