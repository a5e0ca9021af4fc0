import type { ErrorMessage, GapMessage, Message, SubscribedMessage, Update } from '../generated/messages.ts'
import { rejectedOf, ScriptedSelection } from './scripted-selection.ts'
import { digestOf, HEARTBEAT_S, type ScriptedTape } from './scripted-tape.ts'

/** The body of a refusal. */
export type ScriptedRefusal = Pick<ErrorMessage, 'code' | 'reason' | 'message'>

/** The transport of a connection. It sends nothing before `accept` or `refuse`. */
export type Carrier = {
  readonly accept: () => void
  readonly send: (text: string) => void
  readonly close: (code: number, reason: string) => void
  readonly cut: () => void
  readonly refuse: (status: number, body: string, headers: Readonly<Record<string, string>>) => void
  readonly onClose: (callback: () => void) => void
}

export type ClientTransport = 'websocket' | 'sse' | 'ndjson'

/** Differences from the usual beginning of a connection. */
type Beginning = {
  /** Makes a gap for the client, although the tape contains its position. */
  readonly gap?: (from: string) => GapMessage
  /** Messages that the client already has, and that are sent again before the replay. */
  readonly repeated?: readonly Update[]
  /** Messages that the replay omits. */
  readonly dropped?: readonly Update[]
}

/** One stream of one client. It knows no socket: a carrier has its bytes. */
export class ScriptedConnection {
  readonly transport: ClientTransport
  readonly query: URLSearchParams
  readonly arrivedAt = performance.now()
  readonly selection: ScriptedSelection
  readonly #tape: () => ScriptedTape
  readonly #carrier: Carrier
  #heartbeats: ReturnType<typeof setInterval> | undefined
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
    this.selection = new ScriptedSelection(query, tape)
    this.#carrier = carrier
    this.#tape = tape
    carrier.onClose(() => this.#end())
  }

  /** Position after which the client begins; null if it begins at the present or at a time. */
  get since(): string | null {
    const since = this.query.get('since')
    return since !== null && /^[0-9a-z]+\.\d+(?:\.\d+)?$/.test(since) ? since : null
  }

  /** Opens the stream as the relay does: hello, subscribed, gap or replay, live. */
  accept({ gap, repeated = [], dropped = [] }: Beginning = {}): void {
    const tape = this.#tape()
    const { since } = this
    this.isAccepted = true
    this.#carrier.accept()
    const gapMessage = gap?.(since ?? tape.oldest) ?? (since === null ? null : tape.gapAfter(since))
    const isNow = [null, 'now'].includes(this.query.get('since'))
    const start = gapMessage?.id ?? since ?? (isNow ? tape.end : tape.oldest)
    this.#position = start
    this.#counted = start
    this.provenBefore = start
    this.send(tape.hello(gapMessage ? null : start))
    this.send(this.#subscribed(gapMessage ? null : start))
    if (gapMessage) this.send(gapMessage)
    const snapshot = this.query.get('snapshot')
    if (snapshot === 'always' || (snapshot !== 'false' && (gapMessage || since === null)))
      for (const symbol of this.selection.symbols.known) this.send(tape.snapshot(symbol, start))
    const stored = tape.after(start).filter((message) => this.selection.has(message))
    for (const message of [...repeated, ...stored]) if (!dropped.includes(message)) this.publish(message)
    // Dropped messages count as sent, so that a client with value filters can notice the loss by their number.
    this.#sent += dropped.length
    this.#position = tape.end
    const digest = digestOf(stored.map(({ id }) => id))
    this.send({ type: 'live', id: tape.end, after: start, through: tape.end, replayed: this.#sent, digest })
    this.#counted = tape.end
    this.#heartbeats = setInterval(() => this.heartbeat(), 1_000 * HEARTBEAT_S)
  }

  publish(message: Update): void {
    if (!this.selection.has(message)) return
    this.send(message)
    this.#sent += 1
    this.#position = message.id
    this.provenBefore = this.#counted
  }

  /** Counts a message as sent without sending it, as if it were lost on the way. */
  drop(message: Update): void {
    if (!this.selection.has(message)) return
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

  refuse(refusal: ScriptedRefusal, headers: Readonly<Record<string, string>> = {}): void {
    this.#end()
    this.#carrier.refuse(refusal.code, JSON.stringify(refusal), headers)
  }

  /** Refuses with status 200, because an EventSource does not reconnect after any other status. */
  refuseAsEvent(retryMs: number, error: object): void {
    this.#end()
    this.#carrier.refuse(200, `retry: ${retryMs}\n\ndata: ${JSON.stringify(error)}\n\n`, { 'content-type': 'text/event-stream' })
  }

  #subscribed(id: string | null): SubscribedMessage {
    const { types, symbols } = this.selection
    const filter = (name: string) => this.query.get(name)
    const list = (name: string) => filter(name)?.split(',') ?? null
    return {
      ...{ type: 'subscribed', id, symbols: symbols.known, types: types ?? ['*'], stage: 'preconfirmed' },
      ...{ min_value: filter('min_value'), min_shares: filter('min_shares'), account: list('account'), pools: list('pools') },
      rejected: rejectedOf(symbols.unknown),
      resume: id === null ? 'gap' : this.since === null ? 'none' : 'full',
    }
  }

  #end(): void {
    this.isClosed = true
    this.silence()
  }
}
