import { expect, it } from 'vitest'
import { runSimulation } from './simulation-run.ts'
import { type Settings, settingsOf } from './simulation-settings.ts'

/** What the relay asks of a healthy node for each block, by the source that it has. The runs are exact: they repeat. */

const MINUTE_MS = 60_000

const healthy: Settings = {
  ...settingsOf(1),
  mode: 'flash',
  shape: 'one',
  activity: 100,
  latencyMs: 20,
  sealedLagMs: 300,
  safeLag: 5,
  finalizedLag: 10,
  withoutPending: 'latest',
  aboveHead: 'nothing',
  traits: [],
  firstHead: 1_000,
  byHash: true,
  issuerPercent: 0,
  listLagMs: 1_000,
  answersCalls: false,
  finalityUnknown: false,
  endpoints: 1,
}

const requestsIn = async (spanMs: number, change: Partial<Settings>): Promise<number> => {
  const { violations, requestCount } = await runSimulation({ settings: { ...healthy, ...change, spanMs }, faults: [] })
  expect(violations).toEqual([])
  return requestCount
}

it.each<[source: string, most: number, blocksPerMinute: number, Partial<Settings>]>([
  ['the pushed logs', 3.6, 30, { hasLink: true }],
  // It is polled each 200 ms: ten times for each block.
  ['the pending block', 32, 30, { hasLink: false }],
  ['sealed blocks', 3.3, 300, { hasLink: false, mode: 'native', withoutPending: 'null' }],
])('from %s: at most %d requests for each block', async (_, most, blocksPerMinute, change) => {
  // The difference of two runs leaves out what a start asks.
  const requests = (await requestsIn(3 * MINUTE_MS, change)) - (await requestsIn(2 * MINUTE_MS, change))
  expect(requests / blocksPerMinute).toBeLessThanOrEqual(most)
})
