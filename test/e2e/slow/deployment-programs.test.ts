import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createTempFolder } from '../../support/child-program.ts'
import { hasPrograms, pathOf } from '../../support/debian-programs.ts'

/** Documented configurations, read by the programs that they are for. `test/unit/deployment-files.test.ts` checks the others. */

const outputOf = (program: string, ...args: readonly string[]) => {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  return { status, output: stdout + stderr }
}

/** The most that `systemd-analyze security` may find, from 0 to 100. */
const EXPOSURE_LIMIT = 20

it.runIf(hasPrograms('systemd'))('systemd finds no mistake in the documented unit, and few rights', async (test) => {
  const path = join(await createTempFolder(test), 'stocktape.service')
  await writeFile(path, readFileSync('docs/stocktape.service', 'utf8').replace('/usr/local/bin/stocktape', process.execPath))
  expect(outputOf(pathOf('systemd'), 'verify', path)).toEqual({ status: 0, output: '' })
  expect(outputOf(pathOf('systemd'), 'security', '--offline=true', `--threshold=${EXPOSURE_LIMIT}`, path)).toMatchObject({
    status: 0,
  })
})

it.runIf(hasPrograms('promtool', 'haproxy', 'nats'))('the files that the compose files mount are right for their programs', () => {
  const prometheus = outputOf(pathOf('promtool'), 'check', 'config', 'docs/monitoring/prometheus.yaml')
  expect(prometheus).toMatchObject({ status: 0, output: expect.stringMatching(/SUCCESS: \d+ rule files found/) })
  expect(outputOf(pathOf('haproxy'), '-c', '-f', 'docs/compose.haproxy.cfg')).toMatchObject({ status: 0 })
  expect(outputOf(pathOf('nats'), '-t', '--config', 'docs/compose.nats.conf')).toMatchObject({ status: 0 })
})
