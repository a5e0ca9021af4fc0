import { describe, expect, it } from 'vitest'
import { openDevnet, openRelayFor, openTestStack } from '../../support/test-stack.ts'
import { highLimits } from './node-and-gateway.ts'
import { logSummaries, RpcTestClient, transferAmounts } from './rpc-test-client.ts'

const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef' as const
const [topic1, topic2] = [`0x${'01'.repeat(32)}`, `0x${'02'.repeat(32)}`] as const
const UNLISTED_ADDRESS = `0x${'07'.repeat(20)}` as const

const word = (value: number): `0x${string}` => `0x${value.toString(16).padStart(64, '0')}`

async function open(settings: Record<string, string> = {}) {
  const stack = await openTestStack({ ...highLimits, ...settings })
  return { stack, devnet: stack.devnet, client: await RpcTestClient.open(stack) }
}

describe.each([2_000, 200])('a subscription, with blocks of %i ms,', (blockMs) => {
  it('brings what the node sends, field by field', async () => {
    const devnet = await openDevnet({ pace: 'manual', blockMs, flashblockMs: 200 })
    const relay = await openRelayFor(devnet, highLimits)
    await devnet.until(() => devnet.subscriptions().pendingLogs === 1)
    const address = devnet.tokens.map(({ contractAddress }) => contractAddress)
    const kinds = [['pendingLogs', { address }], ['logs', { address }], ['newHeads']]
    const ours = await (await RpcTestClient.open({ relay })).subscribeAll(...kinds)
    const direct = await (await RpcTestClient.open(devnet.wsUrl)).subscribeAll(...kinds)
    const topicLists = [[], [TRANSFER], [TRANSFER, topic1], [TRANSFER, topic1, topic2], [TRANSFER, topic1, topic2, topic1]]
    for (const block of [1, 2, 3]) {
      transferAmounts({ devnet }, block, block + 10)
      for (const topics of topicLists) devnet.emit({ address: devnet.list.addressOf('AAPLc'), topics, data: '0x' })
      devnet.makeFlashblock()
      devnet.seal()
    }
    for (const [index, count] of [21, 21, 3].entries()) {
      await direct[index]?.waitForResults(count)
      await ours[index]?.waitForResults(direct[index]?.results.length ?? 0)
      expect(ours[index]?.results).toEqual(direct[index]?.results)
    }
  })
})

describe('subscriptions on one connection', () => {
  it('bring what each filter matches under its own id, and end one by one', async () => {
    const { stack, devnet, client } = await open()
    const [apple, tesla] = ['AAPLc', 'TSLAc'].map((symbol) => devnet.list.addressOf(symbol))
    const filters = [{}, { address: apple }, { address: [tesla], topics: [[TRANSFER]] }, { topics: [null, null, null, TRANSFER] }]
    const all = await client.subscribeAll(...filters.map((filter) => ['pendingLogs', filter]))
    const ids = all.map(({ id }) => id)
    expect(new Set(ids).size).toBe(4)
    for (const id of ids) expect(id).toMatch(/^0x[0-9a-f]{32}$/)
    transferAmounts(stack, 1)
    devnet.transfer({ symbol: 'TSLAc', raw: 2n })
    devnet.makeFlashblock()
    await all[0]?.waitForResults(2)
    await client.flush()
    expect(all.map(logSummaries)).toEqual([['+1', '+2'], ['+1'], ['+2'], []])
    for (const result of [true, false]) expect(await client.call('eth_unsubscribe', ids[1])).toMatchObject({ result })
    transferAmounts(stack, 3)
    await all[0]?.waitForResults(3)
    await client.flush()
    expect(all[1]?.results).toHaveLength(1)
  })

  it('cannot be ended from another connection or under an invalid id', async () => {
    const { stack, client } = await open()
    const other = await RpcTestClient.open(stack)
    const [pending, , heads] = await client.subscribeAll(['pendingLogs'], ['logs'], ['newHeads'])
    for (const id of [heads?.id, '0x0']) expect(await other.call('eth_unsubscribe', id)).toMatchObject({ result: false })
    for (const params of [[], [7]])
      expect(await other.call('eth_unsubscribe', ...params)).toMatchObject({ error: { code: -32602 } })
    transferAmounts(stack, 1)
    await pending?.waitForResults(1)
    stack.devnet.seal()
    await heads?.waitForResults(1)
  })

  it('are bounded at a hundred', async () => {
    const { stack, client } = await open()
    const subscriptions = await Promise.all(Array.from({ length: 100 }, () => client.subscribe('pendingLogs')))
    expect((await client.call('eth_subscribe', 'logs')).error).toMatchObject({
      code: -32005,
      message: expect.stringContaining('at most 100 subscriptions'),
    })
    expect((await client.call('eth_unsubscribe', subscriptions[0]?.id)).result).toBe(true)
    await client.subscribe('logs')
    transferAmounts(stack, 1)
    await Promise.all(subscriptions.slice(1).map((subscription) => subscription.waitForResults(1)))
  })

  it('are bounded by the size of their filters, until one ends', async () => {
    const { client } = await open()
    const subscribe = async (part: number) => {
      const topics = [null, Array.from({ length: 1_000 }, (_, at) => word(part * 1_000 + at))]
      return await client.call('eth_subscribe', 'logs', { topics })
    }
    const ids: unknown[] = []
    for (let part = 0; part < 47; part += 1) ids.push((await subscribe(part)).result)
    expect((await subscribe(47)).error).toMatchObject({ code: -32005 })
    await client.subscribe('logs')
    expect((await client.call('eth_unsubscribe', ids[0])).result).toBe(true)
    expect((await subscribe(48)).error).toBeUndefined()
  })
})

