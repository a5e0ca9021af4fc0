import { randomBytes } from 'node:crypto'
import type { WebSocket } from 'ws'
import { LogFilter, matching } from '../../chain/rpc/methods.ts'
import type { Block, Log } from '../chain/block.ts'
import type { Hex } from '../chain/hex.ts'
import { type Kind, kinds, type Weather } from '../faults/faults.ts'
import { diceOf, shuffled } from '../life/random.ts'
import { headerOf } from './json.ts'
import { type Call, CallError, failure, reply } from './json-rpc.ts'
import { checked } from './methods.ts'

/** How many sockets may be open. */
export const SOCKETS_BOUND = 1_024
/** How many subscriptions one socket may have. */
const SUBSCRIPTIONS_BOUND = 1_024
/** How much may wait for a reader before it is cut. */
const BACKLOG_BOUND_BYTES = 4 * 1_024 * 1_024

type Subscription = { kind: Kind; wants: (log: Log) => boolean }
type Session = { socket: WebSocket; subscriptions: Map<Hex, Subscription> }

/** What the sockets are told from outside, and tell. */
type Surroundings = {
  /** Answers what is no subscription. */
  call: Call
  weather: Weather
  /** Hears of every method that is called. */
  see: (method: string) => void
  /** Hears when sockets or subscriptions may be others than before. */
  changed: () => void
}

/** The open sockets and what each has subscribed to. */
export class Sockets {
  #sessions = new Set<Session>()
  #call: Call
  #weather: Weather
  #see: (method: string) => void
  #changed: () => void

  constructor({ call, weather, see, changed }: Surroundings) {
    this.#call = call
    this.#weather = weather
    this.#see = see
    this.#changed = changed
  }

  get size(): number {
    return this.#sessions.size
  }

  /** How many subscriptions there are now, of each kind. */
  counts(): Record<Kind, number> {
    const all = [...this.#sessions].flatMap(({ subscriptions }) => [...subscriptions.values()])
    const count = (kind: Kind) => all.filter((subscription) => subscription.kind === kind).length
    return { pendingLogs: count('pendingLogs'), logs: count('logs'), newHeads: count('newHeads') }
  }

  /** Takes a socket in: answers what it asks, sends what it subscribes to. */
  welcome(socket: WebSocket): void {
    const session: Session = { socket, subscriptions: new Map() }
    this.#sessions.add(session)
    socket.on('error', () => socket.terminate())
    socket.on('close', () => {
      this.#sessions.delete(session)
      this.#changed()
    })
    // The server's own pongs are off, since a frozen one sends none.
    socket.on('ping', (data) => {
      if (!this.#weather.frozen) socket.pong(data)
    })
    socket.on('message', (data, isBinary) => {
      if (this.#weather.frozen) return
      const answer = isBinary
        ? failure(new CallError(-32700, 'parse error'))
        : reply(String(data), this.#callOf(session))
      this.#send(session, answer.text)
      this.#changed()
    })
    this.#changed()
  }

  /** Sends the logs of a flashblock, and for the older shape all that are pending. */
  announceFlash(newest: readonly Log[], all: readonly Log[]): void {
    this.#each('pendingLogs', (wants) => {
      if (this.#weather.shape === 'one') return this.#ordered(newest.filter(wants))
      const wanted = this.#ordered(all.filter(wants))
      return wanted.length > 0 ? [wanted] : []
    })
  }

  /** Sends a sealed block's header and logs. */
  announceBlock(block: Block): void {
    this.#each('newHeads', () => [headerOf(block)])
    this.announceLogs(block.logs)
  }

  /** Sends logs to who subscribed to sealed ones: a block's, or those that a reorganisation removed. */
  announceLogs(logs: readonly Log[]): void {
    this.#each('logs', (wants) => logs.filter(wants))
  }

  /** Closes every socket, as a node that dies does: without a word. */
  cut(): void {
    for (const { socket } of this.#sessions) socket.terminate()
    this.#sessions.clear()
    this.#changed()
  }

  // Once they are chosen: what a filter leaves of another order may be in the right one.
  #ordered(logs: readonly Log[]): readonly Log[] {
    if (!this.#weather.shuffle) return logs
    const names = logs.map(({ transactionHash, logIndex }) => transactionHash + logIndex)
    return shuffled(diceOf('shuffle', ...names), logs)
  }

  #each(kind: Kind, resultsOf: (wants: Subscription['wants']) => readonly unknown[]): void {
    if (this.#weather.frozen || this.#weather.silent.includes(kind)) return
    for (const session of this.#sessions) {
      for (const [id, subscription] of session.subscriptions) {
        if (subscription.kind !== kind) continue
        for (const result of resultsOf(subscription.wants)) this.#notify(session, id, result)
      }
    }
  }

  #notify(session: Session, subscription: Hex, result: unknown): void {
    const text = JSON.stringify({ jsonrpc: '2.0', method: 'eth_subscription', params: { subscription, result } })
    for (let time = 0; time < this.#weather.repeats; time++) this.#send(session, text)
  }

  #send(session: Session, text: string): void {
    const { socket } = session
    if (socket.readyState !== socket.OPEN) return
    if (socket.bufferedAmount > BACKLOG_BOUND_BYTES) {
      this.#sessions.delete(session)
      socket.terminate()
      return
    }
    socket.send(text)
  }

  #callOf(session: Session): Call {
    return (method, params) => {
      this.#see(method)
      if (method === 'eth_subscribe') return this.#subscribe(session, params)
      if (method === 'eth_unsubscribe') return this.#unsubscribe(session, params)
      return this.#call(method, params)
    }
  }

  #subscribe({ subscriptions }: Session, params: unknown): Hex {
    const [name, filter] = Array.isArray(params) ? params : []
    const kind = kinds.find((one) => one === name)
    if (!kind) throw new CallError(-32602, `invalid params: no subscription ${JSON.stringify(name)}`)
    if (this.#weather.refused.includes(kind)) throw new CallError(-32602, `invalid params: no subscription "${kind}"`)
    if (subscriptions.size >= SUBSCRIPTIONS_BOUND)
      throw new CallError(-32006, 'too many subscriptions on the connection')
    // Anything but a filter is no filter, as on the real node: it asks for everything.
    const read = typeof filter === 'object' && filter !== null ? checked(LogFilter, filter) : {}
    const id: Hex = `0x${randomBytes(16).toString('hex')}`
    subscriptions.set(id, { kind, wants: matching(read) })
    return id
  }

  #unsubscribe({ subscriptions }: Session, params: unknown): boolean {
    const [id] = Array.isArray(params) ? params : []
    if (typeof id !== 'string') throw new CallError(-32602, 'invalid params: a subscription id')
    return subscriptions.delete(id as Hex)
  }
}
