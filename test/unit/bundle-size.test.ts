import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'vite'
import { expect, it } from 'vitest'

/** What a page downloads for all exports of an entry: minified for browsers, without React, compressed. */
async function downloadBytes(entry: string): Promise<{ bytes: number; text: string }> {
  const result = await build({
    configFile: false,
    logLevel: 'silent',
    build: {
      write: false,
      modulePreload: false,
      rolldownOptions: {
        input: fileURLToPath(new URL(`../../src/${entry}`, import.meta.url)),
        external: /^react/,
        preserveEntrySignatures: 'strict',
      },
    },
  })
  const chunks = [result].flat().flatMap((bundle) => ('output' in bundle ? bundle.output : []))
  const text = chunks.map((chunk) => (chunk.type === 'chunk' ? chunk.code : '')).join('')
  return { bytes: gzipSync(text, { level: 9 }).length, text }
}

it.each([
  ['client/index.ts', 'connect', 6 * 1_024],
  ['react/index.ts', 'useTape', 9 * 1_024],
])('%s stays small', async (entry, mustExport, boundBytes) => {
  const { bytes, text } = await downloadBytes(entry)
  expect(text).toMatch(new RegExp(`export\\{[^}]* as ${mustExport}\\b`))
  expect(bytes).toBeLessThan(boundBytes)
})
