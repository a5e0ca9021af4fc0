import { setMaxListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { openTestStack, type TestStack } from '../../support/test-stack.ts'
import { highLimits, logSummary, RpcTestClient, type TestSubscription, transferAmounts } from './rpc-test-client.ts'

const CONNECTIONS = 250

/** Two subscriptions on each of many connections: to all tokens, and to one of them. */
async function openManySubscribers(stack: TestStack) {
  const address = stack.devnet.list.addressOf('AAPLc')
  const listeners = await Promise.all(Array.from({ length: CONNECTIONS }, () => RpcTestClient.open(stack)))
  const subscribe = (filter: object) =>
    Promise.all(listeners.map((listener) => listener.subscribe('pendingLogs', filter)))
  return { ears: listeners, all: await subscribe({}), apples: await subscribe({ address }) }
}

/** What all of them were told, where all were told the same. */
const sharedSummaries = (crowd: readonly TestSubscription[]): readonly string[] => {
  const published = new Set(crowd.map(({ logs }) => logs.map(logSummary).join(', ')))
  expect(published.size).toBe(1)
  return [...published].join().split(', ')
}

describe('five hundred subscriptions to what is pre-confirmed', () => {
  it('cost the node one, and each hears each log once, in order, and what does not make it', async () => {
    setMaxListeners(CONNECTIONS + 10)
    const stack = await openTestStack(highLimits)
    const { devnet } = stack
    const { eth_subscribe: asked } = devnet.requests
    const { ears, all, apples } = await openManySubscribers(stack)
    expect(devnet.subscriptions()).toEqual({ pendingLogs: 1, logs: 0, newHeads: 1 })
    expect(devnet.requests.eth_subscribe).toBe(asked)
    expect(devnet.sockets()).toBe(1)

    devnet.faults.repeats = 2
    transferAmounts(stack, 1, 2)
    devnet.transfer({ symbol: 'TSLAc', raw: 3n })
    devnet.makeFlashblock()
    const [, gone = '0x'] = transferAmounts(stack, 4, 5)
    await Promise.all([...all.map((one) => one.waitForResults(5)), ...apples.map((one) => one.waitForResults(4))])
    devnet.faults.drop(gone)
    devnet.seal()
    await Promise.all([...all.map((one) => one.waitForResults(6)), ...apples.map((one) => one.waitForResults(5))])

    devnet.faults.cutSockets()
    transferAmounts(stack, 6)
    devnet.seal()
    await devnet.until(() => devnet.subscriptions().pendingLogs === 1)
    transferAmounts(stack, 7)
    await Promise.all([...all.map((one) => one.waitForResults(8)), ...apples.map((one) => one.waitForResults(7))])
    await Promise.all(ears.map((listener) => listener.flush()))
    const [every, some] = [sharedSummaries(all), sharedSummaries(apples)]
    expect(every.slice(0, 6)).toEqual(['+1', '+2', '+3', '+4', '+5', '-5'])
    expect(every.slice(6)).toEqual([expect.stringMatching(/^\+6/), '+7'])
    expect(some).toEqual(every.filter((text) => text !== '+3'))
    expect(devnet.subscriptions()).toEqual({ pendingLogs: 1, logs: 0, newHeads: 1 })

    for (const listener of ears.slice(1)) listener.rawSocket.socket.terminate()
    transferAmounts(stack, 8)
    await all[0]?.waitForResults(9)
    expect(devnet.requests.eth_unsubscribe).toBe(0)
    expect(devnet.subscriptions()).toEqual({ pendingLogs: 1, logs: 0, newHeads: 1 })
  })
})
