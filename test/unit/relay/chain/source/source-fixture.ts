import { BehaviorSubject, map, type Observable, ReplaySubject, Subject, VirtualTimeScheduler } from 'rxjs'
import { onTestFinished } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import type { Cursor } from '../../../../../src/relay/chain/blocks/sealed-block.ts'
import type { LinkInputs } from '../../../../../src/relay/chain/link/reconnecting-link.ts'
import type { LinkSignal } from '../../../../../src/relay/chain/link/subscription-socket.ts'
import type { ReadFilter } from '../../../../../src/relay/chain/logs/log-filter.ts'
import { type ChainEvent, source } from '../../../../../src/relay/chain/source/source.ts'
import { advanceClock } from '../../../../support/virtual-time.ts'
import { FakeChain } from '../fake-chain.ts'
import { apple, pendingLog } from '../node-json.ts'
import { FakeOpenKeys } from '../sealed/sealed-chain-fixture.ts'

export const HEAD = 1_000
export const POLL_MS = 200
export const SILENCE_MS = 3_000
export const MINUTE_MS = 60_000

export const downSignal: LinkSignal = { type: 'down', reason: 'closed with 1000', isRefused: false }
export const liveSignal = (
  addresses: readonly Hex[] = [apple],
  subscription: 'pendingLogs' | 'logs' = 'pendingLogs',
): Extract<LinkSignal, { type: 'live' }> => ({ type: 'live', subscription, filters: [{ addresses }], pushed: [{ addresses }] })
export const pendingLogSignal = (log: unknown, receivedAt = 0): LinkSignal => ({
  type: 'log',
  subscription: 'pendingLogs',
  log,
  receivedAt,
})
export const sealedLogSignal = (log: unknown): LinkSignal => ({ type: 'log', subscription: 'logs', log, receivedAt: 0 })

type SourceSettings = {
  readonly hasLink?: boolean
  readonly linkCount?: number
  readonly cursor?: Cursor | null
  readonly addresses?: Observable<readonly Hex[]>
  readonly filters?: Observable<readonly ReadFilter[]>
  readonly finalityPollMs?: number
  readonly leftOut?: readonly ReadFilter[]
  readonly outdated?: readonly number[]
}

/** A source in virtual time, with a scripted chain and link. */
export const openSource = ({
  hasLink = true,
  linkCount = 1,
  cursor = null,
  addresses = new BehaviorSubject([apple]),
  filters = addresses.pipe(map((list) => [{ addresses: list }])),
  finalityPollMs = 1e9,
  leftOut = [],
  outdated = [],
}: SourceSettings = {}) => {
  const clock = new VirtualTimeScheduler(undefined, 0)
  const chain = new FakeChain(HEAD, clock)
  const signals = new Subject<LinkSignal>()
  const lists = new ReplaySubject<readonly Hex[]>()
  const received: ChainEvent[] = []
  const warnings: string[] = []
  const probeTimes: number[] = []
  const reconnectTimes: number[] = []
  const leaveTimes: number[] = []
  const openKeys = new FakeOpenKeys()
  let unreadable = 0
  const link = (inputs: LinkInputs): Observable<LinkSignal> => {
    inputs.filters.pipe(map(([whole]) => whole?.addresses ?? [])).subscribe(lists)
    inputs.probes.subscribe(() => probeTimes.push(clock.now()))
    inputs.reconnects.subscribe(() => {
      reconnectTimes.push(clock.now())
      signals.next(downSignal)
    })
    return signals
  }
  const subscription = source({
    request: chain.request,
    confirmChain: chain.confirmChain,
    link: hasLink ? link : null,
    linkCount,
    leaveEndpoint: () => leaveTimes.push(clock.now()) > 0,
    filters,
    leftOut,
    outdated,
    openKeys,
    cursor,
    head: { pending: null, sealed: null, safe: null, finalized: null },
    pendingPollMs: POLL_MS,
    silenceMs: SILENCE_MS,
    finalityPollMs,
    backfillLimitMs: 3_600_000,
    clock,
    log: (kind) => warnings.push(kind),
    onUnreadable: (count) => {
      unreadable += count
    },
  }).subscribe((event) => received.push(event))
  onTestFinished(() => subscription.unsubscribe())
  const ofType = <Type extends ChainEvent['type']>(type: Type) =>
    received.filter((event): event is Extract<ChainEvent, { type: Type }> => event.type === type)
  const advance = (ms: number) => advanceClock(clock, ms)
  const emit = async (...items: LinkSignal[]) => {
    for (const signal of items) signals.next(signal)
    await advance(0)
  }
  const head = (block = chain.head): LinkSignal => ({ type: 'head', header: chain.headerOf(block) })
  return {
    chain,
    clock,
    received,
    warnings,
    lists,
    openKeys,
    /** When the link was triggered to retry its subscription. */
    probeTimes,
    /** When the source asked the link to connect to another node. */
    reconnectTimes,
    /** When it asked for other endpoints. */
    leaveTimes,
    ofType,
    advance,
    emit,
    head,
    /** Number of messages and logs that could not be read. */
    unreadable: () => unreadable,
    /** The pre-confirmed logs. */
    pendingLogs: () => ofType('logs').flatMap(({ logs, via }) => logs.map(({ key }) => `${key} ${via}`)),
    sealedBlocks: () => ofType('sealed').flatMap(({ blocks }) => blocks),
    statuses: () => ofType('status').map((status) => `${status.source} ${status.reason}`),
    /** Seals a block with this many logs. By default its logs and its head were pushed. */
    seal: async (logCount: number, { announced = true, pushed = true } = {}) => {
      const block = chain.head + 1
      for (let log = 0; log < logCount; log += 1) {
        const { index } = chain.addLog(block)
        if (announced) await emit(pendingLogSignal(pendingLog({ block, index })))
      }
      chain.head = block
      if (pushed) await emit(head())
      await advance(200)
    },
  }
}
