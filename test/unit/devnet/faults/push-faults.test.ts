import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import type { Devnet } from '../../../../src/devnet/devnet.ts'
import { kinds } from '../../../../src/devnet/faults/faults.ts'
import { amounts, listen, logs, manual, read, send } from '../devnet-client.ts'

/** Opens a socket that is expected to be turned away; the HTTP answer. */
const knock = async (devnet: Devnet) => {
  const socket = new WebSocket(devnet.wsUrl)
  socket.on('error', () => {})
  const [, response] = await once(socket, 'unexpected-response')
  socket.terminate()
  return response
}

describe('silence', () => {
  it.each(kinds)('keeps a subscription to %s open and says nothing', async (kind) => {
    const devnet = await manual()
    const link = await listen(devnet)
    devnet.weather.silent = [kind]
    expect((await link.subscribe(kind)).result).toMatch(/^0x/)
    send(devnet, 1n)
    devnet.flash()
    devnet.seal()
    await link.settled()
    expect(link.results).toEqual([])
    devnet.weather.clear()
    send(devnet, 2n)
    devnet.flash()
    devnet.seal()
    await link.until(() => link.results.length === 1)
  })

  it('of pendingLogs leaves logs and newHeads alone', async () => {
    const devnet = await manual()
    const link = await listen(devnet)
    devnet.weather.silent = ['pendingLogs']
    for (const kind of kinds) await link.subscribe(kind)
    send(devnet, 1n)
    devnet.flash()
    devnet.seal()
    await link.settled()
    expect(link.results).toHaveLength(2)
  })
})

describe('a frozen node', () => {
  it('keeps its sockets and says nothing at all, not even a pong', async () => {
    const devnet = await manual()
    const link = await listen(devnet)
    await link.subscribe('pendingLogs', {})
    devnet.weather.frozen = true
    const heard: string[] = []
    link.socket.on('pong', () => heard.push('pong'))
    link.socket.on('message', () => heard.push('message'))
    link.socket.ping()
    link.socket.send('{}')
    send(devnet, 1n)
    devnet.flash()
    await read(devnet, 'eth_chainId')
    devnet.weather.frozen = false
    const pong = once(link.socket, 'pong')
    link.socket.ping('thawed')
    expect(String((await pong)[0])).toBe('thawed')
    expect(heard).toEqual(['pong'])
    expect(devnet.sockets()).toBe(1)
  })
})

describe('sockets', () => {
  it('are cut, and may come back', async () => {
    const devnet = await manual()
    const link = await listen(devnet)
    const closed = once(link.socket, 'close')
    devnet.weather.cut()
    expect((await closed)[0]).toBe(1006)
    expect(devnet.sockets()).toBe(0)
    expect((await (await listen(devnet)).settled()).error).toBeUndefined()
  })

  it('are dropped, and refused until fair weather', async () => {
    const devnet = await manual()
    const link = await listen(devnet)
    const closed = once(link.socket, 'close')
    devnet.weather.dropSockets()
    await closed
    expect((await knock(devnet)).statusCode).toBe(503)
    devnet.weather.clear()
    expect((await (await listen(devnet)).settled()).error).toBeUndefined()
    expect(devnet.requests.socket).toBe(3)
  })

  it('are refused with the status that is asked for', async () => {
    const devnet = await manual()
    devnet.weather.sockets = { status: 429, retryAfterSeconds: 3 }
    const response = await knock(devnet)
    expect([response.statusCode, response.headers['retry-after']]).toEqual([429, '3'])
  })
})

describe('a refused subscription', () => {
  it.each(kinds)('to %s is the error -32602', async (kind) => {
    const devnet = await manual()
    devnet.weather.refused = [kind]
    const link = await listen(devnet)
    expect((await link.subscribe(kind, {})).error?.code).toBe(-32602)
    for (const other of kinds.filter((one) => one !== kind)) expect((await link.subscribe(other)).error).toBeUndefined()
  })
})

describe('notifications', () => {
  it('are repeated as often as asked', async () => {
    const devnet = await manual()
    devnet.weather.repeats = 3
    const link = await listen(devnet)
    await link.subscribe('pendingLogs', {})
    send(devnet, 1n)
    devnet.flash()
    await link.settled()
    expect(amounts(link.results)).toEqual([1, 1, 1])
  })
})

