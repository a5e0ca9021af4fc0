import type { CloseReason } from '../../../protocol/close-codes.ts'
import {
  defaultSelectionOptions,
  patchOptions,
  readStreamQuery,
  type SelectionPatch,
  SYMBOLS_BOUND,
} from '../../../protocol/parameters/selection.ts'
import { Refusal } from '../../../protocol/refusal.ts'
import { type Request, readRequest, reqOf } from '../../../protocol/requests.ts'
import { clientOfMessage } from '../limits/authorizer.ts'
import { RateBucket } from '../limits/rate-bucket.ts'
import * as refusals from '../limits/refusals.ts'
import type { Selection } from '../select/compiled-selection.ts'
import { resolveKnownSymbols, resolveSymbols } from '../select/resolve-symbols.ts'
import type { Compression } from '../transport/deflate-offer.ts'
import type { WebSocketEvents, WebSocketOutlet } from '../transport/websocket-outlet.ts'
import type { EdgeContext } from './edge-context.ts'
import type { Listener } from './listener.ts'
import { numberAhead, reach } from './resume-point.ts'
import {
  type FirstSubscription,
  sendHello,
  sendSnapshot,
  startSession,
  subscribedNotice,
  subscriptionOf,
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

type SessionPhase =
  /** The connection needs an API key, which the first message must contain. */
  | { readonly name: 'locked'; readonly unlock: (text: string | null) => void }
  /** `idle`: nothing is subscribed yet. */
  | { readonly name: 'idle' | 'live' }
  /** A replay runs. Messages wait until it ends. */
  | { readonly name: 'starting'; readonly queued: (string | null)[] }

const [IDLE, LIVE] = [{ name: 'idle' }, { name: 'live' }] as const

/** One client of /v1/ws, from `hello` to `bye`. Requests change its selection. */
export class WebSocketSession implements WebSocketEvents {
  readonly #edge: EdgeContext
  readonly #listener: Listener
  readonly #outlet: WebSocketOutlet
  #idleTimer: NodeJS.Timeout | undefined
  #messageRate: RateBucket | null = null
  #phase: SessionPhase = IDLE
  #errorsInRow = 0
  /** Parameters of a URL without symbols: the defaults of the first subscription. */
  #urlQuery: SelectionPatch | null = null

  constructor(outlet: WebSocketOutlet, address: string, compression: Compression, edge: EdgeContext) {
    this.#edge = edge
    this.#outlet = outlet
    this.#listener = edge.hub.createListener({
      id: edge.createConnectionId(),
      transport: 'ws',
      compression,
      address,
      outlet,
      heartbeatMs: edge.heartbeatMs,
      selection: { tokens: new Set(), options: defaultSelectionOptions },
    })
    this.#idleTimer = setTimeout(() => this.#disconnect('nothing_subscribed'), IDLE_BOUND_MS)
  }

  /** A URL with symbols subscribes at once. An error in the URL is sent after `hello`, and the connection stays open. */
  open(query: URLSearchParams, lastEventId: string, forbidden: Refusal | null): void {
    const edge = this.#edge
    if (forbidden) {
      // The client receives neither `hello` nor `bye`, because they describe the relay and its tape.
      this.#sendRefusal(forbidden, undefined)
      edge.clients.remove(this.#listener, 'forbidden')
      return this.#outlet.end('forbidden', null)
    }
    const exceeded = edge.clients.add(this.#listener)
    if (exceeded) return this.#disconnect(exceeded)
    this.#attempt(() => {
      const parsed = readStreamQuery(query, lastEventId)
      if (parsed.heartbeat === 0) throw refusals.heartbeatsNeeded
      if (parsed.heartbeat) this.#listener.setHeartbeat(parsed.heartbeat * 1_000, edge.uptime())
      if (parsed.symbols) {
        resolveKnownSymbols(edge.current, parsed.symbols)
        return this.#subscribeFirst(parsed, parsed.symbols)
      }
      this.#urlQuery = parsed
      this.#select({ options: patchOptions(defaultSelectionOptions, parsed) })
      sendHello(edge, this.#listener, null)
    })
  }

  /** Opens the session if the first message contains a valid API key. Refuses the client if it does not, or is late. */
  waitForApiKey(query: URLSearchParams, lastEventId: string): void {
    const unlock = (text: string | null): void => {
      clearTimeout(timer)
      if (this.#listener.isGone) return
      this.#phase = IDLE
      const client = text === null ? null : clientOfMessage(text, this.#edge.keys)
      if (this.#edge.clients.isDraining) return this.#disconnect('going_away')
      if (client !== null) this.#listener.address = client
      this.open(query, lastEventId, client === null ? refusals.apiKeyRequired : null)
    }
    const timer = setTimeout(() => unlock(null), API_KEY_BOUND_MS)
    this.#phase = { name: 'locked', unlock }
  }

  onMessage(data: unknown, isBinary: boolean): void {
    const text = isBinary ? null : String(data)
    if (this.#phase.name === 'locked') this.#phase.unlock(text)
    else if (this.#countMessage()) this.#handleOrQueue(text)
  }

  onPing(): void {
    this.#countMessage()
  }

  onPong(): void {
    if (!this.#outlet.receivePong()) this.#countMessage()
  }

  #handleOrQueue(text: string | null): void {
    if (this.#phase.name !== 'starting') this.#handle(text)
    else if (this.#phase.queued.length < QUEUED_BOUND) this.#phase.queued.push(text)
    else this.#disconnect('too_many_messages')
  }

  /** Counts one message, ping or unrequested pong. Returns false if the client is disconnected. */
  #countMessage(): boolean {
    if (this.#listener.isGone) return false
    this.#messageRate ??= new RateBucket(MESSAGES_AT_ONCE, MESSAGES_PER_SECOND, this.#edge.uptime())
    if (this.#messageRate.take(this.#edge.uptime())) return true
    this.#sendError(refusals.tooManyMessages(MESSAGES_PER_SECOND, MESSAGES_AT_ONCE), undefined)
    this.#disconnect('too_many_messages')
    return false
  }

  onClose(): void {
    this.#cancelIdleTimer()
    this.#edge.clients.remove(this.#listener)
  }

  #handle(text: string | null): void {
    // Answers count as backlog too: a client that sends requests and never reads is disconnected as slow.
    if (!this.#edge.clients.mayWrite(this.#listener)) return
    const isDone = this.#attempt(() => this.#execute(readRequest(text)), reqOf(text))
    this.#errorsInRow = isDone ? 0 : this.#errorsInRow + 1
    if (this.#errorsInRow >= ERRORS_IN_ROW_BOUND) this.#disconnect('protocol')
  }

  #execute(request: Request): void {
    const edge = this.#edge
    const { req } = request
    switch (request.type) {
      case 'subscribe':
        if (this.#phase === IDLE) return this.#subscribeFirst(request, request.symbols ?? [], request.req)
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
    if (symbols.length === 0) throw refusals.symbolsRequired
    const { tokens, rejected } = resolveSymbols(edge.current, symbols)
    const options = patchOptions(this.#listener.selection.options, query)
    this.#extend({ tokens, options })
    this.#run(this.#start(subscriptionOf(query, { defaults: this.#urlQuery, rejected, req })))
  }

  #run(session: Promise<void>): void {
    const queued: (string | null)[] = []
    this.#phase = { name: 'starting', queued }
    session.then(
      () => this.#handleQueued(queued),
      // If the tape cannot be read, the client reconnects with its last position.
      () => this.#disconnect('going_away'),
    )
  }

  async #start(subscription: FirstSubscription): Promise<void> {
    const ahead = numberAhead(subscription.since, this.#edge)
    if (ahead === null || (await reach(this.#edge, ahead)))
      return startSession(this.#edge, this.#listener, subscription, (session) => this.#run(session))
    if (this.#listener.isGone) return
    this.#sendError(refusals.lagging, subscription.req)
    this.#disconnect('lagging')
  }

  /** Selects more, or throws a refusal. */
  #extend(selection: Selection): void {
    const refusal = this.#edge.hub.selectionRefusal(selection, this.#listener)
    if (refusal) throw refusal
    this.#select(selection)
  }

  /** Changes the selection. A client that has selected a token may stay. */
  #select(change: Partial<Selection>): void {
    const selection = { ...this.#listener.selection, ...change }
    this.#listener.selection = selection
    if (selection.tokens?.size !== 0) this.#cancelIdleTimer()
  }

  #disconnect(reason: CloseReason): void {
    this.#edge.clients.disconnect(this.#listener, reason)
  }

  #cancelIdleTimer(): void {
    clearTimeout(this.#idleTimer)
    this.#idleTimer = undefined
  }

  #handleQueued(queued: readonly (string | null)[]): void {
    // If all symbols were unknown, the next subscribe counts as the first one and may set `since`.
    this.#phase = this.#listener.selection.tokens?.size === 0 ? IDLE : LIVE
    for (const text of queued) this.#handleOrQueue(text)
  }

  #addSubscription(request: Extract<Request, { type: 'subscribe' }>): void {
    const edge = this.#edge
    const listener = this.#listener
    const { since, stage } = request
    if (since != null) throw refusals.notFirst('since')
    // A null would reset `stage`, and so end the sealed view in the middle of the stream.
    if (stage != null || (stage === null && listener.selection.options.stage !== defaultSelectionOptions.stage))
      throw refusals.notFirst('stage')
    const { tokens, rejected } = resolveSymbols(edge.current, request.symbols ?? [])
    const { tokens: current } = listener.selection
    const added = current === null ? [] : tokensOf(edge, tokens).filter(({ address }) => !current.has(address))
    const combined = tokens === null || current === null ? null : new Set([...current, ...tokens])
    if (combined && combined.size > SYMBOLS_BOUND) throw refusals.tooManySymbols
    const options = patchOptions(listener.selection.options, request)
    this.#extend({ tokens: combined, options })
    edge.hub.join(listener)
    const id = edge.hub.position(edge.hub.deliveredSeq)
    listener.sendNotice(subscribedNotice(edge, listener, { req: request.req, id, resume: 'none', rejected }))
    if (request.snapshot === false) return
    for (const token of added) sendSnapshot(edge, listener, id, token)
    // The snapshots of one request may exceed the backlog limit, so they do not count as overdue.
    listener.excuseBacklog()
  }

  #unsubscribe({ symbols, req }: Extract<Request, { type: 'unsubscribe' }>): void {
    const edge = this.#edge
    const listener = this.#listener
    const { tokens } = resolveSymbols(edge.current, symbols)
    const { tokens: current } = listener.selection
    if (current === null && tokens !== null) throw refusals.wildcard
    const namedTokens = tokens === null ? [] : tokensOf(edge, tokens)
    const removed = current === null ? ['*'] : namedTokens.flatMap(({ address, symbol }) => (current.has(address) ? [symbol] : []))
    this.#select({ tokens: new Set([...(current ?? [])].filter((address) => !tokens?.has(address))) })
    if (this.#phase === LIVE) edge.hub.join(listener)
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
    if (this.#listener.phase.name === 'opening') sendHello(this.#edge, this.#listener, null)
    this.#sendRefusal(error instanceof Refusal ? error : refusals.internalError, req)
  }

  #sendRefusal({ record, details: given }: Refusal, req: string | number | undefined): void {
    const { details, ...error } = record
    this.#listener.sendNotice({ type: 'error', req, ...error, ...(Object.keys(given).length > 0 && { details }) })
  }
}
