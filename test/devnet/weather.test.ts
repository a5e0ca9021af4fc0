import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { z } from 'zod'
import { balanceOf } from '../../src/devnet/deeds.ts'
import type { Devnet } from '../../src/devnet/devnet.ts'
import type { Hex } from '../../src/devnet/hex.ts'
import { kinds } from '../../src/devnet/weather.ts'
import { ask, Block, Log, listen, logs, manual, post, read, ZERO_HASH } from './support.ts'

const CAROL: Hex = `0x${'ca'.repeat(20)}`
const send = (devnet: Devnet, raw: bigint) => devnet.transfer({ symbol: 'AAPLc', to: CAROL, raw })
const amounts = (results: readonly unknown[]) =>
  z
    .array(Log)
    .parse(results)
    .map((log) => Number(log.data))

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
})

describe('a dropped transaction', () => {
  it('was announced, is not in the sealed block, and left nothing behind', async () => {
    const devnet = await manual()
    const link = await listen(devnet)
    await link.subscribe('pendingLogs', {})
    send(devnet, 1n)
    const dropped = send(devnet, 20n)
    send(devnet, 300n)
    devnet.flash()
    const key = balanceOf(devnet.list.addressOf('AAPLc'), CAROL)
    expect(devnet.chain.held(key, 'pending')).toBe(321n)
    devnet.weather.drop(dropped)
    const block = devnet.seal()
    await link.settled()
    expect(amounts(link.results)).toEqual([1, 20, 300])
    expect(amounts(block.logs)).toEqual([1, 300])
    expect(block.logs.map((log) => [log.transactionIndex, log.logIndex])).toEqual([
      ['0x0', '0x0'],
      ['0x1', '0x1'],
    ])
    expect(devnet.chain.held(key, block.number)).toBe(301n)
    expect(Number(await read(devnet, 'eth_getTransactionCount', devnet.custodian, 'pending'))).toBe(2)
  })

  it('comes every so often', async () => {
    const devnet = await manual()
    devnet.weather.dropEvery = 3
    for (const raw of [1n, 2n, 3n, 4n]) send(devnet, raw)
    devnet.flash()
    expect(amounts(devnet.seal().logs)).toEqual([1, 2, 4])
  })

  it('leaves no debt where another had spent what it brought', async () => {
    const devnet = await manual()
    const [token, dave] = [devnet.list.addressOf('AAPLc'), `0x${'da'.repeat(20)}` as const]
    const brought = send(devnet, 10n)
    devnet.flash()
    devnet.transfer({ symbol: 'AAPLc', from: CAROL, to: dave, raw: 10n })
    devnet.flash()
    devnet.weather.drop(brought)
    const { number } = devnet.seal()
    expect([CAROL, dave].map((holder) => devnet.chain.held(balanceOf(token, holder), number))).toEqual([0n, 10n])
  })

  it('changes the hash of its block and of every later one', async () => {
    const [fair, foul] = [await manual({ now: () => 1.8e12 }), await manual({ now: () => 1.8e12 })]
    const dropped = send(foul, 1n)
    foul.flash()
    foul.weather.drop(dropped)
    expect(foul.seal().hash).not.toBe(fair.seal().hash)
    expect(foul.seal().hash).not.toBe(fair.seal().hash)
  })
})

describe('a moved transaction', () => {
  it('is in the next block, under the same hash', async () => {
    const devnet = await manual()
    const moved = send(devnet, 1n)
    send(devnet, 2n)
    devnet.flash()
    devnet.weather.move(moved)
    expect(amounts(devnet.seal().logs)).toEqual([2])
    expect(devnet.flash()).toMatchObject([{ transactionHash: moved, logIndex: '0x0', blockHash: ZERO_HASH }])
    expect(amounts(devnet.seal().logs)).toEqual([1])
  })
})

describe('what is pre-confirmed', () => {
  const pendingOf = async (devnet: Devnet) =>
    Block.nullable().parse(await read(devnet, 'eth_getBlockByNumber', 'pending', false))

  it('may have neither number nor hash', async () => {
    const devnet = await manual()
    devnet.weather.pending = 'numberless'
    expect(await pendingOf(devnet)).toMatchObject({ number: null, hash: null, parentHash: devnet.chain.head.hash })
  })

  it.each(['latest', 'null'] as const)('may be nothing, so that pending is %s', async (pending) => {
    const devnet = await manual()
    const link = await listen(devnet)
    await link.subscribe('pendingLogs', {})
    devnet.weather.pending = pending
    send(devnet, 1n)
    devnet.flash()
    await link.settled()
    expect(link.results).toEqual([])
    expect(await logs(devnet, { fromBlock: 'pending', toBlock: 'pending' })).toEqual([])
    expect((await pendingOf(devnet))?.hash).toBe(pending === 'latest' ? devnet.chain.head.hash : undefined)
    expect(await read(devnet, 'eth_getTransactionCount', devnet.custodian, 'pending')).toBe('0x0')
    const { hash } = devnet.seal()
    expect(await logs(devnet, { blockHash: hash })).toHaveLength(1)
  })
})

