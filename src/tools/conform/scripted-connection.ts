import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import type { Message } from '../../protocol/notices.ts'
import { filterNames, noFilters } from '../../protocol/parameters/value-filters.ts'
import type { ErrorRecord } from '../../protocol/refusal.ts'
import { contentTypeOf, formatOf, framings } from '../../protocol/transports.ts'
import { followingTypes, type Update } from '../../protocol/updates.ts'
import { lineDigest } from '../../relay/tape/line-digest.ts'
import type { ScriptedTape } from './scripted-tape.ts'

const HEARTBEAT_MS = 1_000
/** Time that a browser waits before it reconnects. */
const RETRY_MS = 1_000

type ClientTransport = 'websocket' | 'sse' | 'ndjson'

/** Differences from the usual beginning of a connection. */
type Beginning = {
  /** Makes a gap for the client, although the tape contains its position. */
  readonly gap?: (from: string) => Extract<Message, { type: 'gap' }>
  /** Messages that the client already has, and that are sent again before the replay. */
  readonly repeated?: readonly Update[]
  /** Messages that the replay omits. */
  readonly dropped?: readonly Update[]
}

export class ScriptedConnection {
  readonly transport: ClientTransport
  readonly query: URLSearchParams
  readonly arrivedAt = performance.now()
  readonly #tape: () => ScriptedTape
  readonly #carrier: Carrier
  #heartbeats: NodeJS.Timeout | undefined
  #sent = 0
  #position = ''
  /** Last position with the number of messages sent, in `live` or a heartbeat; `provenBefore` is that before the newest message. */
  #counted = ''
  provenBefore = ''
  isAccepted = false
  isClosed = false

