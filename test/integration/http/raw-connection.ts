import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type Answer, type Head, readAnswer, readChunks, readHead } from './http-response-parser.ts'

/** Longer than anything that a test waits for takes; reaching it is a failure, never a pause. */
const PATIENCE_MS = 10_000

/** A TCP connection over which a test says exactly the bytes that it means. */
export class Raw {
  readonly socket: Socket
  /** What came and was not yet read. */
  bytes: Buffer = Buffer.alloc(0)
  /** How the other side ended it. */
  over: 'no' | 'ended' | 'reset' = 'no'
  #chunked = false
  readonly #watchers = new Set<() => void>()

  constructor(socket: Socket) {
    this.socket = socket
    socket.setNoDelay(true)
    socket.on('data', (bytes: Buffer) => {
      this.bytes = Buffer.concat([this.bytes, bytes])
      this.look()
    })
    socket.on('end', () => this.#end('ended'))
    socket.on('error', () => this.#end('reset'))
    socket.on('close', () => this.#end('ended'))
  }

  send(...pieces: readonly (string | Uint8Array)[]): void {
    for (const piece of pieces) this.socket.write(piece)
  }

  /** Sends each piece as a segment of its own: the next one goes once the one before was taken by the kernel. */
  async trickle(pieces: Iterable<string | Uint8Array>): Promise<void> {
    for (const piece of pieces) await new Promise<void>((taken) => this.socket.write(piece, () => setImmediate(taken)))
  }

  /** The status and headers of the next response. */
  async head(): Promise<Head> {
    const head = await this.#read('a response', () => readHead(this.bytes))
    this.#chunked = head.headers.get('transfer-encoding') === 'chunked'
    return head
  }

  /** The next response, whole. */
  answer({ toHead = false } = {}): Promise<Answer> {
    return this.#read('a whole response', () => readAnswer(this.bytes, { toHead, over: this.over !== 'no' }))
  }

  /** The text so far of the answer whose head was read, once it shows what is looked for. */
  async streamed(shows: RegExp): Promise<string> {
    const text = () => (this.#chunked ? readChunks(this.bytes).value : this.bytes).toString()
    await this.until(() => shows.test(text()), String(shows))
    return text()
  }

  /** How the other side ended the connection, once it has. */
  async ended(): Promise<'ended' | 'reset'> {
    await this.until(() => this.over !== 'no', 'the end of the connection')
    return this.over === 'reset' ? 'reset' : 'ended'
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
  until(holds: () => boolean, what: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        clearTimeout(impatient)
        this.#watchers.delete(look)
        act()
      }
      const give = (why: string) =>
        reject(new Error(`${why} ${what}; came ${JSON.stringify(this.bytes.toString('latin1', 0, 400))}`))
      const impatient = setTimeout(() => settle(() => give('waited in vain for')), PATIENCE_MS)
      const look = () => {
        try {
          if (holds()) settle(resolve)
          else if (this.over !== 'no') settle(() => give(`the connection was ${this.over} before`))
        } catch (failure) {
          settle(() => reject(failure))
        }
      }
      this.#watchers.add(look)
      look()
    })
  }

  async #read<Value>(what: string, read: () => { value: Value; rest: Buffer } | null): Promise<Value> {
    await this.until(() => read() !== null, what)
    const found = read()
    if (!found) throw new Error('unreachable')
    this.bytes = found.rest
    return found.value
  }

  #end(how: 'ended' | 'reset'): void {
    if (this.over === 'no') this.over = how
    this.look()
  }

  /** Looks again at what is waited for; whoever takes the bytes as they come says so with this. */
  look(): void {
    for (const watcher of this.#watchers) watcher()
  }
}

/** Connects to where a relay listens. */
export async function connectRaw(url: string): Promise<Raw> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true })
  await once(socket, 'connect')
  return new Raw(socket)
}

/** A request as it stands on the wire; a header is given as a whole line. */
export const request = (start: string, lines: readonly string[] = [], body = ''): string =>
  `${[`${start} HTTP/1.1`, 'host: relay', ...lines].join('\r\n')}\r\n\r\n${body}`
