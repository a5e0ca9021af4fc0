import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { spawnRelay } from '../../support/child-program.ts'
import { hasPrograms, pathOf } from '../../support/debian-programs.ts'

const promtool = pathOf('promtool')
const hasPromtool = hasPrograms('promtool')

/** What Prometheus' own tool says; it fails with any complaint. */
const check = (what: string, args: readonly string[] = [], input = ''): string =>
  execFileSync(promtool, ['check', what, ...args], { input, encoding: 'utf8' })

it.runIf(hasPromtool)('the metrics and the alert rules are as Prometheus wants them', async (test) => {
  const relay = spawnRelay(test, { PORT: '0', DATA_DIR: ':memory:' })
  const url = await relay.listeningUrl()
  const text = await (await fetch(`${url}/metrics`)).text()
  expect(text).toMatch(/^process_resident_memory_bytes \d+$/m)
  expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds \d/m)
  expect(check('metrics', [], text)).toBe('')
  expect(check('rules', ['docs/monitoring/alert-rules.yaml'])).toMatch(/SUCCESS: \d+ rules found/)
})
