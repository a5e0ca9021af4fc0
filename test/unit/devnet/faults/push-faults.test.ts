import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import type { Devnet } from '../../../../src/devnet/devnet.ts'
import { subscriptionKinds } from '../../../../src/devnet/faults/faults.ts'
import { amounts, getLogs, openSocket, rpcResult, sendTransfer, startManualDevnet } from '../devnet-client.ts'

/** Opens a socket that the devnet refuses, and returns the HTTP answer. */
const connectRefused = async (devnet: Devnet) => {
  const socket = new WebSocket(devnet.wsUrl)
  socket.on('error', () => {})
  const [, response] = await once(socket, 'unexpected-response')
  socket.terminate()
  return response
}

describe('a silent subscription', () => {
  it.each(subscriptionKinds)('to %s stays open and pushes nothing', async (kind) => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    devnet.faults.silent = [kind]
    expect((await link.subscribe(kind)).result).toMatch(/^0x/)
    sendTransfer(devnet, 1n)
    devnet.makeFlashblock()
    devnet.seal()
    await link.flush()
    expect(link.notifications).toEqual([])
    devnet.faults.clear()
    sendTransfer(devnet, 2n)
    devnet.makeFlashblock()
    devnet.seal()
    await link.waitUntil(() => link.notifications.length === 1)
  })

  it('to pendingLogs does not affect logs and newHeads', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    devnet.faults.silent = ['pendingLogs']
    for (const kind of subscriptionKinds) await link.subscribe(kind)
    sendTransfer(devnet, 1n)
    devnet.makeFlashblock()
    devnet.seal()
    await link.flush()
    expect(link.notifications).toHaveLength(2)
  })
})

describe('a frozen node', () => {
  it('keeps its sockets open and sends nothing, not even a pong', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', {})
    devnet.faults.frozen = true
    const received: string[] = []
    link.socket.on('pong', () => received.push('pong'))
    link.socket.on('message', () => received.push('message'))
    link.socket.ping()
    link.socket.send('{}')
    sendTransfer(devnet, 1n)
    devnet.makeFlashblock()
    await rpcResult(devnet, 'eth_chainId')
    devnet.faults.frozen = false
    const pong = once(link.socket, 'pong')
    link.socket.ping('thawed')
    expect(String((await pong)[0])).toBe('thawed')
    expect(received).toEqual(['pong'])
    expect(devnet.sockets()).toBe(1)
  })
})

describe('sockets', () => {
  it('are cut, and may reconnect', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    const closed = once(link.socket, 'close')
    devnet.faults.cutSockets()
    expect((await closed)[0]).toBe(1006)
    expect(devnet.sockets()).toBe(0)
    expect((await (await openSocket(devnet)).flush()).error).toBeUndefined()
  })

  it('are dropped, and refused until the faults are cleared', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
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

describe('a refused subscription', () => {
  it.each(subscriptionKinds)('to %s gets the error -32602', async (kind) => {
    const devnet = await startManualDevnet()
    devnet.faults.refused = [kind]
    const link = await openSocket(devnet)
    expect((await link.subscribe(kind, {})).error?.code).toBe(-32602)
    for (const other of subscriptionKinds.filter((known) => known !== kind))
      expect((await link.subscribe(other)).error).toBeUndefined()
  })
})

describe('notifications', () => {
  it('are repeated with the fault `repeats`', async () => {
    const devnet = await startManualDevnet()
    devnet.faults.repeats = 3
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', {})
    sendTransfer(devnet, 1n)
    devnet.makeFlashblock()
    await link.flush()
    expect(amounts(link.notifications)).toEqual([1, 1, 1])
  })
})

describe('a lost flashblock', () => {
  it('is never pushed, and is in the sealed block', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', {})
    for (const raw of [1n, 2n, 3n]) {
      devnet.faults.lostFlashes = raw === 2n ? 1 : 0
      sendTransfer(devnet, raw)
      devnet.makeFlashblock()
    }
    const { hash } = devnet.seal()
    await link.flush()
    expect(amounts(link.notifications)).toEqual([1, 3])
    expect(amounts(await getLogs(devnet, { blockHash: hash }))).toEqual([1, 2, 3])
  })

  it('is every n-th with the fault `loseEvery`', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', {})
    devnet.faults.loseEvery = 2
    for (const raw of [1n, 2n, 3n, 4n, 5n]) {
      sendTransfer(devnet, raw)
      devnet.makeFlashblock()
    }
    await link.flush()
    expect(amounts(link.notifications)).toEqual([1, 3, 5])
  })

  it('is counted anew when the fault is set again', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', {})
    for (const [index, loseEvery] of [2, 0, 0, 2, 2].entries()) {
      devnet.faults.loseEvery = loseEvery
      sendTransfer(devnet, BigInt(index))
      devnet.makeFlashblock()
    }
    await link.flush()
    expect(amounts(link.notifications)).toEqual([0, 1, 2, 3])
  })
})

