import { setMaxListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { openWorld, type World } from '../../support/test-stack.ts'
import { generous, inShort, move, RpcEar, type Subscribed } from './rpc-test-client.ts'

const CONNECTIONS = 250

/** Two subscriptions on each of many connections: to all tokens, and to one of them. */
async function openCrowd(world: World) {
  const address = world.devnet.list.addressOf('AAPLc')
  const ears = await Promise.all(Array.from({ length: CONNECTIONS }, () => RpcEar.open(world)))
  const subscribe = (filter: object) => Promise.all(ears.map((ear) => ear.subscribe('pendingLogs', filter)))
  return { ears, all: await subscribe({}), apples: await subscribe({ address }) }
}

/** What all of them were told, where all were told the same. */
const common = (crowd: readonly Subscribed[]): readonly string[] => {
  const told = new Set(crowd.map(({ logs }) => logs.map(inShort).join(', ')))
  expect(told.size).toBe(1)
  return [...told].join().split(', ')
}

describe('five hundred subscriptions to what is pre-confirmed', () => {
  it('cost the node one, and each hears each log once, in order, and what does not make it', async () => {
    setMaxListeners(CONNECTIONS + 10)
    const world = await openWorld(generous)
    const { devnet } = world
    const { eth_subscribe: asked } = devnet.requests
    const { ears, all, apples } = await openCrowd(world)
    expect(devnet.subscriptions()).toEqual({ pendingLogs: 1, logs: 0, newHeads: 1 })
    expect(devnet.requests.eth_subscribe).toBe(asked)
    expect(devnet.sockets()).toBe(1)

    devnet.weather.repeats = 2
    move(world, 1, 2)
    devnet.transfer({ symbol: 'TSLAc', raw: 3n })
    devnet.flash()
    const [, gone = '0x'] = move(world, 4, 5)
    await Promise.all([...all.map((one) => one.hear(5)), ...apples.map((one) => one.hear(4))])
    devnet.weather.drop(gone)
    devnet.seal()
    await Promise.all([...all.map((one) => one.hear(6)), ...apples.map((one) => one.hear(5))])

    devnet.weather.cut()
    move(world, 6)
    devnet.seal()
    await devnet.until(() => devnet.subscriptions().pendingLogs === 1)
    move(world, 7)
    await Promise.all([...all.map((one) => one.hear(8)), ...apples.map((one) => one.hear(7))])
    await Promise.all(ears.map((ear) => ear.settled()))
    const [every, some] = [common(all), common(apples)]
    expect(every.slice(0, 6)).toEqual(['+1', '+2', '+3', '+4', '+5', '-5'])
    expect(every.slice(6)).toEqual([expect.stringMatching(/^\+6/), '+7'])
    expect(some).toEqual(every.filter((text) => text !== '+3'))
    expect(devnet.subscriptions()).toEqual({ pendingLogs: 1, logs: 0, newHeads: 1 })

    for (const ear of ears.slice(1)) ear.line.socket.terminate()
    move(world, 8)
    await all[0]?.hear(9)
    expect(devnet.requests.eth_unsubscribe).toBe(0)
    expect(devnet.subscriptions()).toEqual({ pendingLogs: 1, logs: 0, newHeads: 1 })
  })
})
