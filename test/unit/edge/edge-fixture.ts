import { onTestFinished } from 'vitest'
import { Hub } from '../../../src/edge/live/hub.ts'
import { Listener, type Outlet } from '../../../src/edge/live/listener.ts'
import { type House, welcome } from '../../../src/edge/live/session.ts'
import { View } from '../../../src/edge/select/view.ts'
import type { Carrier } from '../../../src/edge/transport/encode.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import type { Message } from '../../../src/protocol/notices.ts'
import { defaultOptions, type Options, type Since, sinceLastEventId } from '../../../src/protocol/selection.ts'
import type { Update } from '../../../src/protocol/updates.ts'
import { openSqliteTape } from '../../../src/tape/sqlite.ts'
import type { Tape } from '../../../src/tape/tape.ts'
import { asPublished } from '../../support/message-validator.ts'

/** What one asks to hear; all of it where nothing is said. */
export type Asked = {
  readonly tokens?: readonly Hex[]
  readonly options?: Partial<Options>
  readonly since?: Since
  readonly carrier?: Carrier
  readonly heartbeatMs?: number
  readonly address?: string
  /** Bytes after which writing has to wait until the test reads. */
  readonly roomBytes?: number
}

type Bounds = {
  readonly bound?: number
  readonly replay?: number
  /** A tape that is there already, and has its own end. */
  readonly over?: Tape
}

/** A house over a tape in memory, and whoever listens there; everything said is kept. */
export function openHouse({ bound = 1_000_000, replay = 100_000, over }: Bounds = {}) {
  const clock = { now: 1_000_000 }
  const now = () => clock.now
  const tape = over ?? openSqliteTape({ dir: ':memory:', retentionMs: 60_000, bound, now, dice: () => 0.5 })
  const view = new View(tape)
  const count = { came() {}, went() {}, shownOut() {} }
  const bounds = {
    backlogBoundBytes: 262_144,
    clientsBound: 1_000,
    clientsPerAddressBound: 1_000,
    selectionsBound: 10,
    patienceBoundMs: 0,
  }
  const hub = new Hub({ tape, view, now, uptime: now, dice: () => 0.5, ...bounds, count })
  const house: House = {
    hub,
    view,
    tape,
    now,
    uptime: now,
    chainId: () => 1,
    server: 'test',
    demo: false,
    heartbeatMs: 15_000,
    staleMs: 1,
    limits: { selections: 10, replay, backlog: 262_144, retentionMs: 60_000 },
  }
  const listen = (asked: Asked = {}) => {
    const { tokens, options = {}, since = { from: 'now' }, carrier = 'ndjson', roomBytes } = asked
    const outlet = new Notebook(roomBytes ?? Number.POSITIVE_INFINITY)
    const listener = new Listener({
      ...{
        id: 'one',
        carrier,
        address: asked.address ?? 'here',
        outlet,
        heartbeatMs: asked.heartbeatMs ?? null,
        uptime: now(),
      },
      options: { ...defaultOptions, ...options },
    })
    listener.tokens = tokens ? new Set(tokens) : null
    hub.enter(listener)
    const joined = welcome(house, listener, { since, snapshot: false, rejected: [] })
    return { listener, joined, outlet, leave: () => hub.leave(listener) }
  }
  const close = async () => {
    hub.close()
    if (!over) await tape.close()
  }
  return { tape, hub, house, clock, listen, close }
}

/** A house that is closed when the test is over. */
export function ownHouse(bounds: Bounds = {}) {
  const house = openHouse(bounds)
  onTestFinished(() => house.close())
  return house
}

/** Where somebody goes on who was somewhere. */
export const after = (position: string | null | undefined): Since => sinceLastEventId(position ?? '')

/** Writes down what it is given. One with little room waits to be read. */
class Notebook implements Outlet {
  readonly writes: string[] = []
  readonly #roomBytes: number
  #unread = 0
  taken = 0
  #read: () => void = () => {}

  constructor(roomBytes: number) {
    this.#roomBytes = roomBytes
  }

  write(bytes: Buffer): void {
    this.writes.push(String(bytes))
    this.#unread += bytes.length
  }

  get backlog(): number {
    return this.#unread > this.#roomBytes ? 100_000 : 0
  }

  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#read = resolve
    })
  }

  /** Takes a little, and is owed the rest. */
  take(): void {
    this.taken += 1
  }

  read(): void {
    this.#unread = 0
    this.taken += 1
    this.#read()
  }

  ping(): boolean {
    return false
  }

  end(): void {}

  get lines(): readonly string[] {
    return this.writes
      .join('')
      .split('\n')
      .filter((line) => line !== '')
  }

  get messages(): readonly Message[] {
    return this.lines.map((line) => asPublished(JSON.parse(line)))
  }

  /** What came of the tape, word for word. */
  get told(): readonly string[] {
    return this.lines.filter((line) => 'prev' in JSON.parse(line))
  }

  get updates(): readonly Update[] {
    return this.told.map((line) => asPublished(JSON.parse(line)))
  }
}
