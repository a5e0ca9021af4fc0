import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { listenNdjson, listenSse } from '../../support/test-listener.ts'
import { openDevnet } from '../../support/test-stack.ts'
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

/** The state of an `EventSource` that reconnects; one that gave up is closed. */
const CONNECTING = 0
/** Close codes of a WebSocket after a bye, and without one. */
const GOING_AWAY = 4_200
const ABNORMAL_CLOSURE = 1_006
/** How long a refused browser waits, and the margin of the measurement. */
const RETRY_MS = 30_000
const MARGIN_MS = 1_000

/** Third-party clients over the restarts of a relay on one busy tape. */

let browser: Browser

beforeAll(async () => {
  browser = await openChromium()
})

afterAll(() => browser?.close())

it('every reader continues after each restart, without gaps or repetitions', async (test) => {
  const devnet = await openDevnet({ blockMs: 400, flashblockMs: 40, transactionsPerFlashblock: 1, calendar: true }, test)
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
  const live = (times: number) =>
    readers.map((reader) => reader.until(() => liveCountOf(reader) > times, `live after ${times} restarts`))

  await Promise.all(live(0))
  expect(await relay.restart('SIGTERM')).toBe(0)
  await Promise.all(live(1))
  expect(await relay.restart('SIGKILL')).toBeNull()
  // The next stop does not wait for all readers: some miss a whole run.
  await Promise.any(live(2))
  expect(await relay.restart('SIGKILL')).toBeNull()
  const last = await relay.waitForNewPosition()
  await Promise.all(
    readers.map((reader) => reader.until(() => allReceivedUpdates(reader).some(({ update }) => update.id === last), last)),
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
})

it('a browser that is refused retries after thirty seconds and does not give up', async (test) => {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const relay = await DeployedRelay.open(test, devnet, { MAX_CLIENTS: '1' })
  const only = await listenNdjson(`${relay.url}/v1/stream?symbols=*`)
  await only.waitFor('live')
  const reader = await readEventSourceInPage(test, browser, devnet.stocksUrl, `${relay.url}/v1/stream/AAPLc`)
  const [listener] = reader.connections
  const errors = () => listener?.messagesOf('error') ?? []
  await reader.until(() => errors().length === 1, 'the first refusal')
  await reader.advanceWhenIdle(RETRY_MS - MARGIN_MS)
  expect(listener?.messages.map(({ type }) => type)).toEqual(['error'])
  await reader.advanceNow(2 * MARGIN_MS)
  await reader.until(() => errors().length === 2, 'the second refusal')
  only.close()
  await only.closed
  await relay.waitForResponse('/metrics', (text) => text.includes('stocktape_listeners{transport="ndjson"} 0'))
  await reader.advanceNow(RETRY_MS + MARGIN_MS)
  await reader.until(() => listener?.messages.at(-1)?.type === 'live', 'live')
  expect(listener?.messages.map(({ type }) => type)).toEqual(['error', 'error', 'hello', 'subscribed', 'snapshot', 'live'])
  expect(errors()).toEqual(Array(2).fill(expect.objectContaining({ code: 503, reason: 'full' })))
  expect(reader.states).toEqual([CONNECTING, CONNECTING])
})

const liveCountOf = ({ connections }: ReconnectingReader): number =>
  connections.flatMap((listener) => listener.messagesOf('live')).length
