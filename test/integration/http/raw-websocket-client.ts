import { createHash } from 'node:crypto'
import { Ear } from '../../support/test-listener.ts'
import { type Raw, request } from './raw-connection.ts'
import { FrameReader, frame, opcodes, type Received } from './websocket-frames.ts'

const KEY = Buffer.from('the sample nonce').toString('base64')
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const ACCEPT = createHash('sha1')
  .update(KEY + GUID)
  .digest('base64')

/** What a client says to become a WebSocket; a header that is given replaces the one of that name, null leaves it out. */
export function handshake(
  path = '/v1/ws',
  { start = 'GET', ...changed }: Readonly<Record<string, string | null>> = {},
): string {
  const headers: Record<string, string | null> = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': KEY,
    ...changed,
  }
  const lines = Object.entries(headers).flatMap(([name, value]) => (value === null ? [] : [`${name}: ${value}`]))
  return request(`${start} ${path}`, lines)
}

/** A WebSocket client of our own: it sends any bytes at all, and forgives nothing in those that it gets. */
export class FrameClient {
  readonly raw: Raw
  /** What was heard; every message is checked against the contract. */
  readonly ear: Ear
  readonly frames: Received[] = []
  /** What the server did that it must not. */
  fault: Error | null = null
  readonly #reader = new FrameReader()

  /** Shakes hands; what it says `behind` that goes in the same piece. */
  static async upgrade(raw: Raw, path: string, behind: Uint8Array = Buffer.alloc(0)): Promise<FrameClient> {
    raw.send(Buffer.concat([Buffer.from(handshake(path)), behind]))
    const { status, headers } = await raw.head()
    if (status !== 101) throw new Error(`HTTP ${status}`)
    if (headers.get('sec-websocket-accept') !== ACCEPT) throw new Error('the handshake was not accepted')
    return new FrameClient(raw)
  }

  constructor(raw: Raw) {
    this.raw = raw
    this.ear = new Ear({ close: () => raw.reset(), send: (payload) => this.say({ payload }) })
    raw.socket.on('data', () => this.#read())
    this.#read()
  }

  say(...frames: readonly Parameters<typeof frame>[0][]): void {
    for (const one of frames) this.raw.send(frame(one))
  }

  /** The first frame of a kind that fits, come or still to come. */
  async frame<Kind extends Received['kind']>(
    kind: Kind,
    fits: (frame: Extract<Received, { kind: Kind }>) => boolean = () => true,
  ): Promise<Extract<Received, { kind: Kind }>> {
    const isIt = (one: Received): one is Extract<Received, { kind: Kind }> => one.kind === kind
    const found = () => this.frames.filter(isIt).find(fits)
    await this.raw.until(() => {
      if (this.fault) throw this.fault
      return found() !== undefined
    }, `a fitting ${kind} frame`)
    const one = found()
    if (!one) throw new Error('unreachable')
    return one
  }

  /** The code and reason with which the server closed, and that nothing came after. */
  async closed(): Promise<{ code: number; reason: string }> {
    const { code, reason } = await this.frame('close')
    await this.raw.ended()
    if (this.fault) throw this.fault
    return { code, reason }
  }

  /** Everything sent before this has been read by the server once it resolves. */
  async answered(): Promise<void> {
    const payload = `after ${this.frames.length}`
    this.say({ opcode: opcodes.ping, payload })
    await this.frame('pong', (pong) => pong.payload.toString() === payload)
  }

  #read(): void {
    const { raw, ear, frames } = this
    const { bytes } = raw
    raw.bytes = Buffer.alloc(0)
    try {
      for (const received of this.#reader.read(bytes)) {
        frames.push(received)
        if (received.kind === 'text') ear.take(received.text)
        if (received.kind === 'close') ear.over(received)
      }
    } catch (failure) {
      this.fault = failure instanceof Error ? failure : new Error(String(failure))
      raw.socket.destroy()
    }
    raw.look()
  }
}
