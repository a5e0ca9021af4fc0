import { Refusal } from '../../protocol/refusal.ts'
import { type Request, Request as RequestSchema } from '../../protocol/requests.ts'
import {
  type Asked,
  defaultOptions,
  readOr400,
  readQuery,
  replaceOptions,
  SYMBOLS_BOUND,
} from '../../protocol/selection.ts'
import { Bucket } from '../limits/token-bucket.ts'
import { choose, unknownSymbol } from '../select/symbols.ts'
import type { Streams } from './http-stream.ts'
import { Listener, type Outlet } from './listener.ts'
import { greet, saySnapshot, subscribedOf, tokensOf, welcome } from './session.ts'

/** Bad messages in a row that are answered before the connection is closed. */
const MISTAKES_BOUND = 10
/** What a client may say: so much at once, and so much a second in the long run. */
const MESSAGES_AT_ONCE = 50
const MESSAGES_PER_SECOND = 10
/** Messages that wait for a first subscription to be through. */
const WAITING_BOUND = 64
/** A connection that subscribes to nothing for this long is closed. */
const IDLE_BOUND_MS = 30_000

/** What one WebSocket and we say to each other: one selection, changed by requests, from `hello` to the farewell. */
export class Conversation {
  readonly #streams: Streams
  readonly #listener: Listener
  #idle: NodeJS.Timeout | null
  readonly #waiting: (string | null)[] = []
  #said: Bucket | null = null
  /** Before the first subscription, while it is being made, and after it. */
  #phase: 'silent' | 'beginning' | 'live' = 'silent'
  #mistakes = 0
  /** What a URL without symbols asked for, as far as the first subscription does not say otherwise. */
  #asked: Asked = {}

