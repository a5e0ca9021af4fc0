import { setImmediate as settlePromises } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { lineDigest } from '../../../../src/relay/tape/line-digest.ts'
import type { OpenConnection } from '../../../../src/sdk/client/connection-openers.ts'
import { ConnectionError, RelayError, type StocktapeError } from '../../../../src/sdk/client/errors.ts'
import type { Http, ReadText } from '../../../../src/sdk/client/http-requests.ts'
import type { StreamItem, StreamOptions, StreamState, TransportName } from '../../../../src/sdk/client/stream-types.ts'
import { type StreamSource, UpdateStream } from '../../../../src/sdk/client/update-stream.ts'

type Events = Parameters<OpenConnection>[1]
type Timer = { readonly atMs: number; readonly callback: () => void }
type Answer = (path: string, query: URLSearchParams, signal: AbortSignal | undefined) => unknown

const HEARTBEAT_S = 5
const nowhere = { pending: null, sealed: null, safe: null, finalized: null }

/** A relay without a network, in virtual time. A test sends each message by itself. */
export class FakeRelay {
  readonly connections: FakeConnection[] = []
  readonly requests: string[] = []
  readonly #timers = new Set<Timer>()
  nowMs = 0
  /** What `Math.random` would give: 0.5 waits exactly as long as the backoff says. */
  random = 0.5
  answer: Answer = () => {
    throw new Error('nothing answers')
  }
  /** The result of a probe. */
  found: StocktapeError | null = null

  get timerCount(): number {
    return this.#timers.size
  }

  get last(): FakeConnection {
    const last = this.connections.at(-1)
    if (!last) throw new Error('nothing has connected')
    return last
  }

  /** A relay that has answered before, unless a test says otherwise. */
  readonly http: Http = {
    isKnown: true,
    getKey: async () => undefined,
    request: () => Promise.reject(new Error('nothing answers')),
    probe: async () => this.found,
    digestOf: async (ids) => lineDigest(ids),
    errorOf: (code, cause, retryAfterMs) => new ConnectionError(code, 'http://relay/', cause, retryAfterMs),
    retry: undefined,
    urlOf: (path) => new URL(path, 'http://relay/'),
    get: async <Body>(path: string, query = new URLSearchParams(), signal?: AbortSignal, read: ReadText<Body> = JSON.parse) => {
      this.requests.push(`${path.slice(1)}?${query}`)
      const answer = await this.answer(path.slice(1), query, signal)
      return read(typeof answer === 'string' ? answer : JSON.stringify(answer))
    },
  }

  source(transport?: TransportName): StreamSource {
    const opener =
      (name: TransportName): OpenConnection =>
      (query, events) => {
        const connection = new FakeConnection(name, query, events)
        this.connections.push(connection)
        return () => {
          connection.isOpen = false
        }
      }
    return {
      http: this.http,
      open: { websocket: opener('websocket'), sse: opener('sse') },
      transport,
      heartbeatS: HEARTBEAT_S,
      now: () => this.nowMs,
      wallTime: () => 0,
      random: () => this.random,
      after: (ms, callback) => {
        const timer = { atMs: this.nowMs + ms, callback }
        this.#timers.add(timer)
        return () => this.#timers.delete(timer)
      },
    }
  }

