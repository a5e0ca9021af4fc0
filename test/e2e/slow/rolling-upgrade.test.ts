import { expect, it, onTestFinished, vi } from 'vitest'
import { hasNats } from '../../support/nats-server.ts'
import { openCluster } from '../../support/relay-cluster.ts'
import { listenNdjson, listenWs } from '../../support/test-listener.ts'
import { openDevnet } from '../../support/test-stack.ts'
import { TEST_TIMEOUT_MS } from './deployed-relay.ts'
import { openHaproxy } from './haproxy-proxy.ts'
import { openNginx } from './nginx-proxy.ts'
import {
  allReceivedUpdates,
  differencesFromTape,
  type ReconnectingReader,
  ReturningReader,
  readEventSource,
  receivedUpdatesOf,
  upTo,
} from './reconnecting-readers.ts'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

const CLIENTS_PER_TRANSPORT = 10
/** Longer than HAProxy needs to notice an unready edge. */
const PRE_DRAIN = '2s'
const SILENCE_LIMIT_MS = 700
/** There are several updates in each tenth of a second, so a longer silence is one of the connection. */
const busyMarket = { blockMs: 400, flashblockMs: 40, transactionsPerFlashblock: 1, calendar: true }
const everything = 'symbols=*&types=*&snapshot=false'

it.skipIf(!hasNats).each([
  { name: 'nginx', open: openNginx },
  { name: 'HAProxy', open: openHaproxy },
])(
  'two edges behind $name are upgraded one by one: no client misses anything, or hears nothing for 700 ms',
  async ({ name, open }) => {
    const test = { onTestFinished }
    const { edges } = await openCluster(test, await openDevnet(busyMarket, test), { ingesters: 1, settings: { PRE_DRAIN } })
    const allReady = () =>
      vi.waitUntil(
        async () => (await Promise.all(edges.map(({ url }) => fetch(`${url}/readyz`)))).every(({ ok }) => ok),
        TEST_TIMEOUT_MS,
      )
    await allReady()
    const proxy = await open(
      test,
      edges.map(({ url }) => url),
    )
    const start = await newPosition(proxy.url)
    const readers: readonly ReconnectingReader[] = Array.from({ length: CLIENTS_PER_TRANSPORT }, (_, nth) => [
      new ReturningReader(test, `WebSocket ${nth}`, (last) =>
        listenWs(`${proxy.wsUrl}/v1/ws?${everything}&since=${last ?? start}`),
      ),
      readEventSource(test, `${proxy.url}/v1/stream?${everything}&since=${start}`),
    ]).flat()
    const receive = (id: string) =>
      Promise.all(
        readers.map((reader) => reader.until(() => allReceivedUpdates(reader).some(({ update }) => update.id === id), id)),
      )
    await receive(await newPosition(proxy.url))

    for (const edge of edges) {
      expect(await edge.stop()).toBe(0)
      await edge.start()
      await allReady()
    }
    const last = await newPosition(proxy.url)
    await receive(last)

    const tape = await listenNdjson(`${proxy.url}/v1/stream?${everything}&since=${start}`)
    await tape.until(() => receivedUpdatesOf(tape).some(({ update }) => update.id === last), last)
    tape.close()
    const expected = upTo(last, receivedUpdatesOf(tape))
    for (const reader of readers) {
      expect(differencesFromTape(upTo(last, allReceivedUpdates(reader)), expected), reader.name).toEqual([])
      const messages = reader.connections.flatMap(({ messages }) => messages)
      expect(messages.filter(({ type }) => type === 'gap' || type === 'error')).toEqual([])
      // The upgrade of the second edge moves every client.
      expect(messages.filter(({ type }) => type === 'subscribed').length).toBeGreaterThan(1)
    }
    const silences = readers.map(longestSilenceMs).toSorted((one, other) => one - other)
    process.stdout.write(`${name}: the longest silence of each of ${readers.length} clients in ms: ${silences.join(' ')}\n`)
    expect(silences.at(-1)).toBeLessThan(SILENCE_LIMIT_MS)
  },
)

/** The position of an update that follows. */
async function newPosition(url: string): Promise<string> {
  const listener = await listenNdjson(`${url}/v1/stream?${everything}`)
  await listener.until(() => receivedUpdatesOf(listener).length > 0, 'an update')
  listener.close()
  return receivedUpdatesOf(listener)[0]?.update.id ?? ''
}

function longestSilenceMs({ connections }: ReconnectingReader): number {
  const times = connections.flatMap(({ received }) => received.flatMap(({ message, at }) => ('prev' in message ? [at] : [])))
  return Math.round(Math.max(...times.slice(1).map((at, index) => at - (times[index] ?? at))))
}
