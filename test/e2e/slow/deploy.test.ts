import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, it, vi } from 'vitest'
import { type Devnet, startDevnet } from '../../../src/devnet/devnet.ts'
import { listenNdjson, listenSse, listenWs } from '../../support/test-listener.ts'
import { sequenceOf } from '../../support/test-stack.ts'
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

/** One deploy after the other while the market is open and many listen: each client comes back as it was told to. */

const CLIENTS = 201
const DEPLOYS = 3
/** Clients are told to come back at moments that lie at least this far apart, the first and the last of them. */
const SPREAD_MS = 3_000

/** What a client listens to: all tokens, or one by its address. */
type Client = { readonly reader: ReturningReader; readonly address: string | null }

/** Every third client is of another carrier, and of those every third hears everything. */
function openClients(test: TestLifecycle, { url, wsUrl }: DeployedRelay, { tokens }: Devnet): readonly Client[] {
  return Array.from({ length: CLIENTS }, (_, nth) => {
    const address = Math.floor(nth / 3) % 3 === 0 ? null : (tokens[nth % tokens.length]?.address.toLowerCase() ?? null)
    const query = `symbols=${address ?? '*'}&types=*&snapshot=false&heartbeat=1`
    const at = (last: string | null) => `${query}&since=${last ?? 'now'}`
    const carriers = [
      () => new ReturningReader(test, `${nth}: WebSocket`, (last) => listenWs(`${wsUrl}/v1/ws?${at(last)}`)),
      () => new ReturningReader(test, `${nth}: NDJSON`, (last) => listenNdjson(`${url}/v1/stream?${at(last)}`)),
      () =>
        new ReturningReader(test, `${nth}: SSE`, (last) =>
          listenSse(`${url}/v1/stream?${query}`, last ? { 'last-event-id': last } : {}),
        ),
    ]
    const open = carriers[nth % carriers.length]
    if (!open) throw new Error('unreachable')
    return { reader: open(), address }
  })
}

/** A question of which half is asked before a deploy and half while it goes on; what is answered, status line first. */
async function sendHalfRequest(url: string, path: string): Promise<() => Promise<string>> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.write(`GET ${path} HTTP/1.1\r\n`)
  // Whatever was said before this was answered has been read.
  await (await fetch(`${url}/healthz`)).text()
  return async () => {
    socket.write('host: localhost\r\nconnection: close\r\n\r\n')
    return (await socket.setEncoding('utf8').toArray()).join('')
  }
}

/** How far a client is: a heartbeat, too, says what it was given or had no use for. */
function lastSequenceOf({ connections }: ReturningReader): number {
  const message = connections.at(-1)?.received.at(-1)?.message
  return sequenceOf(message && 'id' in message ? message.id : null)
}

it(`nobody of ${CLIENTS} loses or repeats anything over ${DEPLOYS} deploys under load`, async (test) => {
  const devnet = await startDevnet({ blockMs: 500, flashblockMs: 100, transactionsPerFlashblock: 2, calendar: true })
  test.onTestFinished(() => devnet.stop())
  const relay = await DeployedRelay.open(test, devnet)
  await relay.waitForResponse('/readyz', (text) => text.includes('"ready"'))
  const clients = openClients(test, relay, devnet)
  const readers = clients.map(({ reader }) => reader)
  const live = (life: number) =>
    Promise.all(
      readers.map((reader) => reader.until(() => reader.connections[life]?.messagesOf('live').length === 1, 'live')),
    )

  await live(0)
  for (let deploy = 1; deploy <= DEPLOYS; deploy += 1) {
    const askRest = await sendHalfRequest(relay.url, '/readyz')
    const signalledAt = performance.now()
    relay.signal('SIGTERM')
    await Promise.any(readers.map(({ connections }) => connections[deploy - 1]?.waitFor('bye')))
    expect(await askRest()).toMatch(/^HTTP\/1\.1 503 .*"stopping"/s)
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
    for (const [life, ending] of reader.closeResults.entries()) {
      const [bye] = reader.connections[life]?.messagesOf('bye') ?? []
      const inOrder = reader.name.endsWith('WebSocket')
        ? { code: 4_200, reason: `going_away ${bye?.id}` }
        : { code: 0, reason: 'ended' }
      expect(ending, reader.name).toEqual(inOrder)
    }
  }
  const received = readers.reduce((sum, reader) => sum + allReceivedUpdates(reader).length, 0)
  process.stdout.write(
    `${CLIENTS} clients heard ${received} updates, ${tape.length} on the tape, over ${DEPLOYS} deploys\n`,
  )
})

/** What the tape holds for a client from where its first stream began. */
function expectedUpdatesOf(
  tape: readonly ReceivedUpdate[],
  { connections }: ReturningReader,
  address: string | null,
): readonly ReceivedUpdate[] {
  const begun = sequenceOf(connections[0]?.messagesOf('subscribed')[0]?.id)
  return tape.filter(
    ({ update }) =>
      sequenceOf(update.id) > begun && (address === null || update.address === null || update.address === address),
  )
}
