import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { openDevnet, openWorld, relayOn } from '../../support/test-stack.ts'
import { generous, inShort, move, RpcEar, type Subscribed } from './rpc-test-client.ts'

/** What was told, in a word each. */
const told = ({ logs }: Subscribed) => logs.map(inShort)
const numeric = (one: string, other: string) =>
  Math.abs(Number.parseInt(one, 10)) - Math.abs(Number.parseInt(other, 10))

describe('an upstream that says things more than once', () => {
  it.each(['one', 'all'] as const)('and in the shape of %s is heard as if it said each once', async (shape) => {
    const world = await openWorld(generous)
    const { devnet } = world
    const ear = await RpcEar.open(world)
    const [all, logs] = [await ear.subscribe('pendingLogs'), await ear.subscribe('logs')]
    Object.assign(devnet.weather, { shape, repeats: 3 })
    move(world, 1, 2)
    move(world, 3)
    devnet.seal()
    move(world, 4)
    devnet.seal()
    await logs.hear(4)
    await ear.settled()
    expect(told(all)).toEqual(['+1', '+2', '+3', '+4'])
    expect(told(logs)).toEqual(['+1 sealed', '+2 sealed', '+3 sealed', '+4 sealed'])
  })

  it('and in another order than they stand in is passed on as it speaks', async () => {
    const world = await openWorld(generous)
    const ear = await RpcEar.open(world)
    const all = await ear.subscribe('pendingLogs')
    world.devnet.weather.shuffle = true
    move(world, 1, 2, 3, 4, 5, 6)
    await all.hear(6)
    expect(told(all).toSorted(numeric)).toEqual(['+1', '+2', '+3', '+4', '+5', '+6'])
  })
})

describe('a pre-confirmed log', () => {
  it('that its block lacks is repeated as it was sent, taken back, to those alone who were told it', async () => {
    const world = await openWorld(generous)
    const { devnet } = world
    const ear = await RpcEar.open(world)
    const early = await ear.subscribe('pendingLogs')
    const [, gone = '0x'] = move(world, 1, 2, 3)
    await early.hear(3)
    const late = await ear.subscribe('pendingLogs')
    devnet.weather.drop(gone)
    devnet.seal()
    await early.hear(6)
    move(world, 4)
    await early.hear(7)
    await ear.settled()
    // What came after the missing one stands elsewhere: it is taken back there, and told where it is.
    expect(told(early)).toEqual(['+1', '+2', '+3', '-2', '-3', '+3 sealed', '+4'])
    expect(early.results[3]).toEqual({ ...(early.results[1] as object), removed: true })
    expect(told(late)).toEqual(['+3 sealed', '+4'])
  })

  it('that comes in the next block is taken back and told anew', async () => {
    const world = await openWorld(generous)
    const { devnet } = world
    const all = await (await RpcEar.open(world)).subscribe('pendingLogs')
    const [moved = '0x'] = move(world, 1)
    await all.hear(1)
    devnet.weather.move(moved)
    devnet.seal()
    await all.hear(2)
    devnet.flash()
    devnet.seal()
    move(world, 2)
    await all.hear(4)
    expect(told(all)).toEqual(['+1', '-1', '+1', '+2'])
  })

  it('with other content in its block is taken back, and told as it is', async () => {
    const world = await openWorld(generous)
    const { devnet } = world
    const all = await (await RpcEar.open(world)).subscribe('pendingLogs')
    const [hash = '0x'] = move(world, 1)
    await all.hear(1)
    const [log] = all.logs
    devnet.weather.change(hash, [
      { address: log?.address, topics: log?.topics, data: `0x${'07'.padStart(64, '0')}` } as never,
    ])
    devnet.seal()
    await all.hear(3)
    expect(told(all)).toEqual(['+1', '-1', '+7 sealed'])
  })

  it('that was never pushed comes once, when it is sealed, with its block’s hash', async () => {
    const world = await openWorld(generous)
    const { devnet } = world
    const ear = await RpcEar.open(world)
    const [all, logs] = [await ear.subscribe('pendingLogs'), await ear.subscribe('logs')]
    move(world, 1)
    await all.hear(1)
    devnet.weather.lostFlashes = 1
    move(world, 2)
    const { hash } = devnet.seal()
    await logs.hear(2)
    await ear.settled()
    expect(told(all)).toEqual(['+1', '+2 sealed'])
    expect(all.logs[1]?.blockHash).toBe(hash)
  })
})

