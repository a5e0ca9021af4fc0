import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { type Faults, subscriptionKinds } from '../../../../src/devnet/faults/faults.ts'
import { quantity } from '../../../../src/lib/hex.ts'
import {
  amounts,
  getLogs,
  makeTransfers,
  openSocket,
  openSubscribed,
  rpcResult,
  sealTransfers,
  startManualDevnet,
} from '../devnet-client.ts'

/** A devnet with a fault, and a socket that is subscribed to its pending logs. */
const openFaulty = async (faults: Partial<Faults> = {}) => {
  const devnet = await startManualDevnet()
  const link = await openSubscribed(devnet, 'pendingLogs')
  Object.assign(devnet.faults, faults)
  const pushed = async () => {
    await link.flush()
    return amounts(link.notifications.flat())
  }
  return { devnet, link, pushed }
}

// test/e2e/upstream-outage.test.ts has subscriptions that are refused.
it.each(subscriptionKinds)(
  'a subscription to %s that is silent stays open and pushes nothing, while the others push',
  async (kind) => {
    const devnet = await startManualDevnet()
    const link = await openSubscribed(devnet)
    const other = await openSubscribed(devnet, ...subscriptionKinds.filter((known) => known !== kind))
    devnet.faults.silent = [kind]
    expect((await link.subscribe(kind)).result).toMatch(/^0x/)
    sealTransfers(devnet, 1)
    for (const each of [link, other]) await each.flush()
    expect([link.notifications.length, other.notifications.length]).toEqual([0, 2])
    devnet.faults.clear()
    sealTransfers(devnet, 2)
    await link.waitUntil(() => link.notifications.length === 1)
  },
)

describe('sockets', () => {
  it('of a frozen node stay open and get nothing, not even a pong', async () => {
    const { devnet, link } = await openFaulty({ frozen: true })
    const received: string[] = []
    for (const kind of ['pong', 'message']) link.socket.on(kind, () => received.push(kind))
    link.socket.ping()
    link.socket.send('{}')
    makeTransfers(devnet, 1)
    await rpcResult(devnet, 'eth_chainId')
    devnet.faults.frozen = false
    const pong = once(link.socket, 'pong')
    link.socket.ping('thawed')
    expect(String((await pong)[0])).toBe('thawed')
    expect([received, devnet.sockets()]).toEqual([['pong'], 1])
  })

  it.each<[string, Faults['sockets']]>([
    ['may reconnect', undefined],
    ['are refused until the faults are cleared', { status: 429 }],
  ])('that are cut %s', async (_, refusal) => {
    const { devnet, link } = await openFaulty({ sockets: refusal })
    const closed = once(link.socket, 'close')
    devnet.faults.cutSockets()
    expect((await closed)[0]).toBe(1006)
    expect(devnet.sockets()).toBe(0)
    if (refusal) {
      const socket = new WebSocket(devnet.wsUrl).on('error', () => {})
      const [, response] = await once(socket, 'unexpected-response')
      socket.terminate()
      expect(response.statusCode).toBe(429)
      devnet.faults.clear()
    }
    expect((await (await openSocket(devnet)).flush()).error).toBeUndefined()
  })
})

/** A change of the faults, or a flashblock with transfers of these amounts. */
type Step = Partial<Faults> | readonly number[]

it.each<[string, readonly Step[], unknown[]]>([
  ['are repeated', [{ repeats: 3 }, [1]], [1, 1, 1]],
  ['lose the next ones', [[1], { lostFlashes: 1 }, [2], [3]], [1, 3]],
  ['have the older shape: an array of all pending logs', [{ shape: 'all' }, [], [1], [2], []], [[1], [1, 2], [1, 2]]],
  ['are silent where pending is latest', [{ pending: 'latest' }, [1], [2]], []],
])('flashblocks %s', async (_, steps, expected) => {
  const { devnet, link } = await openFaulty()
  const { number } = devnet.chain.pending
  for (const step of steps) {
    if (Array.isArray(step)) makeTransfers(devnet, ...step)
    else Object.assign(devnet.faults, step)
  }
  await link.flush()
  expect(link.notifications.map((result) => (Array.isArray(result) ? amounts(result) : amounts([result])[0]))).toEqual(expected)
  // HTTP reads have all of them.
  devnet.faults.clear()
  const sent = steps.flatMap((step) => (Array.isArray(step) ? step : []))
  expect(amounts(await getLogs(devnet, { fromBlock: quantity(number), toBlock: 'pending' }))).toEqual(sent)
})

it('logs are shuffled within a flashblock, none at its own index, equally for every subscriber, and in the older shape', async () => {
  const { devnet, link, pushed } = await openFaulty({ shuffle: true })
  const second = await openSubscribed(devnet, 'pendingLogs')
  for (const flashblock of [[1, 2], [3], [4, 5, 6, 7, 8]]) makeTransfers(devnet, ...flashblock)
  const logs = await pushed()
  expect(logs.slice(0, 3)).toEqual([2, 1, 3])
  expect(logs.toSorted()).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  expect(logs.filter((raw, index) => raw === index + 1)).toEqual([3])
  await second.flush()
  expect(second.notifications).toEqual(link.notifications)
  expect(amounts(devnet.seal().logs)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  devnet.faults.shape = 'all'
  makeTransfers(devnet, 1, 2)
  expect((await pushed()).slice(8)).toEqual([2, 1])
})
