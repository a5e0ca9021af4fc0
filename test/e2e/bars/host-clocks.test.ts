import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished, vi } from 'vitest'
import { spawnRelay, upstreamOf } from '../../support/child-program.ts'
import type { MessageOf } from '../../support/test-listener.ts'
import { exactBarsOf } from './exact-bars.ts'
import {
  barsAt,
  contentOf,
  fetchBars,
  listenFromStart,
  makeBlock,
  openTradedDevnet,
  poolSettings,
  startMinute,
  timeText,
  trade,
  waitForBar,
  waitForPools,
} from './traded-minutes.ts'

vi.setConfig({ testTimeout: 120_000 })

const HOUR_MS = 3_600_000
/** Limit of the difference between a published time and the clock of its relay. */
const TOLERANCE_MS = 60_000
/** A busy machine may delay one of them. */
const MINUTES = 3
const settableDate = fileURLToPath(new URL('../slow/settable-date.ts', import.meta.url))

type ChainOf = Awaited<ReturnType<typeof openTradedDevnet>>

/** A relay whose clock is off before it learns of the first trade. */
async function openRelayWithClock(devnet: ChainOf, offMs: number) {
  const relay = spawnRelay(
    { onTestFinished },
    {
      ...{ PORT: '0', DATA_DIR: ':memory:', ...upstreamOf(devnet), ...poolSettings(devnet) },
      ...{ CLOCK_STEPS_MS: String(offMs), NODE_OPTIONS: `--import ${settableDate}` },
    },
  )
  const url = await relay.listeningUrl()
  relay.signal('SIGUSR2')
  await relay.waitForOutput('stdout', /the wall clock is/)
  const listener = await listenFromStart(url)
  await waitForPools(listener, devnet)
  return { offMs, url, listener, delays: [] as number[] }
}

function contentWithoutNav(bar: MessageOf<'bar'>) {
  const { nav: _, basis: __, basis_bps: ___, ...content } = contentOf(bar)
  return content
}

it('a minute is over within a second of the first block after it, whether the clock of the host is an hour ahead, an hour behind, or right', async () => {
  const devnet = await openTradedDevnet()
  const relays = await Promise.all([HOUR_MS, -HOUR_MS, 0].map((offMs) => openRelayWithClock(devnet, offMs)))
  const minutes: number[] = []
  while (minutes.length < MINUTES) {
    const minute = startMinute(devnet)
    minutes.push(minute)
    for (const price of ['320', '322', '319']) {
      const trades = await Promise.all(
        relays.map(({ listener }, nth) =>
          nth === 0
            ? trade({ devnet, listener }, price)
            : listener.waitFor('trade', ({ block }) => block.number === devnet.chain.pending.number),
        ),
      )
      makeBlock(devnet)
      for (const [nth, { listener }] of relays.entries())
        await listener.waitFor('seal', ({ keys }) => keys.includes(trades[nth]?.key ?? ''))
    }
    // All blocks of the minute are settled, and it is not over: the next block could have its time too.
    for (const { listener } of relays) expect(barsAt(listener, minute)).toEqual([])
    const madeAt = performance.now()
    makeBlock(devnet)
    for (const { listener, delays } of relays) {
      const { id } = await waitForBar(listener, minute)
      const received = listener.received.find(({ message }) => message.type === 'bar' && message.id === id)
      delays.push((received?.at ?? Number.POSITIVE_INFINITY) - madeAt)
    }
  }
  for (const { offMs, url, listener, delays } of relays) {
    expect(Math.min(...delays), `delays with ${offMs}: ${delays}`).toBeLessThan(1_000)
    const bars = listener.messagesOf('bar')
    expect(bars.map(contentOf)).toEqual(exactBarsOf(listener.messages).map((bar) => ({ ...bar, revision: 1, partial: null })))
    for (const { time } of bars) expect(Math.abs(Date.parse(time) - Date.now() - offMs)).toBeLessThan(TOLERANCE_MS)
    // Only the age and the state of the NAV are by the clock, and with them whether there is a basis.
    const { listener: other } = relays[0] ?? expect.unreachable()
    expect(bars.map(contentWithoutNav)).toEqual(other.messagesOf('bar').map(contentWithoutNav))
    // Durations count back from the time of the newest block.
    const sinceSecond = `${devnet.chain.head.timestamp - (minutes[1] ?? 0)}s`
    const { bars: newest } = await fetchBars(url, `/AAPLc?since=${sinceSecond}`)
    expect(newest.map(({ start }) => start)).toEqual(minutes.slice(1).map(timeText))
  }
})
