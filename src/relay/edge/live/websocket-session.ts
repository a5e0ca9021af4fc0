import {
  defaultSelectionOptions,
  patchOptions,
  readStreamQuery,
  type SelectionPatch,
  SYMBOLS_BOUND,
} from '../../../protocol/parameters/selection.ts'
import { Refusal } from '../../../protocol/refusal.ts'
import { type Request, readRequest, reqOf } from '../../../protocol/requests.ts'
import { apiKeyRequired } from '../limits/authorizer.ts'
import { RateBucket } from '../limits/rate-bucket.ts'
import { resolveKnownSymbols, resolveSymbols, symbolsRequired } from '../select/resolve-symbols.ts'
import type { Compression } from '../transport/deflate-offer.ts'
import { internalError, lagging } from '../transport/shared-refusals.ts'
import type { WebSocketEvents, WebSocketOutlet } from '../transport/websocket-outlet.ts'
import type { EdgeContext, StreamServices } from './edge-context.ts'
import { Listener } from './listener.ts'
import { numberAhead, reach } from './resume-point.ts'
import {
  continueSession,
  type FirstSubscription,
  sendHello,
  sendSnapshot,
  startSession,
  subscribedNotice,
  tokensOf,
} from './session-start.ts'

/** Number of bad messages in a row after which the connection is closed. */
const ERRORS_IN_ROW_BOUND = 10
/** Limits of the messages of a client: at once, and per second in the long run. */
const MESSAGES_AT_ONCE = 50
const MESSAGES_PER_SECOND = 10
/** Limit of the messages that wait during a replay. */
const QUEUED_BOUND = 64
/** A connection that has not selected a token is closed after this time. */
const IDLE_BOUND_MS = 30_000
/** A connection that needs an API key is refused after this time without a message. */
const API_KEY_BOUND_MS = 2_000

const heartbeatsNeeded = new Refusal(
  400,
  'bad_parameter',
  'heartbeat: a WebSocket always has heartbeats: give 1 to 60 seconds, or leave it out.',
  { parameter: 'heartbeat' },
)

/** One client of /v1/ws, from `hello` to `bye`. Requests change its selection. */
export class WebSocketSession implements WebSocketEvents {
  readonly #edge: EdgeContext
  readonly #listener: Listener
  readonly #outlet: WebSocketOutlet
  #idleTimer: NodeJS.Timeout | null
  #queued: (string | null)[] | null = null
  #messageRate: RateBucket | null = null
  /** `idle` before the first subscription, `starting` during a replay. */
  #phase: 'idle' | 'starting' | 'live' = 'idle'
  #errorsInRow = 0
  /** Receives the first message if the connection needs an API key. */
  #onFirstMessage: ((text: string | null) => void) | null = null
  /** Parameters of a URL without symbols: the defaults of the first subscription. */
  #urlQuery: SelectionPatch | null = null

