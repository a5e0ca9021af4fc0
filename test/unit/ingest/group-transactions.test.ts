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
const holeEvent: UngroupedEvent = { type: 'hole', blocks: { from: 1, to: 2 }, reason: 'pruned', cursor: { number: 2, hash: null } }

/** Records the output: the log indexes of a transaction, the type of any other event. */
const openGrouping = () => {
  const clock = new VirtualTimeScheduler()
  const events = new Subject<UngroupedEvent>()
  const output: string[] = []
  events.pipe(groupTransactions(clock)).subscribe((event) => output.push(summarise(event)))
  const advance = (ms: number) => {
    clock.maxFrames = clock.frame + ms
    clock.flush()
    clock.frame = clock.maxFrames
  }
  const takeOutput = () => output.splice(0)
  return {
    clock,
    receive: (...batch: UngroupedEvent[]) => {
      for (const event of batch) events.next(event)
    },
    advance,
    takeOutput,
    end: () => events.complete(),
  }
}
const summarise = (event: IngestEvent): string =>
  event.type === 'transaction' ? event.logs.map(({ log }) => log.logIndex).join() : event.type

describe('the logs of one transaction', () => {
  it('stay together until a log of another transaction arrives', () => {
    const { receive, takeOutput } = openGrouping()
    receive(logEvent(0), logEvent(1), logEvent(2))
    expect(takeOutput()).toEqual([])
    receive(logEvent(3, B))
    expect(takeOutput()).toEqual(['0,1,2'])
  })

  it('wait at most 25 ms after the first', () => {
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

  it('have one timeout at a time, however many transactions arrive at once', () => {
    const { clock, receive, takeOutput } = openGrouping()
    receive(...Array.from({ length: 1_000 }, (_, index) => logEvent(index, txHash(5, index))))
    expect(takeOutput()).toHaveLength(999)
    expect(clock.actions).toHaveLength(1)
  })

  it('of a poll do not wait', () => {
    const { receive, advance, takeOutput } = openGrouping()
    receive(logEvent(0, A, 'poll'), logEvent(1, A, 'poll'))
    advance(1)
    expect(takeOutput()).toEqual(['0,1'])
  })

  it('go before an event that depends on them, and a head does not wait for them', () => {
    const { receive, takeOutput } = openGrouping()
    receive(logEvent(0), headEvent, logEvent(1), holeEvent)
    expect(takeOutput()).toEqual(['head', '0,1', 'hole'])
  })

  it('are never grouped across blocks', () => {
    const { receive, takeOutput } = openGrouping()
    receive(logEvent(0), logEvent(0, A, 'pendingLogs', 6))
    expect(takeOutput()).toEqual(['0'])
  })

  it('go out when the input ends', () => {
    const { receive, end, advance, takeOutput } = openGrouping()
    receive(logEvent(0), logEvent(1, B))
    end()
    advance(30)
    expect(takeOutput()).toEqual(['0', '1'])
  })
})
