import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { of } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocketServer } from 'ws'
import { Budget } from '../../../src/edge/limits/byte-budget.ts'
import { Attendance } from '../../../src/edge/limits/connections.ts'
import { Line } from '../../../src/edge/transport/websocket-outlet.ts'
import { Answers } from '../../../src/gateway/answers.ts'
import { Moment } from '../../../src/gateway/chain-state.ts'
import { Rates } from '../../../src/gateway/rate-limit.ts'
import { RpcLines } from '../../../src/gateway/sockets.ts'
import { Exchange } from '../../../src/gateway/subscriptions.ts'
import { apple, pendingLog } from '../../unit/chain/node-json.ts'
import { headed, logOf, preconfirmed } from '../../unit/gateway/log-feed-fixture.ts'

const MEBIBYTE = 2 ** 20
const ANSWER_BYTES = 15 * MEBIBYTE
/** Who leaves more signs of life than this unanswered is gone. */
const UNANSWERED_BOUND = 2

/** The lines of `/rpc` by themselves, with a node that answers at length, and a time that passes when the test says so. */
async function openLines() {
  let now = 0
  const uptime = () => now
  const moment = new Moment()
  const answers = new Answers({
    pass: () => of(Buffer.from(`"0x${'5'.repeat(ANSWER_BYTES)}"`)),
    ...{ receipts: null, moment, chainId: () => 1, hide: (text: string) => text, uptime },
  })
  const block = async () => null
  const exchange = new Exchange({ lists: () => true, hasList: () => true, foreign: null, block, rest: async () => {} })
  exchange.hear(headed(10))
  const lines = new RpcLines({
    ...{
      service: { answers, moment },
      exchange,
      rates: new Rates(1_000_000),
      unsent: new Budget(256 * MEBIBYTE),
      filters: new Budget(Number.POSITIVE_INFINITY),
      uptime,
    },
    ...{ backlogBoundBytes: 262_144, idPrefix: '0x', shownOut: () => {}, count: { came: () => {}, went: () => {} } },
    attendance: new Attendance({ clientsBound: 10, perAddressBound: 10 }),
  })
  // Known to ws, not yet to its types.
  const sockets = new WebSocketServer({ noServer: true, WebSocket: Line, ...{ closeTimeout: 500 } })
  const server = createServer().listen(0, '127.0.0.1')
  const taken = new Set<Duplex>()
  server.on('upgrade', (incoming, socket, head) => {
    taken.add(socket)
    sockets.handleUpgrade(incoming, socket, head, (line) => lines.welcome(line, socket as Socket, 'here'))
  })
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  /** So much time passes, and then a sign of life is asked for. */
  const beat = (ms: number) => {
    now += ms
    return lines.beat()
  }
  /** Whether anything that was said has not even been taken by the machine yet. */
  const owes = () => [...taken].some((socket) => socket.writableLength > 0)
  return { exchange, beat, owes, open: () => Reader.open(port) }
}

/** A client that takes from its socket only what it is told to take. */
class Reader {
  readonly socket: Socket
  taken = 0

  static async open(port: number): Promise<Reader> {
    const reader = new Reader(connect(port, '127.0.0.1'))
    reader.socket.write(
      'GET /rpc HTTP/1.1\r\nhost: here\r\nupgrade: websocket\r\nconnection: upgrade\r\n' +
        'sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    )
    expect(String(await reader.take(1))).toMatch(/^H/)
    while (!String(await reader.take(1)).endsWith('\n') || !reader.last.endsWith('\r\n\r\n'));
    reader.taken = 0
    return reader
  }

  last = ''

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('error', () => {})
    onTestFinished(() => void socket.destroy())
  }

  /** Sends a text in one frame, under a mask of zeros. */
  send(text: string): void {
    this.socket.write(Buffer.concat([Buffer.of(0x81, 0x80 | text.length, 0, 0, 0, 0), Buffer.from(text)]))
  }

  /** Resolves when there is more to take, or never will be. */
  #more(): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.socket.off('readable', done)
        this.socket.off('close', done)
        resolve()
      }
      this.socket.on('readable', done)
      this.socket.on('close', done)
    })
  }

  /** Takes so many bytes, waiting for them; fewer where the connection is gone. */
  async take(bytes: number): Promise<Buffer> {
    const pieces: Buffer[] = []
    let left = bytes
    while (left > 0 && !this.socket.destroyed) {
      const piece: Buffer | null = this.socket.read(Math.min(left, 65_536)) ?? this.socket.read()
      if (piece === null) {
        await this.#more()
        continue
      }
      const [mine, others] = [piece.subarray(0, left), piece.subarray(left)]
      if (others.length > 0) this.socket.unshift(others)
      pieces.push(mine)
      left -= mine.length
    }
    const all = Buffer.concat(pieces)
    this.taken += all.length
    this.last = (this.last + all.subarray(-4).toString('latin1')).slice(-4)
    return all
  }
}

const question = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_getCode', params: [apple, '0x1'] })
const subscribing = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'eth_subscribe', params: ['pendingLogs'] })
const asking = JSON.stringify({ jsonrpc: '2.0', id: 3, method: 'eth_chainId' })
const given = '{"jsonrpc":"2.0","id":3,"result":"0x1"}'
/** What stands before and behind the result, the frame's head among it. */
const ANSWER_FRAME_BYTES = 10 + '{"jsonrpc":"2.0","id":1,"result":"0x"}'.length + ANSWER_BYTES

describe('a reader that takes its time over a long answer', () => {
  it('is let, as long as it goes on, and hears what it subscribed to behind it', async () => {
    const { exchange, beat, owes, open } = await openLines()
    const reader = await open()
    reader.send(subscribing)
    const acknowledged = await reader.take(2 + '{"jsonrpc":"2.0","id":2,"result":"0x00000001"}'.length)
    expect(acknowledged.subarray(2).toString()).toBe('{"jsonrpc":"2.0","id":2,"result":"0x00000001"}')
    reader.taken = 0
    reader.send(question)
    expect((await reader.take(10))[0]).toBe(0x81)
    exchange.hear(preconfirmed(logOf({ block: 11 })))
    let beats = 0
    for (; owes() && reader.taken < ANSWER_FRAME_BYTES; beats += 1) {
      await beat(15_000)
      await reader.take(Math.min(MEBIBYTE, ANSWER_FRAME_BYTES - reader.taken))
    }
    expect(beats).toBeGreaterThan(UNANSWERED_BOUND)
    await reader.take(ANSWER_FRAME_BYTES - reader.taken)
    reader.send(asking)
    let rest = ''
    while (!rest.includes(given) && !reader.socket.destroyed) rest += await reader.take(1)
    expect(rest).toContain(`"result":${JSON.stringify(pendingLog({ block: 11 })).slice(0, 60)}`)
    expect(rest).toContain(given)
  })

  it('is shown out once it takes nothing any more', async () => {
    const { beat, open } = await openLines()
    const reader = await open()
    reader.send(question)
    await reader.take(MEBIBYTE)
    for (let beats = 0; beats < 10; beats += 1) await beat(15_000)
    await reader.take(2 * ANSWER_BYTES)
    expect(reader.socket.destroyed).toBe(true)
  })
})
