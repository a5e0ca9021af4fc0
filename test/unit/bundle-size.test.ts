import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { bundleClient } from '../support/client-bundle.ts'

it.each([
  ['client/index.ts', 'connect', 8 * 1_024],
  ['react/index.ts', 'useTape', 10.5 * 1_024],
])('%s stays small', async (entry, mustExport, boundBytes) => {
  const text = await bundleClient(entry)
  expect(text).toMatch(new RegExp(`export\\{[^}]* as ${mustExport}\\b`))
  expect(gzipSync(text, { level: 9 }).length).toBeLessThan(boundBytes)
})
