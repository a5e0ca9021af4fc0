import { createHash } from 'node:crypto'
import { TestListener } from '../../support/test-listener.ts'
import { formatRequest, type RawConnection } from './raw-connection.ts'
import { encodeFrame, opcodes, type ServerFrame, StrictFrameReader } from './websocket-frames.ts'

const HANDSHAKE_KEY = Buffer.from('the sample nonce').toString('base64')
const WEBSOCKET_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const EXPECTED_ACCEPT = createHash('sha1')
  .update(HANDSHAKE_KEY + WEBSOCKET_GUID)
  .digest('base64')

/** A handshake request. A given header replaces the default one; null leaves it out. */
export function handshakeRequest(
  path = '/v1/ws',
  { start = 'GET', ...changed }: Readonly<Record<string, string | null>> = {},
): string {
  const headers: Record<string, string | null> = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': HANDSHAKE_KEY,
    ...changed,
  }
  const lines = Object.entries(headers).flatMap(([name, value]) => (value === null ? [] : [`${name}: ${value}`]))
  return formatRequest(`${start} ${path}`, lines)
}

/** A WebSocket client that can send any bytes and reads strictly. */
export class RawWebSocketClient {
  readonly connection: RawConnection
  /** The received messages; each is checked against the contract. */
  readonly listener: TestListener
  readonly frames: ServerFrame[] = []
  /** The first violation of the protocol by the server. */
  protocolError: Error | null = null
  readonly #reader: StrictFrameReader

  /** Performs the handshake; `trailingBytes` go in the same write. */
  static async upgrade(
    connection: RawConnection,
    path: string,
    trailingBytes: Uint8Array = Buffer.alloc(0),
  ): Promise<RawWebSocketClient> {
    connection.send(Buffer.concat([Buffer.from(handshakeRequest(path)), trailingBytes]))
    return RawWebSocketClient.accepted(connection)
  }

  /** Performs a handshake that offers extensions. */
  static async upgradeWithExtensions(connection: RawConnection, path: string, offer: string): Promise<RawWebSocketClient> {
    connection.send(handshakeRequest(path, { 'sec-websocket-extensions': offer }))
    return RawWebSocketClient.accepted(connection)
  }

  static async accepted(connection: RawConnection): Promise<RawWebSocketClient> {
    const { status, headers } = await connection.responseHead()
    if (status !== 101) throw new Error(`HTTP ${status}`)
    if (headers.get('sec-websocket-accept') !== EXPECTED_ACCEPT) throw new Error('the handshake was not accepted')
    return new RawWebSocketClient(connection, headers.get('sec-websocket-extensions') ?? '')
  }

  constructor(connection: RawConnection, extensions = '') {
    this.connection = connection
    this.#reader = new StrictFrameReader({ mayDeflate: extensions !== '' })
    this.listener = new TestListener({ close: () => connection.reset(), send: (payload) => this.sendFrames({ payload }) })
    connection.socket.on('data', () => this.#readFrames())
    this.#readFrames()
  }

  sendFrames(...frames: readonly Parameters<typeof encodeFrame>[0][]): void {
    for (const frame of frames) this.connection.send(encodeFrame(frame))
  }

  /** The first matching frame, received already or in the future. */
  async waitForFrame<Kind extends ServerFrame['kind']>(
    kind: Kind,
    matches: (frame: Extract<ServerFrame, { kind: Kind }>) => boolean = () => true,
  ): Promise<Extract<ServerFrame, { kind: Kind }>> {
    const isKind = (frame: ServerFrame): frame is Extract<ServerFrame, { kind: Kind }> => frame.kind === kind
    const found = () => this.frames.filter(isKind).find(matches)
    await this.connection.until(() => {
      if (this.protocolError) throw this.protocolError
      return found() !== undefined
    }, `a matching ${kind} frame`)
    const frame = found()
    if (!frame) throw new Error('unreachable')
    return frame
  }

  /** The server's close code and reason; fails if anything follows the close frame. */
  async waitForClose(): Promise<{ code: number; reason: string }> {
    const { code, reason } = await this.waitForFrame('close')
    await this.connection.ended()
    if (this.protocolError) throw this.protocolError
    return { code, reason }
  }

  /** Resolves when the server has read everything sent before. */
  async waitForPong(): Promise<void> {
    const payload = `after ${this.frames.length}`
    this.sendFrames({ opcode: opcodes.ping, payload })
    await this.waitForFrame('pong', (pong) => pong.payload.toString() === payload)
  }

  #readFrames(): void {
    const { connection, listener, frames } = this
    const { bytes } = connection
    connection.bytes = Buffer.alloc(0)
    try {
      for (const received of this.#reader.read(bytes)) {
        frames.push(received)
        if (received.kind === 'text') listener.receive(received.text)
        if (received.kind === 'close') listener.markClosed(received)
      }
    } catch (failure) {
      this.protocolError = failure instanceof Error ? failure : new Error(String(failure))
      connection.socket.destroy()
    }
    connection.notifyWatchers()
  }
}
