import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { startDevnet } from '../../../src/devnet/devnet.ts'
import { listenNdjson, listenSse } from '../../support/test-listener.ts'
import { openChromium, readEventSourceInPage, readWebSocketInPage } from './chromium-readers.ts'
import { DeployedRelay, TEST_TIMEOUT_MS } from './deployed-relay.ts'
import {
  allReceivedUpdates,
  differencesFromTape,
  type ReconnectingReader,
  ReturningReader,
  readEventSource,
  resumeResultsOf,
  upTo,
} from './reconnecting-readers.ts'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

/** How an `EventSource` stands that comes back by itself; one that has given up is closed. */
const CONNECTING = 0
/** How a WebSocket ends that was sent away in order, and one whose other end is gone or not there yet. */
const GOING_AWAY = 4_200
const ABNORMAL_CLOSURE = 1_006
/** How long a browser stays away that found no room, and how exactly it is measured here. */
const RETRY_MS = 30_000
const MARGIN_MS = 1_000

/** Readers that nobody here wrote, over the restarts of a relay on one tape that is never quiet. */

let browser: Browser

beforeAll(async () => {
  browser = await openChromium()
})

afterAll(() => browser?.close())

it('every reader goes on over each restart, with nothing missing and nothing twice', async (test) => {
  const devnet = await startDevnet({ blockMs: 400, flashblockMs: 40, transactionsPerFlashblock: 1, calendar: true })
  test.onTestFinished(() => devnet.stop())
  const relay = await DeployedRelay.open(test, devnet)
  const query = 'symbols=*&types=*&snapshot=false'
  const stream = `${relay.url}/v1/stream?${query}&since=start`
  const socket = `${relay.wsUrl}/v1/ws?${query}`
  const [own, elsewhere] = [relay.url, devnet.stocksUrl]
  const sources = [
    await readEventSourceInPage(test, browser, own, stream),
    await readEventSourceInPage(test, browser, elsewhere, stream),
  ]
  const sockets = [
    await readWebSocketInPage(test, browser, own, socket),
    await readWebSocketInPage(test, browser, elsewhere, socket),
  ]
  const parser = new ReturningReader(test, 'the package eventsource-parser', (last) =>
    listenSse(stream, last ? { 'last-event-id': last } : {}),
  )
  const readers: readonly ReconnectingReader[] = [...sources, ...sockets, readEventSource(test, stream), parser]
  const returned = (times: number) =>
    readers.map((reader) => reader.until(() => liveCountOf(reader) > times, `live once more after ${times} restarts`))

  await Promise.all(returned(0))
  expect(await relay.restart('SIGTERM')).toBe(0)
  await Promise.all(returned(1))
  expect(await relay.restart('SIGKILL')).toBeNull()
  // The next end does not wait until all are back: who is still away misses a whole life.
  await Promise.any(returned(2))
  expect(await relay.restart('SIGKILL')).toBeNull()
  const last = await relay.waitForNewPosition()
  await Promise.all(
    readers.map((reader) =>
      reader.until(() => allReceivedUpdates(reader).some(({ update }) => update.id === last), last),
    ),
  )

  const tape = await relay.readTape(last)
  for (const reader of readers) {
    expect(differencesFromTape(upTo(last, allReceivedUpdates(reader)), tape), reader.name).toEqual([])
    const [first, ...later] = resumeResultsOf(reader)
    expect(first, reader.name).toBe('none')
    expect(new Set(later), reader.name).toEqual(new Set(['full']))
  }
  for (const { name, states } of sources) expect(new Set(states), name).toEqual(new Set([CONNECTING]))
  for (const { name, states } of sockets) {
    expect(
      states.filter((code) => code !== ABNORMAL_CLOSURE),
      name,
    ).toEqual([GOING_AWAY])
  }
  process.stdout.write(`${readers.length} readers heard all of ${tape.length} updates over three restarts\n`)
})

/** What leaves no room for a second listener, and what it is told. */
type RefusedReader = {
  readonly what: string
  readonly settings: Record<string, string>
  readonly error: { readonly code: number; readonly reason: string }
}

it.for<RefusedReader>([
  { what: 'for want of room', settings: { CLIENTS_BOUND: '1' }, error: { code: 503, reason: 'full' } },
  {
    what: 'since its address has enough',
    settings: { CLIENTS_PER_ADDRESS_BOUND: '1' },
    error: { code: 429, reason: 'too_many_connections' },
  },
])(
  'a browser that is turned away $what asks again after thirty seconds, and does not give up',
  async ({ settings, error }, test) => {
    const devnet = await startDevnet({ pace: 'manual' })
    test.onTestFinished(() => devnet.stop())
    const relay = await DeployedRelay.open(test, devnet, settings)
    const only = await listenNdjson(`${relay.url}/v1/stream?symbols=*`)
    await only.waitFor('live')
    const reader = await readEventSourceInPage(test, browser, devnet.stocksUrl, `${relay.url}/v1/stream/AAPLc`)
    const [listener] = reader.connections
    const errors = () => listener?.messagesOf('error') ?? []
    await reader.until(() => errors().length === 1, 'that there is no room')
    await reader.advanceWhenIdle(RETRY_MS - MARGIN_MS)
    expect(listener?.messages.map(({ type }) => type)).toEqual(['error'])
    await reader.advanceNow(2 * MARGIN_MS)
    await reader.until(() => errors().length === 2, 'that there is none yet')
    only.close()
    await only.closed
    await relay.waitForResponse('/metrics', (text) => text.includes('stocktape_listeners{carrier="ndjson"} 0'))
    await reader.advanceNow(RETRY_MS + MARGIN_MS)
    await reader.until(() => listener?.messages.at(-1)?.type === 'live', 'live')
    expect(listener?.messages.map(({ type }) => type)).toEqual([
      'error',
      'error',
      'hello',
      'subscribed',
      'snapshot',
      'live',
    ])
    expect(errors()).toEqual(Array(2).fill(expect.objectContaining(error)))
    expect(reader.states).toEqual([CONNECTING, CONNECTING])
    process.stdout.write(`a browser that was turned away twice, as ${error.reason}, came in at the third time\n`)
  },
)

const liveCountOf = ({ connections }: ReconnectingReader): number =>
  connections.flatMap((listener) => listener.messagesOf('live')).length
