import { describe, expect, it } from 'vitest'
import { openDevnet, openWorld, relayOn } from '../../support/test-stack.ts'
import { generous, inShort, move, RpcEar } from './rpc-test-client.ts'

const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef' as const
const [one, two] = [`0x${'01'.repeat(32)}`, `0x${'02'.repeat(32)}`] as const

describe.each([2_000, 200])('what a subscription brings, of blocks of %i ms,', (blockMs) => {
  it('is what the node itself sends, field by field', async () => {
    const devnet = await openDevnet({ pace: 'manual', blockMs, flashMs: 200 })
    const relay = await relayOn(devnet, generous)
    await devnet.until(() => devnet.subscriptions().pendingLogs === 1)
    const [ours, direct] = [await RpcEar.open({ relay }), await RpcEar.open(devnet.wsUrl)]
    const address = devnet.tokens.map(({ contractAddress }) => contractAddress)
    const both = async (...params: unknown[]) => [await ours.subscribe(...params), await direct.subscribe(...params)]
    const pairs = [await both('pendingLogs', { address }), await both('logs', { address }), await both('newHeads')]
    const apple = devnet.list.addressOf('AAPLc')
    for (const block of [1, 2, 3]) {
      move({ devnet }, block, block + 10)
      for (const topics of [[], [TRANSFER], [TRANSFER, one], [TRANSFER, one, two], [TRANSFER, one, two, one]] as const)
        devnet.emit({ address: apple, topics, data: '0x' })
      devnet.flash()
      devnet.seal()
    }
    for (const [ear, node] of pairs) {
      await node?.hear(node === pairs[2]?.[1] ? 3 : 21)
      await ear?.hear(node?.results.length ?? 0)
      expect(ear?.results).toEqual(node?.results)
    }
  })
})

describe('a client with several subscriptions on one connection', () => {
  it('hears under each id what its filter names, and ends one without the other', async () => {
    const world = await openWorld(generous)
    const { devnet } = world
    const ear = await RpcEar.open(world)
    const [apple, tesla] = ['AAPLc', 'TSLAc'].map((symbol) => devnet.list.addressOf(symbol))
    const all = await ear.subscribe('pendingLogs', {})
    const apples = await ear.subscribe('pendingLogs', { address: apple })
    const teslas = await ear.subscribe('pendingLogs', { address: [tesla], topics: [[TRANSFER]] })
    const none = await ear.subscribe('pendingLogs', { topics: [null, null, null, TRANSFER] })
    const ids = [all, apples, teslas, none].map(({ id }) => id)
    expect(new Set(ids).size).toBe(4)
    for (const id of ids) expect(id).toMatch(/^0x[0-9a-f]{32}$/)
    move(world, 1)
    devnet.transfer({ symbol: 'TSLAc', raw: 2n })
    devnet.flash()
    await all.hear(2)
    await ear.settled()
    expect([all, apples, teslas, none].map(({ logs }) => logs.map(inShort))).toEqual([['+1', '+2'], ['+1'], ['+2'], []])
    expect((await ear.call('eth_unsubscribe', apples.id)).result).toBe(true)
    expect((await ear.call('eth_unsubscribe', apples.id)).result).toBe(false)
    move(world, 3)
    await all.hear(3)
    await ear.settled()
    expect(apples.results).toHaveLength(1)
  })

  it('ends none of another connection, and learns what is wrong with an id that is none', async () => {
    const world = await openWorld(generous)
    const [ear, other] = [await RpcEar.open(world), await RpcEar.open(world)]
    const [first] = [await ear.subscribe('pendingLogs'), await ear.subscribe('logs')]
    const { id } = await ear.subscribe('newHeads')
    expect((await other.call('eth_unsubscribe', id)).result).toBe(false)
    expect((await other.call('eth_unsubscribe', '0x0')).result).toBe(false)
    expect((await other.call('eth_unsubscribe')).error).toMatchObject({ code: -32602 })
    expect((await other.call('eth_unsubscribe', 7)).error).toMatchObject({ code: -32602 })
    move(world, 1)
    await first?.hear(1)
    world.devnet.seal()
    await ear.subscribed(id).hear(1)
  })

  it('may have a hundred', async () => {
    const world = await openWorld(generous)
    const ear = await RpcEar.open(world)
    const subscribed = await Promise.all(Array.from({ length: 100 }, () => ear.subscribe('pendingLogs')))
    expect((await ear.call('eth_subscribe', 'logs')).error).toMatchObject({
      code: -32005,
      message: expect.stringContaining('at most 100 subscriptions'),
    })
    expect((await ear.call('eth_unsubscribe', subscribed[0]?.id)).result).toBe(true)
    await ear.subscribe('logs')
    move(world, 1)
    await Promise.all(subscribed.slice(1).map((one) => one.hear(1)))
  })

  it('may not name so much that nothing is left for others, and may name it again once it let go', async () => {
    const world = await openWorld(generous)
    const ear = await RpcEar.open(world)
    const long = (of: number) => ({
      topics: [null, Array.from({ length: 1_000 }, (_, at) => `0x${(of * 1_000 + at).toString(16).padStart(64, '0')}`)],
    })
    const ids: unknown[] = []
    for (let of = 0; of < 47; of += 1) ids.push((await ear.call('eth_subscribe', 'logs', long(of))).result)
    expect((await ear.call('eth_subscribe', 'logs', long(47))).error).toMatchObject({ code: -32005 })
    await ear.subscribe('logs')
    expect((await ear.call('eth_unsubscribe', ids[0])).result).toBe(true)
    expect((await ear.call('eth_subscribe', 'logs', long(48))).error).toBeUndefined()
  })
})

