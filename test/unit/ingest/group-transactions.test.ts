import { Subject, VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { groupTransactions, type UngroupedEvent } from '../../../src/ingest/group-transactions.ts'
import type { IngestEvent } from '../../../src/ingest/reducer.ts'
import { txHash } from '../chain/node-json.ts'
import { type LogPosition, sourceLogEvent } from './reducer-fixture.ts'

const [A, B] = [txHash(5, 1), txHash(5, 2)]
const logEvent = (index: number, tx = A, via: 'pendingLogs' | 'poll' = 'pendingLogs', block = 5) => ({
  ...sourceLogEvent({ block, index, tx } satisfies LogPosition),
  via,
})
const headEvent: UngroupedEvent = { type: 'head', sealed: 4, pending: 5, timestamp: null }
const holeEvent: UngroupedEvent = {
  type: 'hole',
  blocks: { from: 1, to: 2 },
  reason: 'pruned',
  cursor: { number: 2, hash: null },
}

/** What comes out of it: a transaction by the places of its logs, anything else by its type. */
const openGrouping = () => {
  const clock = new VirtualTimeScheduler()
  const events = new Subject<UngroupedEvent>()
  const output: string[] = []
  events.pipe(groupTransactions(clock)).subscribe((arrival) => output.push(summarise(arrival)))
  const advance = (ms: number) => {
    clock.maxFrames = clock.frame + ms
    clock.flush()
    clock.frame = clock.maxFrames
  }
  const takeOutput = () => output.splice(0)
  return {
    clock,
    receive: (...all: UngroupedEvent[]) => {
      for (const one of all) events.next(one)
    },
    advance,
    takeOutput,
    end: () => events.complete(),
  }
}
const summarise = (arrival: IngestEvent): string =>
  arrival.type === 'transaction' ? arrival.logs.map(({ log }) => log.logIndex).join() : arrival.type

describe('the logs of one transaction', () => {
  it('are kept together until one of another comes', () => {
    const { receive, takeOutput } = openGrouping()
    receive(logEvent(0), logEvent(1), logEvent(2))
    expect(takeOutput()).toEqual([])
    receive(logEvent(3, B))
    expect(takeOutput()).toEqual(['0,1,2'])
  })

  it('wait for no more than a moment', () => {
    const { receive, advance, takeOutput } = openGrouping()
    receive(logEvent(0))
    advance(24)
    receive(logEvent(1))
    expect(takeOutput()).toEqual([])
    advance(2)
    expect(takeOutput()).toEqual(['0,1'])
    receive(logEvent(2))
    advance(24)
    expect(takeOutput()).toEqual([])
    advance(2)
    expect(takeOutput()).toEqual(['2'])
  })

  it('have one wait at a time, however many transactions come at once', () => {
    const { clock, receive, takeOutput } = openGrouping()
    receive(...Array.from({ length: 1_000 }, (_, index) => logEvent(index, txHash(5, index))))
    expect(takeOutput()).toHaveLength(999)
    expect(clock.actions).toHaveLength(1)
  })

  it('that a poll brought are whole as they come', () => {
    const { receive, advance, takeOutput } = openGrouping()
    receive(logEvent(0, A, 'poll'), logEvent(1, A, 'poll'))
    advance(1)
    expect(takeOutput()).toEqual(['0,1'])
  })

  it('are told before whatever may end them, and a head does not wait for them', () => {
    const { receive, takeOutput } = openGrouping()
    receive(logEvent(0), headEvent, logEvent(1), holeEvent)
    expect(takeOutput()).toEqual(['head', '0,1', 'hole'])
  })

  it('are of one block', () => {
    const { receive, takeOutput } = openGrouping()
    receive(logEvent(0), logEvent(0, A, 'pendingLogs', 6))
    expect(takeOutput()).toEqual(['0'])
  })

  it('are told when nothing comes any more', () => {
    const { receive, end, advance, takeOutput } = openGrouping()
    receive(logEvent(0), logEvent(1, B))
    end()
    advance(30)
    expect(takeOutput()).toEqual(['0', '1'])
  })
})
