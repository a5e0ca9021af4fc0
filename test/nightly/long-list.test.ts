import { expect, it, vi } from 'vitest'
import { PinnedWorker } from '../bench/pinned-processes.ts'
import type { TrafficCommand, TrafficReply } from '../bench/traffic-process.ts'
import { isNightly } from '../support/test-length.ts'
import type { LongListCommand, LongListReply } from './long-list-process.ts'
import { imageFlags, openWorker } from './monitored-relay.ts'

/** As many as fit into the 8 MiB of a list, and enough for a long refresh. */
const RECORDS = isNightly ? 36_000 : 25_000
const LOOP_BOUND_MS = 50
const REFRESH_MS = 10_000
/** Five transfers a second. */
const TRAFFIC = { burst: 1, everyMs: 200, bursts: null } as const

it(`a list of ${RECORDS} records never holds the relay's event loop for ${LOOP_BOUND_MS} ms`, async (test) => {
  const traffic = new PinnedWorker<TrafficCommand, TrafficReply>('traffic-process.ts')
  const { wsUrl, url, symbols } = await traffic.command({ do: 'chain', tokens: RECORDS })
  const relay = openWorker<LongListCommand, LongListReply>(test, './long-list-process.ts', { flags: imageFlags, isFree: true })
  const { relayUrl } = await relay.command({ do: 'open', rpcUrl: url, wsUrl, url, refreshMs: REFRESH_MS })
  const work = traffic.command({ do: 'work', ...TRAFFIC })
  test.onTestFinished(async () => {
    await traffic.command({ do: 'stopWork' })
    await work
    await traffic.end()
  })
  const waitForUpdate = (symbol: string | undefined, type: string, update: object) =>
    vi.waitFor(
      async () => {
        const answer = await fetch(`${relayUrl}/v1/events?symbols=${symbol}&types=${type}&order=desc&limit=1`)
        expect(await answer.json()).toMatchObject({ events: [update] })
      },
      { timeout: 120_000, interval: 500 },
    )
  await waitForUpdate(symbols.at(-1), 'token', { change: 'listed' })
  expect((await relay.command({ do: 'takeLongest' })).longestMs, 'first list').toBeLessThan(LOOP_BOUND_MS)
  await traffic.command({ do: 'changeList', firstNav: 101 })
  await waitForUpdate(symbols[0], 'nav', { nav: { price: '101' } })
  expect((await relay.command({ do: 'takeLongest' })).longestMs, 'refresh').toBeLessThan(LOOP_BOUND_MS)
})
