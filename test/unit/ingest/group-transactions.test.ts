import { Subject, VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { together, type Unsorted } from '../../../src/ingest/group-transactions.ts'
import type { Arrival } from '../../../src/ingest/reducer.ts'
import { txHash } from '../chain/node-json.ts'
import { logSent, type Place } from './reducer-fixture.ts'

const [A, B] = [txHash(5, 1), txHash(5, 2)]
const sent = (index: number, tx = A, via: 'pendingLogs' | 'poll' = 'pendingLogs', block = 5) => ({
  ...logSent({ block, index, tx } satisfies Place),
  via,
})
const head: Unsorted = { type: 'head', sealed: 4, pending: 5, timestamp: null }
const hole: Unsorted = { type: 'hole', blocks: { from: 1, to: 2 }, reason: 'pruned', cursor: { number: 2, hash: null } }

/** What comes out of it: a transaction by the places of its logs, anything else by its type. */
const open = () => {
  const clock = new VirtualTimeScheduler()
  const heard = new Subject<Unsorted>()
  const told: string[] = []
  heard.pipe(together(clock)).subscribe((arrival) => told.push(short(arrival)))
  const pass = (ms: number) => {
    clock.maxFrames = clock.frame + ms
    clock.flush()
    clock.frame = clock.maxFrames
  }
  const take = () => told.splice(0)
  return {
    clock,
    hear: (...all: Unsorted[]) => {
      for (const one of all) heard.next(one)
    },
    pass,
    take,
    end: () => heard.complete(),
  }
}
const short = (arrival: Arrival): string =>
  arrival.type === 'transaction' ? arrival.logs.map(({ log }) => log.logIndex).join() : arrival.type

describe('the logs of one transaction', () => {
  it('are kept together until one of another comes', () => {
    const { hear, take } = open()
    hear(sent(0), sent(1), sent(2))
    expect(take()).toEqual([])
    hear(sent(3, B))
    expect(take()).toEqual(['0,1,2'])
  })

  it('wait for no more than a moment', () => {
    const { hear, pass, take } = open()
    hear(sent(0))
    pass(24)
    hear(sent(1))
    expect(take()).toEqual([])
    pass(2)
    expect(take()).toEqual(['0,1'])
    hear(sent(2))
    pass(24)
    expect(take()).toEqual([])
    pass(2)
    expect(take()).toEqual(['2'])
  })

  it('have one wait at a time, however many transactions come at once', () => {
    const { clock, hear, take } = open()
    hear(...Array.from({ length: 1_000 }, (_, index) => sent(index, txHash(5, index))))
    expect(take()).toHaveLength(999)
    expect(clock.actions).toHaveLength(1)
  })

  it('that a poll brought are whole as they come', () => {
    const { hear, pass, take } = open()
    hear(sent(0, A, 'poll'), sent(1, A, 'poll'))
    pass(1)
    expect(take()).toEqual(['0,1'])
  })

  it('are told before whatever may end them, and a head does not wait for them', () => {
    const { hear, take } = open()
    hear(sent(0), head, sent(1), hole)
    expect(take()).toEqual(['head', '0,1', 'hole'])
  })

  it('are of one block', () => {
    const { hear, take } = open()
    hear(sent(0), sent(0, A, 'pendingLogs', 6))
    expect(take()).toEqual(['0'])
  })

  it('are told when nothing comes any more', () => {
    const { hear, end, pass, take } = open()
    hear(sent(0), sent(1, B))
    end()
    pass(30)
    expect(take()).toEqual(['0', '1'])
  })
})
