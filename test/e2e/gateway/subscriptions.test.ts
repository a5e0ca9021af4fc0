import { describe, expect, it } from 'vitest'
import { openDevnet, openRelayFor, openTestStack } from '../../support/test-stack.ts'
import { highLimits, logSummary, RpcTestClient, transferAmounts } from './rpc-test-client.ts'

const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef' as const
const [one, two] = [`0x${'01'.repeat(32)}`, `0x${'02'.repeat(32)}`] as const

describe.each([2_000, 200])('what a subscription brings, of blocks of %i ms,', (blockMs) => {
  it('is what the node itself sends, field by field', async () => {
    const devnet = await openDevnet({ pace: 'manual', blockMs, flashblockMs: 200 })
    const relay = await openRelayFor(devnet, highLimits)
    await devnet.until(() => devnet.subscriptions().pendingLogs === 1)
    const [ours, direct] = [await RpcTestClient.open({ relay }), await RpcTestClient.open(devnet.wsUrl)]
    const address = devnet.tokens.map(({ contractAddress }) => contractAddress)
    const both = async (...params: unknown[]) => [await ours.subscribe(...params), await direct.subscribe(...params)]
    const pairs = [await both('pendingLogs', { address }), await both('logs', { address }), await both('newHeads')]
    const apple = devnet.list.addressOf('AAPLc')
    for (const block of [1, 2, 3]) {
      transferAmounts({ devnet }, block, block + 10)
      for (const topics of [[], [TRANSFER], [TRANSFER, one], [TRANSFER, one, two], [TRANSFER, one, two, one]] as const)
        devnet.emit({ address: apple, topics, data: '0x' })
      devnet.makeFlashblock()
      devnet.seal()
    }
    for (const [listener, node] of pairs) {
      await node?.waitForResults(node === pairs[2]?.[1] ? 3 : 21)
      await listener?.waitForResults(node?.results.length ?? 0)
      expect(listener?.results).toEqual(node?.results)
    }
  })
})

describe('a client with several subscriptions on one connection', () => {
  it('hears under each id what its filter names, and ends one without the other', async () => {
    const stack = await openTestStack(highLimits)
    const { devnet } = stack
    const listener = await RpcTestClient.open(stack)
    const [apple, tesla] = ['AAPLc', 'TSLAc'].map((symbol) => devnet.list.addressOf(symbol))
    const all = await listener.subscribe('pendingLogs', {})
    const apples = await listener.subscribe('pendingLogs', { address: apple })
    const teslas = await listener.subscribe('pendingLogs', { address: [tesla], topics: [[TRANSFER]] })
    const none = await listener.subscribe('pendingLogs', { topics: [null, null, null, TRANSFER] })
    const ids = [all, apples, teslas, none].map(({ id }) => id)
    expect(new Set(ids).size).toBe(4)
    for (const id of ids) expect(id).toMatch(/^0x[0-9a-f]{32}$/)
    transferAmounts(stack, 1)
    devnet.transfer({ symbol: 'TSLAc', raw: 2n })
    devnet.makeFlashblock()
    await all.waitForResults(2)
    await listener.flush()
    expect([all, apples, teslas, none].map(({ logs }) => logs.map(logSummary))).toEqual([
      ['+1', '+2'],
      ['+1'],
      ['+2'],
      [],
    ])
    expect((await listener.call('eth_unsubscribe', apples.id)).result).toBe(true)
    expect((await listener.call('eth_unsubscribe', apples.id)).result).toBe(false)
    transferAmounts(stack, 3)
    await all.waitForResults(3)
    await listener.flush()
    expect(apples.results).toHaveLength(1)
  })

  it('ends none of another connection, and learns what is wrong with an id that is none', async () => {
    const stack = await openTestStack(highLimits)
    const [listener, other] = [await RpcTestClient.open(stack), await RpcTestClient.open(stack)]
    const [first] = [await listener.subscribe('pendingLogs'), await listener.subscribe('logs')]
    const { id } = await listener.subscribe('newHeads')
    expect((await other.call('eth_unsubscribe', id)).result).toBe(false)
    expect((await other.call('eth_unsubscribe', '0x0')).result).toBe(false)
    expect((await other.call('eth_unsubscribe')).error).toMatchObject({ code: -32602 })
    expect((await other.call('eth_unsubscribe', 7)).error).toMatchObject({ code: -32602 })
    transferAmounts(stack, 1)
    await first?.waitForResults(1)
    stack.devnet.seal()
    await listener.subscribed(id).waitForResults(1)
  })

  it('may have a hundred', async () => {
    const stack = await openTestStack(highLimits)
    const listener = await RpcTestClient.open(stack)
    const subscribed = await Promise.all(Array.from({ length: 100 }, () => listener.subscribe('pendingLogs')))
    expect((await listener.call('eth_subscribe', 'logs')).error).toMatchObject({
      code: -32005,
      message: expect.stringContaining('at most 100 subscriptions'),
    })
    expect((await listener.call('eth_unsubscribe', subscribed[0]?.id)).result).toBe(true)
    await listener.subscribe('logs')
    transferAmounts(stack, 1)
    await Promise.all(subscribed.slice(1).map((one) => one.waitForResults(1)))
  })

  it('may not name so much that nothing is left for others, and may name it again once it let go', async () => {
    const stack = await openTestStack(highLimits)
    const listener = await RpcTestClient.open(stack)
    const long = (of: number) => ({
      topics: [null, Array.from({ length: 1_000 }, (_, at) => `0x${(of * 1_000 + at).toString(16).padStart(64, '0')}`)],
    })
    const ids: unknown[] = []
    for (let of = 0; of < 47; of += 1) ids.push((await listener.call('eth_subscribe', 'logs', long(of))).result)
    expect((await listener.call('eth_subscribe', 'logs', long(47))).error).toMatchObject({ code: -32005 })
    await listener.subscribe('logs')
    expect((await listener.call('eth_unsubscribe', ids[0])).result).toBe(true)
    expect((await listener.call('eth_subscribe', 'logs', long(48))).error).toBeUndefined()
  })
})