  constructor(outlet: Outlet, address: string, streams: Streams) {
    const { house, connectionId } = streams
    this.#streams = streams
    this.#listener = new Listener({
      id: connectionId(),
      carrier: 'ws',
      address,
      outlet,
      heartbeatMs: house.heartbeatMs,
      options: defaultOptions,
      uptime: house.uptime(),
    })
    this.#idle = setTimeout(() => house.hub.part(this.#listener, 'nothing_subscribed'), IDLE_BOUND_MS)
  }

  /** The URL may already say what to hear; a mistake in it is told after `hello`, and the connection stays. */
  begin(query: URLSearchParams, forbidden: Refusal | null): void {
    const { house } = this.#streams
    if (forbidden) {
      this.#sayWrong(forbidden, undefined)
      return house.hub.part(this.#listener, 'forbidden')
    }
    const objection = house.hub.objection(this.#listener.address)
    if (objection) return house.hub.part(this.#listener, objection)
    house.hub.enter(this.#listener)
    this.#tell(() => {
      const asked = readQuery(query)
      if (asked.heartbeat) this.#listener.setHeartbeat(asked.heartbeat * 1_000, house.uptime())
      if (asked.symbols) return this.#fromUrl(asked, asked.symbols)
      this.#asked = asked
      this.#listener.options = replaceOptions(this.#listener.options, asked)
      greet(house, this.#listener, null)
    })
  }

  #fromUrl(asked: Asked, symbols: readonly string[]): void {
    const { tokens, rejected } = choose(this.#streams.house.view, symbols)
    if (tokens?.size === 0 && rejected.length > 0) throw unknownSymbol(rejected)
    this.#first(asked, symbols)
  }

  hear(text: string | null): void {
    if (this.count()) this.#take(text)
  }

  #take(text: string | null): void {
    if (this.#phase !== 'beginning') this.#answer(text)
    else if (this.#waiting.length < WAITING_BOUND) this.#waiting.push(text)
    else this.#streams.house.hub.part(this.#listener, 'too_many_messages')
  }

  /** Counts one thing said, a ping too; false if nothing more is heard from here. */
  count(): boolean {
    const { house } = this.#streams
    if (this.#listener.state === 'parted') return false
    this.#said ??= new Bucket(MESSAGES_AT_ONCE, MESSAGES_PER_SECOND, house.uptime())
    if (this.#said.take(house.uptime())) return true
    const message = `At most ${MESSAGES_PER_SECOND} messages a second, ${MESSAGES_AT_ONCE} at once; come back slower.`
    this.#sayWrong(new Refusal(429, 'too_many_messages', message), undefined)
    house.hub.part(this.#listener, 'too_many_messages')
    return false
  }

  over(): void {
    this.#stay()
    this.#streams.house.hub.leave(this.#listener)
  }

  #answer(text: string | null): void {
    // Answers are written too: who asks and never reads is shown out like any other, and who is gone gets none.
    if (!this.#streams.house.hub.mayWrite(this.#listener)) return
    const right = this.#tell(() => this.#carryOut(readRequest(text)), reqOf(text))
    this.#mistakes = right ? 0 : this.#mistakes + 1
    if (this.#mistakes >= MISTAKES_BOUND) this.#streams.house.hub.part(this.#listener, 'protocol')
  }

  #carryOut(request: Request): void {
    const { house } = this.#streams
    const req = request.req === undefined ? {} : { req: request.req }
    switch (request.type) {
      case 'subscribe':
        if (this.#phase === 'silent') return this.#first(request, request.symbols ?? [], request.req)
        return this.#more(request)
      case 'unsubscribe':
        return this.#less(request)
      case 'list':
        return this.#listener.say(
          subscribedOf(house, this.#listener, {
            ...req,
            id: house.hub.positionOf(this.#listener),
            resume: 'none',
            rejected: [],
          }),
        )
      case 'ping':
        return this.#listener.say({ type: 'pong', ...req, time: new Date(house.now()).toISOString() })
    }
  }

  #first(asked: Asked, symbols: readonly string[], req?: string | number): void {
    const { house } = this.#streams
    if (symbols.length === 0) {
      const details = { parameter: 'symbols' }
      throw new Refusal(400, 'bad_parameter', 'symbols: name at least one symbol, or * for all.', details)
    }
    const { tokens, rejected } = choose(house.view, symbols)
    const options = replaceOptions(this.#listener.options, asked)
    const crowded = house.hub.crowded({ tokens, options })
    if (crowded) throw crowded
    this.#listener.tokens = tokens
    this.#listener.options = options
    this.#phase = 'beginning'
    if (tokens?.size !== 0) this.#stay()
    const since = said(asked.since, this.#asked.since) ?? { from: 'now' as const }
    const snapshot = said(asked.snapshot, this.#asked.snapshot) ?? true
    welcome(house, this.#listener, { since, snapshot, rejected, req }).then(
      () => this.#settle(),
      // The tape could not be read: the client comes back with its last position.
      () => house.hub.part(this.#listener, 'going_away'),
    )
  }

  /** Nobody waits any longer for a subscription. */
  #stay(): void {
    if (this.#idle) clearTimeout(this.#idle)
    this.#idle = null
  }

  /** What was said during the beginning takes effect now. */
  #settle(): void {
    // Who named nothing that is known has not chosen yet where to begin.
    this.#phase = this.#listener.tokens?.size === 0 ? 'silent' : 'live'
    const waiting = this.#waiting.splice(0)
    for (const text of waiting) this.#take(text)
  }

  #more(asked: Extract<Request, { type: 'subscribe' }>): void {
    const { house } = this.#streams
    if (asked.since != null) throw notFirst('since', 'Only the first subscription of a connection may say since.')
    if (asked.stage != null) throw notFirst('stage', 'Only the first subscription of a connection may say stage.')
    const listener = this.#listener
    const { tokens, rejected } = choose(house.view, asked.symbols ?? [])
    const held = listener.tokens
    const added = held === null ? [] : tokensOf(house, tokens).filter(({ address }) => !held.has(address))
    const all = tokens === null || held === null ? null : new Set([...held, ...tokens])
    if (all && all.size > SYMBOLS_BOUND) {
      throw new Refusal(400, 'too_many_symbols', `At most ${SYMBOLS_BOUND} symbols for one connection; or * for all.`)
    }
    const options = replaceOptions(listener.options, asked)
    const crowded = house.hub.crowded({ tokens: all, options }, listener)
    if (crowded) throw crowded
    listener.tokens = all
    listener.options = options
    house.hub.join(listener)
    if (all?.size !== 0) this.#stay()
    const id = house.hub.position(house.hub.delivered)
    const req = asked.req === undefined ? {} : { req: asked.req }
    listener.say(subscribedOf(house, listener, { ...req, id, resume: 'none', rejected }))
    if (asked.snapshot === false) return
    for (const token of added) saySnapshot(house, listener, id, token)
    // Whoever asks for much at once is given the time to read it.
    listener.caughtUp()
  }

  #less({ symbols, req }: Extract<Request, { type: 'unsubscribe' }>): void {
    const { house } = this.#streams
    const listener = this.#listener
    const { tokens } = choose(house.view, symbols)
    const held = listener.tokens
    if (held === null && tokens !== null) {
      throw new Refusal(400, 'wildcard', 'Single symbols cannot be taken out of *; unsubscribe from * first.')
    }
    const named = tokens === null ? [] : tokensOf(house, tokens)
    const removed = held === null ? ['*'] : named.flatMap(({ address, symbol }) => (held.has(address) ? [symbol] : []))
    listener.tokens = held === null ? new Set() : new Set([...held].filter((address) => !tokens?.has(address)))
    if (this.#phase === 'live') house.hub.join(listener)
    listener.say({ type: 'unsubscribed', ...(req === undefined ? {} : { req }), symbols: removed })
  }

  /** Does what was asked, or says what is wrong with it; whether it was done. */
  #tell(act: () => void, req?: string | number): boolean {
    try {
      act()
      return true
    } catch (failure) {
      this.#sayWrong(failure, req)
      return false
    }
  }

  #sayWrong(failure: unknown, req: string | number | undefined): void {
    const refusal =
      failure instanceof Refusal ? failure : new Refusal(500, 'internal', 'Something failed on this side; try again.')
    const { code, reason, message, details } = refusal
    if (!this.#listener.greeted) greet(this.#streams.house, this.#listener, null)
    this.#listener.say({
      type: 'error',
      ...(req === undefined ? {} : { req }),
      code,
      reason,
      message,
      ...(Object.keys(details).length > 0 ? { details: [{ '@type': `stocktape/${reason}`, ...details }] } : {}),
    })
  }
}

/** What was said now holds, null too; where nothing was said, what was said before. */
const said = <Value>(now: Value, before: Value): Value => (now === undefined ? before : now)

const notFirst = (word: string, message: string) => new Refusal(400, `${word}_not_first`, message)

function readRequest(text: string | null): Request {
  if (text === null) throw new Refusal(400, 'binary', 'Messages are JSON text, not binary.')
  let given: unknown
  try {
    given = JSON.parse(text)
  } catch {
    throw new Refusal(400, 'bad_json', 'That is not JSON.')
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new Refusal(400, 'bad_message', 'A message is a JSON object with a type.')
  }
  const known = RequestSchema.options.map((schema) => schema.shape.type.value)
  if (!('type' in given) || !known.some((type) => type === given.type)) {
    throw new Refusal(400, 'unknown_type', `type: must be one of ${known.join(', ')}.`)
  }
  return readOr400(RequestSchema, given)
}

/** The client's own number of its message, if that much can be read of it. */
function reqOf(text: string | null): string | number | undefined {
  try {
    return RequestSchema.options[2].shape.req.parse(JSON.parse(text ?? '').req)
  } catch {
    return undefined
  }
}
