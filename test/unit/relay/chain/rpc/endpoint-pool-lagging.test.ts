import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { openEndpoint, openEndpointPool, resultResponder } from './fake-endpoint.ts'

const hex = (number: number) => `0x${number.toString(16)}`

/** Two endpoints with these heads, and a client that the test makes compare them. */
const openTwo = async (heads: readonly [first: number, second: number]) => {
  const nodes = [await openEndpoint(resultResponder(hex(heads[0]))), await openEndpoint(resultResponder(hex(heads[1])))] as const
  const client = openEndpointPool(nodes.map(({ url }) => url))
  const { clock, warnings, blockNumber } = client
  const compare = async () => {
    const asked = nodes.map(({ requests }) => requests.length)
    clock.now += 10_000
    await blockNumber()
    // Each endpoint is asked for its head beside the request.
    while (nodes.some(({ requests }, index) => requests.length <= (asked[index] ?? 0))) await yieldToEventLoop()
  }
  const compareUntilWarned = async (count: number) => {
    await compare()
    while (warnings.length < count) await yieldToEventLoop()
  }
  return { ...client, nodes, compare, compareUntilWarned }
}

describe('of two endpoints', () => {
  it('the one that lags by more than five blocks is asked last for a minute, and for as long as it lags', async () => {
    const { nodes, clock, warnings, blockNumber, compare, compareUntilWarned } = await openTwo([100, 106])
    expect(await blockNumber()).toBe(hex(100))
    await compareUntilWarned(1)
    for (const head of [101, 100, 101]) {
      nodes[0].respond = resultResponder(hex(head))
      await compare()
      expect(await blockNumber()).toBe(hex(106))
    }
    nodes[1].respond = resultResponder(hex(110))
    await compare()
    nodes[0].respond = resultResponder(hex(110))
    clock.now += 50_000
    expect(await blockNumber()).toBe(hex(110))
    const answered = nodes[0].requests.length
    clock.now += 10_000
    expect(await blockNumber()).toBe(hex(110))
    expect(nodes[0].requests.length).toBeGreaterThan(answered)
    const endpoint = new URL(nodes[0].url).host
    expect(warnings).toEqual([{ kind: 'upstream_aside', detail: { endpoint, reason: 'it lags', head: 100, newest: 106 } }])
  })

  it('the first is asked last for a minute once it is left, and longer each time', async () => {
    const { clock, rpc, blockNumber, warnings, nodes } = await openTwo([100, 101])
    const askedFirst: unknown[] = []
    for (const minutes of [1, 2, 4]) {
      // A head that stands still behind the other is a reason of its own.
      nodes[0].respond = resultResponder(hex(100 * minutes))
      nodes[1].respond = resultResponder(hex(100 * minutes + 1))
      clock.now += 5_000
      rpc.leaveEndpoint()
      clock.now += minutes * 60_000 - 1
      askedFirst.push(await blockNumber())
      clock.now += 1
      askedFirst.push(await blockNumber())
    }
    expect(askedFirst).toEqual([101, 100, 201, 200, 401, 400].map(hex))
    expect(warnings.map(({ kind }) => kind)).toEqual(Array.from({ length: 3 }, () => 'upstream_aside'))
  })

  it('both are asked in turn while neither does well', async () => {
    const { clock, rpc, blockNumber } = await openTwo([100, 101])
    const answers: unknown[] = []
    for (let minute = 0; minute < 3; minute += 1) {
      rpc.leaveEndpoint()
      answers.push(await blockNumber())
      clock.now += 30_000
    }
    expect(answers).toEqual([hex(101), hex(100), hex(101)])
  })

  it('neither is behind by a few blocks while its head moves on', async () => {
    const { nodes, warnings, blockNumber, compare } = await openTwo([100, 105])
    for (const moved of [1, 2, 3]) {
      await compare()
      for (const [node, head] of [[nodes[0], 100] as const, [nodes[1], 105] as const])
        node.respond = resultResponder(hex(head + moved))
    }
    expect(await blockNumber()).toBe(hex(103))
    expect(warnings).toEqual([])
  })

  it('the second is not asked for its head within ten seconds', async () => {
    const { nodes, clock, blockNumber } = await openTwo([100, 200])
    clock.now += 9_999
    for (const _ of [1, 2, 3]) await blockNumber()
    expect(nodes[1].requests).toEqual([])
  })
})