describe('the answer to a subscription', () => {
  it.each(['by itself', 'in a batch'])('comes before what it brings, asked for %s', async (how) => {
    const stack = await openTestStack(highLimits)
    const listener = await RpcTestClient.open(stack)
    const begin = stack.devnet.chain.pending.number
    for (let round = 1; round <= 20; round += 1) {
      const kind = round % 4 === 0 ? 'newHeads' : 'pendingLogs'
      const request = listener.request('eth_subscribe', kind)
      const read = listener.request('eth_getBlockByNumber', 'pending', true)
      listener.rawSocket.send(JSON.stringify(how === 'in a batch' ? [request, read] : request))
      for (let step = 0; step < 5; step += 1) {
        transferAmounts(stack, round * 10 + step)
        await new Promise(setImmediate)
      }
      stack.devnet.seal()
      const { result } = await listener.answer(request.id)
      await listener.subscribed(String(result)).waitForResults(0)
      const place = listener.rawSocket.receivedTexts.findIndex((text) => text.includes(`"id":${request.id},`))
      const published = listener.rawSocket.receivedTexts.findIndex((text) =>
        text.includes(`"subscription":"${result}"`),
      )
      expect(place).toBeGreaterThanOrEqual(0)
      if (published >= 0) expect(place).toBeLessThan(published)
    }
    transferAmounts(stack, 999)
    await listener.rawSocket.until(
      () => listener.rawSocket.receivedTexts.at(-1)?.includes('3e7') === true,
      'the last transfer',
    )
    expect(stack.devnet.chain.pending.number).toBe(begin + 20)
  })

  it('is an id of ours, another in each life of the relay', async () => {
    const stack = await openTestStack(highLimits)
    const second = await openRelayFor(stack.devnet, highLimits)
    const ids = []
    for (const relay of [stack.relay, second])
      ids.push((await (await RpcTestClient.open({ relay })).subscribe('logs')).id)
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
    const stack = await openTestStack(highLimits)
    const listener = await RpcTestClient.open(stack)
    const { error } = await listener.call('eth_subscribe', ...params)
    expect(error).toEqual({ code, message: expect.stringMatching(sentence) })
    await listener.subscribe('pendingLogs')
    expect(stack.devnet.subscriptions()).toEqual({ pendingLogs: 1, logs: 0, newHeads: 1 })
  })
})
