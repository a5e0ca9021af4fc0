import { randomBytes } from 'node:crypto'
import type { WebSocket } from 'ws'
import type { Hex } from '../../lib/hex.ts'
import { LogFilter, logMatcher } from '../../protocol/json-rpc-methods.ts'
import type { DevnetBlock, DevnetLog } from '../chain/chain-types.ts'
import { type DevnetSubscriptionKind, type Faults, subscriptionKinds } from '../faults/faults.ts'
import { seededRandom, shuffled } from '../life/seeded-random.ts'
import { headerJson } from './block-json.ts'
import { CallError, errorReply, handleRequest, type RpcHandler } from './json-rpc.ts'
import { parseParams } from './rpc-methods.ts'

export const SOCKETS_BOUND = 1_024
const SUBSCRIPTIONS_BOUND = 1_024
/** Limit of the backlog of a client, which is disconnected above it. */
const BACKLOG_BOUND_BYTES = 4 * 1_024 * 1_024

type DevnetSubscription = { kind: DevnetSubscriptionKind; matches: (log: DevnetLog) => boolean }
type DevnetSession = { socket: WebSocket; subscriptions: Map<Hex, DevnetSubscription> }

type SocketsInputs = {
  /** Answers every method except subscriptions. */
  call: RpcHandler
  faults: Faults
  countRequest: (method: string) => void
  /** Called when sockets or subscriptions may have changed. */
  onChange: () => void
}

export class DevnetSockets {
  #sessions = new Set<DevnetSession>()
  #inputs: SocketsInputs

  constructor(inputs: SocketsInputs) {
    this.#inputs = inputs
  }

  get size(): number {
    return this.#sessions.size
  }

  countSubscriptions(): Record<DevnetSubscriptionKind, number> {
    const subscriptions = [...this.#sessions].flatMap(({ subscriptions }) => [...subscriptions.values()])
    const count = (kind: DevnetSubscriptionKind) => subscriptions.filter((subscription) => subscription.kind === kind).length
    return { pendingLogs: count('pendingLogs'), logs: count('logs'), newHeads: count('newHeads') }
  }

  accept(socket: WebSocket): void {
    const { faults, onChange } = this.#inputs
    const session: DevnetSession = { socket, subscriptions: new Map() }
    this.#sessions.add(session)
    socket.on('error', () => socket.terminate())
    socket.on('close', () => {
      this.#sessions.delete(session)
      onChange()
    })
    socket.on('ping', (data) => {
      if (!faults.frozen) socket.pong(data)
    })
    socket.on('message', (data, isBinary) => {
      if (faults.frozen) return
      const answer = isBinary
        ? errorReply(new CallError(-32700, 'parse error'))
        : handleRequest(String(data), this.#methodsOf(session))
      this.#send(session, answer.text)
      onChange()
    })
    onChange()
  }

  /** Sends the new logs of a flashblock; if the fault `shape` is `all`, all pending logs. */
  announceFlashblock(newLogs: readonly DevnetLog[], pendingLogs: readonly DevnetLog[]): void {
    this.#notifySubscribers('pendingLogs', (wants) => {
      if (this.#inputs.faults.shape === 'one') return this.#inPushOrder(newLogs.filter(wants))
      const matchingLogs = this.#inPushOrder(pendingLogs.filter(wants))
      return matchingLogs.length > 0 ? [matchingLogs] : []
    })
  }

  announceBlock(block: DevnetBlock): void {
    this.#notifySubscribers('newHeads', () => [headerJson(block)])
    this.announceLogs(block.logs)
  }

  /** Sends the logs of a sealed block, or the logs that a reorg removed, to the subscribers of `logs`. */
  announceLogs(logs: readonly DevnetLog[]): void {
    this.#notifySubscribers('logs', (wants) => logs.filter(wants))
  }

  /** Closes every socket without a close frame, as a crashing node does. */
  closeAll(): void {
    for (const { socket } of this.#sessions) socket.terminate()
    this.#sessions.clear()
    this.#inputs.onChange()
  }

  // Shuffles only the logs that match, because the matches in a shuffled list may be in their original order.
  #inPushOrder(logs: readonly DevnetLog[]): readonly DevnetLog[] {
    if (!this.#inputs.faults.shuffle) return logs
    const logIds = logs.map(({ transactionHash, logIndex }) => transactionHash + logIndex)
    return shuffled(seededRandom('shuffle', ...logIds), logs)
  }

  #notifySubscribers(
    kind: DevnetSubscriptionKind,
    resultsOf: (matches: DevnetSubscription['matches']) => readonly unknown[],
  ): void {
    if (this.#inputs.faults.frozen || this.#inputs.faults.silent.includes(kind)) return
    for (const session of this.#sessions) {
      for (const [id, subscription] of session.subscriptions) {
        if (subscription.kind !== kind) continue
        for (const result of resultsOf(subscription.matches)) {
          const text = JSON.stringify({ jsonrpc: '2.0', method: 'eth_subscription', params: { subscription: id, result } })
          for (let copy = 0; copy < this.#inputs.faults.repeats; copy++) this.#send(session, text)
        }
      }
    }
  }

  #send(session: DevnetSession, text: string): void {
    const { socket } = session
    if (socket.readyState !== socket.OPEN) return
    if (socket.bufferedAmount > BACKLOG_BOUND_BYTES) {
      this.#sessions.delete(session)
      socket.terminate()
      return
    }
    socket.send(text)
  }

  #methodsOf(session: DevnetSession): RpcHandler {
    return (method, params) => {
      this.#inputs.countRequest(method)
      if (method === 'eth_subscribe') return this.#subscribe(session, params)
      if (method === 'eth_unsubscribe') return this.#unsubscribe(session, params)
      return this.#inputs.call(method, params)
    }
  }

  #subscribe({ subscriptions }: DevnetSession, params: unknown): Hex {
    const [name, filter] = Array.isArray(params) ? params : []
    const kind = subscriptionKinds.find((known) => known === name)
    if (!kind) throw new CallError(-32602, `invalid params: no subscription ${JSON.stringify(name)}`)
    if (this.#inputs.faults.refused.includes(kind)) throw new CallError(-32602, `invalid params: no subscription "${kind}"`)
    if (subscriptions.size >= SUBSCRIPTIONS_BOUND) throw new CallError(-32006, 'too many subscriptions on the connection')
    // A filter that is not an object matches every log, as on the real node.
    const parsed = typeof filter === 'object' && filter !== null ? parseParams(LogFilter, filter) : {}
    const id: Hex = `0x${randomBytes(16).toString('hex')}`
    subscriptions.set(id, { kind, matches: logMatcher(parsed) })
    return id
  }

  #unsubscribe({ subscriptions }: DevnetSession, params: unknown): boolean {
    const [id] = Array.isArray(params) ? params : []
    if (typeof id !== 'string') throw new CallError(-32602, 'invalid params: a subscription id')
    return subscriptions.delete(id as Hex)
  }
}
