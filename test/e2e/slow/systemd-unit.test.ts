import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { durationMs } from '../../../src/lib/units.ts'
import { settings } from '../../../src/relay/config/settings.ts'
import { createTempFolder } from '../../support/child-program.ts'
import { hasPrograms, pathOf } from '../../support/debian-programs.ts'

const unit = readFileSync('docs/stocktape.service', 'utf8')

it.runIf(hasPrograms('systemd'))('systemd finds no mistake in the documented unit', async (test) => {
  const path = join(await createTempFolder(test), 'stocktape.service')
  await writeFile(path, unit.replace('/usr/local/bin/stocktape', process.execPath))
  const { status, stdout, stderr } = spawnSync(pathOf('systemd'), ['verify', path], { encoding: 'utf8' })
  expect([status, stdout, stderr]).toEqual([0, '', ''])
})

it('the documented unit waits longer than DRAIN, and allows more descriptors than MAX_CLIENTS', () => {
  const numberOf = (name: string) => Number(new RegExp(`^${name}=(\\d+)$`, 'm').exec(unit)?.[1])
  expect(numberOf('TimeoutStopSec') * 1_000).toBeGreaterThan(durationMs(settings.get('DRAIN')?.default ?? ''))
  expect(numberOf('LimitNOFILE')).toBeGreaterThan(Number(settings.get('MAX_CLIENTS')?.default))
})
