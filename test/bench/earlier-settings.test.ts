import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { settingsFor } from './earlier-settings.ts'
import { ROOT } from './pinned-processes.ts'

const given = { PORT: '0', MAX_CLIENTS: '5', MAX_BACKLOG: '64KiB', STOCKS_REFRESH: '15s', DRAIN: '0' }
const earlier = { PORT: '0', CLIENTS_BOUND: '5', BACKLOG_BOUND_BYTES: '65536', STOCKS_REFRESH_MS: '15000', DRAIN_MS: '0' }

it.each(['', 'CLIENTS_BOUND: setting('])('a commit whose table of settings is %j gets the earlier names and units', (table) => {
  const dir = mkdtempSync(join(tmpdir(), 'stocktape-earlier-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  if (table !== '') {
    mkdirSync(join(dir, 'src/relay/config'), { recursive: true })
    writeFileSync(join(dir, 'src/relay/config/settings.ts'), table)
  }
  expect(settingsFor(dir, given)).toEqual(earlier)
})

it('this commit gets them as they are', () => {
  expect(settingsFor(ROOT, given)).toEqual(given)
})
