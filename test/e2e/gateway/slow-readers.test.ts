import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocketServer } from 'ws'
import { Clients } from '../../../src/relay/edge/clients/clients.ts'
import { Budget } from '../../../src/relay/edge/limits/budget.ts'
import { RateLimiter } from '../../../src/relay/edge/limits/rate-limiter.ts'
import { ServerWebSocket, WebSocketOutlet } from '../../../src/relay/edge/transport/websocket-outlet.ts'
import { ChainState } from '../../../src/relay/gateway/chain-state.ts'
import { openRpcSession } from '../../../src/relay/gateway/rpc-session.ts'
import { SharedAnswers } from '../../../src/relay/gateway/shared-answers.ts'
import { Subscriptions } from '../../../src/relay/gateway/subscriptions/subscriptions.ts'
import { openMetrics } from '../../../src/relay/metrics.ts'
import { apple, pendingLog } from '../../unit/relay/chain/node-json.ts'
import { headEvent, pendingLogEvent, readNodeLog } from '../../unit/relay/gateway/subscriptions/log-notifier-fixture.ts'

const MEBIBYTE = 2 ** 20
const ANSWER_BYTES = 15 * MEBIBYTE
/** A client is disconnected after this many unanswered pings. */
const UNANSWERED_BOUND = 2

/** The WebSockets of `/rpc` alone, with a node of long answers and a clock that the test moves. */
async function openRpcSockets(maxClients = 10) {
  let now = 0
  const uptime = () => now
  const chainState = new ChainState()
  const answers = new SharedAnswers({
    forward: async () => Buffer.from(`"0x${'5'.repeat(ANSWER_BYTES)}"`),
    ...{ forwardReceipts: null, chainState, chainId: () => 1, redact: (text: string) => text, uptime },
  })
  const readBlock = async () => null
  const subscriptions = new Subscriptions({ isListed: () => true, hasList: () => true, readBlock, delay: async () => {} })
  subscriptions.receive(headEvent(10))
  const limits = { maxClients, maxClientsPerAddress: 10, maxBacklogBytes: 262_144, backlogPatienceMs: 5_000 }
  const shared = { keys: null, workers: 1, isOneOfMany: false }
  const clients = new Clients({ ...limits, ...shared, ...{ uptime, random: Math.random, metrics: openMetrics(), log: () => {} } })
  const context = {
    ...{ backend: { answers, chainState }, clients, subscriptions, uptime, addressOf: () => 'here', idPrefix: '0x' },
    rates: new RateLimiter({ perSecond: 1_000_000, atOnce: 100 }),
    unsentBudget: new Budget(256 * MEBIBYTE),
    filterBudget: new Budget(Number.POSITIVE_INFINITY),
    ...{ maxBacklogBytes: 262_144, heartbeatMs: 15_000 },
  }
  // The types of ws lack `closeTimeout`.
  const sockets = new WebSocketServer({ noServer: true, WebSocket: ServerWebSocket, ...{ closeTimeout: 500 } })
  const server = createServer().listen(0, '127.0.0.1')
  const accepted = new Set<Duplex>()
  server.on('upgrade', (incoming, socket, head) => {
    accepted.add(socket)
    sockets.handleUpgrade(incoming, socket, head, (webSocket) =>
      openRpcSession(webSocket, new WebSocketOutlet(webSocket, socket as Socket), 'here', context),
    )
  })
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  /** Moves the clock and sends a ping. */
  const beat = (ms: number) => {
    now += ms
    return clients.sendHeartbeats()
  }
  /** Whether the kernel has not taken all bytes yet. */
  const hasUnsentBytes = () => [...accepted].some((socket) => socket.writableLength > 0)
  return { subscriptions, beat, hasUnsentBytes, open: () => SlowReader.open(port) }
}

/** A client that reads from its socket only as much as the test says. */
class SlowReader {
  readonly socket: Socket
  readonly #closed: Promise<unknown>
  byteCount = 0
  /** The end of what it read. */
  text = ''

  static async open(port: number): Promise<SlowReader> {
    const reader = new SlowReader(connect(port, '127.0.0.1'))
    reader.socket.write(
      'GET /rpc HTTP/1.1\r\nhost: here\r\nupgrade: websocket\r\nconnection: upgrade\r\n' +
        'sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    )
    await reader.readUntil('\r\n\r\n')
    return reader
  }

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('error', () => {})
    this.#closed = new Promise((resolve) => socket.on('close', resolve))
    onTestFinished(() => void socket.destroy())
  }

  /** Sends a text in one frame, under a mask of zeros. */
  send(text: string): void {
    this.socket.write(Buffer.concat([Buffer.of(0x81, 0x80 | text.length, 0, 0, 0, 0), Buffer.from(text)]))
  }

  /** Reads this many bytes or a few more, or fewer where the connection closes. */
  async readBytes(bytes: number): Promise<void> {
    for (const end = this.byteCount + bytes; this.byteCount < end && !this.socket.destroyed; ) {
      const piece: Buffer | null = this.socket.read()
      if (piece === null) {
        await Promise.race([once(this.socket, 'readable').catch(() => {}), this.#closed])
        continue
      }
      this.byteCount += piece.length
      this.text = (this.text + piece.toString('latin1')).slice(-4_096)
    }
  }

  async readUntil(text: string): Promise<void> {
    while (!this.text.includes(text) && !this.socket.destroyed) await this.readBytes(1)
    expect(this.text).toContain(text)
  }
}

const codeRequest = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_getCode', params: [apple, '0x1'] })
const subscribeRequest = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'eth_subscribe', params: ['pendingLogs'] })
const chainIdRequest = JSON.stringify({ jsonrpc: '2.0', id: 3, method: 'eth_chainId' })

describe('a slow reader of a long answer', () => {
  it('stays connected while it reads, and receives its notifications after the answer', async () => {
    const { subscriptions, beat, hasUnsentBytes, open } = await openRpcSockets()
    const reader = await open()
    reader.send(subscribeRequest)
    await reader.readUntil('{"jsonrpc":"2.0","id":2,"result":"0x00000001"}')
    reader.send(codeRequest)
    await reader.readBytes(1)
    subscriptions.receive(pendingLogEvent(readNodeLog({ block: 11 })))
    let beats = 0
    for (; hasUnsentBytes() && reader.byteCount < ANSWER_BYTES; beats += 1) {
      await beat(15_000)
      await reader.readBytes(Math.min(MEBIBYTE, ANSWER_BYTES - reader.byteCount))
    }
    expect(beats).toBeGreaterThan(UNANSWERED_BOUND)
    await reader.readUntil(`"result":${JSON.stringify(pendingLog({ block: 11 })).slice(0, 60)}`)
    reader.send(chainIdRequest)
    await reader.readUntil('{"jsonrpc":"2.0","id":3,"result":"0x1"}')
  })
})

it('a client for which another process left no room ends alone, whatever it sends', async () => {
  const { open } = await openRpcSockets(0)
  const { socket } = await open()
  // A frame without a mask is an error of the protocol.
  socket.write(Buffer.of(0x81, 1, 0x61))
  socket.resume()
  await once(socket, 'close')
})