  /** Lets time pass. All promises settle before and after each timer. */
  async advance(ms: number): Promise<void> {
    const end = this.nowMs + ms
    for (;;) {
      await settlePromises()
      const [next] = [...this.#timers].filter(({ atMs }) => atMs <= end).sort((a, b) => a.atMs - b.atMs)
      if (!next) break
      this.nowMs = Math.max(this.nowMs, next.atMs)
      this.#timers.delete(next)
      next.callback()
    }
    this.nowMs = Math.max(this.nowMs, end)
  }

  /** Lets time pass until the next timer has run. */
  async skip(): Promise<void> {
    await this.advance(0)
    await this.advance(Math.min(...[...this.#timers].map(({ atMs }) => atMs)) - this.nowMs)
  }

  /** Sends messages over the newest connection, and lets the consumer take them. */
  async deliver(...messages: readonly Sent[]): Promise<void> {
    this.last.send(...messages)
    await this.advance(0)
  }

  /** A stream and a consumer that takes everything. */
  read(options: StreamOptions = {}, transport?: TransportName): Reader {
    const states: StreamState[] = []
    const onState = (state: StreamState) => states.push(state)
    const stream = new UpdateStream(this.source(transport), '*', { onState, ...options })
    return new Reader(stream, states)
  }
}

export type Sent = { readonly type?: string; readonly id?: string | null; readonly [field: string]: unknown }

const lost = new ConnectionError('lost', 'http://relay/', null)

/** One connection as the relay sees it. */
class FakeConnection {
  readonly transport: TransportName
  readonly query: URLSearchParams
  readonly #events: Events
  /** Start of the replay, and the ids in it, for the receipt. */
  #after = ''
  #replayed: string[] = []
  isOpen = true

  constructor(transport: TransportName, query: URLSearchParams, events: Events) {
    this.transport = transport
    this.query = query
    this.#events = events
  }

  get since(): string | null {
    return this.query.get('since')
  }

  send(...messages: readonly Sent[]): this {
    for (const message of messages) this.sendText(JSON.stringify(this.#withReceipt(message)))
    return this
  }

  #withReceipt(message: Sent): object {
    const { type, id = null } = message
    if (type === 'subscribed' || type === 'gap') {
      this.#after = id ?? ''
      this.#replayed = []
    }
    if ('prev' in message && id !== null) this.#replayed.push(id)
    return type === 'live' ? { after: this.#after, through: id, digest: lineDigest(this.#replayed), ...message } : message
  }

  sendText(text: string): void {
    if (this.isOpen) this.#events.onMessage(text)
  }

  /** What stands before the first message of a stream that begins after a position. */
  start(id: string | null, resume: 'none' | 'full' | 'gap' = 'none'): this {
    return this.send(hello(id), { type: 'subscribed', id, symbols: ['*'], rejected: [], resume })
  }

  /** A stream that begins after a position, and has nothing to replay. */
  live(id: string, resume: 'none' | 'full' = 'none'): this {
    return this.start(id, resume).send({ type: 'live', id, replayed: 0 })
  }

  end(code = 1_006, reason = ''): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.#events.onEnd(code < 4_000 ? lost : new RelayError(code, { reason }))
  }

  retry(ms: number): void {
    this.#events.onRetry(ms)
  }
}

/** A consumer that takes what it may. */
export class Reader {
  readonly stream: UpdateStream
  readonly states: readonly StreamState[]
  readonly items: StreamItem[] = []
  readonly done: Promise<void>
  failure: unknown = null
  isDone = false
  #isPaused = false
  #resume: () => void = () => {}

  constructor(stream: UpdateStream, states: readonly StreamState[]) {
    this.stream = stream
    this.states = states
    this.done = this.#read()
  }

  /** What was received, in a form that tests compare: ids, and a gap as its range. */
  get received(): readonly string[] {
    return this.items.map(textOf)
  }

  /** The item that comes next is not finished until `resume`. */
  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#resume()
  }

  async #read(): Promise<void> {
    try {
      for await (const item of this.stream) {
        this.items.push(item)
        if (this.#isPaused) await new Promise<void>((resolve) => (this.#resume = resolve))
      }
    } catch (failure) {
      this.failure = failure
    }
    this.isDone = true
  }
}

/** A relay that a consumer has connected to. Its stream ends with the test. */
export async function readFrom(options: StreamOptions = {}, transport?: TransportName) {
  const relay = new FakeRelay()
  const reader = relay.read(options, transport)
  onTestFinished(() => reader.stream.close())
  await relay.advance(0)
  return { relay, reader }
}

function textOf(item: StreamItem): string {
  if (item.type === 'gap') return `gap ${item.reason} (${item.after}, ${item.through}]`
  return item.type === 'snapshot' ? `snapshot ${item.symbol} ${item.as_of}` : (item.id ?? '')
}

/** The text of an export that has these messages. */
export const exportOf = (messages: readonly object[]): string => {
  const ids = messages.map((message) => ('id' in message ? String(message.id) : ''))
  return [...messages, { type: 'receipt', messages: ids.length, digest: lineDigest(ids) }]
    .map((line) => JSON.stringify(line))
    .join('\n')
}

export const hello = (id: string | null, heartbeatS = HEARTBEAT_S) => ({
  type: 'hello',
  id,
  heartbeat_s: heartbeatS,
  source: 'pendingLogs',
  head: nowhere,
  demo: true,
})

export const heartbeat = (id: string, sent: number) => ({ type: 'heartbeat', id, sent, source: 'pendingLogs', head: nowhere })

export const gap = (id: string, after: string | null, reason = 'expired', backfill: string | null = null) => ({
  type: 'gap',
  ...{ id, reason, after, through: id, backfill },
})

export const snapshot = (symbol: string, id: string) => ({ type: 'snapshot', symbol, address: `0x${symbol}`, id, as_of: id })

/** A message of one token's NAVs, which form a chain. */
export const nav = (id: string, prev: string | null, address = '0xa') => ({ type: 'nav', id, prev, address, symbol: 'A' })
