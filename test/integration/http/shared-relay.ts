import { readdirSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, expect, type MockInstance, vi } from 'vitest'
import { listenWs } from '../../support/test-listener.ts'
import { ask, type Ending, openWorld, transfer, type World } from '../../support/test-stack.ts'
import { connectRaw, type Raw } from './raw-connection.ts'
import { FrameClient } from './raw-websocket-client.ts'

/** Longer than anything takes to be let go; reaching it is a failure, never a pause. */
const PATIENCE_MS = 10_000

/** One relay for all tests of a file, and those who misbehave towards it. */
export class House {
  #world: World | null = null
  readonly #endings: (() => unknown)[] = []
  readonly #raws = new Set<Raw>()
  readonly #clients: FrameClient[] = []
  readonly #settings: Record<string, string>

  constructor(settings: Record<string, string>) {
    this.#settings = settings
  }

  get world(): World {
    if (!this.#world) throw new Error('the house is not open')
    return this.#world
  }

  async open(): Promise<void> {
    // The world ends with the file, not with a test; none of its endings asks of which.
    const onTestFinished: Ending['onTestFinished'] = (ending) => void this.#endings.unshift(ending as () => unknown)
    this.#world = await openWorld(this.#settings, { onTestFinished })
  }

  async close(): Promise<void> {
    for (const ending of this.#endings) await ending()
  }

  /** A connection that says nothing by itself. */
  async connect(): Promise<Raw> {
    const raw = await connectRaw(this.world.relay.url)
    this.#raws.add(raw)
    raw.socket.once('close', () => this.#raws.delete(raw))
    return raw
  }

  /** A WebSocket whose frames are read strictly and sent by hand. */
  async upgrade(query = '', behind?: Uint8Array): Promise<FrameClient> {
    const client = await FrameClient.upgrade(await this.connect(), `/v1/ws${query}`, behind)
    this.#clients.push(client)
    return client
  }

  /** Ends what a test left open, and finds that nothing of it stayed. */
  async tidy(): Promise<void> {
    for (const raw of this.#raws) raw.socket.destroy()
    const faults = this.#clients.splice(0).flatMap(({ fault }) => (fault ? [fault] : []))
    expect(faults, 'what the relay sent was not as RFC 6455 and the contract have it').toEqual([])
    await this.deserted()
  }

  /** Resolves once the relay counts no listener. */
  deserted(): Promise<void> {
    return this.until(async () => (await this.listeners()) === 0, 'no listener')
  }

  /** Resolves once a condition holds; the relay is asked something between two looks, so that it moves on. */
  async until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
    const late = performance.now() + PATIENCE_MS
    while (!(await holds())) {
      if (performance.now() > late) throw new Error(`waited in vain for ${what}`)
      await ask(`${this.world.relay.url}/healthz`, { headers: { connection: 'close' } })
    }
  }

  /** How many listeners the relay counts, on all carriers. */
  async listeners(): Promise<number> {
    const { text } = await ask(`${this.world.relay.url}/metrics`, { headers: { connection: 'close' } })
    const counts = text.matchAll(/^stocktape_listeners\{[^}]*\} (\d+)$/gm)
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
  }

  /** Whether a good client is still heard and served. */
  async serves(): Promise<void> {
    const ear = await listenWs(`${this.world.relay.wsUrl}?symbols=AAPLc&types=transfer`)
    try {
      await ear.hear('live')
      transfer(this.world)
      await ear.hear('transfer')
    } finally {
      ear.close()
    }
  }
}

/** Opens a relay for the file. After each test nobody may be left and nothing complained of; in the end it still serves. */
export function houseOfFile(settings: Record<string, string> = {}): House {
  const house = new House(settings)
  let complaints: MockInstance<typeof console.error>
  beforeAll(async () => {
    complaints = vi.spyOn(console, 'error')
    await house.open()
  })
  afterEach(async () => {
    await house.tidy()
    expect(complaints.mock.calls).toEqual([])
  })
  afterAll(async () => {
    await house.serves()
    complaints.mockRestore()
    await house.close()
  })
  return house
}

/** How many files and sockets this process has open; the relay and its clients are both in it. */
export const openDescriptors = (): number => readdirSync('/proc/self/fd').length
