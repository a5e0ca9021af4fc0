import { createHash } from 'node:crypto'
import type { SchedulerLike, Subscription } from 'rxjs'
import { openSteadyClock } from '../../src/lib/steady-clock.ts'
import { type IngestInputs, openIngest } from '../../src/relay/ingest/open-ingest.ts'
import type { Entry, Tape } from '../../src/relay/tape/tape.ts'
import { pollList } from '../../src/relay/tokens/list/list-poller.ts'
import { noQuotes } from '../support/no-quotes.ts'
import { ActiveFaults, faultsOfEndpoint } from './active-faults.ts'
import { BlockBuilder } from './block-builder.ts'
import type { Fault } from './fault-table.ts'
import { ClientStreams } from './laws/client-streams.ts'
import type { LawContext, Violation } from './laws/law.ts'
import { LawChecker } from './laws/law-checker.ts'
import { ResourceBounds } from './laws/resource-bounds.ts'
import { RelayRestarts } from './relay-restarts.ts'
import { RestartableTape } from './restartable-tape.ts'
import { SeededRandom } from './seeded-random.ts'
import { SimulatedChain } from './simulated-chain.ts'
import { feedsOf } from './simulated-feed.ts'
import { type SocketEndpoint, simulatedLink } from './simulated-link.ts'
import { SimulatedList } from './simulated-list.ts'
import { SimulatedNode } from './simulated-node.ts'
import { mainCurrencyOf, poolsOfRun, type SimulatedPool } from './simulated-pools.ts'
import { SimulatedPushes } from './simulated-pushes.ts'
import { type SimulatedEndpoint, SimulatedRpc } from './simulated-rpc.ts'
import type { Settings } from './simulation-settings.ts'
import { slowWriter, wrap } from './tape-wrappers.ts'
import { NOON, SimulationClocks } from './virtual-clock.ts'

const REFRESH_MS = 15_000
const HOUR_MS = 3_600_000
/** By how much the wall clock is wrong. */
const CLOCK_STEPS_H = [-1, 1, 25]
const PENDING_POLL_MS = 200
const SILENCE_MS = 3_000
const FINALITY_POLL_MS = 10_000

type Endpoint = SimulatedEndpoint & SocketEndpoint

/** After these the tape may hold less than was given. */
const lossyKinds = ['powerLost', 'backupRestored'] as const

/** Replaces what one run of the relay receives. Planted bugs do so. */
export type ModifyInputs = (inputs: IngestInputs, simulation: Simulation) => IngestInputs

/** The source and reason of a published status, and how many trades were published until the next one: all, and those of managers. */
export type SourcePeriod = { readonly status: string; trades: number; managerTrades: number }

type SimulationOptions = {
  readonly settings: Settings
  readonly faults: readonly Fault[]
  readonly modifyInputs?: ModifyInputs
  readonly log?: (at: number, kind: string, detail: unknown) => void
  readonly onWritten?: (at: number, text: string) => void
}

/** One simulation: a chain, a node, a network, a list, a tape, and the real ingest between them. */
export class Simulation {
  readonly settings: Settings
  readonly clocks: SimulationClocks
  readonly activeFaults: ActiveFaults
  readonly chain: SimulatedChain
  readonly list: SimulatedList
  readonly rpc: SimulatedRpc
  readonly violations: Violation[] = []
  readonly statuses: SourcePeriod[] = []
  readonly checker: LawChecker
  readonly resourceBounds: ResourceBounds
  readonly client: ClientStreams | null
  readonly #options: SimulationOptions
  readonly #endpoints: readonly [Endpoint, ...Endpoint[]]
  readonly #restartableTape: RestartableTape
  readonly #traceHash = createHash('sha256')
  #relayRun: Subscription | null = null
  /** The tape as its readers see it: a planted bug may be in it. */
  #judgedTape: Tape
  runCount = 0
  #lastWritten = 0
  writtenCount = 0

