import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import {
  BURST_BOUND,
  IN_FLIGHT_BOUND,
  INTERVAL_MS,
  limitedRequests,
  turnsInOrder,
} from '../../../../../src/relay/chain/rpc/limited-requests.ts'
import { advanceClock, waitOn } from '../../../../support/virtual-time.ts'

const mostPerSecond = (times: readonly number[]): number =>
  Math.max(...times.map((at) => times.filter((other) => other >= at - 1_000 && other <= at).length))

describe('limited requests', () => {
  /** A node that answers after this long, and everything that was asked of it. */
  const openNode = (latencyMs: number) => {
    const clock = new VirtualTimeScheduler(undefined, 1_000)
    const times: number[] = []
    let [inFlight, most] = [0, 0]
    const untilItsTurn = turnsInOrder(clock)
    const request = limitedRequests(async (_method, [block], signal) => {
      await untilItsTurn(signal)
      times.push(clock.now())
      inFlight += 1
      most = Math.max(most, inFlight)
      await waitOn(clock, latencyMs)
      inFlight -= 1
      if (block === '0xbad') throw new Error('no')
      return block
    })
    const controller = new AbortController()
    const ask = (block: `0x${string}` = '0x1') => request('eth_getBlockByNumber', [block, false], controller.signal)
    return { clock, times, ask, controller, most: () => most, advance: (ms: number) => advanceClock(clock, ms) }
  }
  const askTimes = (ask: () => Promise<unknown>, count: number) => Promise.allSettled(Array.from({ length: count }, () => ask()))

  it('are at most so many at once, in their order', async () => {
    const { ask, most, advance } = openNode(20)
    const blocks = Array.from({ length: 40 }, (_, number): `0x${string}` => `0x${number}`)
    const answered: unknown[] = []
    for (const block of blocks) void ask(block).then((answer) => answered.push(answer))
    await advance(1_000)
    expect(answered).toEqual(blocks)
    expect(most()).toBe(IN_FLIGHT_BOUND)
  })

  it('are at most so many in any second, of a node that answers at once', async () => {
    const { ask, times, advance } = openNode(0)
    const asked = askTimes(ask, 2_000)
    await advance(10_000)
    await asked
    expect(mostPerSecond(times)).toBe(BURST_BOUND + 1_000 / INTERVAL_MS)
    expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBe((2_000 - BURST_BOUND) * INTERVAL_MS)
  })

  it('begin without a delay after a pause', async () => {
    const { ask, times, clock, advance } = openNode(0)
    void askTimes(ask, 1_000)
    await advance(60_000)
    const pausedUntil = clock.now()
    void askTimes(ask, BURST_BOUND)
    await advance(0)
    expect(times.slice(1_000)).toEqual(Array(BURST_BOUND).fill(pausedUntil))
  })

  it('make room for others when they fail', async () => {
    const { ask, advance } = openNode(20)
    const failed = askTimes(() => ask('0xbad'), 25)
    const answered = askTimes(ask, 25)
    await advance(1_000)
    expect(new Set((await failed).map(({ status }) => status))).toEqual(new Set(['rejected']))
    expect(new Set((await answered).map(({ status }) => status))).toEqual(new Set(['fulfilled']))
  })

  it('are not sent once they are aborted, and leave nothing scheduled', async () => {
    const { ask, times, controller, clock, advance } = openNode(20)
    const asked = askTimes(ask, 500)
    await advance(200)
    const count = times.length
    controller.abort()
    await advance(1_000)
    expect(new Set((await asked).slice(count).map(({ status }) => status))).toEqual(new Set(['rejected']))
    expect(times.length).toBe(count)
    expect(clock.actions).toEqual([])
  })
})
