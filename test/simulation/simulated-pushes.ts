import { map, mergeMap, type Observable } from 'rxjs'
import { anchorBlock, Chain } from '../../src/devnet/chain/chain.ts'
import type { DevnetBlock, DevnetLog, EmittedLog } from '../../src/devnet/chain/chain-types.ts'
import { type Hex, toLowerHex, ZERO_WORD } from '../../src/lib/hex.ts'
import type { LinkSignal } from '../../src/relay/chain/link/subscription-socket.ts'
import type { ActiveFaults } from './active-faults.ts'
import { swapOf } from './laws/swaps.ts'
import { isOfManager, matchesFilter, type NodeFilter } from './node-filter.ts'
import { randomLog } from './random-transactions.ts'
import { SeededRandom } from './seeded-random.ts'
import type { ChainEvent, SimulatedBlock, SimulatedChain } from './simulated-chain.ts'
import { applyNodeTraits, falseTime, headerJson, type JsonObject } from './simulated-node-json.ts'
import { poolOf } from './simulated-pools.ts'
import { unlistedAddresses } from './simulated-tokens.ts'
import { emit, hex, simulatedTx } from './simulated-transactions.ts'
import type { Settings } from './simulation-settings.ts'
import type { VirtualClock } from './virtual-clock.ts'

type LogsKind = 'pendingLogs' | 'logs'
/** The subscriptions of a socket, one for each filter. */
export type Subscriptions = ReadonlyMap<LogsKind | 'newHeads', readonly NodeFilter[]>

type MatchesLog = (log: DevnetLog) => boolean

/** A signal on its way. It keeps its order unless the network reorders it. */
export type PushedSignal = { readonly signal: LinkSignal; readonly afterMs: number; readonly ordered: boolean }

/** How far ahead false pushes are. */
const FALSE_HEAD_BLOCKS = 86_000_000
const FALSE_LOG_BLOCKS = 50_000
const YEAR_S = 31_536_000

/** How much later a repeated push arrives at most. */
const MAX_ECHO_MS = 5_000

type Options = {
  readonly settings: Settings
  readonly chain: SimulatedChain
  readonly activeFaults: ActiveFaults
  readonly clock: Pick<VirtualClock, 'elapsedMs'>
}

/** What the node pushes over one socket, and what the network does to it. */
export class SimulatedPushes {
  readonly #options: Options
  #count = 0
  /** When the relay last connected. */
  connectedAt = 0
  /** When a log of the pool manager last reached a relay that asks for it and could not yet know its block as sealed. */
  managerPushedAt = Number.NEGATIVE_INFINITY
  /** The same for an event of a pool that is no swap. */
  otherEventPushedAt = Number.NEGATIVE_INFINITY

  constructor(options: Options) {
    this.#options = options
  }

