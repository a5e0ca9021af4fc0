import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import {
  JetStreamApiError,
  type JetStreamClient,
  JetStreamError,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
} from '@nats-io/jetstream'
import { connect, credsAuthenticator, type NatsConnection, PermissionViolationError, RequestError } from '@nats-io/transport-node'
import { messageOf } from '../../../lib/http-fetch.ts'
import type { Config } from '../../config/config.ts'
import type { WriteLine } from '../../log-lines.ts'

export const REQUEST_TIMEOUT_MS = 2_000
const RECONNECT_MS = 250
const PING_MS = 2_000

export type LinkSettings = Pick<Config['tape'], 'natsCredentials'> & {
  readonly natsUrl: readonly string[]
  /** Begins the topics of messages that are not stored. */
  readonly topicPrefix: string
}

/** The connection to NATS. It connects again by itself. */
export class NatsLink {
  readonly #settings: LinkSettings
  readonly #log: WriteLine
  #connection: NatsConnection | null = null
  #isConnected = false
  #lostAt = 0
  #isClosed = false
  readonly #connecting: Promise<void>

  constructor(settings: LinkSettings, log: WriteLine) {
    this.#settings = settings
    this.#log = log
    this.#connecting = this.#connect()
  }

  get isConnected(): boolean {
    return this.#isConnected
  }

  /** Waits for the connection to NATS, at most for this time. Returns whether NATS is connected. */
  whenConnected(withinMs: number): Promise<boolean> {
    const timeout = new Promise<void>((resolve) => setTimeout(resolve, withinMs).unref())
    return Promise.race([this.#connecting, timeout]).then(() => this.#isConnected)
  }

  /** Limit of the server on the size of a message. Each server of NATS may have another one. */
  get limitBytes(): number {
    return this.#connection?.info?.max_payload ?? Number.POSITIVE_INFINITY
  }

  async client(): Promise<JetStreamClient> {
    return jetstream(this.#connected(), { timeout: REQUEST_TIMEOUT_MS })
  }

  async manager(): Promise<JetStreamManager> {
    return jetstreamManager(this.#connected(), { checkAPI: false, timeout: REQUEST_TIMEOUT_MS })
  }

  /** Sends bytes to every process that listens now, without storing them. Returns false if they are too long for NATS. */
  send(topic: string, bytes: Uint8Array): boolean {
    if (!this.#isConnected) return true
    if (bytes.length > this.limitBytes) return false
    this.#connection?.publish(`${this.#settings.topicPrefix}.${topic}`, bytes)
    return true
  }

  async listen(topic: string, receive: (bytes: Uint8Array) => void): Promise<() => void> {
    await this.#connecting
    const subscription = this.#connection?.subscribe(`${this.#settings.topicPrefix}.${topic}`, {
      callback: (failure, message) => {
        if (!failure) receive(message.data)
      },
    })
    return () => subscription?.unsubscribe()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#connection?.close()
  }

  /** Returns the reason for which NATS refused; null if NATS did not answer. */
  refusalOf(failure: unknown, subject: string): string | null {
    if (failure instanceof JetStreamError || failure instanceof JetStreamApiError) return failure.message
    if (!(failure instanceof Error)) return null
    if (failure.cause instanceof PermissionViolationError) return failure.cause.message
    const hasNoTaker = failure.cause instanceof RequestError && failure.cause.isNoResponders()
    return hasNoTaker ? `no stream takes the subject ${subject}, or JetStream is off (no responders)` : null
  }

  #connected(): NatsConnection {
    if (!this.#connection || !this.#isConnected) throw new Error('NATS is not connected')
    return this.#connection
  }

  async #connect(): Promise<void> {
    while (!this.#isClosed) {
      try {
        const connection = await connect({
          ...serversOf(this.#settings),
          name: 'stocktape',
          ...{ timeout: REQUEST_TIMEOUT_MS, pingInterval: PING_MS, maxPingOut: 2 },
          ...{ maxReconnectAttempts: -1, reconnectTimeWait: RECONNECT_MS, ignoreClusterUpdates: false },
        })
        this.#connection = connection
        this.#isConnected = true
        this.#log('nats_connected', { server: connection.getServer() })
        void this.#watch(connection)
        if (this.#isClosed) await connection.close()
        return
      } catch (failure) {
        this.#log('nats_unreachable', { reason: messageOf(failure) })
        await delay(RECONNECT_MS)
      }
    }
  }

  async #watch(connection: NatsConnection): Promise<void> {
    for await (const { type } of connection.status()) {
      if (type === 'disconnect' || type === 'staleConnection') {
        if (this.#isConnected && !this.#isClosed) this.#log('nats_lost', { server: connection.getServer() })
        if (this.#isConnected) this.#lostAt = performance.now()
        this.#isConnected = false
      }
      if (type !== 'reconnect') continue
      const after_ms = Math.round(performance.now() - this.#lostAt)
      if (!this.#isConnected) this.#log('nats_back', { server: connection.getServer(), after_ms })
      this.#isConnected = true
    }
  }
}

/** Returns the servers and their credentials. The NATS library itself reads only the address from a URL. */
function serversOf({ natsUrl, natsCredentials }: LinkSettings) {
  const parsed = natsUrl.map((url) => new URL(url))
  const { username = '', password = '' } = parsed.find((url) => url.username !== '') ?? {}
  const user = decodeURIComponent(username)
  return {
    servers: parsed.map(({ host }) => host),
    ...(parsed.some(({ protocol }) => protocol === 'tls:') && { tls: {} }),
    ...(user !== '' && (password === '' ? { token: user } : { user, pass: decodeURIComponent(password) })),
    ...(natsCredentials && { authenticator: credsAuthenticator(readFileSync(natsCredentials)) }),
  }
}

export const isApiError = (failure: unknown, code: number): failure is JetStreamApiError =>
  failure instanceof JetStreamApiError && failure.code === code
