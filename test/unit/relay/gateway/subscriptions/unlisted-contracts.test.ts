import { finalize, ignoreElements, merge, NEVER, type Observable, Subject, tap, VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Hex } from '../../../../../src/protocol/fields.ts'
import type { OpenKeys } from '../../../../../src/relay/chain/sealed/block-logs.ts'
import type { ChainEvent } from '../../../../../src/relay/chain/source/source.ts'
import { RpcError } from '../../../../../src/relay/gateway/rpc-error.ts'
import { UnlistedContracts } from '../../../../../src/relay/gateway/subscriptions/unlisted-contracts.ts'
import { headEvent, pendingLogEvent, RecordingSubscriber, readNodeLog, sealedEvent } from './log-feed-fixture.ts'

const contract = (at: number): Hex => `0x${(at + 1).toString(16).padStart(40, '0')}`
const [one, two, three] = [contract(0), contract(1), contract(2)]

/** Moves the clock by this time. */
function advance(clock: VirtualTimeScheduler, ms: number): void {
  clock.maxFrames = clock.now() + ms
  clock.flush()
  clock.frame = clock.maxFrames
}

/** Unlisted contracts, and their source: what it was opened with, and how often. */
function openUnlisted() {
  const clock = new VirtualTimeScheduler()
  const unlisted = new UnlistedContracts(clock)
  const requestedAddresses: (readonly Hex[])[] = []
  const sourceState = { open: 0, openedCount: 0, owed: null as OpenKeys | null }
  const events = new Subject<ChainEvent>()
  const source = (addresses: Observable<readonly Hex[]>, owed: OpenKeys): Observable<ChainEvent> => {
    sourceState.open += 1
    sourceState.openedCount += 1
    sourceState.owed = owed
    const requests = addresses.pipe(
      tap((list) => requestedAddresses.push(list)),
      ignoreElements(),
    )
    return merge(requests, events, NEVER).pipe(finalize(() => (sourceState.open -= 1)))
  }
  const subscription = unlisted.events(source).subscribe((event) => unlisted.logFeed.receive(event))
  onTestFinished(() => subscription.unsubscribe())
  // The empty list counts as a change too.
  advance(clock, 1_000)
  const subscribe = (address: Hex) => {
    const subscriber = new RecordingSubscriber()
    unlisted.subscribers.add({ kind: 'pendingLogs', subscriber: subscriber, ...unlisted.logFeed.subscriptionStart }, { address })
    return subscriber
  }
  const emit = (...sent: ChainEvent[]) => {
    for (const event of sent) events.next(event)
  }
  return { clock, unlisted, requestedAddresses, sourceState, subscribe, emit }
}

describe('unlisted contracts', () => {
  it('are followed by one source while a client subscribes, and for a minute longer', () => {
    const { clock, unlisted, requestedAddresses, sourceState } = openUnlisted()
    expect(sourceState).toMatchObject({ open: 0, openedCount: 0 })
    const ends = [unlisted.watch([two]), unlisted.watch([one, two]), unlisted.watch([two])]
    expect(sourceState).toMatchObject({ open: 1, openedCount: 1, owed: unlisted.logFeed })
    advance(clock, 1_000)
    expect(requestedAddresses).toEqual([[two], [one, two]])
    for (const end of ends) end()
    advance(clock, 59_000)
    expect(sourceState.open).toBe(1)
    unlisted.watch([three])
    advance(clock, 2_000)
    expect(requestedAddresses.at(-1)).toEqual([three])
    expect(sourceState).toMatchObject({ open: 1, openedCount: 1 })
  })

  it('change upstream at most once a second, and not at all for a client that comes and goes', () => {
    const { clock, unlisted, requestedAddresses, sourceState } = openUnlisted()
    for (let round = 0; round < 500; round += 1) {
      unlisted.watch([contract(round % 50)])()
      advance(clock, 10)
    }
    expect(sourceState.openedCount).toBe(1)
    expect(requestedAddresses.length).toBeLessThanOrEqual(6)
    advance(clock, 61_000)
    expect(sourceState.open).toBe(0)
  })

  it('are at most 64 in the subscriptions of one address', () => {
    const { unlisted } = openUnlisted()
    const end = unlisted.watch(
      Array.from({ length: 64 }, (_, at) => contract(at)),
      '203.0.113.7',
    )
    const refused = () => unlisted.watch([one], '203.0.113.7')
    expect(refused).toThrow(expect.objectContaining({ code: -32005, message: expect.stringMatching(/more than 64/) }))
    unlisted.watch([one], '203.0.113.8')
    end()
    refused()
  })

  it('are sent while a client subscribes, and their logs stay open until they are settled', () => {
    const { clock, unlisted, sourceState, subscribe, emit } = openUnlisted()
    const end = unlisted.watch([one])
    const subscriber = subscribe(one)
    const log = readNodeLog({ block: 11, address: one })
    emit(headEvent(10), pendingLogEvent(log), pendingLogEvent(readNodeLog({ block: 11, index: 1, address: two })))
    expect(sourceState.owed?.at(11)).toEqual([{ key: log.key, address: one, tx: log.transactionHash }])
    emit(sealedEvent({ number: 11, addresses: [one] }))
    expect(subscriber.summaries).toEqual(['+11.0=1 pending', '-11.0=1 pending'])
    end()
    advance(clock, 61_000)
    expect(sourceState.open).toBe(0)
  })

  it('that are subscribed to again are sent from then on', () => {
    const { unlisted, subscribe, emit } = openUnlisted()
    unlisted.watch([one])()
    unlisted.watch([one])
    const cursor = { number: 20, hash: null }
    const subscriber = subscribe(one)
    emit(headEvent(20), { type: 'cursor', cursor, timestamp: null }, pendingLogEvent(readNodeLog({ block: 20, address: one })))
    emit(pendingLogEvent(readNodeLog({ block: 21, address: one })))
    expect(subscriber.summaries).toEqual(['+21.0=1 pending'])
  })

  it('are at most 256 at once, for all clients; those that linger make room', () => {
    const { clock, unlisted, requestedAddresses } = openUnlisted()
    const ends = [0, 1, 2, 3].map((client) => {
      const contracts = Array.from({ length: 64 }, (_, at) => contract(64 * client + at))
      return unlisted.watch(contracts, `203.0.113.${client}`)
    })
    unlisted.watch([one])
    const refused = () => unlisted.watch([contract(256)])
    expect(refused).toThrow(RpcError)
    expect(refused).toThrow(expect.objectContaining({ code: -32005, message: expect.stringMatching(/come back later/) }))
    advance(clock, 1_000)
    expect(requestedAddresses.at(-1)).toHaveLength(256)
    ends[3]?.()
    refused()
    advance(clock, 1_000)
    expect(requestedAddresses.at(-1)).toHaveLength(256)
    expect(requestedAddresses.at(-1)).toContain(contract(256))
  })
})