describe('the answer to a subscription', () => {
  it.each(['by itself', 'in a batch'])('comes before what it brings, asked for %s', async (how) => {
    const world = await openWorld(generous)
    const ear = await RpcEar.open(world)
    const begin = world.devnet.chain.pending.number
    for (let round = 1; round <= 20; round += 1) {
      const kind = round % 4 === 0 ? 'newHeads' : 'pendingLogs'
      const request = ear.request('eth_subscribe', kind)
      const read = ear.request('eth_getBlockByNumber', 'pending', true)
      ear.line.send(JSON.stringify(how === 'in a batch' ? [request, read] : request))
      for (let step = 0; step < 5; step += 1) {
        move(world, round * 10 + step)
        await new Promise(setImmediate)
      }
      world.devnet.seal()
      const { result } = await ear.answer(request.id)
      await ear.subscribed(String(result)).hear(0)
      const place = ear.line.heard.findIndex((text) => text.includes(`"id":${request.id},`))
      const told = ear.line.heard.findIndex((text) => text.includes(`"subscription":"${result}"`))
      expect(place).toBeGreaterThanOrEqual(0)
      if (told >= 0) expect(place).toBeLessThan(told)
    }
    move(world, 999)
    await ear.line.until(() => ear.line.heard.at(-1)?.includes('3e7') === true, 'the last transfer')
    expect(world.devnet.chain.pending.number).toBe(begin + 20)
  })

  it('is an id of ours, another in each life of the relay', async () => {
    const world = await openWorld(generous)
    const second = await relayOn(world.devnet, generous)
    const ids = []
    for (const relay of [world.relay, second]) ids.push((await (await RpcEar.open({ relay })).subscribe('logs')).id)
    expect(new Set(ids).size).toBe(2)
  })
})

describe('a subscription that cannot be served', () => {
  it.each([
    [['pendingLogs', { address: `0x${'07'.repeat(20)}` }], -32602, /not a listed tokenized stock: 0x0707/],
    [['syncing'], -32602, /must be one of pendingLogs, logs, newHeads/],
    [['logs', { topics: ['0x1'] }], -32602, /topics/],
    [[], -32602, /must be one of/],
  ])('as %j is refused with a sentence, and the connection stays', async (params, code, sentence) => {
    const world = await openWorld(generous)
    const ear = await RpcEar.open(world)
    const { error } = await ear.call('eth_subscribe', ...params)
    expect(error).toEqual({ code, message: expect.stringMatching(sentence) })
    await ear.subscribe('pendingLogs')
    expect(world.devnet.subscriptions()).toEqual({ pendingLogs: 1, logs: 0, newHeads: 1 })
  })
})
