import { readdirSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, expect, type MockInstance, vi } from 'vitest'
import { listenWs } from '../../support/test-listener.ts'
import {
  fetchDocumented,
  openTestStack,
  type TestLifecycle,
  type TestStack,
  transfer,
} from '../../support/test-stack.ts'
import { openRawConnection, type RawConnection } from './raw-connection.ts'
import { RawWebSocketClient } from './raw-websocket-client.ts'

/** Longer than anything takes to be let go; reaching it is a failure, never a pause. */
const WAIT_TIMEOUT_MS = 10_000

/** One relay for all tests of a file, and those who misbehave towards it. */
export class SharedRelay {
  #stack: TestStack | null = null
  readonly #cleanups: (() => unknown)[] = []
  readonly #connections = new Set<RawConnection>()
  readonly #clients: RawWebSocketClient[] = []
  readonly #settings: Record<string, string>

  constructor(settings: Record<string, string>) {
    this.#settings = settings
  }

  get stack(): TestStack {
    if (!this.#stack) throw new Error('the house is not open')
    return this.#stack
  }

  async open(): Promise<void> {
    // The world ends with the file, not with a test; none of its endings asks of which.
    const onTestFinished: TestLifecycle['onTestFinished'] = (cleanup) =>
      void this.#cleanups.unshift(cleanup as () => unknown)
    this.#stack = await openTestStack(this.#settings, { onTestFinished })
  }

  async close(): Promise<void> {
    for (const cleanup of this.#cleanups) await cleanup()
  }

  /** A connection that says nothing by itself. */
  async connect(): Promise<RawConnection> {
    const connection = await openRawConnection(this.stack.relay.url)
    this.#connections.add(connection)
    connection.socket.once('close', () => this.#connections.delete(connection))
    return connection
  }

  /** A WebSocket whose frames are read strictly and sent by hand. */
  async openWebSocket(query = '', trailingBytes?: Uint8Array): Promise<RawWebSocketClient> {
    const client = await RawWebSocketClient.upgrade(await this.connect(), `/v1/ws${query}`, trailingBytes)
    this.#clients.push(client)
    return client
  }

  /** Ends what a test left open, and finds that nothing of it stayed. */
  async closeAndVerify(): Promise<void> {
    for (const connection of this.#connections) connection.socket.destroy()
    const protocolErrors = this.#clients
      .splice(0)
      .flatMap(({ protocolError }) => (protocolError ? [protocolError] : []))
    expect(protocolErrors, 'what the relay sent was not as RFC 6455 and the contract have it').toEqual([])
    await this.waitForNoListeners()
  }

  /** Resolves once the relay counts no listener. */
  waitForNoListeners(): Promise<void> {
    return this.until(async () => (await this.listenerCount()) === 0, 'no listener')
  }

  /** Resolves once a condition holds; the relay is asked something between two looks, so that it moves on. */
  async until(condition: () => boolean | Promise<boolean>, description: string): Promise<void> {
    const deadline = performance.now() + WAIT_TIMEOUT_MS
    while (!(await condition())) {
      if (performance.now() > deadline) throw new Error(`waited in vain for ${description}`)
      await fetchDocumented(`${this.stack.relay.url}/healthz`, { headers: { connection: 'close' } })
    }
  }

  /** How many listeners the relay counts, on all carriers. */
  async listenerCount(): Promise<number> {
    const { text } = await fetchDocumented(`${this.stack.relay.url}/metrics`, { headers: { connection: 'close' } })
    const counts = text.matchAll(/^stocktape_listeners\{[^}]*\} (\d+)$/gm)
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
  }

  /** Whether a good client is still heard and served. */
  async verifyServing(): Promise<void> {
    const listener = await listenWs(`${this.stack.relay.wsUrl}?symbols=AAPLc&types=transfer`)
    try {
      await listener.waitFor('live')
      transfer(this.stack)
      await listener.waitFor('transfer')
    } finally {
      listener.close()
    }
  }
}

/** Opens a relay for the file. After each test nobody may be left and nothing complained of; in the end it still serves. */
export function sharedRelayForFile(settings: Record<string, string> = {}): SharedRelay {
  const sharedRelay = new SharedRelay(settings)
  let consoleErrors: MockInstance<typeof console.error>
  beforeAll(async () => {
    consoleErrors = vi.spyOn(console, 'error')
    await sharedRelay.open()
  })
  afterEach(async () => {
    await sharedRelay.closeAndVerify()
    expect(consoleErrors.mock.calls).toEqual([])
  })
  afterAll(async () => {
    await sharedRelay.verifyServing()
    consoleErrors.mockRestore()
    await sharedRelay.close()
  })
  return sharedRelay
}

/** How many files and sockets this process has open; the relay and its clients are both in it. */
export const openDescriptorCount = (): number => readdirSync('/proc/self/fd').length
