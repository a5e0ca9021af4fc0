import { Subject } from 'rxjs'
import { WebSocket } from 'ws'
import { z } from 'zod'
import type { Hex } from '../../protocol/fields.ts'
import { HexQuantity } from '../logs/log-schema.ts'
import type { ChainIdentity } from '../rpc/chain-id.ts'
import { parseJson } from '../rpc/client.ts'

/** What one upstream socket says. A link is live or down; a clean close is a failure too. */
export type Signal =
  /** Logs of these addresses are pushed now: pre-confirmed or, where the node refuses that, as they are sealed. */
  | { readonly type: 'live'; readonly of: 'pendingLogs' | 'logs'; readonly addresses: readonly Hex[] }
  | { readonly type: 'log'; readonly of: 'pendingLogs' | 'logs'; readonly log: unknown; readonly receivedAt: number }
  | { readonly type: 'head'; readonly header: unknown }
  /** It said something that is no message. */
  | { readonly type: 'unreadable' }
  /** `refused`: the node is there, and will not let itself be subscribed to. */
  | { readonly type: 'down'; readonly reason: string; readonly refused: boolean }

const HANDSHAKE_BOUND_MS = 5_000
/** How long a question may go unanswered: one for the chain is then given up, one for a subscription ends the link. */
const ANSWER_BOUND_MS = 2_000
const PING_EVERY_MS = 10_000
const PONG_BOUND_MS = 5_000
const MESSAGE_BOUND_BYTES = 8 * 2 ** 20
/** A notification may overtake the answer that names its subscription; so many wait for it. */
const UNCLAIMED_BOUND = 2_000
/** A subscription that was replaced may still speak; so many are remembered. */
const SUBSCRIPTIONS_BOUND = 32

type Options = {
  /** The chain that the node must be of. */
  readonly chain: ChainIdentity
  readonly now: () => number
  readonly say: (kind: string, detail: unknown) => void
}

/** The upstream socket is lost, or was never there; says why. */
export class LinkError extends Error {
  /** Whether the node is there, and will not let itself be subscribed to. */
  readonly refused: boolean

  constructor(reason: string, refused = false) {
    super(reason)
    this.refused = refused
  }
}

const Message = z.union([
  z.object({
    method: z.literal('eth_subscription'),
    params: z.object({ subscription: z.string(), result: z.unknown() }),
  }),
  z.object({ id: z.int(), error: z.object({ code: z.number(), message: z.string() }) }),
  z.object({ id: z.int(), result: z.unknown() }),
])

type LogsKind = 'pendingLogs' | 'logs'
type Kind = LogsKind | 'newHeads'

/** What was asked of the node and is not answered yet. */
type Question = { readonly answered: (result: unknown) => void; readonly refused: (why: Refusal) => void }

/** Why a question has no answer; the code is null where nothing was said at all. */
type Refusal = { readonly code: number | null; readonly message: string }

/** What a node says that does not know a method. */
const UNKNOWN_METHOD = -32601

/** One life of one socket: asks for the chain, subscribes, re-subscribes when the tokens change, and watches its pulse. */
export class LinkSocket {
  readonly signals = new Subject<Signal>()
  readonly #options: Options
  readonly #socket: WebSocket
  readonly #questions = new Map<number, Question>()
  readonly #subscriptions = new Map<string, Kind>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #unclaimed: { subscription: string; result: unknown; receivedAt: number }[] = []
  #wanted: readonly Hex[] = []
  #ready = false
  /** What is to be subscribed to, and under which id it is. */
  readonly #logs = new Map<LogsKind, string | null>([['pendingLogs', null]])
  #lastId = 0
  #ended = false

