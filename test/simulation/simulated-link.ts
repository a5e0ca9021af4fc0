import { Observable, Subscription } from 'rxjs'
import type { LinkInputs } from '../../src/relay/chain/link/reconnecting-link.ts'
import type { LinkSignal } from '../../src/relay/chain/link/subscription-socket.ts'
import type { ReadFilter } from '../../src/relay/chain/logs/log-filter.ts'
import type { ActiveFaults } from './active-faults.ts'
import { isOfManager, type NodeFilter } from './node-filter.ts'
import { SeededRandom } from './seeded-random.ts'
import type { SimulatedPushes } from './simulated-pushes.ts'
import type { Settings } from './simulation-settings.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** The real link's values: backoff, deadline of the handshake, and when a silent socket is closed. */
const MIN_BACKOFF_MS = 250
const MAX_BACKOFF_MS = 30_000
const STABLE_MS = 30_000
const HANDSHAKE_BOUND_MS = 5_000
const PONG_TIMEOUT_MS = 15_000
const ANSWER_BOUND_MS = 2_000
const CHECK_INTERVAL_MS = 1_000

type LogsKind = 'pendingLogs' | 'logs'

/** A node that takes subscriptions under a URL, and its faults. */
export type SocketEndpoint = { readonly activeFaults: ActiveFaults; readonly pushes: SimulatedPushes }

type Options = {
  readonly settings: Settings
  readonly clock: VirtualClock
  readonly endpoints: readonly [SocketEndpoint, ...SocketEndpoint[]]
}

/** The upstream socket as `link` provides it: opens, subscribes, disconnects and connects to the next endpoint, for ever. */
export const simulatedLink =
  (options: Options) =>
  ({ filters, probes, reconnects }: LinkInputs): Observable<LinkSignal> =>
    new Observable((subscriber) => {
      const model = new SimulatedLink(options, (signal) => subscriber.next(signal))
      subscriber.add(filters.subscribe((list) => model.setFilters(list)))
      subscriber.add(probes.subscribe(() => model.probe()))
      subscriber.add(reconnects.subscribe(() => model.leaveNode()))
      subscriber.add(() => model.close())
      model.open()
    })

class SimulatedLink {
  readonly #options: Options
  readonly #emit: (signal: LinkSignal) => void
  readonly #timers = new Set<() => void>()
  readonly #kinds = new Set<LogsKind>(['pendingLogs'])
  readonly #subscriptions = new Map<LogsKind | 'newHeads', readonly NodeFilter[]>()
  #filters: readonly ReadFilter[] = []
  #connection = new Subscription()
  #isOpen = false
  #attemptCount = 0
  #failureCount = 0
  #openedAt = 0
  #quietSince: number | null = null
  /** Messages on one connection keep their order. */
  #lastAt = 0

  constructor(options: Options, emit: (signal: LinkSignal) => void) {
    this.#options = options
    this.#emit = emit
  }

