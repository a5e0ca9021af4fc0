import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { of, Subject } from 'rxjs'
import { expect, it } from 'vitest'
import type { Hex } from '../../src/lib/hex.ts'
import type { LinkSignal } from '../../src/relay/chain/link/subscription-socket.ts'
import type { RequestFn } from '../../src/relay/chain/rpc/endpoint-pool.ts'
import { UpstreamError } from '../../src/relay/chain/rpc/upstream-error.ts'
import { openIngest } from '../../src/relay/ingest/open-ingest.ts'
import { VirtualClock } from '../simulation/virtual-clock.ts'
import { openLocalTape } from '../support/local-tape.ts'
import { noQuotes } from '../support/no-quotes.ts'
import { isNightly } from '../support/test-length.ts'
import { waitOn } from '../support/virtual-time.ts'
import { blockHash, header, type NodeLog, pendingLog, sealedLog } from '../unit/relay/chain/node-json.ts'
import { APPLE, apple, parsedList, polledList } from '../unit/relay/tokens/stock-records.ts'

const HOUR_MS = 3_600_000
const HOURS = isNightly ? 24 : 6
const BLOCK_MS = 4_000
const FLASH_MS = 1_000
/** How many sealed blocks the node keeps. */
const KEPT_BLOCKS = 256
const FIRST = 1_000
/** The tape and the ledger are full before the first measurement of memory. */
const TAPE_MAX_MESSAGES = 5_000
const FULL_AFTER_HOURS = isNightly ? 4 : 2
/** What the hours after that may leave behind. Half of it is noise of the garbage collector. */
const GROWTH_BOUND_BYTES = 4 * 2 ** 20

const address = APPLE as Hex

/** A uniform chain: three flashblocks per block with one log each. The sealed blocks lack every seventh log. */
class DayTraffic {
  readonly signals = new Subject<LinkSignal>()
  readonly #clock: VirtualClock
  readonly #kept = new Map<number, readonly NodeLog[]>()
  head = FIRST
  dropped = 0
  flashes = 0

  constructor(clock: VirtualClock) {
    this.#clock = clock
    for (let number = FIRST - 10; number <= FIRST; number += 1) this.#kept.set(number, [])
    clock.runAfter(FLASH_MS, () => this.#flash(0))
  }

  readonly request: RequestFn = async (method, params, signal) => {
    await waitOn(this.#clock, 3, signal)
    const [query] = params as readonly [unknown]
    if (method === 'eth_getBlockByNumber') return this.#block(query)
    const { blockHash: hash, fromBlock, toBlock } = query as Record<string, string | undefined>
    if (hash === undefined) return this.#range(Number(fromBlock), toBlock === 'pending' ? this.head : Number(toBlock))
    const found = [...this.#kept.keys()].find((number) => blockHash(number) === hash)
    if (found === undefined) throw new UpstreamError('behind', `block not found: hash ${hash}`)
    return this.#kept.get(found)
  }

  #block(tag: unknown): unknown {
    if (tag === 'pending') return header(this.head + 1, { sealed: false })
    if (tag === 'safe' || tag === 'finalized') return header(this.head - (tag === 'safe' ? 3 : 8))
    const number = tag === 'latest' ? this.head : Number(tag)
    return number > this.head ? null : header(number, { transactions: 8 })
  }

  #range(from: number, to: number): readonly NodeLog[] {
    return [...this.#kept].flatMap(([number, logs]) => (number >= from && number <= to ? logs : []))
  }

  #flash(index: number): void {
    const block = this.head + 1
    this.#clock.runAfter(FLASH_MS, () => (index < 2 ? this.#flash(index + 1) : this.#seal()))
    this.flashes += 1
    this.#push(pendingLog({ block, index, address }))
  }

  #seal(): void {
    this.head += 1
    const first = this.flashes - 3
    const kept = [0, 1, 2].filter((index) => (first + index) % 7 !== 0)
    this.dropped += 3 - kept.length
    this.#kept.set(
      this.head,
      kept.map((index) => sealedLog({ block: this.head, index, address })),
    )
    this.#kept.delete(this.head - KEPT_BLOCKS)
    this.signals.next({ type: 'head', header: header(this.head) })
    this.#clock.runAfter(BLOCK_MS - 3 * FLASH_MS, () => this.#flash(0))
  }

  #push(log: NodeLog): void {
    this.signals.next({ type: 'log', subscription: 'pendingLogs', log, receivedAt: this.#clock.now() })
  }
}

const collectGarbage = (): number => {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  return process.memoryUsage().heapUsed
}

it(`memory stays flat over ${HOURS} hours, and every log gets its end`, async () => {
  const clock = new VirtualClock()
  const traffic = new DayTraffic(clock)
  const bounds = { tapeRetentionMs: HOURS * HOUR_MS, tapeMaxMessages: TAPE_MAX_MESSAGES }
  const tape = openLocalTape({ dataDir: ':memory:', ...bounds, now: () => clock.now(), random: () => 0.5 })
  const count = { published: 0, sealed: 0, retracted: 0, late: 0, statuses: 0 }
  tape.follow((entries) => {
    for (const { update } of entries) {
      if (update.type === 'transfer') count.published += 1
      if (update.type === 'transfer' && update.late) count.late += 1
      if (update.type === 'seal') count.sealed += update.count
      if (update.type === 'retract') count.retracted += 1
      if (update.type === 'status') count.statuses += 1
    }
  })
  const ingest = await openIngest({
    ...{ tape, writer: tape.writer },
    request: traffic.request,
    requestBatch: () => Promise.reject(new Error('no pools')),
    lists: () => of(polledList(parsedList(apple()))),
    ...{ link: () => traffic.signals, clock, wallTime: () => clock.now() },
    ...{ confirmChain: async () => {}, tick: async () => {}, onChainEvent: () => {}, log: () => {}, count: () => {} },
    settings: {
      ...{ pendingPollMs: 1_000, silenceMs: 3_000, finalityPollMs: 10_000, backfillLimitMs: HOURS * HOUR_MS },
      ...{ navStaleAfterMs: 365 * 24 * HOUR_MS, feeds: [], ...noQuotes },
    },
  })
  const subscription = ingest.subscribe()
  const filters = [{ addresses: [address] }]
  traffic.signals.next({ type: 'live', subscription: 'pendingLogs', filters, pushed: filters })
  let heapWhenFull = 0
  for (let hour = 1; hour <= HOURS; hour += 1) {
    while (clock.nextDueAt <= hour * HOUR_MS) {
      clock.step()
      await new Promise(setImmediate)
    }
    if (hour === FULL_AFTER_HOURS) heapWhenFull = collectGarbage()
  }
  const grownBytes = collectGarbage() - heapWhenFull
  subscription.unsubscribe()
  expect(traffic.head).toBeGreaterThan(FIRST + (HOURS * HOUR_MS) / BLOCK_MS / 2)
  expect(count.published).toBe(traffic.flashes)
  expect(count.late).toBe(0)
  expect(count.statuses).toBe(1)
  const open = traffic.flashes - count.sealed - count.retracted
  expect(open).toBeGreaterThanOrEqual(0)
  expect(open).toBeLessThanOrEqual(6)
  expect(Math.abs(count.retracted - traffic.dropped)).toBeLessThanOrEqual(3)
  expect(grownBytes).toBeLessThan(GROWTH_BOUND_BYTES)
  await tape.close()
})
