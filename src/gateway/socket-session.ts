import type { Budget } from '../edge/limits/byte-budget.ts'
import { wsFrame, wsHead } from '../edge/transport/encode.ts'
import type { Line, WebSocketOutlet } from '../edge/transport/websocket-outlet.ts'
import type { Farewell } from '../protocol/close-codes.ts'
import type { Rates } from './rate-limit.ts'
import { type Caller, type Reply, reply, type Service } from './rpc-batch.ts'
import { codes, Fault } from './rpc-error.ts'
import type { Notice } from './subscriber-index.ts'
import type { Exchange } from './subscriptions.ts'

/** Messages of one connection that are being answered, and what the others may hold that wait; while any do, none is read. */
const ANSWERING_BOUND = 16
const WAITING_BOUND_CHARS = 524_288
/** Subscriptions of one connection. */
const SUBSCRIPTIONS_BOUND = 100
/** What a filter weighs beside what it names; one that names nothing weighs nothing. */
const FILTER_WEIGHT = 50
/** Requests over the rate, in a row, that are answered before the connection is closed. */
const OVER_RATE_BOUND = 1_000
/** There is no coming back to where one was: so long a burst may stay unread beyond the bound, and up to so much of it. */
const BURST_BOUND_MS = 1_000
const BURST_BOUND_BYTES = 8 * 2 ** 20
/** Whoever takes nothing of what it is owed for this long is gone. */
const STALLED_BOUND_MS = 60_000

/** What all conversations share. */
export type RpcHouse = {
  readonly service: Service
  readonly exchange: Exchange
  readonly rates: Rates
  /** What the filters of each address weigh. */
  readonly filters: Budget
  /** What long answers hold until they are taken. */
  readonly unsent: Budget
  readonly backlogBoundBytes: number
  readonly uptime: () => number
  /** What every subscription's id begins with in this process. */
  readonly idPrefix: string
  readonly shownOut: () => void
}

/** JSON-RPC over one WebSocket: questions, answers, and what was subscribed to. */
export class RpcConversation {
  readonly address: string
  readonly #house: RpcHouse
  readonly #line: Line
  readonly #outlet: WebSocketOutlet
  readonly #waiting: string[] = []
  #waitingChars = 0
  #answering = 0
  readonly #subscriptions = new Map<string, () => void>()
  #lastId = 0
  #overRate = 0
  #over = false
  #draining: Promise<void> | null = null
  /** Of all bytes ever written, those up to here are forgiven: whoever asks for much may take its time to read it. */
  #forgivenUpTo = 0
  /** Since when it has had more to read than it may. */
  #behindSince: number | null = null
  #progress = 0
  #movedAt: number
  readonly #caller: Caller

  constructor(line: Line, outlet: WebSocketOutlet, address: string, house: RpcHouse) {
    this.address = address
    this.#house = house
    this.#line = line
    this.#outlet = outlet
    this.#movedAt = house.uptime()
    this.#caller = {
      who: address,
      counts: (methods) => methods.map((method) => this.#counts(method)),
      isLocal: (method) => method === 'eth_subscribe' || method === 'eth_unsubscribe',
      carryOut: (method, params) =>
        method === 'eth_subscribe' ? this.#subscribe(params) : String(this.#unsubscribe(params)),
      holds: (bytes) => !this.#over && this.#house.unsent.take(bytes, this.address),
      hasStatus: false,
    }
  }

