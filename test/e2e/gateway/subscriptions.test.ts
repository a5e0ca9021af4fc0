import { setMaxListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { openDevnet, openRelayFor, openTestStack } from '../../support/test-stack.ts'
import { highLimits } from './node-and-gateway.ts'
import { logSummaries, RpcTestClient, type TestSubscription, transferAmounts } from './rpc-test-client.ts'

const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef' as const
const [topic1, topic2] = [`0x${'01'.repeat(32)}`, `0x${'02'.repeat(32)}`] as const
/** The relay follows a node without a socket. */
const polling = { UPSTREAM_WS_URL: '' }

const word = (value: number): `0x${string}` => `0x${value.toString(16).padStart(64, '0')}`
const byAmount = (one: string, other: string) => Math.abs(Number.parseInt(one, 10)) - Math.abs(Number.parseInt(other, 10))
const headHashes = ({ results }: TestSubscription) => results.map((head) => (head as { hash: string }).hash)

/** A client with three subscriptions; the relay is pushed its logs unless the settings say that it polls. */
async function open(settings: Record<string, string> = {}) {
  const stack = settings === polling ? await openPollingStack() : await openTestStack({ ...highLimits, ...settings })
  const client = await RpcTestClient.open(stack)
  const pending = await client.subscribe('pendingLogs')
  const logs = await client.subscribe('logs')
  const heads = await client.subscribe('newHeads')
  return { stack, devnet: stack.devnet, client, pending, logs, heads }
}

async function openPollingStack() {
  const devnet = await openDevnet()
  return { devnet, relay: await openRelayFor(devnet, { ...highLimits, ...polling }) }
}

describe('subscriptions on one connection', () => {
  it('bring what the node sends, field by field', async () => {
    const devnet = await openDevnet({ pace: 'manual' })
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
    const other = await RpcTestClient.open(stack)
    for (const id of [ids[1], '0x0']) expect(await other.call('eth_unsubscribe', id)).toMatchObject({ result: false })
    for (const result of [true, false]) expect(await client.call('eth_unsubscribe', ids[1])).toMatchObject({ result })
    transferAmounts(stack, 3)
    await all[0]?.waitForResults(3)
    await client.flush()
    expect(all[1]?.results).toHaveLength(1)
  })

  it('are bounded at a hundred', async () => {
    const stack = await openTestStack(highLimits)
    const client = await RpcTestClient.open(stack)
    const subscriptions = await Promise.all(Array.from({ length: 100 }, () => client.subscribe('pendingLogs')))
    const message = expect.stringContaining('at most 100 subscriptions')
    expect((await client.call('eth_subscribe', 'logs')).error).toEqual({ code: -32005, message })
    expect((await client.call('eth_unsubscribe', subscriptions[0]?.id)).result).toBe(true)
    await client.subscribe('logs')
    transferAmounts(stack, 1)
    await Promise.all(subscriptions.slice(1).map((subscription) => subscription.waitForResults(1)))
  })

  it('are bounded by the size of their filters, until one ends or its connection does', async () => {
    const { stack, client } = await open()
    const subscribe = async (part: number, { by = client, address = [] as string[] } = {}) => {
      const topics = [null, Array.from({ length: 1_000 }, (_, at) => word(part * 1_000 + at))]
      return await by.call('eth_subscribe', 'logs', { address, topics })
    }
    const refused = await Promise.all(Array.from({ length: 60 }, (_, part) => subscribe(part, { address: [topic1.slice(0, 42)] })))
    expect(new Set(refused.map(({ error }) => error?.code))).toEqual(new Set([-32602]))
    const ids: unknown[] = []
    for (let part = 0; part < 47; part += 1) ids.push((await subscribe(part)).result)
    expect((await subscribe(47)).error).toMatchObject({ code: -32005 })
    await client.subscribe('logs')
    expect((await client.call('eth_unsubscribe', ids[0])).result).toBe(true)
    expect((await subscribe(48)).error).toBeUndefined()
    const by = await RpcTestClient.open(stack)
    expect((await subscribe(49, { by })).error).toMatchObject({ code: -32005 })
    client.rawSocket.socket.terminate()
    await expect.poll(async () => (await subscribe(49, { by })).error).toBeUndefined()
  })

  it.each(['alone', 'in a batch'])('get their answer before their notifications, requested %s', async (how) => {
    const { stack, devnet, client } = await open()
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
  })

  it('have ids that differ from run to run', async () => {
    const { stack, logs } = await open()
    const other = await RpcTestClient.open({ relay: await openRelayFor(stack.devnet, highLimits) })
    expect((await other.subscribe('logs')).id.slice(0, -8)).not.toBe(logs.id.slice(0, -8))
  })
})

// Logs that are sent, repeated and removed have unit tests, and a law of the simulation.
describe('an upstream that repeats logs', () => {
  it('in another order is passed on in that order', async () => {
    const { stack, devnet, client, pending, logs } = await open()
    Object.assign(devnet.faults, { shuffle: true, repeats: 3 })
    transferAmounts(stack, 1, 2, 3, 4, 5, 6)
    devnet.seal()
    await logs.waitForResults(6)
    await client.flush()
    expect(logSummaries(pending).toSorted(byAmount)).toEqual(['+1', '+2', '+3', '+4', '+5', '+6'])
  })
})

describe('an upstream that disconnects', () => {
  it('and comes back leaves no gap and no repetition under the same ids', async () => {
    const { stack, devnet, client, pending, logs, heads } = await open()
    const raws: number[] = []
    for (let round = 1; round <= 4; round += 1) {
      devnet.faults.cutSockets()
      for (const step of [1, 2, 3]) {
        raws.push(round * 10 + step)
        transferAmounts(stack, round * 10 + step)
        if (step === 2) devnet.seal()
      }
      await pending.waitForResults(raws.length)
      await heads.waitForResults(round)
    }
    devnet.seal()
    await logs.waitForResults(raws.length)
    await heads.waitForResults(5)
    await client.flush()
    const amountsOf = (subscription: TestSubscription) => subscription.logs.map(({ data }) => Number(data))
    expect(amountsOf(pending).toSorted((a, b) => a - b)).toEqual(raws)
    expect(amountsOf(logs)).toEqual(raws)
    const { number } = devnet.chain.head
    const headNumbers = heads.results.map((head) => Number((head as { number: string }).number))
    expect(headNumbers).toEqual([4, 3, 2, 1, 0].map((back) => number - back))
  })

  it('and restarts without its blocks gets its logs removed, and the new chain continues', async () => {
    const { devnet, client, pending, logs, heads } = await open()
    transferAmounts({ devnet }, 1)
    devnet.seal()
    await logs.waitForResults(1)
    transferAmounts({ devnet }, 2)
    await pending.waitForResults(2)
    await devnet.stop()
    const port = Number(new URL(devnet.url).port)
    const second: Devnet = await openDevnet({ pace: 'manual', port, now: () => Date.now() + 60_000 })
    await second.until(() => second.subscriptions().pendingLogs === 1)
    transferAmounts({ devnet: second }, 3)
    second.seal()
    await logs.waitForResults(3)
    await pending.waitForResults(5)
    expect(logSummaries(logs)).toEqual(['+1 sealed', '-1 sealed', '+3 sealed'])
    expect(logSummaries(pending).toSorted(byAmount)).toEqual(['+1', '-1', '+2', '-2', '+3'])
    const { hash } = second.chain.head
    await client.rawSocket.until(() => headHashes(heads).includes(hash), 'the new head')
  })
})

describe('a reorganisation', () => {
  it('brings the sealed logs and heads that the node itself sends', async () => {
    const { stack, devnet, client, logs, heads } = await open()
    const address = devnet.tokens.map(({ contractAddress }) => contractAddress)
    const node = await RpcTestClient.open(devnet.wsUrl)
    const [directLogs, directHeads] = await node.subscribeAll(['logs', { address }], ['newHeads'])
    const hashes: `0x${string}`[] = []
    for (const [at, raws] of [[1, 2], [3], [4, 5]].entries()) {
      hashes.push(...transferAmounts(stack, ...raws))
      devnet.seal()
      await heads.waitForResults(at + 1)
    }
    await logs.waitForResults(5)
    devnet.reorg(2, hashes.slice(2, 3))
    await directHeads?.waitForResults(5)
    await heads.waitForResults(5)
    await logs.waitForResults(10)
    await client.flush()
    expect([logs.results, heads.results]).toEqual([directLogs?.results, directHeads?.results])
  })

  it('that the relay polls together with a new head repeats no head and skips none', async () => {
    const { devnet, client, heads } = await open(polling)
    const expected: string[] = []
    for (const count of [1, 2]) {
      expected.push(devnet.seal().hash)
      await heads.waitForResults(count)
    }
    for (const round of [1, 2, 3]) {
      const before = heads.results.length
      transferAmounts({ devnet }, round)
      expected.push(...devnet.reorg(1).map(({ hash }) => hash), devnet.seal().hash)
      await heads.waitForResults(before + 2)
      await client.rawSocket.until(() => headHashes(heads).includes(expected.at(-1) ?? ''), 'the newest head')
    }
    await client.flush()
    expect(headHashes(heads)).toEqual(expected)
  })
})

it('five hundred subscriptions to pending logs cost the node one, and each receives each log once, and its removal', async () => {
  const CONNECTIONS = 250
  setMaxListeners(CONNECTIONS + 10)
  const stack = await openTestStack(highLimits)
  const { devnet } = stack
  const { eth_subscribe: subscribeCount } = devnet.requests
  const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => RpcTestClient.open(stack)))
  const subscribe = (filter: object) => Promise.all(clients.map((client) => client.subscribe('pendingLogs', filter)))
  const [all, apples] = [await subscribe({}), await subscribe({ address: devnet.list.addressOf('AAPLc') })]
  transferAmounts(stack, 1)
  devnet.transfer({ symbol: 'TSLAc', raw: 2n })
  const [, dropped = '0x'] = transferAmounts(stack, 3, 4)
  await Promise.all(all.map((subscription) => subscription.waitForResults(4)))
  devnet.faults.drop(dropped)
  devnet.seal()
  await Promise.all(all.map((subscription) => subscription.waitForResults(5)))
  await Promise.all(clients.map((client) => client.flush()))
  for (const subscription of all) expect(logSummaries(subscription)).toEqual(['+1', '+2', '+3', '+4', '-4'])
  for (const subscription of apples) expect(logSummaries(subscription)).toEqual(['+1', '+3', '+4', '-4'])
  expect(devnet.subscriptions()).toEqual({ pendingLogs: 1, logs: 0, newHeads: 1 })
  expect([devnet.requests.eth_subscribe - subscribeCount, devnet.requests.eth_unsubscribe, devnet.sockets()]).toEqual([0, 0, 1])
})
