import { createHash } from 'node:crypto'
import { asapScheduler, type Subscription } from 'rxjs'
import { openIngest, type Ports } from '../../src/ingest/ingest.ts'
import type { Entry } from '../../src/tape/tape.ts'
import { lists } from '../../src/tokens/list-poller.ts'
import { Weather } from './active-faults.ts'
import { Builder } from './block-builder.ts'
import type { Fault } from './fault-table.ts'
import type { Broken, Scene } from './laws/law.ts'
import { Checker } from './laws/law-checker.ts'
import { Bounds } from './laws/resource-bounds.ts'
import { Place } from './restartable-tape.ts'
import { Dice } from './seeded-random.ts'
import { Chain } from './simulated-chain.ts'
import { linkModel } from './simulated-link.ts'
import { ListModel } from './simulated-list.ts'
import { NodeModel } from './simulated-node.ts'
import { Pushes } from './simulated-pushes.ts'
import { Way } from './simulated-rpc.ts'
import type { Settings } from './simulation-settings.ts'
import { slow } from './tape-wrappers.ts'
import { Clocks, NOON } from './virtual-clock.ts'

const REFRESH_MS = 15_000
const PENDING_POLL_MS = 200
const SILENCE_MS = 3_000
const FINALITY_POLL_MS = 10_000

/** Comes between the world and the relay: what a life is handed instead. A planted bug does. */
export type Between = (ports: Ports, world: World) => Ports

type Options = {
  readonly settings: Settings
  readonly faults: readonly Fault[]
  readonly between?: Between
  readonly say?: (at: number, kind: string, detail: unknown) => void
  readonly wrote?: (at: number, text: string) => void
}

/** Everything there is in one run: a chain, a node, a network, a list, a tape, and the real ingest between them. */
export class World {
  readonly settings: Settings
  readonly clocks = new Clocks()
  readonly weather: Weather
  readonly chain: Chain
  readonly list: ListModel
  readonly way: Way
  readonly broken: Broken[] = []
  readonly checker: Checker
  readonly bounds: Bounds
  readonly #options: Options
  readonly #pushes: Pushes
  readonly #place: Place
  readonly #hash = createHash('sha256')
  #life: Subscription | null = null
  lives = 0
  written = 0

  constructor(options: Options) {
    const { settings, faults } = options
    const clock = this.clocks.world
    this.#options = options
    this.settings = settings
    this.weather = new Weather(faults, clock)
    const world = { settings, clock, weather: this.weather }
    this.chain = new Chain(settings, clock)
    new Builder({ ...world, chain: this.chain })
    this.list = new ListModel({ ...world, chain: this.chain })
    this.way = new Way({ ...world, node: new NodeModel({ ...world, chain: this.chain }) })
    this.#pushes = new Pushes({ ...world, chain: this.chain })
    const scene: Scene = {
      ...world,
      chain: this.chain,
      list: this.list,
      tape: () => this.tape,
      broken: (law, said) => this.broken.push({ law, at: clock.frame, said }),
    }
    this.checker = new Checker(scene)
    this.bounds = new Bounds(scene, { way: this.way, relay: this.clocks.relay })
    const dice = new Dice(settings.seed, 'tape')
    const keeps = faults.some(({ target }) => target === 'relay')
    this.#place = new Place({ keeps, now: () => clock.now(), dice: () => dice.roll() })
    this.weather.onsets('kill').subscribe((fault) => this.#end(fault, () => this.#place.kill()))
    this.weather.onsets('leave').subscribe((fault) => this.#end(fault, () => this.#place.leave()))
    const second = () => {
      if (this.#life) {
        this.checker.moment()
        this.bounds.moment()
      }
      clock.after(1_000, second)
    }
    clock.after(0, () => this.#begin())
    clock.after(1_000, second)
  }

  /** The texts on the tape, without what differs from one tape to the next. */
  get trace(): string {
    return this.#hash.copy().digest('hex').slice(0, 16)
  }

  get tape() {
    return this.#place.tape
  }

  /** Ends the relay's last life, and leaves nothing behind. */
  close(): void {
    if (this.#life) this.#stop()
    this.#place.leave()
    this.#place.clear()
  }

  #begin(): void {
    const { between = (ports: Ports) => ports } = this.#options
    this.lives += 1
    this.checker.born()
    this.tape.follow((entries) => this.#wrote(entries))
    const life = openIngest(between(this.#ports(), this))
    life.then(
      (flow) => {
        this.#life = flow.subscribe({ error: (failure: unknown) => this.#failed(failure) })
      },
      (failure: unknown) => this.#failed(failure),
    )
  }

  #wrote(entries: readonly Entry[]): void {
    this.written += entries.length
    for (const { text } of entries) {
      this.#hash.update(text.replaceAll(`"${this.tape.epoch}.`, '"'))
      this.#options.wrote?.(this.clocks.world.frame, text)
    }
    this.checker.turn(entries)
  }

  #end({ for: absence }: Fault, close: () => void): void {
    const { world } = this.clocks
    // Whoever is gone already cannot go; who comes back last opens the door.
    world.after(absence, () => {
      if (this.#life || this.weather.is('kill') || this.weather.is('leave')) return
      this.#place.come()
      this.#begin()
    })
    if (!this.#life) return
    this.#stop()
    close()
  }

  #stop(): void {
    this.#life?.unsubscribe()
    this.#life = null
    this.bounds.left()
  }

  #failed(failure: unknown): void {
    const said = failure instanceof Error ? (failure.stack ?? failure.message) : String(failure)
    this.broken.push({ law: 'I12', at: this.clocks.world.frame, said: `the river ended: ${said}` })
  }

  #ports(): Ports {
    const { settings, weather } = this
    const { world: clock, relay } = this.clocks
    const dice = new Dice(settings.seed, 'relay', this.lives)
    const say = (kind: string, detail: unknown) => this.#options.say?.(clock.now() - NOON, kind, detail)
    const fetch = this.list.fetch
    return {
      tape: slow(this.tape, weather, clock),
      ask: this.way.ask,
      link: settings.hasLink ? linkModel({ settings, clock, weather, pushes: this.#pushes }) : null,
      overhear: (heard) => this.checker.wires.heard(heard),
      lists: (known) =>
        lists({
          ...{ fetch, refreshMs: REFRESH_MS, known, clock: relay, dice: () => dice.roll(), say },
          unreadable: () => {},
        }),
      clock: relay,
      turn: asapScheduler,
      settings: {
        pendingPollMs: PENDING_POLL_MS,
        silenceMs: SILENCE_MS,
        finalityPollMs: FINALITY_POLL_MS,
        backfillBoundMs: settings.backfillBoundMs,
        staleMs: settings.staleMs,
        feeds: [],
      },
      say,
      count: { repeated: () => {}, foreign: () => {}, unreadable: () => {} },
    }
  }
}
