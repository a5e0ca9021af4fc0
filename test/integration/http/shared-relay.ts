import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, expect, type MockInstance, vi } from 'vitest'
import { listenWs } from '../../support/test-listener.ts'
import { fetchDocumented, openTestStack, type TestLifecycle, type TestStack, transfer } from '../../support/test-stack.ts'
import type { HttpResponse } from './http-response-parser.ts'
import { openRawConnection, type RawConnection } from './raw-connection.ts'
import { RawWebSocketClient } from './raw-websocket-client.ts'

/** Longer than any expected wait; reaching it fails the test. */
const WAIT_TIMEOUT_MS = 10_000

/** One relay for all tests of a file, with the clients that misbehave towards it. */
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
    if (!this.#stack) throw new Error('the relay is not open')
    return this.#stack
  }

  async open(): Promise<void> {
    // The stack lives as long as the file, not one test.
    const onTestFinished: TestLifecycle['onTestFinished'] = (cleanup) => void this.#cleanups.unshift(cleanup as () => unknown)
    this.#stack = await openTestStack(this.#settings, { onTestFinished })
  }

  async close(): Promise<void> {
    for (const cleanup of this.#cleanups) await cleanup()
  }

  /** A connection that sends nothing by itself. */
  async connect(): Promise<RawConnection> {
    const connection = await openRawConnection(this.stack.relay.url)
    this.#connections.add(connection)
    connection.socket.once('close', () => this.#connections.delete(connection))
    return connection
  }

  /** A WebSocket whose frames a test sends by hand and that reads strictly. */
  async openWebSocket(query = '', trailingBytes?: Uint8Array): Promise<RawWebSocketClient> {
    const client = await RawWebSocketClient.upgrade(await this.connect(), `/v1/ws${query}`, trailingBytes)
    this.#clients.push(client)
    return client
  }

  /** The same, once it is live. */
  async openLive(query: string): Promise<RawWebSocketClient> {
    const client = await this.openWebSocket(query)
    await client.listener.waitFor('live')
    return client
  }

  /** Sends bytes on a new connection. Returns the complete answer, and the connection. */
  async exchange(...pieces: readonly (string | Uint8Array)[]): Promise<HttpResponse & { readonly raw: RawConnection }> {
    const raw = await this.connect()
    raw.send(...pieces)
    return { ...(await raw.response()), raw }
  }

  /** Expects that clients that come and go leave no listener and no descriptor. */
  async expectNothingLeftAfter(comeAndGo: () => Promise<unknown>): Promise<void> {
    const before = this.openDescriptorCount()
    await comeAndGo()
    await this.waitForNoListeners()
    await this.until(() => this.openDescriptorCount() <= before, 'as many descriptors as before')
  }

  /** Closes what a test left open and checks that no listener stays. */
  async closeAndVerify(): Promise<void> {
    for (const connection of this.#connections) connection.socket.destroy()
    const protocolErrors = this.#clients.splice(0).flatMap(({ protocolError }) => (protocolError ? [protocolError] : []))
    expect(protocolErrors, 'the relay violated RFC 6455 or the contract').toEqual([])
    await this.waitForNoListeners()
  }

  waitForNoListeners(): Promise<void> {
    return this.until(async () => (await this.listenerCount()) === 0, 'no listener')
  }

  /** Resolves once a condition holds. A request between two checks lets the relay make progress. */
  async until(condition: () => boolean | Promise<boolean>, description: string): Promise<void> {
    const deadline = performance.now() + WAIT_TIMEOUT_MS
    while (!(await condition())) {
      if (performance.now() > deadline) throw new Error(`timed out waiting for ${description}`)
      await fetchDocumented(`${this.stack.relay.url}/healthz`, { headers: { connection: 'close' } })
    }
  }

  /** The listeners that the relay counts, over all transports. */
  async listenerCount(): Promise<number> {
    const { text } = await fetchDocumented(`${this.stack.relay.url}/metrics`, { headers: { connection: 'close' } })
    const counts = text.matchAll(/^stocktape_listeners\{[^}]*\} (\d+)$/gm)
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
  }

  /** Open files and sockets of this process, which runs the relay and its clients, without the relay's connections to its chain: they come and go. */
  openDescriptorCount(): number {
    const port = `:${Number(new URL(this.stack.relay.url).port).toString(16).toUpperCase().padStart(4, '0')}`
    const rows = readFileSync('/proc/self/net/tcp', 'utf8').trim().split('\n').slice(1)
    const toChain = rows.flatMap((row) => {
      const [, local = '', remote = '', , , , , , , inode] = row.trim().split(/\s+/)
      return local.endsWith(port) || remote.endsWith(port) ? [] : [`socket:[${inode}]`]
    })
    return readdirSync('/proc/self/fd').filter((fd) => !toChain.includes(linkOf(fd))).length
  }

  /** Checks that a well-behaved client is still served. */
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

/** Opens a relay for the file. After each test no listener and no console error may remain; at the end it still serves. */
export function sharedRelayForFile(settings: Record<string, string> = {}): SharedRelay {
  const sharedRelay = new SharedRelay(settings)
  let consoleErrors: MockInstance<typeof console.error>
  beforeAll(async () => {
    consoleErrors = vi.spyOn(console, 'error')
    await sharedRelay.open()
  })
  afterEach(async () => {
    await sharedRelay.closeAndVerify()
    // Clients of other files in this process report the loss of their own relays.
    const { host } = new URL(sharedRelay.stack.relay.url)
    const isElsewhere = (what: unknown) =>
      what instanceof Event && what.target instanceof WebSocket && new URL(what.target.url).host !== host
    expect(consoleErrors.mock.calls.filter(([what]) => !isElsewhere(what))).toEqual([])
  })
  afterAll(async () => {
    await sharedRelay.verifyServing()
    consoleErrors.mockRestore()
    await sharedRelay.close()
  })
  return sharedRelay
}

function linkOf(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return 'closed meanwhile'
  }
}
