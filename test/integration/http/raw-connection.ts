import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import {
  type HttpResponse,
  parseChunks,
  parseResponse,
  parseResponseHead,
  type ResponseHead,
} from './http-response-parser.ts'

/** Longer than anything that a test waits for takes; reaching it is a failure, never a pause. */
const WAIT_TIMEOUT_MS = 10_000

/** A TCP connection over which a test says exactly the bytes that it means. */
export class RawConnection {
  readonly socket: Socket
  /** What came and was not yet read. */
  bytes: Buffer = Buffer.alloc(0)
  /** How the other side ended it. */
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

  /** Sends each piece as a segment of its own: the next one goes once the one before was taken by the kernel. */
  async sendSlowly(pieces: Iterable<string | Uint8Array>): Promise<void> {
    for (const piece of pieces)
      await new Promise<void>((written) => this.socket.write(piece, () => setImmediate(written)))
  }

  /** The status and headers of the next response. */
  async responseHead(): Promise<ResponseHead> {
    const head = await this.#readNext('a response', () => parseResponseHead(this.bytes))
    this.#chunked = head.headers.get('transfer-encoding') === 'chunked'
    return head
  }

  /** The next response, whole. */
  response({ toHead = false } = {}): Promise<HttpResponse> {
    return this.#readNext('a whole response', () =>
      parseResponse(this.bytes, { toHead, over: this.closeState !== 'no' }),
    )
  }

  /** The text so far of the answer whose head was read, once it shows what is looked for. */
  async streamedText(pattern: RegExp): Promise<string> {
    const text = () => (this.#chunked ? parseChunks(this.bytes).value : this.bytes).toString()
    await this.until(() => pattern.test(text()), String(pattern))
    return text()
  }

  /** How the other side ended the connection, once it has. */
  async ended(): Promise<'ended' | 'reset'> {
    await this.until(() => this.closeState !== 'no', 'the end of the connection')
    return this.closeState === 'reset' ? 'reset' : 'ended'
  }

  /** Says that nothing more will be sent, and still reads. */
  finish(): void {
    this.socket.end()
  }

  /** Cuts the connection with a reset. */
  reset(): void {
    this.socket.resetAndDestroy()
  }

  /** Resolves once a condition over what came holds. */
  until(condition: () => boolean, description: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (callback: () => void) => {
        clearTimeout(timeout)
        this.#watchers.delete(check)
        callback()
      }
      const fail = (why: string) =>
        reject(new Error(`${why} ${description}; came ${JSON.stringify(this.bytes.toString('latin1', 0, 400))}`))
      const timeout = setTimeout(() => settle(() => fail('waited in vain for')), WAIT_TIMEOUT_MS)
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

  /** Looks again at what is waited for; whoever takes the bytes as they come says so with this. */
  notifyWatchers(): void {
    for (const watcher of this.#watchers) watcher()
  }
}

/** Connects to where a relay listens. */
export async function openRawConnection(url: string): Promise<RawConnection> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true })
  await once(socket, 'connect')
  return new RawConnection(socket)
}

/** A request as it stands on the wire; a header is given as a whole line. */
export const formatRequest = (start: string, lines: readonly string[] = [], body = ''): string =>
  `${[`${start} HTTP/1.1`, 'host: relay', ...lines].join('\r\n')}\r\n\r\n${body}`
