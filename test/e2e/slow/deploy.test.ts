import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, it, vi } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { listenNdjson, listenSse, listenWs } from '../../support/test-listener.ts'
import { openDevnet, sequenceOf } from '../../support/test-stack.ts'
import { DeployedRelay, DRAIN_MS, TEST_TIMEOUT_MS, type TestLifecycle } from './deployed-relay.ts'
import {
  allReceivedUpdates,
  brokenPrevChains,
  differencesFromTape,
  type ReceivedUpdate,
  ReturningReader,
  resumeResultsOf,
} from './reconnecting-readers.ts'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

/** Several deploys in a busy market with many listeners, which reconnect after the retry time of their bye. */

const CLIENTS = 201
const DEPLOYS = 3
/** The longest and the shortest retry time of the clients differ by at least this much. */
const SPREAD_MS = 3_000

/** A client of all tokens, or of one by its address. */
type Client = { readonly reader: ReturningReader; readonly address: string | null }

/** A third of the clients for each transport; a third of those receive everything. */
function openClients(test: TestLifecycle, { url, wsUrl }: DeployedRelay, { tokens }: Devnet): readonly Client[] {
  return Array.from({ length: CLIENTS }, (_, nth) => {
    const address = Math.floor(nth / 3) % 3 === 0 ? null : (tokens[nth % tokens.length]?.address.toLowerCase() ?? null)
    const query = `symbols=${address ?? '*'}&types=*&snapshot=false&heartbeat=1`
    const at = (last: string | null) => `${query}&since=${last ?? 'now'}`
    const transports = [
      () => new ReturningReader(test, `${nth}: WebSocket`, (last) => listenWs(`${wsUrl}/v1/ws?${at(last)}`)),
      () => new ReturningReader(test, `${nth}: NDJSON`, (last) => listenNdjson(`${url}/v1/stream?${at(last)}`)),
      () =>
        new ReturningReader(test, `${nth}: SSE`, (last) =>
          listenSse(`${url}/v1/stream?${query}`, last ? { 'last-event-id': last } : {}),
        ),
    ]
    const open = transports[nth % transports.length]
    if (!open) throw new Error('unreachable')
    return { reader: open(), address }
  })
}

/** Sends half of a request before a deploy; the rest, and its answer, follow during the deploy. */
async function sendHalfRequest(url: string, path: string): Promise<() => Promise<string>> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.write(`GET ${path} HTTP/1.1\r\n`)
  // The relay has read the first half once it answers this.
  await (await fetch(`${url}/healthz`)).text()
  return async () => {
    socket.write('host: localhost\r\nconnection: close\r\n\r\n')
    return (await socket.setEncoding('utf8').toArray()).join('')
  }
}

/** The newest sequence of a client: a heartbeat counts too, since its id covers updates that do not match. */
function lastSequenceOf({ connections }: ReturningReader): number {
  const message = connections.at(-1)?.received.at(-1)?.message
  return sequenceOf(message && 'id' in message ? message.id : null)
}

it(`${CLIENTS} clients have no gap and no repetition over ${DEPLOYS} deploys under load`, async (test) => {
  const devnet = await openDevnet({ blockMs: 500, flashblockMs: 100, transactionsPerFlashblock: 2, calendar: true }, test)
  const relay = await DeployedRelay.open(test, devnet)
  await relay.waitForResponse('/readyz', (text) => text.includes('"ready"'))
  const clients = openClients(test, relay, devnet)
  const readers = clients.map(({ reader }) => reader)
  const live = (run: number) =>
    Promise.all(readers.map((reader) => reader.until(() => reader.connections[run]?.messagesOf('live').length === 1, 'live')))

  await live(0)
  for (let deploy = 1; deploy <= DEPLOYS; deploy += 1) {
    const sendRest = await sendHalfRequest(relay.url, '/readyz')
    const signalledAt = performance.now()
    relay.signal('SIGTERM')
    await Promise.any(readers.map(({ connections }) => connections[deploy - 1]?.waitFor('bye')))
    expect(await sendRest()).toMatch(/^HTTP\/1\.1 503 .*"stopping"/s)
    expect(await relay.waitForExit()).toBe(0)
    expect(performance.now() - signalledAt).toBeLessThan(DRAIN_MS)
    await relay.start()
    await live(deploy)
    const byes = readers.map(({ connections }) => connections[deploy - 1]?.messagesOf('bye') ?? [])
    expect(new Set(byes.map(({ length }) => length))).toEqual(new Set([1]))
    const pauses = byes.flat().map(({ retry_ms }) => retry_ms)
    expect(Math.max(...pauses) - Math.min(...pauses)).toBeGreaterThan(SPREAD_MS)
    expect(new Set(pauses).size).toBeGreaterThan(CLIENTS / 2)
  }
  const last = await relay.waitForNewPosition()
  await Promise.all(readers.map((reader) => reader.until(() => lastSequenceOf(reader) >= sequenceOf(last), last)))

  const tape = await relay.readTape(last)
  for (const { reader, address } of clients) {
    const expected = expectedUpdatesOf(tape, reader, address)
    const history = allReceivedUpdates(reader).filter(({ update }) => sequenceOf(update.id) <= sequenceOf(last))
    expect(expected, reader.name).not.toEqual([])
    expect(differencesFromTape(history, expected), reader.name).toEqual([])
    expect(brokenPrevChains(history.map(({ update }) => update)), reader.name).toEqual([])
    expect(resumeResultsOf(reader), reader.name).toEqual(['none', ...Array(DEPLOYS).fill('full')])
    for (const [run, result] of reader.closeResults.entries()) {
      const [bye] = reader.connections[run]?.messagesOf('bye') ?? []
      const inOrder = reader.name.endsWith('WebSocket')
        ? { code: 4_200, reason: `going_away ${bye?.id}` }
        : { code: 0, reason: 'ended' }
      expect(result, reader.name).toEqual(inOrder)
    }
  }
  const received = readers.reduce((sum, reader) => sum + allReceivedUpdates(reader).length, 0)
  process.stdout.write(`${CLIENTS} clients received ${received} updates, ${tape.length} on the tape, over ${DEPLOYS} deploys\n`)
})

/** The updates on the tape for a client, from the start of its first stream on. */
function expectedUpdatesOf(
  tape: readonly ReceivedUpdate[],
  { connections }: ReturningReader,
  address: string | null,
): readonly ReceivedUpdate[] {
  const start = sequenceOf(connections[0]?.messagesOf('subscribed')[0]?.id)
  return tape.filter(
    ({ update }) => sequenceOf(update.id) > start && (address === null || update.address === null || update.address === address),
  )
}
