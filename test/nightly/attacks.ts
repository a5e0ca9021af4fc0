import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import type { SeededRandom } from '../simulation/seeded-random.ts'
import { ChildProgram } from '../support/child-program.ts'
import { pathOf } from '../support/debian-programs.ts'

/** Longer than the relay takes for any answer to an attacker. */
const ANSWER_TIMEOUT_MS = 1_000
/** Connections of a flood that are being opened at the same time. */
const OPENING_BOUND = 100

/** Runs slowhttptest for some seconds; rejects if it never connected. */
export async function runSlowHttpTest(flags: readonly string[], url: string, seconds: number): Promise<void> {
  const load = ['-c', '1000', '-r', '1000', '-i', '1', '-p', '5', '-l', String(seconds)]
  const program = new ChildProgram([pathOf('slowhttptest'), ...flags, ...load, '-u', url], { env: { TERM: 'dumb' } })
  await program.waitForExit()
  if (!/connected:\s+\S*[1-9]/.test(program.stdout)) throw new Error(program.stdout + program.stderr)
}

/** Sends requests of random bytes, some at a time, each on a connection of its own. */
export async function sendRandomRequests(port: number, random: SeededRandom, count: number, atOnce: number): Promise<void> {
  let sent = 0
  const worker = async () => {
    while (sent < count) {
      sent += 1
      await sendAndForget(port, randomRequest(random))
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

/** Sends many requests in one packet on each of many connections. Rejects where an answer is missing. */
export async function pipelineRequests(port: number, connections: number, requests: number): Promise<void> {
  const request = (lines = '') => `GET /v1/status HTTP/1.1\r\nhost: relay\r\n${lines}\r\n`
  const pipeline = async () => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.write(request().repeat(requests - 1) + request('connection: close\r\n'))
    const answers = (await text(socket)).match(/HTTP\/1\.1 200 /g) ?? []
    if (answers.length !== requests) throw new Error(`${answers.length} answers to ${requests} requests`)
  }
  await Promise.all(Array.from({ length: connections }, pipeline))
}

/** Opens connections one after the other and never ends one: every other one begins a request. */
export class ConnectionFlood {
  readonly #sockets = new Set<Socket>()
  readonly #port: number
  opened = 0
  /** Connections that the relay ended. */
  cut = 0

  constructor(port: number) {
    this.#port = port
  }

  async run(count: number, localAddresses: readonly string[]): Promise<void> {
    const worker = async () => {
      while (this.opened < count) await this.#open(localAddresses[this.opened % localAddresses.length] ?? '')
    }
    await Promise.all(Array.from({ length: OPENING_BOUND }, worker))
  }

  stop(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async #open(localAddress: string): Promise<void> {
    this.opened += 1
    const isSilent = this.opened % 2 === 0
    const socket = connect({ port: this.#port, host: '127.0.0.1', localAddress })
    this.#sockets.add(socket)
    // The relay resets connections that it has no room for.
    socket.on('error', () => {})
    const closed = once(socket, 'close').then(() => {
      this.cut += 1
      this.#sockets.delete(socket)
    })
    await Promise.race([once(socket, 'connect'), closed])
    if (!isSilent) socket.write('GET /v1/stream?symbols=* HTTP/1.1\r\nhost: rel')
  }
}

/** Resolves when the relay has answered or closed, or took too long; the flood goes on then. */
async function sendAndForget(port: number, bytes: Buffer): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {})
  socket.end(bytes)
  const done = new Promise((resolve) => {
    socket.once('data', resolve)
    socket.once('close', resolve)
  })
  const timeout = setTimeout(() => socket.destroy(), ANSWER_TIMEOUT_MS)
  await done
  clearTimeout(timeout)
  socket.destroy()
}

const methods = ['GET', 'POST', 'HEAD', 'OPTIONS', 'PRI', 'CONNECT', 'get', '', 'G\0T', 'TRACE'] as const
const targets = [
  ...['/', '*', '/v1/stream?symbols=*', '/v1/ws', '/rpc', '//', 'http://elsewhere/metrics', '/\0', '/%00', '/%ff'],
  ...['/../..', 'http://[::1', '/v1/events?limit=1000'],
] as const
const versions = ['HTTP/1.1', 'HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', 'http/1.1', ''] as const
const lineEnds = ['\r\n', '\r\n', '\r\n', '\n', '\r', '\r\n ', '\0\r\n'] as const
const names = [
  ...['host', 'content-length', 'transfer-encoding', 'connection', 'upgrade', 'sec-websocket-key', 'sec-websocket-version'],
  ...['last-event-id', 'authorization', 'x-forwarded-for', 'accept-encoding', 'expect', 'range'],
] as const
const values = [
  ...['relay', '0', '5', '-1', '5, 6', 'chunked', 'chunked, identity', ' chunked', 'upgrade', 'websocket', 'h2c', 'close'],
  ...['keep-alive, upgrade', '13', 'dGhlIHNhbXBsZSBub25jZQ==', 'Bearer ', '127.0.0.1, ::1, , x', '100-continue'],
  ...['bytes=0-,-1,0-0', '\u2028\ud800'],
] as const

/** A request that may be wrong in any of its parts: both lengths, folded lines, NUL, too many headers, too long ones. */
function randomRequest(random: SeededRandom): Buffer {
  const noise = (most: number) =>
    Buffer.from(Array.from({ length: random.int(0, most) }, () => random.int(0, 255))).toString('latin1')
  const lineEnd = () => (random.chance(90) ? '\r\n' : random.pick(lineEnds))
  const name = () => (random.chance(80) ? random.pick(names) : noise(40))
  const value = () => (random.chance(80) ? random.pick(values) : noise(random.chance(5) ? 10_000 : 80))
  const header = () => `${name()}${random.chance(90) ? ': ' : random.pick([':', ' : ', '\t:', ''])}${value()}${lineEnd()}`
  const headers = Array.from({ length: random.chance(5) ? 3_000 : random.int(0, 12) }, header)
  const start = `${random.pick(methods)} ${random.chance(90) ? random.pick(targets) : noise(9_000)} ${random.pick(versions)}`
  const bytes = Buffer.from(`${start}${lineEnd()}${headers.join('')}${lineEnd()}${random.chance(50) ? noise(2_000) : ''}`, 'latin1')
  return random.chance(20) ? bytes.subarray(0, random.int(1, bytes.length)) : bytes
}
