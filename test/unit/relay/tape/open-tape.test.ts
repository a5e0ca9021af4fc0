import { performance } from 'node:perf_hooks'
import { firstValueFrom } from 'rxjs'
import { expect, it, onTestFinished, vi } from 'vitest'
import { readConfig } from '../../../../src/relay/config/config.ts'
import { openMetrics } from '../../../../src/relay/metrics.ts'
import { openTape } from '../../../../src/relay/tape/open-tape.ts'
import { hasNats, NatsServer } from '../../../support/nats-server.ts'

it.skipIf(!hasNats)('a tape over NATS that leads before anybody asks says so to who asks later, and in its metrics', async () => {
  const nats = await NatsServer.start()
  onTestFinished(() => nats.remove())
  const parsed = readConfig([], { NATS_URL: nats.url, DATA_DIR: ':memory:' })
  if (parsed.kind !== 'settings') throw new Error(JSON.stringify(parsed))
  const metrics = openMetrics()
  const { close, peers } = await openTape({
    ...{ config: parsed.config, metrics, now: Date.now, wallTime: Date.now, random: Math.random },
    ...{ uptime: () => performance.now(), log: () => {}, onReset: () => {}, onFailure: () => {} },
  })
  onTestFinished(() => close())
  const waitForMetric = (line: string) => vi.waitFor(async () => expect(await metrics.text()).toContain(line))
  await waitForMetric('stocktape_leads 1')
  await waitForMetric('stocktape_nats_connected 1')
  await waitForMetric('stocktape_nats_lag_messages 0')
  expect(peers && (await firstValueFrom(peers.leadership))).toBe(true)
  await nats.kill()
  await waitForMetric('stocktape_nats_connected 0')
})