  constructor(outlet: WebSocketOutlet, address: string, compression: Compression, { edge, createConnectionId }: StreamServices) {
    this.#edge = edge
    this.#outlet = outlet
    this.#listener = new Listener({
      id: createConnectionId(),
      transport: 'ws',
      compression,
      address,
      outlet,
      heartbeatMs: edge.heartbeatMs,
      options: defaultSelectionOptions,
      uptime: edge.uptime(),
    })
    this.#idleTimer = setTimeout(() => edge.hub.disconnect(this.#listener, 'nothing_subscribed'), IDLE_BOUND_MS)
  }

  /** A URL with symbols subscribes at once. An error in the URL is sent after `hello`, and the connection stays open. */
  open(query: URLSearchParams, lastEventId: string, forbidden: Refusal | null): void {
    const edge = this.#edge
    if (forbidden) {
      // The client receives neither `hello` nor `bye`, because they describe the relay and its tape.
      this.#sendRefusal(forbidden, undefined)
      edge.hub.remove(this.#listener, 'forbidden')
      return this.#outlet.end('forbidden', null)
    }
    const exceeded = edge.hub.connectionLimits.exceededLimit(this.#listener.address) ?? edge.hub.add(this.#listener)
    if (exceeded) return edge.hub.disconnect(this.#listener, exceeded)
    this.#attempt(() => {
      const parsed = readStreamQuery(query, lastEventId)
      if (parsed.heartbeat === 0) throw heartbeatsNeeded
      if (parsed.heartbeat) this.#listener.setHeartbeat(parsed.heartbeat * 1_000, edge.uptime())
      if (parsed.symbols) {
        resolveKnownSymbols(edge.current, parsed.symbols)
        return this.#subscribeFirst(parsed, parsed.symbols)
      }
      this.#urlQuery = parsed
      this.#listener.options = patchOptions(this.#listener.options, parsed)
      sendHello(edge, this.#listener, null)
    })
  }

  /** Opens the session if the first message contains a valid API key. Refuses the client if it does not, or is late. */
  waitForApiKey(query: URLSearchParams, lastEventId: string, keys: StreamServices['keys']): void {
    const timer = setTimeout(() => this.#onFirstMessage?.(null), API_KEY_BOUND_MS)
    this.#onFirstMessage = (text) => {
      clearTimeout(timer)
      this.#onFirstMessage = null
      const client = text === null ? null : clientOf(text, keys)
      if (this.#edge.hub.isDraining) return this.#edge.hub.disconnect(this.#listener, 'going_away')
      if (client !== null) this.#listener.address = client
      this.open(query, lastEventId, client === null ? apiKeyRequired : null)
    }
  }

  onMessage(text: string | null): void {
    if (this.#onFirstMessage) this.#onFirstMessage(text)
    else if (this.#countMessage()) this.#handleOrQueue(text)
  }

  onPing(): void {
    this.#countMessage()
  }

  onPong(): void {
    if (!this.#outlet.receivePong()) this.#countMessage()
  }

  #handleOrQueue(text: string | null): void {
    if (this.#phase !== 'starting') return this.#handle(text)
    this.#queued ??= []
    if (this.#queued.length < QUEUED_BOUND) this.#queued.push(text)
    else this.#edge.hub.disconnect(this.#listener, 'too_many_messages')
  }

  /** Counts one message, ping or unrequested pong. Returns false if the client is disconnected. */
  #countMessage(): boolean {
    if (this.#listener.state === 'disconnected') return false
    this.#messageRate ??= new RateBucket(MESSAGES_AT_ONCE, MESSAGES_PER_SECOND, this.#edge.uptime())
    if (this.#messageRate.take(this.#edge.uptime())) return true
    const message = `At most ${MESSAGES_PER_SECOND} messages a second, ${MESSAGES_AT_ONCE} at once; reconnect and send fewer.`
    this.#sendError(new Refusal(429, 'too_many_messages', message), undefined)
    this.#edge.hub.disconnect(this.#listener, 'too_many_messages')
    return false
  }

  onClose(): void {
    this.#onFirstMessage = null
    this.#cancelIdleTimer()
    this.#edge.hub.remove(this.#listener)
  }

  #handle(text: string | null): void {
    // Answers count as backlog too: a client that sends requests and never reads is disconnected as slow.
    if (!this.#edge.hub.mayWrite(this.#listener)) return
    const isDone = this.#attempt(() => this.#execute(readRequest(text)), reqOf(text))
    this.#errorsInRow = isDone ? 0 : this.#errorsInRow + 1
    if (this.#errorsInRow >= ERRORS_IN_ROW_BOUND) this.#edge.hub.disconnect(this.#listener, 'protocol')
  }

  #execute(request: Request): void {
    const edge = this.#edge
    const { req } = request
    switch (request.type) {
      case 'subscribe':
        if (this.#phase === 'idle') return this.#subscribeFirst(request, request.symbols ?? [], request.req)
        return this.#addSubscription(request)
      case 'unsubscribe':
        return this.#unsubscribe(request)
      case 'list':
        return this.#listener.sendNotice(
          subscribedNotice(edge, this.#listener, { req, id: edge.hub.positionOf(this.#listener), resume: 'none', rejected: [] }),
        )
      case 'auth':
        return
      case 'ping':
        return this.#listener.sendNotice({ type: 'pong', req, time: new Date(edge.wallTime()).toISOString() })
    }
  }

  #subscribeFirst(query: SelectionPatch, symbols: readonly string[], req?: string | number): void {
    const edge = this.#edge
    if (symbols.length === 0) throw symbolsRequired
    const { tokens, rejected } = resolveSymbols(edge.current, symbols)
    const options = patchOptions(this.#listener.options, query)
    const refusal = edge.hub.selectionRefusal({ tokens, options })
    if (refusal) throw refusal
    this.#listener.tokens = tokens
    this.#listener.options = options
    if (tokens?.size !== 0) this.#cancelIdleTimer()
    const since = firstDefined(query.since, this.#urlQuery?.since) ?? { from: 'now' as const }
    const snapshot = firstDefined(query.snapshot, this.#urlQuery?.snapshot) ?? true
    const onGap = firstDefined(query.on_gap, this.#urlQuery?.on_gap) ?? 'replay'
    const subscription = { since, snapshot, onGap, rejected, req }
    if (options.stage === 'sealed')
      this.#listener.replayAgain = () => this.#run(continueSession(edge, this.#listener, subscription))
    const ahead = numberAhead(since, edge)
    this.#run(ahead === null ? startSession(edge, this.#listener, subscription) : this.#startWhenReached(ahead, subscription))
  }

  #run(session: Promise<void>): void {
    this.#phase = 'starting'
    session.then(
      () => this.#handleQueued(),
      // If the tape cannot be read, the client reconnects with its last position.
      () => this.#edge.hub.disconnect(this.#listener, 'going_away'),
    )
  }

  async #startWhenReached(ahead: number, subscription: FirstSubscription): Promise<void> {
    if (await reach(this.#edge, ahead)) return startSession(this.#edge, this.#listener, subscription)
    if (this.#listener.state === 'disconnected') return
    this.#sendError(lagging, subscription.req)
    this.#edge.hub.disconnect(this.#listener, 'lagging')
  }

  #cancelIdleTimer(): void {
    if (this.#idleTimer) clearTimeout(this.#idleTimer)
    this.#idleTimer = null
  }

  #handleQueued(): void {
    // If all symbols were unknown, the next subscribe counts as the first one and may set `since`.
    this.#phase = this.#listener.tokens?.size === 0 ? 'idle' : 'live'
    const queued = this.#queued ?? []
    this.#queued = null
    for (const text of queued) this.#handleOrQueue(text)
  }

  #addSubscription(request: Extract<Request, { type: 'subscribe' }>): void {
    const edge = this.#edge
    const listener = this.#listener
    const { since, stage } = request
    if (since != null) throw notFirst('since')
    // A null would reset `stage`, and so end the sealed view in the middle of the stream.
    if (stage != null || (stage === null && listener.options.stage !== defaultSelectionOptions.stage)) throw notFirst('stage')
    const { tokens, rejected } = resolveSymbols(edge.current, request.symbols ?? [])
    const current = listener.tokens
    const added = current === null ? [] : tokensOf(edge, tokens).filter(({ address }) => !current.has(address))
    const combined = tokens === null || current === null ? null : new Set([...current, ...tokens])
    if (combined && combined.size > SYMBOLS_BOUND) {
      throw new Refusal(400, 'too_many_symbols', `At most ${SYMBOLS_BOUND} symbols for one connection; or * for all.`)
    }
    const options = patchOptions(listener.options, request)
    const refusal = edge.hub.selectionRefusal({ tokens: combined, options }, listener)
    if (refusal) throw refusal
    listener.tokens = combined
    listener.options = options
    edge.hub.join(listener)
    if (combined?.size !== 0) this.#cancelIdleTimer()
    const id = edge.hub.position(edge.hub.deliveredSeq)
    listener.sendNotice(subscribedNotice(edge, listener, { req: request.req, id, resume: 'none', rejected }))
    if (request.snapshot === false) return
    for (const token of added) sendSnapshot(edge, listener, id, token)
    // The snapshots of one request may exceed the backlog limit, so they do not count as overdue.
    listener.markCaughtUp()
  }

  #unsubscribe({ symbols, req }: Extract<Request, { type: 'unsubscribe' }>): void {
    const edge = this.#edge
    const listener = this.#listener
    const { tokens } = resolveSymbols(edge.current, symbols)
    const current = listener.tokens
    if (current === null && tokens !== null) {
      throw new Refusal(400, 'wildcard', 'Single symbols cannot be taken out of *; unsubscribe from * first.')
    }
    const namedTokens = tokens === null ? [] : tokensOf(edge, tokens)
    const removed = current === null ? ['*'] : namedTokens.flatMap(({ address, symbol }) => (current.has(address) ? [symbol] : []))
    listener.tokens = current === null ? new Set() : new Set([...current].filter((address) => !tokens?.has(address)))
    if (this.#phase === 'live') edge.hub.join(listener)
    listener.sendNotice({ type: 'unsubscribed', req, symbols: removed })
  }

  /** Returns true if the action succeeded; otherwise sends its error. */
  #attempt(action: () => void, req?: string | number): boolean {
    try {
      action()
      return true
    } catch (error) {
      this.#sendError(error, req)
      return false
    }
  }

  #sendError(error: unknown, req: string | number | undefined): void {
    if (!this.#listener.hasSentHello) sendHello(this.#edge, this.#listener, null)
    this.#sendRefusal(error instanceof Refusal ? error : internalError, req)
  }

  #sendRefusal({ code, reason, message, details }: Refusal, req: string | number | undefined): void {
    this.#listener.sendNotice({
      type: 'error',
      req,
      code,
      reason,
      message,
      ...(Object.keys(details).length > 0 ? { details: [{ '@type': `stocktape/${reason}`, ...details }] } : {}),
    })
  }
}

/** Returns the client whose API key a message contains; null if it contains no valid API key. */
function clientOf(text: string, keys: StreamServices['keys']): string | null {
  try {
    const request = readRequest(text)
    return request.type === 'auth' ? (keys?.admit(request.key) ?? null) : null
  } catch {
    return null
  }
}

const notFirst = (field: 'since' | 'stage'): Refusal =>
  new Refusal(400, `${field}_not_first`, `Only the first subscription of a connection may set ${field}.`)

/** Returns the first value that is not undefined. Null counts as a value. */
const firstDefined = <Value>(current: Value, previous: Value): Value => (current === undefined ? previous : current)