describe('HTTP', () => {
  it.each([
    [429, -32016],
    [403, -32601],
    [503, -32011],
  ])('is refused with %i for every call', async (status, code) => {
    const devnet = await manual()
    devnet.weather.rpc = { status, retryAfterSeconds: 2 }
    const { json, headers, ...answer } = await post(devnet, {
      jsonrpc: '2.0',
      id: 1,
      method: 'eth_chainId',
      params: [],
    })
    expect(answer.status).toBe(status)
    expect(headers.get('retry-after')).toBe('2')
    expect(json).toMatchObject({ error: { code } })
    expect((await fetch(devnet.stocksUrl)).status).toBe(200)
    expect(devnet.requests).toMatchObject({ post: 1, eth_chainId: 0, list: 1 })
  })

  it('is answered with another body', async () => {
    const devnet = await manual()
    devnet.weather.rpc = { status: 502, body: '"bad gateway"' }
    expect((await post(devnet, {})).json).toBe('bad gateway')
  })

  it('is answered late', async () => {
    const devnet = await manual()
    devnet.weather.delayMs = 30
    const before = performance.now()
    await read(devnet, 'eth_chainId')
    expect(performance.now() - before).toBeGreaterThan(25)
  })
})

describe('a wrong chain id', () => {
  it('is answered over HTTP and over a socket', async () => {
    const devnet = await manual()
    devnet.weather.chainId = 1
    expect((await ask(devnet, 'eth_chainId')).result).toBe('0x1')
    expect((await (await listen(devnet)).call('eth_chainId')).result).toBe('0x1')
    devnet.weather.clear()
    expect((await ask(devnet, 'eth_chainId')).result).toBe('0x509db21')
  })
})

describe('a reorganisation', () => {
  it('replaces blocks, sends their logs as removed and then those that stand now', async () => {
    const devnet = await manual()
    const link = await listen(devnet)
    const [gone] = [send(devnet, 1n), send(devnet, 2n)]
    devnet.flash()
    devnet.seal()
    const old = devnet.seal()
    send(devnet, 4n)
    devnet.flash()
    await link.subscribe('logs')
    await link.subscribe('newHeads')

    const [first, second] = devnet.reorg(2, [gone])
    await link.settled()
    expect(second).toMatchObject({ number: old.number, parentHash: first?.hash })
    expect(second?.hash).not.toBe(old.hash)
    expect(link.results).toMatchObject([
      { removed: true, data: `0x${'1'.padStart(64, '0')}` },
      { removed: true, data: `0x${'2'.padStart(64, '0')}` },
      { hash: first?.hash },
      { removed: false, data: `0x${'2'.padStart(64, '0')}`, blockHash: first?.hash, logIndex: '0x0' },
      { hash: second?.hash },
    ])
    const key = balanceOf(devnet.list.addressOf('AAPLc'), CAROL)
    expect([devnet.chain.held(key, 'pending'), devnet.chain.held(key, old.number)]).toEqual([6n, 2n])
    expect(devnet.chain.blockOfHash(old.hash)).toBeUndefined()
    expect(devnet.seal()).toMatchObject({ parentHash: second?.hash })
  })

  it('goes no deeper than what is kept', async () => {
    const devnet = await manual()
    expect(() => devnet.reorg(5_000)).toThrow('cannot replace 5000 blocks')
    expect(() => devnet.reorg(0)).toThrow('cannot replace 0 blocks')
  })
})

describe('what a test may count and wait for', () => {
  it('is every request, by method and by door', async () => {
    const devnet = await manual()
    const heard = devnet.until(() => devnet.requests.eth_getLogs === 2)
    await logs(devnet, { fromBlock: 'latest' })
    await (await listen(devnet)).call('eth_getLogs', { fromBlock: 'latest' })
    await heard
    await ask(devnet, 'eth_whatever')
    expect(devnet.requests).toMatchObject({ eth_getLogs: 2, post: 2, socket: 1, list: 0, unknown: 1, eth_subscribe: 0 })
  })
})

describe('strict filters', () => {
  it.each(['fromBlock', 'toBlock'])('refuse blockHash beside %s', async (bound) => {
    const devnet = await manual()
    devnet.weather.strictFilters = true
    const { error } = await ask(devnet, 'eth_getLogs', { blockHash: devnet.chain.head.hash, [bound]: 'latest' })
    expect(error).toEqual({
      code: -32602,
      message: 'cannot specify both blockHash and fromBlock/toBlock, choose one or the other',
    })
  })
})
