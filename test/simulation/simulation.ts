import { createHash } from 'node:crypto'
import type { Subscription } from 'rxjs'
import { type IngestInputs, openIngest } from '../../src/ingest/ingest.ts'
import type { Entry } from '../../src/tape/tape.ts'
import { pollList } from '../../src/tokens/list-poller.ts'
import { ActiveFaults } from './active-faults.ts'
import { BlockBuilder } from './block-builder.ts'
import type { Fault } from './fault-table.ts'
import type { LawContext, Violation } from './laws/law.ts'
import { LawChecker } from './laws/law-checker.ts'
import { ResourceBounds } from './laws/resource-bounds.ts'
import { RestartableTape } from './restartable-tape.ts'
import { SeededRandom } from './seeded-random.ts'
import { SimulatedChain } from './simulated-chain.ts'
import { simulatedLink } from './simulated-link.ts'
import { SimulatedList } from './simulated-list.ts'
import { SimulatedNode } from './simulated-node.ts'
import { SimulatedPushes } from './simulated-pushes.ts'
import { SimulatedRpc } from './simulated-rpc.ts'
import type { Settings } from './simulation-settings.ts'
import { slowTape } from './tape-wrappers.ts'
import { NOON, SimulationClocks } from './virtual-clock.ts'

const REFRESH_MS = 15_000
const PENDING_POLL_MS = 200
const SILENCE_MS = 3_000
const FINALITY_POLL_MS = 10_000

/** Replaces what one run of the relay receives. Planted bugs do so. */
export type ModifyInputs = (inputs: IngestInputs, simulation: Simulation) => IngestInputs

type SimulationOptions = {
  readonly settings: Settings
  readonly faults: readonly Fault[]
  readonly modifyInputs?: ModifyInputs
  readonly warn?: (at: number, kind: string, detail: unknown) => void
  readonly onWritten?: (at: number, text: string) => void
}

/** One simulation: a chain, a node, a network, a list, a tape, and the real ingest between them. */
export class Simulation {
  readonly settings: Settings
  readonly clocks = new SimulationClocks()
  readonly activeFaults: ActiveFaults
  readonly chain: SimulatedChain
  readonly list: SimulatedList
  readonly rpc: SimulatedRpc
  readonly violations: Violation[] = []
  readonly statuses: string[] = []
  readonly checker: LawChecker
  readonly resourceBounds: ResourceBounds
  readonly #options: SimulationOptions
  readonly #pushes: SimulatedPushes
  readonly #restartableTape: RestartableTape
  readonly #traceHash = createHash('sha256')
  #relayRun: Subscription | null = null
  runCount = 0
  writtenCount = 0

  constructor(options: SimulationOptions) {
    const { settings, faults } = options
    const clock = this.clocks.environment
    this.#options = options
    this.settings = settings
    this.activeFaults = new ActiveFaults(faults, clock)
    const environment = { settings, clock, activeFaults: this.activeFaults }
    this.chain = new SimulatedChain(settings, clock)
    new BlockBuilder({ ...environment, chain: this.chain })
    this.list = new SimulatedList({ ...environment, chain: this.chain })
    this.rpc = new SimulatedRpc({ ...environment, node: new SimulatedNode({ ...environment, chain: this.chain }) })
    this.#pushes = new SimulatedPushes({ ...environment, chain: this.chain })
    const context: LawContext = {
      ...environment,
      chain: this.chain,
      list: this.list,
      tape: () => this.tape,
      violation: (law, detail) => this.violations.push({ law, at: clock.elapsedMs, detail }),
    }
    this.checker = new LawChecker(context)
    this.resourceBounds = new ResourceBounds(context, { rpc: this.rpc, relay: this.clocks.relay })
    const random = new SeededRandom(settings.seed, 'tape')
    const survivesRestart = faults.some(({ target }) => target === 'relay')
    const bound = settings.tapeBound
    this.#restartableTape = new RestartableTape({ survivesRestart, bound, now: () => clock.now(), random: () => random.next() })
    this.activeFaults.onsets('relayKilled').subscribe((fault) => this.#interruptRelay(fault, () => this.#restartableTape.kill()))
    this.activeFaults.onsets('relayStopped').subscribe((fault) => this.#interruptRelay(fault, () => this.#restartableTape.close()))
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

  get tape() {
    return this.#restartableTape.tape
  }

  /** Ends the last run of the relay and removes its files. */
  close(): void {
    if (this.#relayRun) this.#stopRelay()
    this.#restartableTape.close()
    this.#restartableTape.removeFiles()
  }

  #startRelay(): void {
    const { modifyInputs = (inputs: IngestInputs) => inputs } = this.#options
    this.runCount += 1
    this.checker.onRelayStart()
    this.tape.follow((entries) => this.#onWritten(entries))
    const starting = openIngest(modifyInputs(this.#relayInputs(), this))
    starting.then(
      (updates) => {
        this.#relayRun = updates.subscribe({ error: (failure: unknown) => this.#onFailure(failure) })
      },
      (failure: unknown) => this.#onFailure(failure),
    )
  }

  #onWritten(entries: readonly Entry[]): void {
    this.writtenCount += entries.length
    for (const { text, update } of entries) {
      if (update.type === 'status') this.statuses.push(`${update.source} ${update.reason}`)
      this.#traceHash.update(text.replaceAll(`"${this.tape.epoch}.`, '"'))
      this.#options.onWritten?.(this.clocks.environment.elapsedMs, text)
    }
    this.checker.onBatch(entries)
  }

  #interruptRelay({ for: downtimeMs }: Fault, close: () => void): void {
    const { environment } = this.clocks
    // A second fault may hit while the relay is down. The one that ends last starts the relay.
    environment.runAfter(downtimeMs, () => {
      if (this.#relayRun || this.activeFaults.isActive('relayKilled') || this.activeFaults.isActive('relayStopped')) return
      this.#restartableTape.reopen()
      this.#startRelay()
    })
    if (!this.#relayRun) return
    this.#stopRelay()
    close()
  }

  #stopRelay(): void {
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
    const { environment: clock, relay } = this.clocks
    const random = new SeededRandom(settings.seed, 'relay', this.runCount)
    const warn = (kind: string, detail: unknown) => this.#options.warn?.(clock.now() - NOON, kind, detail)
    const fetch = this.list.fetch
    return {
      tape: slowTape(this.tape, activeFaults, clock),
      request: this.rpc.request,
      link: settings.hasLink ? simulatedLink({ settings, clock, activeFaults, pushes: this.#pushes }) : null,
      onChainEvent: (event) => this.checker.rpcNotifications.receive(event),
      lists: (knownTokens) =>
        pollList({
          ...{ fetch, refreshMs: REFRESH_MS, known: knownTokens, clock: relay, random: () => random.next(), warn },
          onUnreadable: () => {},
        }),
      clock: relay,
      wallTime: () => relay.now(),
      tick: () => Promise.resolve(),
      settings: {
        pendingPollMs: PENDING_POLL_MS,
        silenceMs: SILENCE_MS,
        finalityPollMs: FINALITY_POLL_MS,
        backfillBoundMs: settings.backfillBoundMs,
        staleMs: settings.staleMs,
        feeds: [],
      },
      warn,
      count: () => {},
    }
  }
}
