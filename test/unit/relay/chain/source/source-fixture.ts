import { BehaviorSubject, map, type Observable, Subject, VirtualTimeScheduler } from 'rxjs'
import { onTestFinished } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
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
  readonly addresses?: Observable<readonly Hex[]>
  readonly filters?: Observable<readonly ReadFilter[]>
}

/** A source in virtual time, with a scripted chain and link. */
export const openSource = ({
  hasLink = true,
  addresses = new BehaviorSubject([apple]),
  filters = addresses.pipe(map((list) => [{ addresses: list }])),
}: SourceSettings = {}) => {
  const clock = new VirtualTimeScheduler(undefined, 0)
  const chain = new FakeChain(HEAD, clock)
  const signals = new Subject<LinkSignal>()
  const received: ChainEvent[] = []
  const openKeys = new FakeOpenKeys()
  let unreadable = 0
  const subscription = source({
    request: chain.request,
    confirmChain: chain.confirmChain,
    link: hasLink ? () => signals : null,
    leaveEndpoint: () => true,
    filters,
    openKeys,
    cursor: null,
    head: { pending: null, sealed: null, safe: null, finalized: null },
    pendingPollMs: POLL_MS,
    silenceMs: SILENCE_MS,
    finalityPollMs: 1e9,
    backfillLimitMs: 3_600_000,
    clock,
    log: () => {},
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
    openKeys,
    ofType,
    advance,
    emit,
    head,
    /** Number of messages and logs that could not be read. */
    unreadable: () => unreadable,
    /** The pre-confirmed logs. */
    pendingLogs: () => ofType('logs').flatMap(({ logs, via }) => logs.map(({ key }) => `${key} ${via}`)),
    sealedBlocks: () => ofType('sealed').flatMap(({ blocks }) => blocks),
    /** The addresses of each `subscribed` event. */
    subscribed: () => ofType('subscribed').map(({ filters }) => filters[0]?.addresses),
    statuses: () => ofType('status').map((status) => `${status.source} ${status.reason}`),
    /** Seals a block with this many logs and pushes its head. By default its logs were pushed before. */
    seal: async (logCount: number, { announced = true } = {}) => {
      const block = chain.head + 1
      for (let log = 0; log < logCount; log += 1) {
        const { index } = chain.addLog(block)
        if (announced) await emit(pendingLogSignal(pendingLog({ block, index })))
      }
      chain.head = block
      await emit(head())
      await advance(200)
    },
  }
}
