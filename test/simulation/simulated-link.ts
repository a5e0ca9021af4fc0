import { Observable, Subscription } from 'rxjs'
import type { Signal } from '../../src/chain/link/socket.ts'
import type { Hex } from '../../src/protocol/fields.ts'
import type { Weather } from './active-faults.ts'
import { Dice } from './seeded-random.ts'
import type { Pushes } from './simulated-pushes.ts'
import type { Settings } from './simulation-settings.ts'
import type { Clock } from './virtual-clock.ts'

/** As the real link: its backoff, how long a handshake may take, and when a silent socket is given up. */
const BACKOFF_LEAST_MS = 250
const BACKOFF_MOST_MS = 30_000
const STABLE_MS = 30_000
const HANDSHAKE_BOUND_MS = 5_000
const PULSE_BOUND_MS = 15_000
const ANSWER_BOUND_MS = 2_000
const BEAT_MS = 1_000

type LogsKind = 'pendingLogs' | 'logs'

type Options = {
  readonly settings: Settings
  readonly clock: Clock
  readonly weather: Weather
  readonly pushes: Pushes
}

type Asked = { readonly addresses: Observable<readonly Hex[]>; readonly probes: Observable<unknown> }

/** The upstream socket as `link` gives it: opens, subscribes, is lost and opens again, for ever. */
export const linkModel =
  (options: Options) =>
  ({ addresses, probes }: Asked): Observable<Signal> =>
    new Observable((hearing) => {
      const model = new LinkModel(options, (signal) => hearing.next(signal))
      hearing.add(addresses.subscribe((list) => model.hear(list)))
      hearing.add(probes.subscribe(() => model.probe()))
      hearing.add(() => model.close())
      model.open()
    })

class LinkModel {
  readonly #options: Options
  readonly #tell: (signal: Signal) => void
  readonly #timers = new Set<() => void>()
  readonly #kinds = new Set<LogsKind>(['pendingLogs'])
  readonly #heard = new Map<LogsKind | 'newHeads', readonly Hex[]>()
  #wanted: readonly Hex[] = []
  #life = new Subscription()
  #ready = false
  #attempts = 0
  #failures = 0
  #openedAt = 0
  #quietSince: number | null = null
  /** Nothing overtakes anything on one connection. */
  #lastAt = 0

  constructor(options: Options, tell: (signal: Signal) => void) {
    this.#options = options
    this.#tell = tell
  }

  open(): void {
    const { clock, settings, weather } = this.#options
    this.#attempts += 1
    this.#openedAt = clock.frame
    this.#quietSince = null
    if (weather.is('hang')) return this.#after(HANDSHAKE_BOUND_MS, () => this.#lose('the handshake hangs'))
    if (weather.is('refused')) return this.#after(settings.latencyMs, () => this.#lose('refused'))
    this.#after(settings.latencyMs * 3, () => this.#start())
  }

  hear(addresses: readonly Hex[]): void {
    this.#wanted = addresses
    if (this.#ready) for (const kind of this.#kinds) this.#subscribe(kind)
  }

  probe(): void {
    if (!this.#ready) return
    this.#subscribe('pendingLogs')
    if (!this.#kinds.has('logs')) this.#subscribe('logs')
  }

  close(): void {
    this.#release()
  }

  #start(): void {
    const { pushes, weather } = this.#options
    this.#ready = true
    this.#kinds.clear()
    this.#kinds.add('pendingLogs')
    this.#heard.set('newHeads', [])
    this.#life.add(
      pushes.to(this.#heard).subscribe(({ signal, afterMs, ordered }) => {
        if (!weather.is('muteAll')) this.#push(signal, afterMs, ordered)
      }),
    )
    this.#life.add(weather.onsets('cut').subscribe(() => this.#lose('cut')))
    this.#subscribe('pendingLogs')
    this.#beat()
    const flap = () => {
      if (!this.#ready) return
      const every = weather.amount('flapping')
      if (every === null) return this.#after(BEAT_MS, flap)
      this.#after(every, () => (weather.is('flapping') ? this.#lose('flapping') : flap()))
    }
    flap()
  }

  /** Cut off while a fault says so, and given up where nothing answers a ping. */
  #beat(): void {
    const { clock, weather } = this.#options
    if (!this.#ready) return
    if (weather.is('refused')) return this.#lose('closed')
    if (!weather.is('muteAll')) this.#quietSince = null
    else {
      this.#quietSince ??= clock.frame
      if (clock.frame - this.#quietSince >= PULSE_BOUND_MS) return this.#lose('no pong')
    }
    this.#after(BEAT_MS, () => this.#beat())
  }

  #subscribe(kind: LogsKind): void {
    const { settings, weather } = this.#options
    const addresses = this.#wanted
    if (addresses.length === 0) return
    this.#kinds.add(kind)
    this.#after(settings.latencyMs, () => {
      if (weather.is('muteAll')) return this.#after(ANSWER_BOUND_MS, () => this.#lose('not answered'))
      if (kind === 'pendingLogs' && weather.is('noPendingLogs')) {
        this.#kinds.delete(kind)
        this.#heard.delete(kind)
        if (this.#kinds.size === 0) this.#subscribe('logs')
        return
      }
      this.#heard.set(kind, addresses)
      this.#push({ type: 'live', of: kind, addresses }, settings.latencyMs, true)
    })
  }

  #push(signal: Signal, afterMs: number, ordered: boolean): void {
    const { clock } = this.#options
    const at = clock.frame + afterMs
    if (ordered) this.#lastAt = Math.max(this.#lastAt, at)
    this.#after((ordered ? this.#lastAt : at) - clock.frame, () =>
      this.#tell(signal.type === 'log' ? { ...signal, receivedAt: clock.now() } : signal),
    )
  }

  #lose(reason: string): void {
    const { clock, settings } = this.#options
    this.#release()
    if (clock.frame - this.#openedAt > STABLE_MS) this.#failures = 0
    const backoff = Math.min(BACKOFF_MOST_MS, BACKOFF_LEAST_MS * 2 ** Math.min(this.#failures, 16))
    this.#failures += 1
    const jitter = 0.5 + new Dice(settings.seed, 'backoff', this.#attempts).roll() / 2
    this.#tell({ type: 'down', reason, refused: false })
    this.#after(backoff * jitter, () => this.open())
  }

  #release(): void {
    for (const cancel of this.#timers) cancel()
    this.#timers.clear()
    this.#life.unsubscribe()
    this.#life = new Subscription()
    this.#heard.clear()
    this.#ready = false
    this.#lastAt = 0
  }

  #after(ms: number, act: () => void): void {
    const cancel = this.#options.clock.after(ms, () => {
      this.#timers.delete(cancel)
      act()
    })
    this.#timers.add(cancel)
  }
}
