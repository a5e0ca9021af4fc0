import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, type TestContext } from 'vitest'
import { MarketCalendar } from '../../../src/relay/market/market-calendar.ts'
import { ChildProgram, createTempFolder, freePort, spawnRelay, upstreamOf } from '../../support/child-program.ts'
import { hasPrograms, pathOf } from '../../support/debian-programs.ts'
import { openDevnet } from '../../support/test-stack.ts'

const hasPrometheus = hasPrograms('prometheus', 'promtool')
const MINUTE = 60
const DAY_MS = 86_400_000
const RULE_FILES = ['relay', 'market'].map((name) => `docs/monitoring/${name}-rules.yaml`)
const namesIn = (path: string, pattern: RegExp) => [...readFileSync(path, 'utf8').matchAll(pattern)].map(([, name]) => name)

/** What Prometheus' own tool prints; it fails with any complaint. */
const promtool = (args: readonly string[], input = ''): string =>
  execFileSync(pathOf('promtool'), args, { input, encoding: 'utf8' })

it.runIf(hasPrometheus)('the alert rules are as Prometheus wants them, and each fires and rests as its series say', () => {
  expect(promtool(['check', 'rules', ...RULE_FILES]).match(/SUCCESS: \d+ rules found/g)).toHaveLength(RULE_FILES.length)
  const tested = namesIn('test/e2e/slow/alert-rules.yaml', /alertname="(\w+)"/g)
  expect(tested).toEqual(RULE_FILES.flatMap((path) => namesIn(path, /alert: (\w+)/g)))
  expect(promtool(['test', 'rules', 'test/e2e/slow/alert-rules.yaml'])).toContain('SUCCESS')
})

/** The end of the last hour, at least two days ago, in which the market was open. */
function openMarketTime(): number {
  const calendar = new MarketCalendar()
  let seconds = Math.floor((Date.now() - 2 * DAY_MS) / 1_000)
  while (calendar.sessionAt(seconds).state !== 'open') seconds -= MINUTE
  return seconds * 1_000
}

/** A Prometheus that reads these metrics and applies the rules without their delay. Returns the firing alerts. */
async function openPrometheus(test: TestContext, target: string): Promise<() => Promise<readonly string[]>> {
  const folder = await createTempFolder(test)
  const port = await freePort()
  const files = RULE_FILES.map((path, index) => ({ name: `rules-${index}.yaml`, text: readFileSync(path, 'utf8') }))
  for (const { name, text } of files) await writeFile(join(folder, name), text.replaceAll(/^ +for: .*\n/gm, ''))
  const intervals = 'scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms'
  const rules = files.map(({ name }) => name).join()
  const scrape = `{ job_name: stocktape, static_configs: [{ targets: [${target}] }] }`
  await writeFile(
    join(folder, 'prometheus.yml'),
    `{ global: { ${intervals} }, rule_files: [${rules}], scrape_configs: [${scrape}] }`,
  )
  const flags = [
    `--config.file=${folder}/prometheus.yml`,
    `--storage.tsdb.path=${folder}/data`,
    `--web.listen-address=127.0.0.1:${port}`,
  ]
  const prometheus = new ChildProgram([pathOf('prometheus'), ...flags], { env: {} })
  test.onTestFinished(() => prometheus.kill())
  await prometheus.waitForOutput('stderr', /Server is ready to receive web requests/)
  return async () => {
    const { data } = (await (await fetch(`http://127.0.0.1:${port}/api/v1/alerts`)).json()) as {
      data: { alerts: { state: string; labels: Record<string, string> }[] }
    }
    return data.alerts.flatMap(({ state, labels }) => (state === 'firing' ? [`${labels.alertname} ${labels.symbol ?? ''}`] : []))
  }
}

it.runIf(hasPrometheus)('a port of its own has the metrics of all workers, and the market rules fire on them', async (test) => {
  const openAt = openMarketTime()
  const devnet = await openDevnet({ pace: 'manual', calls: true, now: () => openAt }, test)
  const nowSeconds = Math.floor(Date.now() / 1_000)
  devnet.issuer.pause({ symbol: 'TSLAc', features: [0] })
  devnet.issuer.split({ symbol: 'NVDAc', to: '2', effectiveAt: nowSeconds + 30 * MINUTE })
  devnet.issuer.freezeFeed({ symbol: 'GOOGLc' })
  devnet.publishRound({ symbol: 'AAPLc', price: '300', updatedAt: nowSeconds })
  devnet.swap('AAPLc', { price: '310' })
  devnet.makeFlashblock()
  devnet.seal()
  const { poolsText: POOLS, quoteTokens: QUOTE_TOKENS, oracleRegistry: ORACLE_REGISTRY } = devnet
  const METRICS_PORT = String(await freePort())
  const market = { POOLS, QUOTE_TOKENS, ORACLE_REGISTRY, FEEDS: `AAPLc=${devnet.feeds.AAPLc?.proxy}` }
  const relay = spawnRelay(test, {
    ...{ PORT: '0', METRICS_PORT, WORKERS: '2', DATA_DIR: ':memory:', STOCKS_REFRESH: '200ms' },
    ...upstreamOf(devnet),
    ...market,
  })
  const url = await relay.listeningUrl()
  const target = `127.0.0.1:${METRICS_PORT}`
  const firing = await openPrometheus(test, target)
  await expect
    .poll(firing)
    .toEqual(
      expect.arrayContaining([
        'StocktapePaused TSLAc',
        'StocktapeMultiplierDue NVDAc',
        'StocktapeNavFrozen GOOGLc',
        'StocktapePremium AAPLc',
        'StocktapeNavStale MSFTc',
      ]),
    )
  expect(await firing()).not.toContain('StocktapeCalendarEnds ')
  const text = await (await fetch(`http://${target}/metrics`)).text()
  expect(text).toMatch(/^process_resident_memory_bytes \d+$/m)
  expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds \d/m)
  expect(text).toMatch(/^stocktape_build_info\{version="[\d.]+",commit="[0-9a-f]{40}",node="[\d.]+"\} 1$/m)
  expect(text).toMatch(/^stocktape_log_lines_total\{level="\w+"\} \d/m)
  expect(promtool(['check', 'metrics'], text)).toBe('')
  const statuses = await Promise.all([`${url}/metrics`, `http://${target}/healthz`].map(async (path) => (await fetch(path)).status))
  expect(statuses).toEqual([404, 404])
})