  constructor(transport: ClientTransport, query: URLSearchParams, carrier: Carrier, tape: () => ScriptedTape) {
    this.transport = transport
    this.query = query
    this.#carrier = carrier
    this.#tape = tape
    carrier.onClose(() => this.#end())
  }

  /** Position after which the client begins; null if it begins at the present or at a time. */
  get since(): string | null {
    const since = this.query.get('since')
    return since !== null && /^[0-9a-z]+\.\d+(?:\.\d+)?$/.test(since) ? since : null
  }

  get hasValueFilter(): boolean {
    return filterNames.some((name) => this.query.has(name))
  }

  /** Opens the stream as the relay does: hello, subscribed, gap or replay, live. */
  accept({ gap, repeated = [], dropped = [] }: Beginning = {}): void {
    const tape = this.#tape()
    const { since } = this
    this.isAccepted = true
    this.#carrier.accept()
    const gapMessage = gap?.(since ?? tape.start) ?? (since !== null && !tape.has(since) ? epochGap(tape, since) : undefined)
    const start =
      gapMessage?.id ?? since ?? (this.query.get('since') === null || this.query.get('since') === 'now' ? tape.end : tape.start)
    this.#position = start
    this.#counted = start
    this.provenBefore = start
    this.send(tape.hello(gapMessage ? null : start))
    this.send(this.#subscribed(gapMessage ? null : start, since !== null))
    if (gapMessage) this.send(gapMessage)
    if (this.query.get('snapshot') !== 'false' && (gapMessage || since === null)) this.send(tape.snapshot(start))
    const stored = tape.after(start).filter((message) => this.#selects(message))
    const replay = [...repeated.filter((message) => this.#selects(message)), ...stored].filter(
      (message) => !dropped.includes(message),
    )
    for (const message of replay) this.publish(message)
    // Dropped messages count as sent, so that a client with value filters can notice the loss by their number.
    this.#sent += dropped.length
    this.#position = tape.end
    const digest = lineDigest(stored.map(({ id }) => id))
    this.send({ type: 'live', id: tape.end, after: start, through: tape.end, replayed: this.#sent, digest })
    this.#counted = tape.end
    this.#heartbeats = setInterval(() => this.heartbeat(), HEARTBEAT_MS)
  }

  publish(message: Update): void {
    if (!this.#selects(message)) return
    this.send(message)
    this.#sent += 1
    this.#position = message.id
    this.provenBefore = this.#counted
  }

  /** Counts a message as sent without sending it, as if it were lost on the way. */
  drop(message: Update): void {
    if (!this.#selects(message)) return
    this.#sent += 1
    this.#position = message.id
  }

  heartbeat(): void {
    if (this.query.get('heartbeat') === '0') return
    this.send(this.#tape().heartbeat(this.#position, this.#sent))
    this.#counted = this.#position
  }

  send(message: Message | { readonly type: string }): void {
    if (!this.isClosed) this.#carrier.send(JSON.stringify(message))
  }

  /** Stops the heartbeats, and leaves the connection open. */
  silence(): void {
    clearInterval(this.#heartbeats)
  }

  /** Closes the connection. A stream over HTTP ends without the code. */
  close(code: number, reason: string): void {
    this.#end()
    this.#carrier.close(code, reason)
  }

  cut(): void {
    this.#end()
    this.#carrier.cut()
  }

  refuse(record: ErrorRecord, headers: Readonly<Record<string, string>> = {}): void {
    this.#end()
    this.#carrier.refuse(record.code, JSON.stringify(record), headers)
  }

  /** Refuses with status 200, because an EventSource does not reconnect after any other status. */
  refuseAsEvent(retryMs: number, error: object): void {
    this.#end()
    this.#carrier.refuse(200, `retry: ${retryMs}\n\ndata: ${JSON.stringify(error)}\n\n`, { 'content-type': 'text/event-stream' })
  }

  #selects({ type }: Update): boolean {
    const types = this.query.get('types')
    return types === null || types === '*' || [...followingTypes, ...types.split(',')].includes(type)
  }

  #subscribed(id: string | null, isResumed: boolean): Message {
    const types = this.query.get('types')?.split(',') ?? []
    const resume = id === null ? 'gap' : isResumed ? 'full' : 'none'
    return { type: 'subscribed', id, symbols: ['AAPLc'], types, stage: 'preconfirmed', ...noFilters, rejected: [], resume }
  }

  #end(): void {
    this.isClosed = true
    this.silence()
  }
}

const epochGap = (tape: ScriptedTape, from: string): Extract<Message, { type: 'gap' }> => ({
  type: 'gap',
  id: tape.start,
  reason: 'epoch',
  after: from,
  through: tape.start,
  backfill: null,
})

/** The transport of a connection. It sends nothing before `accept` or `refuse`. */
export type Carrier = {
  readonly accept: () => void
  readonly send: (text: string) => void
  readonly close: (code: number, reason: string) => void
  readonly cut: () => void
  readonly refuse: (status: number, body: string, headers: Readonly<Record<string, string>>) => void
  readonly onClose: (callback: () => void) => void
}

export function webSocketCarrier(
  upgrade: (accepted: (webSocket: WebSocket) => void) => void,
  socket: Duplex,
  onFirstMessage: (text: string) => void,
): Carrier {
  let webSocket: WebSocket | null = null
  const accept = () => {
    if (webSocket || socket.destroyed) return
    upgrade((accepted) => {
      webSocket = accepted
      webSocket.on('error', () => accepted.terminate())
      webSocket.once('message', (data) => onFirstMessage(String(data)))
    })
  }
  return {
    accept,
    send: (text) => webSocket?.send(text),
    close: (code, reason) => {
      accept()
      webSocket?.close(code, reason)
    },
    cut: () => socket.destroy(),
    refuse: (status, body, headers) => {
      if (webSocket) return webSocket.terminate()
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
      socket.end(
        `HTTP/1.1 ${status} Refused\r\nconnection: close\r\n${lines.join('')}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      )
    },
    onClose: (callback) => socket.on('close', callback),
  }
}

export const responseCarrier = (response: ServerResponse, transport: 'sse' | 'ndjson'): Carrier => ({
  accept: () => {
    response.writeHead(200, { 'content-type': contentTypeOf(transport), 'cache-control': 'no-cache, no-transform' })
    response.flushHeaders()
    response.write(formatOf(transport).preface(RETRY_MS))
  },
  send: (text) => response.write(framings[transport](JSON.parse(text), text)),
  close: () => response.end(),
  cut: () => response.destroy(),
  refuse: (status, body, headers) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(body)
  },
  onClose: (callback) => response.on('close', callback),
})