  hear(text: string): void {
    if (this.#over) return
    this.#waiting.push(text)
    this.#waitingChars += text.length
    if (this.#waitingChars > WAITING_BOUND_CHARS && this.#waiting.length > 1) return this.part('too_many_messages')
    this.#answerNext()
  }

  /** Counts one thing said that is no request, such as a ping. */
  count(): void {
    this.#counts('')
  }

  /** A sign of life is asked for; whoever gave none, or takes nothing that it is owed, is gone. */
  beat(): void {
    const { uptime } = this.#house
    const { backlog, progress } = this.#outlet
    if (backlog === 0 || progress !== this.#progress) this.#movedAt = uptime()
    this.#progress = progress
    if (uptime() - this.#movedAt >= STALLED_BOUND_MS) this.#showOut()
    // A ping would stand behind whatever is unread; while nothing is read from it, its pong would not be heard either.
    else if (backlog === 0 && !this.#line.isPaused && this.#outlet.ping()) this.part('no_pong')
  }

  part(farewell: Farewell): void {
    if (this.#over) return
    this.over()
    this.#outlet.end(farewell, null)
  }

  /** The connection is gone, or as good as gone. */
  over(): void {
    this.#over = true
    this.#waiting.length = 0
    for (const end of this.#subscriptions.values()) end()
    this.#subscriptions.clear()
  }

  #showOut(): void {
    this.#house.shownOut()
    this.part('too_slow')
  }

  #answerNext(): void {
    while (this.#waiting.length > 0 && this.#answering < ANSWERING_BOUND && this.#isRead) {
      const text = this.#waiting.shift() ?? ''
      this.#waitingChars -= text.length
      this.#answering += 1
      void this.#answer(text)
    }
    if (this.#over) return
    const isFull = this.#waiting.length > 0
    if (isFull && !this.#line.isPaused) this.#line.pause()
    if (!isFull && this.#line.isPaused) this.#line.resume()
    // With nothing under way, it goes on when what was said is read.
    if (isFull && this.#answering === 0) void this.#drained.then(() => this.#answerNext())
  }

  /** Whether it has read most of what it was answered: until then it is asked to wait. */
  get #isRead(): boolean {
    return this.#outlet.backlog <= this.#house.backlogBoundBytes || !this.#outlet.willDrain
  }

  async #answer(text: string): Promise<void> {
    await reply(text, this.#house.service, this.#caller, (said) => this.#write(said))
    this.#answering -= 1
    this.#answerNext()
  }

  #counts(method: string): boolean {
    const { rates, uptime } = this.#house
    const may = rates.take(this.address, [method], uptime())
    this.#overRate = may ? 0 : this.#overRate + 1
    if (this.#overRate > OVER_RATE_BOUND) this.part('too_many_messages')
    return may
  }

  #subscribe(params: unknown): string {
    if (this.#over) return 'null'
    if (this.#subscriptions.size >= SUBSCRIPTIONS_BOUND)
      throw new Fault(codes.limit, `a connection has at most ${SUBSCRIPTIONS_BOUND} subscriptions; end some`)
    this.#lastId += 1
    const id = this.#house.idPrefix + this.#lastId.toString(16).padStart(8, '0')
    const { exchange, filters } = this.#house
    let weight = 0
    const release = () => filters.give(weight, this.address)
    const charge = (words: number): void => {
      const asked = words === 0 ? 0 : FILTER_WEIGHT + words
      if (!filters.take(asked, this.address))
        throw new Fault(codes.limit, 'the subscriptions of your address name too much; end some, or name less')
      weight = asked
    }
    try {
      const end = exchange.open(params, { id, notify: (notice) => this.#notify(id, notice) }, charge)
      this.#subscriptions.set(id, () => {
        end()
        release()
      })
    } catch (failure) {
      release()
      throw failure
    }
    return `"${id}"`
  }

  #unsubscribe(params: unknown): boolean {
    const [id] = Array.isArray(params) ? params : []
    if (typeof id !== 'string') throw new Fault(codes.params, "invalid params: params[0] must be a subscription's id")
    this.#subscriptions.get(id)?.()
    return this.#subscriptions.delete(id)
  }

  #notify(id: string, notice: Notice): void {
    if (this.#over) return
    // What was said in this very turn cannot have been read by now.
    if (this.#outlet.gather() && this.#isTooSlow()) return this.#showOut()
    this.#outlet.write(notice.bytes(id, frameOf))
    const { taken, backlog } = this.#outlet
    if (notice.isLate && backlog <= BURST_BOUND_BYTES) this.#forgivenUpTo = taken + backlog
  }

  #isTooSlow(): boolean {
    const { backlogBoundBytes, uptime } = this.#house
    const overdue = this.#overdueBytes
    if (overdue <= backlogBoundBytes) this.#behindSince = null
    else this.#behindSince ??= uptime()
    const isBurst = this.#behindSince === null || uptime() - this.#behindSince < BURST_BOUND_MS
    return !isBurst || overdue > Math.max(backlogBoundBytes, BURST_BOUND_BYTES)
  }

  /** What it should have read by now. */
  get #overdueBytes(): number {
    const { backlog, taken } = this.#outlet
    return backlog - Math.max(0, Math.min(backlog, this.#forgivenUpTo - taken))
  }

  /** Resolves when everything said is read; of whoever is gone already, at once. */
  get #allTaken(): Promise<void> {
    return this.#outlet.isClosed ? Promise.resolve() : this.#drained
  }

  /** Resolves when everything said is read, or nobody reads any more. */
  get #drained(): Promise<void> {
    this.#draining ??= this.#outlet.drained().then(() => {
      this.#draining = null
    })
    return this.#draining
  }

  #write({ pieces, held }: Reply): void {
    if (held > 0) void this.#allTaken.then(() => this.#house.unsent.give(held, this.address))
    if (this.#over || pieces.length === 0) return
    this.#outlet.gather()
    this.#outlet.write(wsHead(pieces.reduce((sum, { length }) => sum + length, 0)))
    for (const piece of pieces) this.#outlet.write(piece)
    this.#forgivenUpTo = this.#outlet.taken + this.#outlet.backlog
  }
}

const frameOf = (text: string): Buffer => wsFrame(Buffer.from(text))
