import type { Socket } from 'node:net'
import type { RawData } from 'ws'
import { nextTurn } from '../../lib/turns.ts'
import type { CloseReason } from '../../protocol/close-codes.ts'
import { Refusal } from '../../protocol/refusal.ts'
import type { ConnectionLimits } from '../edge/limits/connection-limits.ts'
import { type ServerWebSocket, WebSocketOutlet } from '../edge/transport/websocket-outlet.ts'
import { decodeText } from './rpc-request-parser.ts'
import { RpcSession, type RpcSessionContext } from './rpc-session.ts'

export const RPC_MESSAGE_BOUND_BYTES = 131_072
/** Limit of the pieces in which the bytes of one message may arrive. */
export const RPC_CHUNKS_BOUND = 1_024
/** Limit of sessions that are pinged in one turn of the event loop. */
const HEARTBEATS_PER_TURN = 250
/** The WebSocket code for a client that may reconnect. */
const TRY_AGAIN_LATER = 1_013

/** An error of a connection without a listener for errors would end the process. */
const ignore = (): void => {}

const serverFull = new Refusal(503, 'full', 'Too many are connected; come back later.')
const tooManyConnections = new Refusal(429, 'too_many_connections', 'Too many connections come from your address; close some.')

type Options = RpcSessionContext & {
  readonly connections: ConnectionLimits
  readonly connectionMetrics: { opened(): void; closed(session: RpcSession, reason: CloseReason | 'client'): void }
}

export class RpcSockets {
  readonly #options: Options
  readonly #sessions = new Set<RpcSession>()
  #isHeartbeatRunning = false

  constructor(options: Options) {
    this.#options = options
  }

  get connected(): ReadonlySet<RpcSession> {
    return this.#sessions
  }

  /** The reason to refuse an address; null if there is room. */
  refusalFor(address: string): Refusal | null {
    const reason = this.#options.connections.exceededLimit(address)
    return reason === null ? null : reason === 'full' ? serverFull : tooManyConnections
  }

  accept(webSocket: ServerWebSocket, socket: Socket, address: string): void {
    const { connections, connectionMetrics } = this.#options
    const outlet = new WebSocketOutlet(webSocket, socket)
    const session = new RpcSession(webSocket, outlet, address, this.#options, connectionMetrics.closed)
    webSocket.on('error', ignore)
    if (connections.add(session)) return webSocket.close(TRY_AGAIN_LATER)
    this.#sessions.add(session)
    connectionMetrics.opened()
    const onClose = () => {
      session.release()
      if (this.#sessions.delete(session)) connections.remove(session)
    }
    webSocket.on('message', (data: RawData) => session.receive(decodeText(data as Buffer)))
    webSocket.on('ping', () => session.countControlFrame())
    webSocket.on('pong', () => {
      if (!outlet.receivePong()) session.countControlFrame()
    })
    webSocket.on('close', onClose)
    webSocket.on('error', onClose)
  }

  async heartbeat(): Promise<void> {
    if (this.#isHeartbeatRunning) return
    this.#isHeartbeatRunning = true
    try {
      let heartbeats = 0
      for (const session of this.#sessions) {
        session.heartbeat()
        heartbeats += 1
        if (heartbeats % HEARTBEATS_PER_TURN === 0) await nextTurn()
      }
    } finally {
      this.#isHeartbeatRunning = false
    }
  }

  /** Closes the connections of clients whose API keys are deleted. */
  disconnect(clients: ReadonlySet<string>): void {
    for (const session of this.#sessions) if (clients.has(session.address)) session.close('forbidden')
  }

  drain(): void {
    for (const session of this.#sessions) session.close('going_away')
  }
}