  pushesFor(subscriptions: Subscriptions): Observable<PushedSignal> {
    this.connectedAt = this.#options.clock.elapsedMs
    return this.#options.chain.events.pipe(
      mergeMap((event) => this.#pushesOf(event, subscriptions)),
      mergeMap((push) => this.#withFaults(push)),
      map(({ afterMs, ...push }) => ({ ...push, afterMs: afterMs + this.#options.settings.latencyMs })),
    )
  }

  /** Called when a signal reaches a relay that asks for these logs. */
  onArrival(signal: LinkSignal, filters: readonly NodeFilter[]): void {
    const { settings, chain, clock } = this.#options
    if (signal.type !== 'log' || signal.subscription !== 'pendingLogs') return
    const knownHead = chain.headAt(clock.elapsedMs - settings.latencyMs - settings.sealedLagMs)
    for (const pushed of [signal.log].flat() as readonly (PushedLog | null)[]) {
      const content = contentOf(pushed)
      const matching =
        content && Number(pushed?.blockNumber) > knownHead ? filters.filter((filter) => matchesFilter(filter, content)) : []
      if (matching.some(isOfManager)) this.managerPushedAt = clock.elapsedMs
      if (content && matching.length > 0 && poolOf(content) && !swapOf({ content })) this.otherEventPushedAt = clock.elapsedMs
    }
  }

  #pushesOf(event: ChainEvent, subscriptions: Subscriptions): readonly PushedSignal[] {
    const { settings, activeFaults } = this.#options
    const push = (signal: LinkSignal, afterMs = settings.sealedLagMs): PushedSignal => ({ signal, afterMs, ordered: true })
    const all = settings.traits.includes('unfiltered')
    const matchersFor = (kind: LogsKind): readonly MatchesLog[] =>
      (subscriptions.get(kind) ?? []).map((filter) => (log) => all || matchesFilter(filter, log))
    const silent = activeFaults.isActive('noPendingPushes')
    if (event.type === 'shown') {
      if (silent || activeFaults.isActive('pendingPushesWhenSealed')) return []
      return matchersFor('pendingLogs')
        .flatMap((matches) => this.#shownSignals(event, matches))
        .map((signal) => push(signal, activeFaults.amount('pendingPushesLate') ?? 0))
    }
    const [removed, added] = event.type === 'sealed' ? [[], [event.block]] : [event.removed, event.added]
    const sealed = (kind: LogsKind) =>
      matchersFor(kind).flatMap((matches) =>
        added.flatMap(({ onChain }) => onChain.logs.filter(matches).map((log) => this.#signal(kind, log))),
      )
    const gone = matchersFor('logs').flatMap((matches) =>
      removed.flatMap(({ onChain }) => onChain.logs.filter(matches).map(asRemoved)),
    )
    const falselyRemoved = matchersFor('logs').flatMap((matches) => this.#falseRemovals(added, matches))
    return [
      ...(subscriptions.has('newHeads') && !activeFaults.isActive('noHeadPushes')
        ? added.map((block) => push({ type: 'head', header: headerJson(block.onChain) }))
        : []),
      ...(activeFaults.isActive('pendingPushesWhenSealed') && !silent ? sealed('pendingLogs').map((signal) => push(signal)) : []),
      ...(activeFaults.isActive('noLogPushes')
        ? []
        : [
            ...gone.map((log) => push(this.#signal('logs', log))),
            ...sealed('logs').map((signal) => push(signal)),
            ...falselyRemoved.map((log) => push(this.#signal('logs', log))),
          ]),
    ]
  }

  /** What is pre-confirmed now: each new log by itself, or all of them again. */
  #shownSignals({ pending, logs }: Extract<ChainEvent, { type: 'shown' }>, matches: MatchesLog): readonly LinkSignal[] {
    const { shape, traits } = this.#options.settings
    if (shape === 'one') {
      const signals = logs.filter(matches).map((log) => this.#signal('pendingLogs', log))
      return traits.includes('unsorted') ? signals.reverse() : signals
    }
    const all = pending.logs.filter(matches)
    const log = all.map((shown) => applyNodeTraits(traits, shown))
    return all.length === 0 ? [] : [{ type: 'log', subscription: 'pendingLogs', log, receivedAt: 0 }]
  }

  #signal(subscription: LogsKind, log: JsonObject): LinkSignal {
    return { type: 'log', subscription, log: applyNodeTraits(this.#options.settings.traits, log), receivedAt: 0 }
  }

  /** A node may report a log as removed that is not. */
  #falseRemovals(added: readonly SimulatedBlock[], matches: MatchesLog): readonly JsonObject[] {
    const { settings, activeFaults } = this.#options
    const percent = activeFaults.amount('falseRemovals')
    if (percent === null) return []
    return added.flatMap(({ number, onChain }) => {
      const isStruck = new SeededRandom(settings.seed, 'takenBack', number).chance(percent)
      return isStruck ? onChain.logs.filter(matches).slice(0, 1).map(asRemoved) : []
    })
  }

  #withFaults(push: PushedSignal): readonly PushedSignal[] {
    const { settings, activeFaults } = this.#options
    this.#count += 1
    const random = new SeededRandom(settings.seed, 'push', this.#count)
    const isStruck = (kind: Parameters<ActiveFaults['amount']>[0]) => random.chance(activeFaults.amount(kind) ?? 0)
    const lost = isStruck('pushesLost')
    const [malformed, repeated, shuffled] = [
      isStruck('unreadablePushes'),
      isStruck('pushesRepeated'),
      activeFaults.amount('pushesReordered'),
    ]
    const isLog = push.signal.type === 'log'
    const [garbage, foreign, badHead] = [isStruck('garbageLogs'), isStruck('unlistedLogs'), isStruck('badHeads')]
    const delayed = { ...push, afterMs: push.afterMs + (activeFaults.amount('pushesLate') ?? 0) }
    const shown =
      shuffled === null ? delayed : { ...delayed, afterMs: delayed.afterMs + Math.floor(random.next() * shuffled), ordered: false }
    const extraSignals: LinkSignal[] = []
    if (malformed) extraSignals.push({ type: 'unreadable', count: 1 })
    if (isLog && garbage) extraSignals.push(logSignal('pendingLogs', garbageLog(random)))
    if (isLog && foreign) extraSignals.push(logSignal('pendingLogs', this.#unlistedLog(random)))
    if (!isLog && badHead) extraSignals.push({ type: 'head', header: this.#badHeader(random) })
    if (!isLog && random.fork('false head').chance(activeFaults.amount('falseHeads') ?? 0))
      extraSignals.push({ type: 'head', header: this.#falseHeader(random.fork('false header')) })
    if (isLog && random.fork('log ahead').chance(activeFaults.amount('logsAhead') ?? 0))
      extraSignals.push(logSignal('pendingLogs', this.#logAhead(random.fork('far log'))))
    const isFalse = random.fork('false log time').chance(activeFaults.amount('falseLogTimes') ?? 0)
    const received = isFalse ? { ...shown, signal: withFalseTime(shown.signal, random.fork('later')) } : shown
    return [
      ...extraSignals.map((signal) => ({ ...push, signal })),
      ...(lost || malformed ? [] : [received]),
      ...(repeated ? [{ ...shown, afterMs: shown.afterMs + random.int(0, MAX_ECHO_MS), ordered: false }] : []),
    ]
  }

  #unlistedLog(random: SeededRandom): unknown {
    const { chain } = this.#options
    const content = randomLog(random, random.pick(unlistedAddresses))
    return strayLog(content, { block: chain.head + 1, tx: hex(64, random.int(1, 2 ** 30)) })
  }

  /** A log of a listed token in a block that will not come for long. */
  #logAhead(random: SeededRandom): unknown {
    const { chain } = this.#options
    const block = chain.head + FALSE_LOG_BLOCKS
    const tx = hex(64, 0xfa_0000_0000 + random.int(1, 2 ** 30))
    const timestamp = chain.pendingBlock.timestamp
    return strayLog(randomLog(random), { block, tx, timestamp })
  }

  /** A well-formed header that is not true: far ahead, or a year later than it is. */
  #falseHeader(random: SeededRandom): unknown {
    const { chain } = this.#options
    const { head } = chain.now
    const later = head.timestamp + YEAR_S
    return headerJson(
      random.pick<DevnetBlock>([
        { ...head, number: head.number + FALSE_HEAD_BLOCKS, hash: hex(64, 0xfa15e0000n + BigInt(head.number)) },
        { ...head, timestamp: later },
        {
          ...head,
          number: head.number + 1,
          parentHash: head.hash,
          hash: hex(64, 0xfa15e1000n + BigInt(head.number)),
          timestamp: later,
        },
      ]),
    )
  }

  #badHeader(random: SeededRandom): unknown {
    const { chain } = this.#options
    const real = headerJson(chain.now.head)
    return random.pick<unknown>([
      null,
      'head',
      {},
      { ...real, number: null },
      { ...real, number: '0xffffffffffff' },
      { ...real, number: '12' },
      { ...real, hash: null },
      { ...real, hash: '0x12' },
      { ...real, timestamp: 'now' },
    ])
  }
}

/** A log as it was pushed, maybe garbage. */
type PushedLog = { readonly [field in 'address' | 'topics' | 'data' | 'blockNumber']?: unknown }

/** The content of a pushed log; null for garbage. */
function contentOf(log: PushedLog | null): EmittedLog | null {
  if (!Array.isArray(log?.topics) || typeof log.address !== 'string' || typeof log.data !== 'string') return null
  return { address: toLowerHex(log.address as Hex), topics: log.topics, data: log.data as Hex }
}

/** The same logs, each with another false time of its block. */
function withFalseTime(signal: LinkSignal, random: SeededRandom): LinkSignal {
  if (signal.type !== 'log') return signal
  const later = ({ blockTimestamp, ...log }: JsonObject): JsonObject =>
    blockTimestamp === undefined ? log : { ...log, blockTimestamp: falseTime(blockTimestamp, random) }
  return { ...signal, log: Array.isArray(signal.log) ? signal.log.map(later) : later(signal.log as JsonObject) }
}

const asRemoved = (log: DevnetLog): DevnetLog => ({ ...log, removed: true })

/** A log that no block of the chain has. */
function strayLog(log: EmittedLog, place: { readonly block: number; readonly tx: Hex; readonly timestamp?: number }) {
  const { block, tx, timestamp = 0 } = place
  const parent = anchorBlock(block - 1, { timestamp }, ZERO_WORD, new Map())
  return { ...Chain.after(parent, { timestamp }).show([simulatedTx(tx, [emit(log)]).run]).pending.logs[0] }
}

const logSignal = (subscription: LogsKind, log: unknown): LinkSignal => ({ type: 'log', subscription, log, receivedAt: 0 })

/** A value that is no log, or a log with an unreadable field. */
function garbageLog(random: SeededRandom): unknown {
  const log = strayLog(randomLog(random), { block: 7, tx: hex(64, 7) })
  return random.pick<unknown>([
    null,
    42,
    'log',
    {},
    [],
    [null, {}],
    { ...log, topics: 'none' },
    { ...log, topics: Array.from({ length: 5 }, () => hex(64, 1)) },
    { ...log, data: '0x123' },
    { ...log, blockNumber: '0xzz' },
    { ...log, transactionHash: '0x12' },
    { ...log, logIndex: null },
    { ...log, address: '0x12' },
  ])
}
