import { execFileSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'

it('the generated files are those that npm run messages writes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'stocktape-generated-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  execFileSync(process.execPath, ['src/build/write-generated.ts', folder])
  const printed = globSync('**/*.{ts,md}', { cwd: folder })
  expect(printed).toHaveLength(9)
  for (const file of printed) expect(readFileSync(file, 'utf8'), file).toBe(readFileSync(join(folder, file), 'utf8'))
})
