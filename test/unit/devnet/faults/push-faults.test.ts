import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import type { Devnet } from '../../../../src/devnet/devnet.ts'
import { type Faults, subscriptionKinds } from '../../../../src/devnet/faults/faults.ts'
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

/** Opens a socket that the devnet refuses, and returns the HTTP answer. */
const connectRefused = async (devnet: Devnet) => {
  const socket = new WebSocket(devnet.wsUrl)
  socket.on('error', () => {})
  const [, response] = await once(socket, 'unexpected-response')
  socket.terminate()
  return response
}

describe.each(subscriptionKinds)('a subscription to %s', (kind) => {
  const others = subscriptionKinds.filter((known) => known !== kind)

  it('that is silent stays open and pushes nothing, while the others push', async () => {
    const devnet = await startManualDevnet()
    const [link, other] = [await openSubscribed(devnet), await openSubscribed(devnet, ...others)]
    devnet.faults.silent = [kind]
    expect((await link.subscribe(kind)).result).toMatch(/^0x/)
    sealTransfers(devnet, 1)
    for (const each of [link, other]) await each.flush()
    expect([link.notifications.length, other.notifications.length]).toEqual([0, 2])
    devnet.faults.clear()
    sealTransfers(devnet, 2)
    await link.waitUntil(() => link.notifications.length === 1)
  })

  it('that is refused gets the error -32602, and no other does', async () => {
    const devnet = await startManualDevnet()
    devnet.faults.refused = [kind]
    const link = await openSocket(devnet)
    expect((await link.subscribe(kind, {})).error?.code).toBe(-32602)
    for (const other of others) expect((await link.subscribe(other)).error).toBeUndefined()
  })
})

describe('sockets', () => {
  it('of a frozen node stay open and get nothing, not even a pong', async () => {
    const { devnet, link } = await openFaulty({ frozen: true })
    const received: string[] = []
    link.socket.on('pong', () => received.push('pong'))
    link.socket.on('message', () => received.push('message'))
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

  it('are cut, and may reconnect', async () => {
    const { devnet, link } = await openFaulty()
    const closed = once(link.socket, 'close')
    devnet.faults.cutSockets()
    expect((await closed)[0]).toBe(1006)
    expect(devnet.sockets()).toBe(0)
    expect((await (await openSocket(devnet)).flush()).error).toBeUndefined()
  })

  it('are dropped, and refused until the faults are cleared', async () => {
    const { devnet, link } = await openFaulty()
    const closed = once(link.socket, 'close')
    devnet.faults.dropSockets()
    await closed
    expect((await connectRefused(devnet)).statusCode).toBe(503)
    devnet.faults.clear()
    expect((await (await openSocket(devnet)).flush()).error).toBeUndefined()
    expect(devnet.requests.socket).toBe(3)
  })

  it('are refused with the status of the fault', async () => {
    const devnet = await startManualDevnet()
    devnet.faults.sockets = { status: 429, retryAfterSeconds: 3 }
    const response = await connectRefused(devnet)
    expect([response.statusCode, response.headers['retry-after']]).toEqual([429, '3'])
  })
})

describe('flashblocks of one transfer each', () => {
  it.each<[string, readonly Partial<Faults>[], number[]]>([
    ['are repeated', [{ repeats: 3 }], [1, 1, 1]],
    ['lose the next ones', [{}, { lostFlashes: 1 }, {}], [1, 3]],
    ['lose every second one', [{ loseEvery: 2 }, {}, {}, {}, {}], [1, 3, 5]],
    ['count anew when the fault is set again', [{ loseEvery: 2 }, { loseEvery: 0 }, {}, { loseEvery: 2 }, {}], [1, 2, 3, 4]],
    ['hold the last log back until the next one', [{ holdsLastLog: true }, {}, {}], [1, 2]],
    ['catch up in order once a delay ends', [{ pushDelayBlocks: 3 }, {}, {}, { pushDelayBlocks: 0 }], [1, 2, 3, 4]],
  ])('%s', async (_, changes, expected) => {
    const { devnet, pushed } = await openFaulty()
    for (const [index, faults] of changes.entries()) {
      Object.assign(devnet.faults, faults)
      makeTransfers(devnet, index + 1)
    }
    expect(await pushed()).toEqual(expected)
    // HTTP reads and the sealed block have all of them.
    const sent = changes.map((_, index) => index + 1)
    expect(amounts(await getLogs(devnet, { fromBlock: 'pending', toBlock: 'pending' }))).toEqual(sent)
    expect(amounts(devnet.seal().logs)).toEqual(sent)
  })

  it('arrive some blocks late with a delay, while heads are on time', async () => {
    const { devnet, link } = await openFaulty({ pushDelayBlocks: 2 })
    await link.subscribe('newHeads')
    for (const [raw, expected] of [[], [1], [2], [3]].entries()) {
      const { hash } = sealTransfers(devnet, raw + 1)
      await link.flush()
      const [head, ...logs] = link.notifications.splice(0)
      expect(head).toMatchObject({ hash })
      expect(amounts(logs)).toEqual(expected)
    }
  })

  it('arrive with a delay, in the older shape, with the logs that were pending when they were made', async () => {
    const { devnet, link } = await openFaulty({ shape: 'all', pushDelayBlocks: 1 })
    for (const raw of [1, 2]) makeTransfers(devnet, raw)
    devnet.seal()
    await link.flush()
    expect(link.notifications.map((result) => amounts([result].flat()))).toEqual([[1], [1, 2]])
  })
})

describe('logs out of order', () => {
  it('are shuffled within a flashblock, none at its own index, and equally for every subscriber', async () => {
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
  })

  it('are shuffled in the older shape too, and with a filter', async () => {
    const devnet = await startManualDevnet()
    devnet.faults.shuffle = true
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', { address: devnet.list.addressOf('AAPLc') })
    devnet.transfer({ symbol: 'AAPLc', raw: 1n })
    for (let others = 0; others < 5; others++) devnet.transfer({ symbol: 'TSLAc', raw: 9n })
    makeTransfers(devnet, 2)
    devnet.faults.shape = 'all'
    devnet.makeFlashblock()
    await link.flush()
    expect(amounts(link.notifications.flat())).toEqual([2, 1, 2, 1])
  })
})