describe('a lost flashblock', () => {
  it('is never announced, and is in the sealed block', async () => {
    const devnet = await manual()
    const link = await listen(devnet)
    await link.subscribe('pendingLogs', {})
    for (const raw of [1n, 2n, 3n]) {
      devnet.weather.lostFlashes = raw === 2n ? 1 : 0
      send(devnet, raw)
      devnet.flash()
    }
    const { hash } = devnet.seal()
    await link.settled()
    expect(amounts(link.results)).toEqual([1, 3])
    expect(amounts(await logs(devnet, { blockHash: hash }))).toEqual([1, 2, 3])
  })

  it('comes every so often', async () => {
    const devnet = await manual()
    const link = await listen(devnet)
    await link.subscribe('pendingLogs', {})
    devnet.weather.loseEvery = 2
    for (const raw of [1n, 2n, 3n, 4n, 5n]) {
      send(devnet, raw)
      devnet.flash()
    }
    await link.settled()
    expect(amounts(link.results)).toEqual([1, 3, 5])
  })

  it('comes every so often since that was last asked for', async () => {
    const devnet = await manual()
    const link = await listen(devnet)
    await link.subscribe('pendingLogs', {})
    for (const [at, loseEvery] of [2, 0, 0, 2, 2].entries()) {
      devnet.weather.loseEvery = loseEvery
      send(devnet, BigInt(at))
      devnet.flash()
    }
    await link.settled()
    expect(amounts(link.results)).toEqual([0, 1, 2, 3])
  })
})

describe('logs out of order', () => {
  it('are those of one flashblock, each in another place than its own, and the same ones for the same logs', async () => {
    const devnet = await manual()
    const [one, other] = [await listen(devnet), await listen(devnet)]
    for (const link of [one, other]) await link.subscribe('pendingLogs', {})
    devnet.weather.shuffle = true
    const flashes = [[1, 2], [3], [4, 5, 6, 7, 8]]
    for (const flash of flashes) {
      for (const raw of flash) send(devnet, BigInt(raw))
      devnet.flash()
    }
    for (const link of [one, other]) await link.settled()
    const told = amounts(one.results)
    expect(told.slice(0, 3)).toEqual([2, 1, 3])
    expect(told.toSorted()).toEqual(flashes.flat())
    expect(told.filter((raw, at) => raw === at + 1)).toEqual([3])
    expect(other.results).toEqual(one.results)
    expect(amounts(devnet.seal().logs)).toEqual(flashes.flat())
  })

  it('are so in the older shape as well, and for who asked for some of them', async () => {
    const devnet = await manual()
    devnet.weather.shuffle = true
    const link = await listen(devnet)
    await link.subscribe('pendingLogs', { address: devnet.list.addressOf('AAPLc') })
    send(devnet, 1n)
    for (let others = 0; others < 5; others++) devnet.transfer({ symbol: 'TSLAc', raw: 9n })
    send(devnet, 2n)
    devnet.flash()
    devnet.weather.shape = 'all'
    devnet.flash()
    await link.settled()
    expect(amounts(link.results.flat())).toEqual([2, 1, 2, 1])
  })
})

describe('a stream that is behind', () => {
  it('sends, in the older shape, what was pending when a flashblock was made', async () => {
    const devnet = await manual()
    const link = await listen(devnet)
    await link.subscribe('pendingLogs', {})
    Object.assign(devnet.weather, { shape: 'all', pushDelayBlocks: 1 })
    for (const raw of [1n, 2n]) {
      send(devnet, raw)
      devnet.flash()
    }
    devnet.seal()
    await link.settled()
    expect(link.results.map((result) => amounts([result].flat()))).toEqual([[1], [1, 2]])
  })

  it('pushes what is pre-confirmed so many blocks late, and heads on time', async () => {
    const devnet = await manual()
    const link = await listen(devnet)
    await link.subscribe('pendingLogs', {})
    await link.subscribe('newHeads')
    devnet.weather.pushDelayBlocks = 2
    const heard = async (raw: bigint) => {
      send(devnet, raw)
      devnet.flash()
      const { hash } = devnet.seal()
      await link.settled()
      const [told] = link.results.splice(0, 1)
      expect(told).toMatchObject({ hash })
      return amounts(link.results.splice(0))
    }
    expect([await heard(1n), await heard(2n), await heard(3n), await heard(4n)]).toEqual([[], [1], [2], [3]])
  })

  it('catches up, in order, once it is no longer', async () => {
    const devnet = await manual()
    const link = await listen(devnet)
    await link.subscribe('pendingLogs', {})
    devnet.weather.pushDelayBlocks = 3
    for (const raw of [1n, 2n, 3n]) {
      send(devnet, raw)
      devnet.flash()
      if (raw === 2n) devnet.seal()
    }
    devnet.weather.clear()
    send(devnet, 4n)
    devnet.flash()
    await link.settled()
    expect(amounts(link.results)).toEqual([1, 2, 3, 4])
  })
})