describe('an upstream that is lost', () => {
  it('and comes back is not noticed: nothing is missing, nothing comes twice, under the same id', async () => {
    const world = await openWorld(generous)
    const { devnet } = world
    const ear = await RpcEar.open(world)
    const [all, logs, heads] = [
      await ear.subscribe('pendingLogs'),
      await ear.subscribe('logs'),
      await ear.subscribe('newHeads'),
    ]
    const raws: number[] = []
    for (let round = 1; round <= 4; round += 1) {
      devnet.weather.cut()
      for (const step of [1, 2, 3]) {
        raws.push(round * 10 + step)
        move(world, round * 10 + step)
        if (step === 2) devnet.seal()
      }
      await all.hear(raws.length)
      await heads.hear(round)
    }
    devnet.seal()
    await logs.hear(raws.length)
    await heads.hear(5)
    await ear.settled()
    const amounts = (one: Subscribed) => one.logs.map(({ data }) => Number(data))
    expect(amounts(all).toSorted((a, b) => a - b)).toEqual(raws)
    expect(amounts(logs)).toEqual(raws)
    const { number } = devnet.chain.head
    expect(heads.results.map((head) => Number((head as { number: string }).number))).toEqual(
      [4, 3, 2, 1, 0].map((back) => number - back),
    )
    await devnet.until(() => devnet.subscriptions().pendingLogs === 1)
    expect(ear.line.closed).toBeNull()
  })

  it('and started anew without what it had pre-confirmed: that is taken back, and the chain goes on', async () => {
    const devnet = await openDevnet()
    const relay = await relayOn(devnet, generous)
    await devnet.until(() => devnet.subscriptions().pendingLogs === 1)
    const ear = await RpcEar.open({ relay })
    const [all, logs, heads] = [
      await ear.subscribe('pendingLogs'),
      await ear.subscribe('logs'),
      await ear.subscribe('newHeads'),
    ]
    move({ devnet }, 1)
    devnet.seal()
    await logs.hear(1)
    move({ devnet }, 2)
    await all.hear(2)
    await devnet.stop()
    const port = Number(new URL(devnet.url).port)
    const second: Devnet = await openDevnet({ pace: 'manual', port, now: () => Date.now() + 60_000 })
    await second.until(() => second.subscriptions().pendingLogs === 1)
    move({ devnet: second }, 3)
    second.seal()
    await logs.hear(3)
    await all.hear(5)
    expect(told(logs)).toEqual(['+1 sealed', '-1 sealed', '+3 sealed'])
    expect(told(all).toSorted(numeric)).toEqual(['+1', '-1', '+2', '-2', '+3'])
    const { hash } = second.chain.head
    await ear.line.until(() => heads.results.some((head) => (head as { hash: string }).hash === hash), 'the new head')
  })

  it('for good, and has no socket at all, is polled for what is pre-confirmed', async () => {
    const devnet = await openDevnet()
    const relay = await relayOn(devnet, { ...generous, UPSTREAM_WS_URL: '' })
    const ear = await RpcEar.open({ relay })
    const [all, logs, heads] = [
      await ear.subscribe('pendingLogs', { address: devnet.list.addressOf('AAPLc') }),
      await ear.subscribe('logs'),
      await ear.subscribe('newHeads'),
    ]
    const [, gone = '0x'] = move({ devnet }, 1, 2)
    await all.hear(2)
    expect(told(all)).toEqual(['+1', '+2'])
    devnet.weather.drop(gone)
    devnet.seal()
    await logs.hear(1)
    await heads.hear(1)
    await all.hear(3)
    expect([told(all), told(logs)]).toEqual([['+1', '+2', '-2'], ['+1 sealed']])
    expect(devnet.sockets()).toBe(0)
  })
})
