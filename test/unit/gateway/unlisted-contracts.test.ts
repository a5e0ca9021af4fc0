import { finalize, ignoreElements, merge, NEVER, type Observable, Subject, tap } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { OpenKeys } from '../../../src/chain/sealed/block-logs.ts'
import type { ChainEvent } from '../../../src/chain/source/source.ts'
import { RpcError } from '../../../src/gateway/rpc-error.ts'
import { UnlistedContracts } from '../../../src/gateway/unlisted-contracts.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import { headEvent, pendingLogEvent, RecordingSubscriber, readNodeLog, sealedEvent } from './log-feed-fixture.ts'

const contract = (at: number): Hex => `0x${(at + 1).toString(16).padStart(40, '0')}`
const [one, two, three] = [contract(0), contract(1), contract(2)]

/** Unlisted contracts, and their source: what it was opened with, and how often. */
function openUnlisted() {
  const unlisted = new UnlistedContracts()
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
  const subscribe = (address: Hex) => {
    const subscriber = new RecordingSubscriber()
    unlisted.subscribers.add({ kind: 'pendingLogs', subscriber: subscriber, ...unlisted.logFeed.subscriptionStart }, { address })
    return subscriber
  }
  const emit = (...sent: ChainEvent[]) => {
    for (const event of sent) events.next(event)
  }
  return { unlisted, requestedAddresses, sourceState, subscribe, emit }
}

describe('unlisted contracts', () => {
  it('are followed by one source, only while a client subscribes', () => {
    const { unlisted, requestedAddresses, sourceState } = openUnlisted()
    expect(sourceState).toMatchObject({ open: 0, openedCount: 0 })
    const ends = [unlisted.watch([two]), unlisted.watch([one, two]), unlisted.watch([two])]
    expect(sourceState).toMatchObject({ open: 1, openedCount: 1, owed: unlisted.logFeed })
    expect(requestedAddresses).toEqual([[two], [one, two]])
    ends[1]?.()
    expect(requestedAddresses.at(-1)).toEqual([two])
    ends[0]?.()
    expect(sourceState.open).toBe(1)
    ends[2]?.()
    expect(sourceState).toMatchObject({ open: 0, openedCount: 1 })
    unlisted.watch([three])
    expect(sourceState).toMatchObject({ open: 1, openedCount: 2 })
    expect(requestedAddresses.at(-1)).toEqual([three])
  })

  it('are sent while a client subscribes, and their logs stay open until they are settled', () => {
    const { unlisted, sourceState, subscribe, emit } = openUnlisted()
    const end = unlisted.watch([one])
    const subscriber = subscribe(one)
    const log = readNodeLog({ block: 11, address: one })
    emit(headEvent(10), pendingLogEvent(log), pendingLogEvent(readNodeLog({ block: 11, index: 1, address: two })))
    expect(sourceState.owed?.at(11)).toEqual([{ key: log.key, address: one, tx: log.transactionHash }])
    emit(sealedEvent({ number: 11, addresses: [one] }))
    expect(subscriber.summaries).toEqual(['+11.0=1 pending', '-11.0=1 pending'])
    end()
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

  it('are at most 256 at once, for all clients', () => {
    const { unlisted, requestedAddresses } = openUnlisted()
    const all = Array.from({ length: 256 }, (_, at) => contract(at))
    const end = unlisted.watch(all)
    unlisted.watch([one])
    const refused = () => unlisted.watch([two, contract(256)])
    expect(refused).toThrow(RpcError)
    expect(refused).toThrow(expect.objectContaining({ code: -32005, message: expect.stringMatching(/come back later/) }))
    expect(requestedAddresses.at(-1)).toHaveLength(256)
    end()
    expect(requestedAddresses.at(-1)).toEqual([one])
    refused()
    expect(requestedAddresses.at(-1)).toEqual([one, two, contract(256)])
  })
})