  constructor(options: SimulationOptions) {
    const { settings, faults } = options
    this.clocks = new SimulationClocks(NOON + 1_000 * (settings.firstSecond ?? 0))
    const clock = this.clocks.environment
    this.#options = options
    this.settings = settings
    this.activeFaults = new ActiveFaults(faults, clock)
    const environment = { settings, clock, activeFaults: this.activeFaults }
    this.chain = new SimulatedChain(settings, clock)
    new BlockBuilder({ ...environment, chain: this.chain })
    this.list = new SimulatedList({ ...environment, chain: this.chain })
    const endpoint = (nth: number): Endpoint => {
      const own = {
        ...environment,
        chain: this.chain,
        activeFaults: new ActiveFaults(faultsOfEndpoint(faults, settings, nth), clock),
      }
      return { activeFaults: own.activeFaults, node: new SimulatedNode(own), pushes: new SimulatedPushes(own) }
    }
    this.#endpoints = [endpoint(0), ...Array.from({ length: (settings.endpoints ?? 1) - 1 }, (_, nth) => endpoint(nth + 1))]
    this.rpc = new SimulatedRpc({ settings, clock, endpoints: this.#endpoints })
    const context: LawContext = {
      ...environment,
      chain: this.chain,
      list: this.list,
      tape: () => this.#judgedTape,
      namedPools: () => this.#namedPools,
      connectedAt: () => Math.max(...this.#endpoints.map(({ pushes }) => pushes.connectedAt)),
      managerPushedAt: () => Math.max(...this.#endpoints.map(({ pushes }) => pushes.managerPushedAt)),
      otherEventPushedAt: () => Math.max(...this.#endpoints.map(({ pushes }) => pushes.otherEventPushedAt)),
      wasOfUnnamedChainWithin: (ms) => this.rpc.wasOfUnnamedChainWithin(ms),
      violation: (law, detail) => this.violations.push({ law, at: clock.elapsedMs, detail }),
    }
    this.checker = new LawChecker(context)
    this.resourceBounds = new ResourceBounds(context, { rpc: this.rpc, relay: this.clocks.relay })
    this.client = settings.client ? new ClientStreams({ context, clock, settings: settings.client }) : null
    const random = new SeededRandom(settings.seed, 'tape')
    const survivesRestart = faults.some(({ target }) => target === 'relay')
    const bound = settings.tapeBound
    this.#restartableTape = new RestartableTape({
      ...{ survivesRestart, bound, wallTime: () => this.numberingTime(), random: () => random.next() },
      openClock: () => openSteadyClock(this.#wallTime, () => this.clocks.relay.elapsedMs),
    })
    this.#judgedTape = this.tape
    new RelayRestarts({
      ...{ clock, activeFaults: this.activeFaults, tape: this.#restartableTape },
      ...{
        isRunning: () => this.#relayRun !== null,
        start: () => this.#startRelay(),
        stop: (isGraceful) => this.#stopRelay(isGraceful),
      },
    })
    const everySecond = () => {
      if (this.#relayRun) {
        this.checker.onTick()
        this.resourceBounds.onTick()
      }
      clock.runAfter(1_000, everySecond)
    }
    clock.runAfter(0, () => this.#startRelay())
    clock.runAfter(1_000, everySecond)
  }

  /** A digest of everything on the tape, without what differs from one tape to the next. */
  get trace(): string {
    return this.#traceHash.copy().digest('hex').slice(0, 16)
  }

  /** What the clock on the wall of the relay's machine shows. */
  readonly #wallTime = (): number => {
    const step = this.activeFaults.amount('clockStepped')
    return this.clocks.relay.now() + (step === null ? 0 : (CLOCK_STEPS_H[step] ?? 0) * HOUR_MS)
  }

  /** The wall clock as the tape reads it. */
  numberingTime = this.#wallTime

  /** The pools that the settings of the current run name. */
  get #namedPools(): readonly SimulatedPool[] {
    return poolsOfRun(this.settings, this.runCount)
  }

  get tape() {
    return this.#restartableTape.tape
  }

  get clientCounts(): ClientStreams['counts'] | null {
    return this.client?.counts ?? null
  }

  /** The time is over: the laws about the whole run are checked. */
  onEnd(recovered: boolean): void {
    this.checker.onEnd(recovered)
    this.client?.onEnd()
  }

  /** Ends the last run of the relay and removes its files. */
  close(): void {
    if (this.#relayRun) this.#stopRelay(true)
    this.#restartableTape.close()
    this.#restartableTape.removeFiles()
  }

  #startRelay(): void {
    const { modifyInputs = (inputs: IngestInputs) => inputs } = this.#options
    this.runCount += 1
    const inputs = modifyInputs(this.#relayInputs(), this)
    const { runs, find } = inputs.tape
    this.#judgedTape = wrap<Tape>(this.tape, { runs, find })
    if (lossyKinds.some((kind) => this.activeFaults.occurs(kind))) this.#findLostEnd()
    this.checker.onRelayStart()
    this.tape.follow((entries) => this.#onWritten(entries))
    this.client?.onRelayStart(this.tape)
    const starting = openIngest(inputs)
    starting.then(
      (updates) => {
        this.#relayRun = updates.subscribe({ error: (failure: unknown) => this.#onFailure(failure) })
      },
      (failure: unknown) => this.#onFailure(failure),
    )
  }

  #onWritten(entries: readonly Entry[]): void {
    this.writtenCount += entries.length
    this.#lastWritten = entries.at(-1)?.seq ?? this.#lastWritten
    for (const { text, update } of entries) {
      if (update.type === 'status') this.statuses.push({ status: `${update.source} ${update.reason}`, trades: 0, managerTrades: 0 })
      const period = this.statuses.at(-1)
      if (update.type === 'trade' && period) {
        period.trades += 1
        if (update.venue.kind === 'uniswap_v4') period.managerTrades += 1
      }
      this.#traceHash.update(text.replaceAll(`"${this.tape.epoch}.`, '"'))
      this.#options.onWritten?.(this.clocks.environment.elapsedMs, text)
    }
    this.checker.onBatch(entries)
  }

  /** Tells the laws how much of what was written the store still knows: what it evicted is not lost. */
  #findLostEnd(): void {
    const storedEnd = this.tape.end()
    if (storedEnd < this.#lastWritten) this.checker.onTapeLost(storedEnd)
    this.#lastWritten = storedEnd
  }

  #stopRelay(isGraceful: boolean): void {
    this.client?.onRelayStop(isGraceful)
    this.#relayRun?.unsubscribe()
    this.#relayRun = null
    this.resourceBounds.onRelayStopped()
  }

  #onFailure(failure: unknown): void {
    const detail = failure instanceof Error ? (failure.stack ?? failure.message) : String(failure)
    this.violations.push({ law: 'I12', at: this.clocks.environment.elapsedMs, detail: `the ingest failed: ${detail}` })
  }

  #relayInputs(): IngestInputs {
    const { settings, activeFaults } = this
    const { environment, relay } = this.clocks
    const { now } = this.#restartableTape
    const clock: SchedulerLike = { now, schedule: relay.schedule.bind(relay) as SchedulerLike['schedule'] }
    const random = new SeededRandom(settings.seed, 'relay', this.runCount)
    const clientRandom = new SeededRandom(settings.seed, 'client', this.runCount)
    const log = (kind: string, detail: unknown) => this.#options.log?.(Math.floor(environment.elapsedMs), kind, detail)
    const fetch = this.list.fetch
    return {
      tape: this.tape,
      writer: slowWriter(this.tape.writer, activeFaults, environment),
      ...this.rpc.clientFor({ now, random: () => clientRandom.next(), log }),
      linkCount: this.#endpoints.length,
      link: settings.hasLink ? simulatedLink({ settings, clock: environment, endpoints: this.#endpoints }) : null,
      onChainEvent: (event) => this.checker.receive(event),
      lists: (knownTokens) =>
        pollList({
          ...{ fetch, stocksRefreshMs: REFRESH_MS, known: knownTokens, clock, random: () => random.next(), log },
          onUnreadable: () => {},
        }),
      clock,
      wallTime: this.#wallTime,
      tick: () => Promise.resolve(),
      settings: {
        pendingPollMs: PENDING_POLL_MS,
        silenceMs: SILENCE_MS,
        finalityPollMs: FINALITY_POLL_MS,
        backfillLimitMs: settings.backfillBoundMs,
        navStaleAfterMs: settings.staleMs,
        feeds: feedsOf(activeFaults),
        ...noQuotes,
        pools: this.#namedPools,
        mainCurrency: mainCurrencyOf(settings),
      },
      log,
      count: () => {},
    }
  }
}
