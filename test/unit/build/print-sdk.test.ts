import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'

it('the generated files of the SDK are those that npm run messages prints', () => {
  const folder = mkdtempSync(join(tmpdir(), 'stocktape-sdk-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  execFileSync(process.execPath, ['src/build/print-sdk.ts', folder])
  const textsIn = (path: string) => readdirSync(path).map((file) => [file, readFileSync(join(path, file), 'utf8')])
  expect(textsIn(folder)).toEqual(textsIn('src/sdk/generated'))
})
