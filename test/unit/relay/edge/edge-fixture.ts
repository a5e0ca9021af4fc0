import { onTestFinished } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import { nextTurn } from '../../../../src/lib/turns.ts'
import type { Message } from '../../../../src/protocol/notices.ts'
import { defaultSelectionOptions, type SelectionOptions } from '../../../../src/protocol/parameters/selection.ts'
import { type StartPoint, startPointFromLastEventId } from '../../../../src/protocol/parameters/start-point.ts'
import type { Transport } from '../../../../src/protocol/transports.ts'
import type { Update } from '../../../../src/protocol/updates.ts'
import { Clients } from '../../../../src/relay/edge/clients/clients.ts'
import type { EdgeContext } from '../../../../src/relay/edge/live/edge-context.ts'
import { Hub } from '../../../../src/relay/edge/live/hub.ts'
import { startSession } from '../../../../src/relay/edge/live/session-start.ts'
import { CurrentState } from '../../../../src/relay/edge/select/current-state.ts'
import type { Outlet } from '../../../../src/relay/edge/transport/socket-outlet.ts'
import { openMetrics } from '../../../../src/relay/metrics.ts'
import { openLocalTape, type TestTape } from '../../../support/local-tape.ts'
import { assertValidMessage } from '../../../support/message-validator.ts'
import { QuietOutlet } from './quiet-outlet.ts'

/** What a test listener requests; everything by default. */
export type ListenRequest = {
  readonly tokens?: readonly Hex[]
  readonly options?: Partial<SelectionOptions>
  readonly since?: StartPoint
  readonly transport?: Transport
  readonly heartbeatMs?: number
  readonly address?: string
  /** Bytes after which the outlet reports a backlog until the test drains it. */
  readonly roomBytes?: number
}

type EdgeSettings = {
  readonly bound?: number
  readonly replay?: number
  readonly clients?: number
  readonly isOneOfMany?: boolean
  /** A tape that the test opened and closes itself. */
  readonly existingTape?: TestTape
}

const metrics = openMetrics()
/** The parts that only requests need. */
export const httpServices = {
  createConnectionId: () => 'one',
  clientAddressOf: () => 'here',
  authorize: () => null,
  keys: null,
  compression: false,
  log() {},
  countRefusal() {},
}

/** The hub over a tape in memory, with listeners that record everything they are sent. */
export function openEdge({
  bound = 1_000_000,
  replay = 100_000,
  clients: maxClients = 1_000,
  isOneOfMany = false,
  existingTape,
}: EdgeSettings = {}) {
  const clock = { now: 1_000_000 }
  const now = () => clock.now
  const tape: TestTape =
    existingTape ?? openLocalTape({ dataDir: ':memory:', tapeRetentionMs: 60_000, tapeMaxMessages: bound, now, random: () => 0.5 })
  const current = new CurrentState(tape.notes)
  const ports = { metrics, wallTime: now, uptime: now, random: () => 0.5, log: () => {} }
  const clients = new Clients({
    ...ports,
    ...{ maxClients, maxClientsPerAddress: maxClients, maxBacklogBytes: 262_144, backlogPatienceMs: 5_000 },
    ...{ keys: null, workers: 1, isOneOfMany },
  })
  const hub = new Hub({ ...ports, clients, tape, current, maxSelections: 10, batchDelayBoundMs: 0 })
  let isClosed = false
  const append = tape.append.bind(tape)
  // A delivery may take several turns; tests look at what was sent right after an append.
  tape.append = async (...batch) => {
    const entries = await append(...batch)
    while (!isClosed && hub.deliveredSeq < tape.end()) await nextTurn()
    return entries
  }
  const context: EdgeContext = {
    hub,
    clients,
    current,
    tape,
    shared: null,
    now,
    wallTime: now,
    uptime: now,
    chainId: () => 1,
    isWrongChain: () => false,
    server: 'test',
    demo: () => false,
    isOneOfMany,
    heartbeatMs: 15_000,
    navStaleAfterMs: 1,
    maxSelections: 10,
    maxReplay: replay,
    tapeRetentionMs: 60_000,
    random: () => 0.5,
    ...httpServices,
  }
  const add = (outlet: Outlet, { tokens, options = {}, transport = 'ndjson', address = 'here', heartbeatMs }: ListenRequest) => {
    const listener = hub.createListener({
      ...{ id: 'one', transport, address, outlet, heartbeatMs: heartbeatMs ?? null },
      selection: { tokens: tokens ? new Set(tokens) : null, options: { ...defaultSelectionOptions, ...options } },
    })
    clients.add(listener)
    return listener
  }
  const listen = (request: ListenRequest = {}) => {
    const { since = { from: 'now' }, roomBytes } = request
    const outlet = new RecordingOutlet(roomBytes ?? Number.POSITIVE_INFINITY)
    const listener = add(outlet, request)
    const subscription = { since, snapshot: false, onGap: 'replay' as const, rejected: [] }
    const started = startSession(context, listener, subscription, () => {})
    return { listener, started, outlet, leave: () => clients.remove(listener) }
  }
  /** A listener that is live at once, without the messages that begin a stream. */
  const addLive = (outlet: Outlet, request: ListenRequest = {}) => hub.join(add(outlet, request))
  const beat = () => {
    hub.updateBacklogs()
    return clients.sendHeartbeats()
  }
  const close = async () => {
    hub.close()
    isClosed = true
    if (!existingTape) await tape.close()
  }
  return { tape, hub, clients, context, clock, listen, addLive, beat, close }
}

/** The same, closed when the test ends. */
export function openTestEdge(bounds: EdgeSettings = {}) {
  const context = openEdge(bounds)
  onTestFinished(() => context.close())
  return context
}

/** The same for one run of a random test. */
export async function withEdge(use: (edge: ReturnType<typeof openEdge>) => Promise<void>, settings: EdgeSettings = {}) {
  const edge = openEdge(settings)
  try {
    await use(edge)
  } finally {
    await edge.close()
  }
}

/** The start point that resumes after a position. */
export const sinceAfter = (position: string | null | undefined): StartPoint => startPointFromLastEventId(position ?? '')

/** Records what it is given. One with little room reports a backlog until it is drained. */
export class RecordingOutlet extends QuietOutlet {
  readonly writes: string[] = []
  readonly #roomBytes: number
  #unread = 0
  #taken = 0
  #resolveDrained: () => void = () => {}

  constructor(roomBytes: number) {
    super()
    this.#roomBytes = roomBytes
  }

  override write(bytes: Buffer): void {
    this.writes.push(String(bytes))
    this.#unread += bytes.length
  }

  override get backlog(): number {
    return this.#unread > this.#roomBytes ? 100_000 : 0
  }

  override get takenBytes(): number {
    return this.#taken
  }

  override drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#resolveDrained = resolve
    })
  }

  /** Takes some bytes and keeps its backlog. */
  takeSome(): void {
    this.#taken += 1
  }

  drain(): void {
    this.#unread = 0
    this.#taken += 1
    this.#resolveDrained()
  }

  get lines(): readonly string[] {
    return this.writes
      .join('')
      .split('\n')
      .filter((line) => line !== '')
  }

  get messages(): readonly Message[] {
    return this.lines.map((line) => assertValidMessage(JSON.parse(line)))
  }

  /** The updates, in their exact text. */
  get publishedLines(): readonly string[] {
    return this.lines.filter((line) => 'prev' in JSON.parse(line))
  }

  get updates(): readonly Update[] {
    return this.publishedLines.map((line) => assertValidMessage(JSON.parse(line)))
  }
}