  constructor(url: string, options: Options) {
    this.#options = options
    this.#socket = new WebSocket(url, {
      handshakeTimeout: HANDSHAKE_BOUND_MS,
      maxPayload: MESSAGE_BOUND_BYTES,
      perMessageDeflate: false,
      followRedirects: false,
    })
    this.#socket.on('open', () => this.#greet())
    this.#socket.on('message', (data, isBinary) => {
      if (!isBinary) this.#read(String(data), options.now())
    })
    this.#socket.on('error', (failure) => this.#end(failure.message))
    this.#socket.on('close', (code) => this.#end(`closed with ${code}`))
  }

  /** Listens to these tokens from now on. The former subscription goes only when the new one speaks. */
  hear(addresses: readonly Hex[]): void {
    this.#wanted = addresses
    if (this.#ready) this.#subscribeToLogs()
  }

  /** Tries what was refused or found silent once more, and listens to sealed logs beside it. */
  probe(): void {
    if (!this.#ready) return
    this.#subscribe('pendingLogs')
    if (!this.#logs.has('logs')) this.#subscribe('logs')
  }

  unsubscribe(): void {
    this.#ended = true
    this.#release()
  }

  #greet(): void {
    this.#watchPulse()
    this.#ask('eth_chainId', [], {
      answered: (result) => {
        const said = HexQuantity.safeParse(result).data
        const objection = said === undefined ? 'it does not say a number' : this.#options.chain.objection(said)
        if (objection) this.#end(`wrong chain: ${objection}`)
        else this.#start()
      },
      // A node that cannot be asked was chosen by the operator; one that can and will not is not to be trusted now.
      refused: ({ code, message }) => {
        if (code === null || code === UNKNOWN_METHOD) this.#start()
        else this.#end(`eth_chainId refused: ${code} ${message}`)
      },
    })
  }

  #start(): void {
    this.#ready = true
    this.#ask('eth_subscribe', ['newHeads'], {
      answered: (id) => this.#remember(id, 'newHeads'),
      refused: (why) => this.#options.say('upstream refuses newHeads', why),
    })
    this.#subscribeToLogs()
  }

  #subscribeToLogs(): void {
    for (const kind of this.#logs.keys()) this.#subscribe(kind)
  }

  #subscribe(kind: LogsKind): void {
    const addresses = this.#wanted
    // To the node an empty list means every contract there is.
    if (addresses.length === 0) return
    this.#ask('eth_subscribe', [kind, { address: addresses }], {
      answered: (id) => {
        const before = this.#logs.get(kind) ?? null
        this.#logs.set(kind, typeof id === 'string' ? id : null)
        this.signals.next({ type: 'live', of: kind, addresses })
        this.#remember(id, kind)
        if (before !== null) this.#ask('eth_unsubscribe', [before], { answered: () => {}, refused: () => {} })
      },
      refused: (why) => {
        if (why.code === null) return this.#end(`${kind} refused: ${why.message}`)
        this.#options.say(`upstream refuses ${kind}`, why)
        this.#logs.delete(kind)
        if (this.#logs.size > 0) return
        // Where nothing pre-confirmed can be heard, what is sealed may be.
        if (kind === 'pendingLogs') this.#subscribe('logs')
        else this.#end(`${kind} refused: ${why.message}`, true)
      },
    })
  }

  #remember(id: unknown, kind: Kind): void {
    if (typeof id !== 'string') return this.#end('a subscription was answered without an id')
    this.#subscriptions.set(id, kind)
    // The heads are subscribed to once and for all: only former subscriptions to logs may be forgotten.
    const oldest = [...this.#subscriptions.keys()].find((one) => this.#subscriptions.get(one) !== 'newHeads')
    if (this.#subscriptions.size > SUBSCRIPTIONS_BOUND && oldest !== undefined) this.#subscriptions.delete(oldest)
    const early = this.#unclaimed.filter(({ subscription }) => subscription === id)
    this.#unclaimed = this.#unclaimed.filter(({ subscription }) => subscription !== id)
    for (const { result, receivedAt } of early) this.#tell(kind, result, receivedAt)
  }

  #read(text: string, receivedAt: number): void {
    const message = Message.safeParse(parseJson(text))
    if (!message.success) {
      this.#options.say('upstream message unreadable', { begins: text.slice(0, 120) })
      return this.signals.next({ type: 'unreadable' })
    }
    if ('method' in message.data) {
      const { subscription, result } = message.data.params
      const kind = this.#subscriptions.get(subscription)
      if (kind) this.#tell(kind, result, receivedAt)
      else if (this.#questions.size > 0 && this.#unclaimed.length < UNCLAIMED_BOUND) {
        this.#unclaimed.push({ subscription, result, receivedAt })
      }
      return
    }
    const question = this.#questions.get(message.data.id)
    this.#questions.delete(message.data.id)
    if ('error' in message.data) question?.refused(message.data.error)
    else question?.answered(message.data.result)
    if (this.#questions.size === 0) this.#unclaimed = []
  }

  #tell(kind: Kind, result: unknown, receivedAt: number): void {
    if (kind === 'newHeads') this.signals.next({ type: 'head', header: result })
    else this.signals.next({ type: 'log', of: kind, log: result, receivedAt })
  }

  #ask(method: string, params: readonly unknown[], question: Question): void {
    this.#lastId += 1
    const id = this.#lastId
    this.#questions.set(id, question)
    this.#after(ANSWER_BOUND_MS, () => {
      if (this.#questions.delete(id))
        question.refused({ code: null, message: `not answered within ${ANSWER_BOUND_MS} ms` })
    })
    this.#socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
  }

  /** A half-open connection looks quiet: only an unanswered ping tells. */
  #watchPulse(): void {
    let answered = true
    this.#socket.on('pong', () => {
      answered = true
    })
    const beat = () => {
      answered = false
      this.#socket.ping()
      this.#after(PONG_BOUND_MS, () => {
        if (!answered) this.#end(`no pong within ${PONG_BOUND_MS} ms`)
      })
      this.#after(PING_EVERY_MS, beat)
    }
    this.#after(PING_EVERY_MS, beat)
  }

  #after(ms: number, act: () => void): void {
    const pending = setTimeout(() => {
      this.#timers.delete(pending)
      act()
    }, ms)
    this.#timers.add(pending)
  }

  #end(reason: string, refused = false): void {
    if (this.#ended) return
    this.#ended = true
    this.#release()
    this.signals.error(new LinkError(reason, refused))
  }

  #release(): void {
    for (const pending of this.#timers) clearTimeout(pending)
    this.#timers.clear()
    this.#socket.removeAllListeners()
    // A socket that is torn down while it opens still reports an error; nobody is left to hear it.
    this.#socket.on('error', () => {})
    this.#socket.terminate()
  }
}
