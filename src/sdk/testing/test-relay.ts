import { connect, type RelayClient } from '../client/connect.ts'
import type { ConnectOptions } from '../client/stream-types.ts'
import type { SnapshotMessage, Update } from '../generated/messages.ts'
import { answerStream, MemoryWebSocket } from './memory-carriers.ts'
import type { Carrier, ClientTransport, ScriptedConnection, ScriptedRefusal } from './scripted-connection.ts'
import { ScriptedRelay } from './scripted-relay.ts'
import { type GivenFields, type MessageOf, type ScriptedFact, ScriptedTape } from './scripted-tape.ts'

const RELAY_URL = 'http://relay.test/'
/** Streams that may be open at the same time. Only a test that forgets to close them opens more. */
const STREAMS_BOUND = 1_000

/** A relay for tests, in memory and without sockets. The test says what happens; all streams that are open learn of it. */
export class TestRelay {
  readonly url = RELAY_URL
  readonly #relay: ScriptedRelay
  readonly #symbols: readonly string[]
  readonly #waiting = new Set<() => void>()
  #tapes = 1
  #isStopped = false
  #refusal: ScriptedRefusal | null = null

  constructor(symbols: readonly string[] = ['AAPLc']) {
    this.#symbols = symbols
    this.#relay = new ScriptedRelay(new ScriptedTape('test1', symbols))
  }

  /** Makes a client of this relay. */
  connect(options: ConnectOptions = {}): RelayClient {
    return connect(this.url, { fetch: this.fetch, WebSocket: this.WebSocket, ...options })
  }

  /** For code that calls `connect` itself. */
  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init)
    request.signal.throwIfAborted()
    if (this.#isStopped) throw new TypeError('fetch failed: the test relay is stopped')
    const { pathname, searchParams } = new URL(request.url)
    const refusal = this.#refusal ?? stageRefusal(searchParams)
    if (refusal) return Response.json(refusal, { status: refusal.code })
    const isNdjson = searchParams.get('format') === 'ndjson'
    if (pathname === '/v1/stream')
      return answerStream(isNdjson, request.signal, (carrier) => this.#open(isNdjson ? 'ndjson' : 'sse', searchParams, carrier))
    const { status, contentType, body } = this.#relay.answer(pathname, searchParams)
    return new Response(body, { status, headers: { 'content-type': contentType } })
  }

  readonly WebSocket = this.#webSocketClass()

  /** Resolves when so many streams are live. A message that is published before is not sent to a stream that begins now. */
  async connected(streams = 1): Promise<void> {
    while (this.#live.length < streams) await new Promise<void>((resolve) => this.#waiting.add(resolve))
  }

  /** Writes a message to the tape and sends it. Fields that are not given are those of the contract's example. */
  publish<Type extends Update['type']>(type: Type, fields?: GivenFields<Type>): MessageOf<Type> {
    return this.#send(this.#relay.tape.write(type, fields))
  }

  seal(...facts: readonly ScriptedFact[]): MessageOf<'seal'> {
    return this.#send(this.#relay.tape.seal(...facts))
  }

  retract(fact: ScriptedFact, fields?: GivenFields<'retract'>): MessageOf<'retract'> {
    return this.#send(this.#relay.tape.retract(fact, fields))
  }

  amend<Fact extends ScriptedFact>(fact: Fact, changes: Partial<Fact>): MessageOf<'amend'> {
    return this.#send(this.#relay.tape.amend(fact, changes))
  }

  /** Writes a message to the tape that is lost on its way to every stream. The next heartbeat, or the next `prev`, shows the loss. */
  lose<Type extends Update['type']>(type: Type, fields?: GivenFields<Type>): MessageOf<Type> {
    const message = this.#relay.tape.write(type, fields)
    for (const connection of this.#live) connection.drop(message)
    return message
  }

  /** Changes the state of a token in snapshots from now on, and lists a token that is new. */
  setState(symbol: string, fields: Partial<SnapshotMessage>): void {
    this.#relay.tape.setState(symbol, fields)
  }

  /** Sends a heartbeat now. Otherwise there is one each second. */
  heartbeat(): void {
    for (const connection of this.#live) connection.heartbeat()
  }

  /** Sends no more heartbeats. After three that are missing, a client leaves. */
  silence(): void {
    for (const connection of this.#live) connection.silence()
  }

  /** Ends all streams. Clients reconnect and resume. Without a code the connection is lost. */
  disconnect(code?: number, reason = ''): void {
    for (const connection of this.#live) code === undefined ? connection.cut() : connection.close(code, reason)
    this.#forgetClosed()
  }

  /** Ends all streams, and cannot be reached until `start`. */
  stop(): void {
    this.#isStopped = true
    this.disconnect()
  }

  /** Answers again after `stop` or `refuse`. */
  start(): void {
    this.#isStopped = false
    this.#refusal = null
  }

  /** Refuses every new stream and request until `start`. */
  refuse(refusal: ScriptedRefusal): void {
    this.#refusal = refusal
  }

  /** Deletes what is stored. A client that resumes before the end gets a gap `expired`. */
  deleteHistory(): void {
    this.#relay.tape.deleteAll()
  }

  /** Begins another tape, with positions of its own. Streams end, and their resume gets a gap `epoch`. */
  renewTape(): void {
    this.#tapes += 1
    this.#relay.tape = new ScriptedTape(`test${this.#tapes}`, this.#symbols)
    this.disconnect()
  }

  get #live(): readonly ScriptedConnection[] {
    return this.#relay.connections.filter(({ isAccepted, isClosed }) => isAccepted && !isClosed)
  }

  #send<Sent extends Update>(message: Sent): Sent {
    for (const connection of this.#live) connection.publish(message)
    return message
  }

  #open(transport: ClientTransport, query: URLSearchParams, carrier: Carrier): void {
    this.#forgetClosed()
    const connection = this.#relay.connect(transport, query, carrier)
    const { known, unknown } = connection.selection.symbols
    if (this.#relay.connections.length > STREAMS_BOUND) throw new Error(`more than ${STREAMS_BOUND} streams are open`)
    if (known.length > 0) connection.accept()
    else connection.refuse({ code: 404, reason: 'unknown_symbol', message: `The relay does not know ${unknown.join(', ')}.` })
    for (const resolve of this.#waiting) resolve()
    this.#waiting.clear()
  }

  #forgetClosed(): void {
    const { connections } = this.#relay
    connections.splice(0, connections.length, ...connections.filter(({ isClosed }) => !isClosed))
  }

  #webSocketClass(): NonNullable<ConnectOptions['WebSocket']> {
    const open = ({ carrier, url }: MemoryWebSocket) => {
      const { searchParams } = new URL(url)
      if (this.#isStopped || this.#refusal || stageRefusal(searchParams)) carrier.refuse(0, '', {})
      else this.#open('websocket', searchParams, carrier)
    }
    class TestWebSocket extends MemoryWebSocket {
      constructor(url: string | URL, protocol?: string) {
        super(url, protocol)
        open(this)
      }
    }
    return TestWebSocket as object as NonNullable<ConnectOptions['WebSocket']>
  }
}

const stageRefusal = (query: URLSearchParams): ScriptedRefusal | null =>
  query.get('stage') === 'sealed'
    ? { code: 400, reason: 'bad_parameter', message: 'stage: the test relay has no sealed view.' }
    : null