describe('logs out of order', () => {
  it('are shuffled within a flashblock, none at its own index, and equally for every subscriber', async () => {
    const devnet = await startManualDevnet()
    const [first, second] = [await openSocket(devnet), await openSocket(devnet)]
    for (const link of [first, second]) await link.subscribe('pendingLogs', {})
    devnet.faults.shuffle = true
    const flashblocks = [[1, 2], [3], [4, 5, 6, 7, 8]]
    for (const flashblock of flashblocks) {
      for (const raw of flashblock) sendTransfer(devnet, BigInt(raw))
      devnet.makeFlashblock()
    }
    for (const link of [first, second]) await link.flush()
    const pushed = amounts(first.notifications)
    expect(pushed.slice(0, 3)).toEqual([2, 1, 3])
    expect(pushed.toSorted()).toEqual(flashblocks.flat())
    expect(pushed.filter((raw, index) => raw === index + 1)).toEqual([3])
    expect(second.notifications).toEqual(first.notifications)
    expect(amounts(devnet.seal().logs)).toEqual(flashblocks.flat())
  })

  it('are shuffled in the older shape too, and with a filter', async () => {
    const devnet = await startManualDevnet()
    devnet.faults.shuffle = true
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', { address: devnet.list.addressOf('AAPLc') })
    sendTransfer(devnet, 1n)
    for (let others = 0; others < 5; others++) devnet.transfer({ symbol: 'TSLAc', raw: 9n })
    sendTransfer(devnet, 2n)
    devnet.makeFlashblock()
    devnet.faults.shape = 'all'
    devnet.makeFlashblock()
    await link.flush()
    expect(amounts(link.notifications.flat())).toEqual([2, 1, 2, 1])
  })
})

describe('a delayed stream of pending logs', () => {
  it('pushes, in the older shape, the logs that were pending when the flashblock was made', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', {})
    Object.assign(devnet.faults, { shape: 'all', pushDelayBlocks: 1 })
    for (const raw of [1n, 2n]) {
      sendTransfer(devnet, raw)
      devnet.makeFlashblock()
    }
    devnet.seal()
    await link.flush()
    expect(link.notifications.map((result) => amounts([result].flat()))).toEqual([[1], [1, 2]])
  })

  it('pushes pre-confirmed logs some blocks late, and heads on time', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', {})
    await link.subscribe('newHeads')
    devnet.faults.pushDelayBlocks = 2
    const pushedDuring = async (raw: bigint) => {
      sendTransfer(devnet, raw)
      devnet.makeFlashblock()
      const { hash } = devnet.seal()
      await link.flush()
      const [head] = link.notifications.splice(0, 1)
      expect(head).toMatchObject({ hash })
      return amounts(link.notifications.splice(0))
    }
    const pushed = [await pushedDuring(1n), await pushedDuring(2n), await pushedDuring(3n), await pushedDuring(4n)]
    expect(pushed).toEqual([[], [1], [2], [3]])
  })

  it('catches up in order once the delay ends', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', {})
    devnet.faults.pushDelayBlocks = 3
    for (const raw of [1n, 2n, 3n]) {
      sendTransfer(devnet, raw)
      devnet.makeFlashblock()
      if (raw === 2n) devnet.seal()
    }
    devnet.faults.clear()
    sendTransfer(devnet, 4n)
    devnet.makeFlashblock()
    await link.flush()
    expect(amounts(link.notifications)).toEqual([1, 2, 3, 4])
  })
})
