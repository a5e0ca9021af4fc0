import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type HttpResponse, parseChunks, parseResponse, parseResponseHead, type ResponseHead } from './http-response-parser.ts'

/** Longer than any expected wait; reaching it fails the test. */
const WAIT_TIMEOUT_MS = 10_000

/** A TCP connection over which a test sends exact bytes. */
export class RawConnection {
  readonly socket: Socket
  /** Received bytes that were not parsed yet. */
  bytes: Buffer = Buffer.alloc(0)
  /** How the server ended the connection. */
  closeState: 'no' | 'ended' | 'reset' = 'no'
  #chunked = false
  readonly #watchers = new Set<() => void>()

  constructor(socket: Socket) {
    this.socket = socket
    socket.setNoDelay(true)
    socket.on('data', (bytes: Buffer) => {
      this.bytes = Buffer.concat([this.bytes, bytes])
      this.notifyWatchers()
    })
    socket.on('end', () => this.#setClosed('ended'))
    socket.on('error', () => this.#setClosed('reset'))
    socket.on('close', () => this.#setClosed('ended'))
  }

  send(...pieces: readonly (string | Uint8Array)[]): void {
    for (const piece of pieces) this.socket.write(piece)
  }

  /** Sends each piece as a segment of its own: the next one goes when the kernel took the one before. */
  async sendSlowly(pieces: Iterable<string | Uint8Array>): Promise<void> {
    for (const piece of pieces) await new Promise<void>((written) => this.socket.write(piece, () => setImmediate(written)))
  }

  async responseHead(): Promise<ResponseHead> {
    const head = await this.#readNext('a response', () => parseResponseHead(this.bytes))
    this.#chunked = head.headers.get('transfer-encoding') === 'chunked'
    return head
  }

  /** The next complete response. */
  response({ toHead = false } = {}): Promise<HttpResponse> {
    return this.#readNext('a complete response', () => parseResponse(this.bytes, { toHead, over: this.closeState !== 'no' }))
  }

  /** The body so far of the response whose head was read, once it matches. */
  async streamedText(pattern: RegExp): Promise<string> {
    const text = () => (this.#chunked ? parseChunks(this.bytes).value : this.bytes).toString()
    await this.until(() => pattern.test(text()), String(pattern))
    return text()
  }

  /** Resolves when the server has ended the connection. */
  async ended(): Promise<'ended' | 'reset'> {
    await this.until(() => this.closeState !== 'no', 'the end of the connection')
    return this.closeState === 'reset' ? 'reset' : 'ended'
  }

  /** Closes the sending half; the connection still receives. */
  finish(): void {
    this.socket.end()
  }

  /** Cuts the connection with a reset. */
  reset(): void {
    this.socket.resetAndDestroy()
  }

  /** Resolves once a condition over the received bytes holds. */
  until(condition: () => boolean, description: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (callback: () => void) => {
        clearTimeout(timeout)
        this.#watchers.delete(check)
        callback()
      }
      const fail = (why: string) =>
        reject(new Error(`${why} ${description}; received ${JSON.stringify(this.bytes.toString('latin1', 0, 400))}`))
      const timeout = setTimeout(() => settle(() => fail('timed out waiting for')), WAIT_TIMEOUT_MS)
      const check = () => {
        try {
          if (condition()) settle(resolve)
          else if (this.closeState !== 'no') settle(() => fail(`the connection was ${this.closeState} before`))
        } catch (failure) {
          settle(() => reject(failure))
        }
      }
      this.#watchers.add(check)
      check()
    })
  }

  async #readNext<Value>(description: string, read: () => { value: Value; rest: Buffer } | null): Promise<Value> {
    await this.until(() => read() !== null, description)
    const found = read()
    if (!found) throw new Error('unreachable')
    this.bytes = found.rest
    return found.value
  }

  #setClosed(state: 'ended' | 'reset'): void {
    if (this.closeState === 'no') this.closeState = state
    this.notifyWatchers()
  }

  /** Checks all waits again; call it after taking bytes directly. */
  notifyWatchers(): void {
    for (const watcher of this.#watchers) watcher()
  }
}

export async function openRawConnection(url: string): Promise<RawConnection> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true })
  await once(socket, 'connect')
  return new RawConnection(socket)
}

/** A request in its wire format; headers are given as whole lines. */
export const formatRequest = (start: string, lines: readonly string[] = [], body = ''): string =>
  `${[`${start} HTTP/1.1`, 'host: relay', ...lines].join('\r\n')}\r\n\r\n${body}`
