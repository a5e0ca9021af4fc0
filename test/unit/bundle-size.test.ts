import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { bundleClient } from '../support/client-bundle.ts'

const sizeOf = (text: string): number => gzipSync(text, { level: 9 }).length

it.each([
  [['client/index.ts'], 'connect', 8 * 1_024],
  [['react/index.ts'], 'useTape', 10.5 * 1_024],
  [['react/index.ts', 'react/use-bars.ts'], 'useBars', 11.25 * 1_024],
])('%s stays small', async (entries, mustExport, boundBytes) => {
  const { first } = await bundleClient(...entries)
  expect(first).toMatch(new RegExp(`export\\{[^}]* as ${mustExport}\\b`))
  expect(sizeOf(first)).toBeLessThan(boundBytes)
})

it('a page that reads no bars does not load their code, which is small', async () => {
  const { first, bars } = await bundleClient('client/index.ts')
  expect(first).toContain('import(`./bars.js`)')
  expect(first).not.toContain('/v1/bars')
  expect(bars).toContain('/v1/bars')
  expect(sizeOf(bars)).toBeLessThan(4.75 * 1_024)
})
