import { defaultSelectionOptions, patchOptions, readStreamQuery } from '../../src/protocol/parameters/selection.ts'
import { formatPosition } from '../../src/protocol/position.ts'
import { Refusal } from '../../src/protocol/refusal.ts'
import { Clients } from '../../src/relay/edge/clients/clients.ts'
import { ExportReceipt } from '../../src/relay/edge/history/export-receipt.ts'
import { readAll } from '../../src/relay/edge/history/history-export.ts'
import { readHistoryQuery } from '../../src/relay/edge/history/history-query.ts'
import { LongWorkQueue } from '../../src/relay/edge/limits/long-work-queue.ts'
import type { EdgeContext } from '../../src/relay/edge/live/edge-context.ts'
import { Hub } from '../../src/relay/edge/live/hub.ts'
import { startSession, subscriptionOf } from '../../src/relay/edge/live/session-start.ts'
import { CurrentState } from '../../src/relay/edge/select/current-state.ts'
import { resolveKnownSymbols } from '../../src/relay/edge/select/resolve-symbols.ts'
import type { Outlet } from '../../src/relay/edge/transport/socket-outlet.ts'
import { openMetrics } from '../../src/relay/metrics.ts'
import type { Tape } from '../../src/relay/tape/tape.ts'
import { httpServices } from '../unit/relay/edge/edge-fixture.ts'
import type { VirtualClock } from './virtual-clock.ts'

const HEARTBEAT_CHECK_MS = 250
const HEARTBEAT_MS = 15_000
const REPLAY_BOUND = 100_000
const MAX_SELECTIONS = 10
const limits = {
  ...{ maxClients: 10, maxClientsPerAddress: 10, maxBacklogBytes: 1_048_576, backlogPatienceMs: 5_000 },
  ...{ keys: null, workers: 1, isOneOfMany: false },
}
const metrics = openMetrics()

/** The real delivery of one run of the relay, in virtual time: sessions, replays, heartbeats and history. */
export class SimulatedEdge {
  readonly #context: EdgeContext
  readonly #workQueue = new LongWorkQueue()
  readonly #cancelTimer: () => void
  #isClosed = false

  constructor(tape: Tape, clock: VirtualClock, random: () => number) {
    const current = new CurrentState(tape.notes)
    const now = () => clock.now()
    const uptime = () => clock.elapsedMs
    const clients = new Clients({ ...limits, ...{ uptime, random, metrics, log: () => {} } })
    const delivery = { maxSelections: MAX_SELECTIONS, batchDelayBoundMs: 0 }
    const hub = new Hub({ ...{ clients, tape, current, wallTime: now, uptime, metrics }, ...delivery })
    this.#context = {
      ...{ hub, clients, current, tape, shared: null, now, wallTime: now, uptime },
      chainId: () => 1,
      isWrongChain: () => false,
      server: 'simulation',
      demo: () => false,
      isOneOfMany: false,
      heartbeatMs: HEARTBEAT_MS,
      navStaleAfterMs: 1,
      maxSelections: MAX_SELECTIONS,
      maxReplay: REPLAY_BOUND,
      tapeRetentionMs: 1,
      random,
      ...httpServices,
    }
    const sendHeartbeats = (): (() => void) =>
      clock.runAfter(HEARTBEAT_CHECK_MS, () => {
        if (this.#isClosed) return
        hub.updateBacklogs()
        void clients.sendHeartbeats()
        sendHeartbeats()
      })
    this.#cancelTimer = sendHeartbeats()
  }

  /** Opens a stream as `/v1/stream` does. Returns what the relay does when the connection is gone. */
  open(parameters: URLSearchParams, outlet: Outlet, fail: () => void): () => void {
    const { hub, clients, current } = this.#context
    const query = readStreamQuery(parameters, '')
    const { tokens, rejected } = resolveKnownSymbols(current, query.symbols ?? [])
    const options = patchOptions(defaultSelectionOptions, query)
    const heartbeatMs = 1_000 * (query.heartbeat ?? HEARTBEAT_MS / 1_000)
    const listener = hub.createListener({
      ...{ id: 'one', transport: 'ndjson', address: 'here', outlet, selection: { tokens, options } },
      heartbeatMs,
    })
    clients.add(listener)
    const subscription = subscriptionOf(query, { rejected })
    const follow = (session: Promise<void>) => void session.catch(fail)
    follow(startSession(this.#context, listener, subscription, follow))
    return () => clients.remove(listener)
  }

  /** Answers `/v1/events` and the part of `/v1/status` that a client needs to fill a gap. */
  async get(path: string, parameters: URLSearchParams): Promise<string> {
    const { tape } = this.#context
    if (this.#isClosed) throw new Refusal(503, 'going_away', 'The relay is down.')
    if (path === '/v1/status') return JSON.stringify({ tape: { oldest: formatPosition(tape.epoch, tape.oldest()) } })
    const query = readHistoryQuery(parameters, this.#context)
    const reading = { tape, pause: this.#workQueue.nextSlice, isGone: () => this.#isClosed }
    const receipt = new ExportReceipt(tape.epoch, query)
    const texts: string[] = []
    for await (const frames of readAll(reading, query)) {
      receipt.add(frames)
      texts.push(...frames.map(({ entry }) => entry.text))
    }
    return [...texts, receipt.line()].join('\n')
  }

  /** A relay that is stopped says goodbye; one that is killed does not. */
  close(isGraceful: boolean): void {
    const { hub } = this.#context
    this.#isClosed = true
    this.#cancelTimer()
    if (isGraceful) hub.drain()
    hub.close()
  }
}