describe('the answer to a subscription', () => {
  it.each(['by itself', 'in a batch'])('precedes its notifications, requested %s', async (how) => {
    const { stack, devnet, client } = await open()
    const begin = devnet.chain.pending.number
    const { rawSocket } = client
    for (let round = 1; round <= 20; round += 1) {
      const request = client.request('eth_subscribe', round % 4 === 0 ? 'newHeads' : 'pendingLogs')
      const read = client.request('eth_getBlockByNumber', 'pending', true)
      rawSocket.send(JSON.stringify(how === 'in a batch' ? [request, read] : request))
      for (let step = 0; step < 5; step += 1) {
        transferAmounts(stack, round * 10 + step)
        await new Promise(setImmediate)
      }
      devnet.seal()
      const { result } = await client.answer(request.id)
      const indexOf = (fragment: string) => rawSocket.receivedTexts.findIndex((text) => text.includes(fragment))
      const [answered, notified] = [indexOf(`"id":${request.id},`), indexOf(`"subscription":"${result}"`)]
      expect(answered).toBeGreaterThanOrEqual(0)
      if (notified >= 0) expect(answered).toBeLessThan(notified)
    }
    transferAmounts(stack, 999)
    await rawSocket.until(() => rawSocket.receivedTexts.at(-1)?.includes('3e7') === true, 'the last transfer')
    expect(devnet.chain.pending.number).toBe(begin + 20)
  })

  it('has an id that differs from run to run', async () => {
    const { stack, client } = await open()
    const relay = await openRelayFor(stack.devnet, highLimits)
    const other = await RpcTestClient.open({ relay })
    expect((await client.subscribe('logs')).id).not.toBe((await other.subscribe('logs')).id)
  })
})

describe('an invalid subscription', () => {
  it.each([
    [['pendingLogs', { address: UNLISTED_ADDRESS }], /not a listed tokenized stock: 0x0707/],
    [['pendingLogs', { address: [UNLISTED_ADDRESS] }], /not a listed tokenized stock: 0x(07){20}\. .*eth_getLogs/],
    [['logs', { address: [UNLISTED_ADDRESS] }], /not a listed tokenized stock: 0x(07){20}\. .*eth_getLogs/],
    [['syncing'], /must be one of pendingLogs, logs, newHeads/],
    [['logs', { topics: ['0x1'] }], /topics/],
    [[], /must be one of/],
  ])('is refused with a sentence and the connection stays: %j', async (params, sentence) => {
    const { devnet, client } = await open()
    const { error } = await client.call('eth_subscribe', ...params)
    expect(error).toEqual({ code: -32602, message: expect.stringMatching(sentence) })
    await client.subscribe('pendingLogs')
    expect(devnet.subscriptions()).toEqual({ pendingLogs: 1, logs: 0, newHeads: 1 })
  })
})