  /** The endpoint that this attempt connects to. */
  get #endpoint(): SocketEndpoint {
    const { endpoints } = this.#options
    return endpoints[Math.max(0, this.#attemptCount - 1) % endpoints.length] ?? endpoints[0]
  }

  open(): void {
    const { clock, settings } = this.#options
    this.#attemptCount += 1
    const { activeFaults } = this.#endpoint
    this.#openedAt = clock.elapsedMs
    this.#quietSince = null
    if (activeFaults.isActive('handshakeHangs'))
      return this.#after(HANDSHAKE_BOUND_MS, () => this.#disconnect('the handshake hangs'))
    if (activeFaults.isActive('connectionRefused')) return this.#after(settings.latencyMs, () => this.#disconnect('refused'))
    if (activeFaults.isActive('subscriptionsRefused'))
      return this.#after(settings.latencyMs, () => this.#disconnect('the node refuses subscriptions', true))
    this.#after(settings.latencyMs * 3, () => this.#start())
  }

  setFilters(filters: readonly ReadFilter[]): void {
    this.#filters = filters
    if (this.#isOpen) for (const kind of this.#kinds) this.#subscribe(kind)
  }

  probe(): void {
    if (!this.#isOpen) return
    this.#subscribe('pendingLogs')
    if (!this.#kinds.has('logs')) this.#subscribe('logs')
  }

  leaveNode(): void {
    if (this.#isOpen) this.#disconnect('its heads stand still')
  }

  close(): void {
    this.#reset()
  }

  #start(): void {
    const { pushes, activeFaults } = this.#endpoint
    this.#isOpen = true
    this.#kinds.clear()
    this.#kinds.add('pendingLogs')
    this.#subscriptions.set('newHeads', [])
    this.#connection.add(
      pushes.pushesFor(this.#subscriptions).subscribe(({ signal, afterMs, ordered }) => {
        const isSilent = activeFaults.isActive('noPushes') || activeFaults.isActive('endpointFrozen')
        if (!isSilent) this.#push(signal, afterMs, ordered)
      }),
    )
    this.#connection.add(activeFaults.onsets('disconnect').subscribe(() => this.#disconnect('cut')))
    this.#after(this.#options.settings.latencyMs, () => {
      if (!activeFaults.isActive('noPushes')) this.#emit({ type: 'heads_live' })
    })
    this.#subscribe('pendingLogs')
    this.#checkConnection()
    const scheduleFlap = () => {
      if (!this.#isOpen) return
      const every = activeFaults.amount('flapping')
      if (every === null) return this.#after(CHECK_INTERVAL_MS, scheduleFlap)
      this.#after(every, () => (activeFaults.isActive('flapping') ? this.#disconnect('flapping') : scheduleFlap()))
    }
    scheduleFlap()
  }

  /** Disconnects while a fault asks for it, and when no pong comes. */
  #checkConnection(): void {
    const { clock } = this.#options
    const { activeFaults } = this.#endpoint
    if (!this.#isOpen) return
    if (activeFaults.isActive('connectionRefused')) return this.#disconnect('closed')
    if (!activeFaults.isActive('noPushes')) this.#quietSince = null
    else {
      this.#quietSince ??= clock.elapsedMs
      if (clock.elapsedMs - this.#quietSince >= PONG_TIMEOUT_MS) return this.#disconnect('no pong')
    }
    this.#after(CHECK_INTERVAL_MS, () => this.#checkConnection())
  }

  #subscribe(kind: LogsKind): void {
    const { settings } = this.#options
    const { activeFaults } = this.#endpoint
    const filters = this.#filters
    const [whole] = filters
    if (!whole || whole.addresses.length === 0) return
    this.#kinds.add(kind)
    this.#after(settings.latencyMs, () => {
      if (activeFaults.isActive('noPushes')) return this.#after(ANSWER_BOUND_MS, () => this.#disconnect('not answered'))
      if (kind === 'pendingLogs' && activeFaults.isActive('pendingLogsRefused')) {
        // As the socket does: logs of the previous addresses are better than none.
        if (this.#subscriptions.has(kind)) return this.#emit({ type: 'refused' })
        this.#kinds.delete(kind)
        this.#subscriptions.delete(kind)
        if (this.#kinds.size === 0) this.#subscribe('logs')
        return
      }
      // As the socket does: what the node refuses of a manager is left out.
      const refusesManager = activeFaults.isActive('managersRefused')
      const pushed = refusesManager ? filters.filter((filter) => !isOfManager(asked(filter))) : filters
      this.#subscriptions.set(kind, pushed.map(asked))
      this.#push({ type: 'live', subscription: kind, filters, pushed }, settings.latencyMs, true)
    })
  }

  #push(signal: LinkSignal, afterMs: number, ordered: boolean): void {
    const { clock } = this.#options
    const at = clock.elapsedMs + afterMs
    if (ordered) this.#lastAt = Math.max(this.#lastAt, at)
    this.#after((ordered ? this.#lastAt : at) - clock.elapsedMs, () => {
      this.#endpoint.pushes.onArrival(signal, this.#filters.map(asked))
      this.#emit(signal.type === 'log' ? { ...signal, receivedAt: clock.now() } : signal)
    })
  }

  #disconnect(reason: string, isRefused = false): void {
    const { clock, settings } = this.#options
    this.#reset()
    if (clock.elapsedMs - this.#openedAt > STABLE_MS) this.#failureCount = 0
    const backoff = Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** Math.min(this.#failureCount, 16))
    this.#failureCount += 1
    const jitter = 0.5 + new SeededRandom(settings.seed, 'backoff', this.#attemptCount).next() / 2
    this.#emit({ type: 'down', reason, isRefused })
    this.#after(backoff * jitter, () => this.open())
  }

  #reset(): void {
    for (const cancel of this.#timers) cancel()
    this.#timers.clear()
    this.#connection.unsubscribe()
    this.#connection = new Subscription()
    this.#subscriptions.clear()
    this.#isOpen = false
    this.#lastAt = 0
  }

  #after(ms: number, callback: () => void): void {
    const cancel = this.#options.clock.runAfter(ms, () => {
      this.#timers.delete(cancel)
      callback()
    })
    this.#timers.add(cancel)
  }
}

const asked = ({ addresses, topics }: ReadFilter): NodeFilter => ({ address: addresses, ...(topics && { topics }) })
