import { connect, type Socket } from 'node:net'
import { nowMicros, STAMP_MARK, stampNumber, stampTime } from '../bench/message-stamp.ts'
import { DATA_PREFIX, FrameReader, LineReader, type OnMessage, ResponseReader } from '../bench/stream-readers.ts'
import { formatRequest } from '../integration/http/raw-connection.ts'
import { handshakeRequest } from '../integration/http/raw-websocket-client.ts'
import { encodeFrame, opcodes } from '../integration/http/websocket-frames.ts'
import { findSchemaError } from '../support/message-validator.ts'
import type { RecordLatency } from './latency-recorder.ts'
import { orderOfPosition, parseTapeMessage, type ReceivedHistory, type TapeMessage } from './received-history.ts'

export type CrowdTransport = 'ws' | 'sse' | 'sse-named' | 'ndjson'

/** The relay's port, and the local address to connect from. */
export type RelayAddress = { readonly port: number; readonly localAddress: string }

/** They take bytes that are reused afterwards. */
type StreamHandlers = {
  readonly message?: (message: Buffer) => void
  readonly refused?: (head: string) => void
  /** The payload of the closing frame of a WebSocket. */
  readonly close?: (payload: Buffer) => void
}

/** Opens a connection with these bytes, and passes on each message of the answer in its original bytes. */
export function openStream(
  address: RelayAddress,
  transport: CrowdTransport,
  requests: readonly (string | Uint8Array)[],
  { message, refused, close }: StreamHandlers = {},
): Socket {
  const socket = connect({ ...address, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
  const text: OnMessage = (bytes, from, to) => message?.(bytes.subarray(from, to))
  const ping = () => void (socket.writable && socket.write(encodeFrame({ opcode: opcodes.pong })))
  const reader = new ResponseReader((head) => {
    if (!/^HTTP\/1\.1 (101|200) /.test(head)) {
      refused?.(head)
      return null
    }
    if (transport !== 'ws') return new LineReader(text, transport.startsWith('sse') ? DATA_PREFIX : '')
    return new FrameReader({ text, ping, close: (bytes, from, to) => close?.(bytes.subarray(from, to)) })
  })
  socket.on('data', (bytes: Buffer) => reader.read(bytes, 0, bytes.length))
  socket.on('end', () => socket.end())
  socket.on('error', () => socket.destroy())
  for (const request of requests) socket.write(request)
  return socket
}

/** A message about the connection itself, as far as the tests read it. */
export type ConnectionNotice = {
  readonly type: string
  readonly req?: number
  readonly id?: string | null
  readonly reason?: string
  readonly resume?: string
  readonly code?: number
}

/** How a connection ended: the WebSocket's close code, and `bye` where it came. */
export type ConnectionEnd = { readonly code: number | null; readonly bye: ConnectionNotice | null; readonly closedByUs: boolean }

type ConnectionOptions = {
  readonly transport: CrowdTransport
  readonly query: string
  readonly heartbeatS?: number
  /** Whether the client resumes by the header `last-event-id`, where the transport has it. */
  readonly resumesByHeader?: boolean
  readonly snapshot?: boolean
  readonly recordLatency?: RecordLatency
}

/** One connection of a client. It records what it receives in the client's history. */
export class CrowdConnection {
  readonly socket: Socket
  readonly ended: Promise<ConnectionEnd>
  readonly live: Promise<void>
  readonly #history: ReceivedHistory
  readonly #options: ConnectionOptions
  readonly #since: string | null
  readonly #watchers = new Set<(notice: ConnectionNotice) => void>()
  #resolveLive: () => void = () => {}
  #bye: ConnectionNotice | null = null
  #code: number | null = null
  #closedByUs = false
  #hasGoneLive = false

  constructor(address: RelayAddress, history: ReceivedHistory, options: ConnectionOptions) {
    this.#history = history
    this.#options = options
    this.#since = history.lastPosition
    this.live = new Promise((resolve) => {
      this.#resolveLive = resolve
    })
    this.socket = openStream(address, options.transport, [this.#openingRequest()], {
      message: this.#receive,
      close: this.#handleClose,
      refused: (head) => this.#closedByUs || history.addFault(`got the response ${head.split('\r\n')[0]}`),
    })
    this.ended = new Promise((resolve) => {
      this.socket.once('close', () => resolve({ code: this.#code, bye: this.#bye, closedByUs: this.#closedByUs }))
    })
  }

  /** Sends a message over the WebSocket. */
  sendJson(message: unknown): void {
    if (this.socket.writable) this.socket.write(encodeFrame({ payload: JSON.stringify(message) }))
  }

  /** Sends a request over the WebSocket. Resolves after its answer, or when the connection ends. */
  sendRequest(
    message: { readonly req: number; readonly [field: string]: unknown },
    type: string,
    take: (answer: ConnectionNotice) => void,
  ): Promise<unknown> {
    const answered = new Promise<void>((resolve) => {
      const check = (notice: ConnectionNotice) => {
        if (notice.req !== message.req) return
        this.#watchers.delete(check)
        if (notice.type === type) take(notice)
        else this.#history.addFault(`sent ${JSON.stringify(message)} and got ${JSON.stringify(notice)}`)
        resolve()
      }
      this.#watchers.add(check)
    })
    this.sendJson(message)
    return Promise.race([answered, this.ended])
  }

  /** Leaves. Messages that arrive from now on are ignored. */
  leave(mode: 'reset' | 'close' | 'half' | 'close frame'): Promise<ConnectionEnd> {
    if (mode === 'reset' || mode === 'close') this.#closedByUs = true
    if (mode === 'reset') this.socket.resetAndDestroy()
    else if (mode === 'close') this.socket.destroy()
    else if (mode === 'close frame' && this.#options.transport === 'ws') {
      if (this.socket.writable) this.socket.write(encodeFrame({ opcode: opcodes.close, payload: Buffer.of(0x03, 0xe8) }))
    } else this.socket.end()
    return this.ended
  }

  #openingRequest(): string {
    const { transport, query, heartbeatS, resumesByHeader = false, snapshot = false } = this.#options
    const isInHeader = resumesByHeader && transport !== 'ws'
    const parameters = new URLSearchParams(query)
    if (!snapshot) parameters.set('snapshot', 'false')
    if (heartbeatS) parameters.set('heartbeat', String(heartbeatS))
    if (this.#since !== null && !isInHeader) parameters.set('since', this.#since)
    if (transport === 'ws') return handshakeRequest(`/v1/ws?${parameters}`)
    parameters.set('format', transport === 'sse-named' ? 'sse' : transport)
    if (transport === 'sse-named') parameters.set('events', 'named')
    const header = this.#since !== null && isInHeader ? [`last-event-id: ${this.#since}`] : []
    return formatRequest(`GET /v1/stream?${parameters}`, header)
  }

  readonly #receive = (message: Buffer): void => {
    if (this.#closedByUs) return
    const tapeMessage = parseTapeMessage(message)
    if (tapeMessage) {
      this.#history.receive(message, tapeMessage)
      if (tapeMessage.type === 'transfer') this.#recordLatency(message, tapeMessage)
      return
    }
    const notice: ConnectionNotice = JSON.parse(message.toString())
    const error = findSchemaError(notice)
    if (error !== null) this.#history.addFault(`got a message that does not fit its schema: ${error}: ${message}`)
    this.#receiveNotice(notice)
    for (const check of this.#watchers) check(notice)
  }

  #recordLatency(message: Buffer, { order }: TapeMessage): void {
    // Replayed messages are older than the connection.
    if (!this.#options.recordLatency || !this.#hasGoneLive) return
    const at = message.indexOf(STAMP_MARK)
    if (at < 0) return
    this.#options.recordLatency({ number: stampNumber(message, at), order, micros: nowMicros() - stampTime(message, at) })
  }

  #receiveNotice(notice: ConnectionNotice): void {
    const { query } = this.#options
    if (notice.type === 'gap') this.#history.addFault(`got a gap: ${JSON.stringify(notice)}`)
    if (notice.type === 'subscribed' && notice.req === undefined) {
      const since = this.#since
      if (since !== null && notice.resume !== 'full')
        this.#history.addFault(`asked for ${since} and got the resume ${notice.resume}`)
      if (since !== null && notice.id !== since) this.#history.addFault(`asked for ${since} and is at ${notice.id}`)
      if (since === null && notice.id) this.#history.beginSegment(query, orderOfPosition(notice.id))
    }
    if (notice.type === 'bye') this.#bye = notice
    // The position in an answer to a request is where another selection begins; the sender of the request handles it.
    if (notice.id && notice.req === undefined) this.#history.passPosition(notice.id)
    if (notice.type !== 'live') return
    this.#hasGoneLive = true
    this.#resolveLive()
  }

  readonly #handleClose = (payload: Buffer): void => {
    if (this.#closedByUs) return
    this.#code = payload.length < 2 ? 1_005 : payload.readUInt16BE(0)
    const reason = payload.toString('utf8', 2)
    const bye = this.#bye
    // Before a stream has begun, there is no position to resume from.
    if (bye && reason !== [bye.reason, bye.id ?? []].flat().join(' '))
      this.#history.addFault(`got bye at ${bye.id} and the close reason ${reason}`)
    if (this.socket.writable) this.socket.end(encodeFrame({ opcode: opcodes.close, payload }))
  }
}
