import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { freePort } from '../../support/child-program.ts'
import { until } from '../../support/rpc-scenarios.ts'
import { listenToAll, openDevnet, openRelayFor, openTestStack, transfer } from '../../support/test-stack.ts'
import { errorResponder, type Responder, rawResponder } from '../../unit/chain/rpc/fake-endpoint.ts'
import { rpcCall } from '../../unit/devnet/devnet-client.ts'
import { highRpcRateSettings, nodeWithOverrides, throughRelay } from './node-and-gateway.ts'
import { highLimits, RpcTestClient } from './rpc-test-client.ts'

/** How long an answer about the pending state is given again. */
const REFRESH_MS = 200
const CALLERS = 1_000

type RpcQuery = readonly [method: string, ...params: unknown[]]

/** A crowd over a few connections, each of whom asks the same at the same time; all that they were answered. */
async function callAtOnce(
  listeners: readonly RpcTestClient[],
  [method, ...params]: RpcQuery,
): Promise<readonly unknown[]> {
  const given = Array.from({ length: CALLERS }, (_, n) => listeners[n % listeners.length]?.call(method, ...params))
  return (await Promise.all(given)).map((answer) => answer?.result)
}

const nonceQuery = (devnet: Devnet): RpcQuery => ['eth_getTransactionCount', devnet.custodian, 'pending']

describe('a thousand who ask the same at once', () => {
  it('of the pending state cost one question per refresh, and are told what it is', async () => {
    const stack = await openTestStack(highLimits)
    const { devnet } = stack
    const received = await listenToAll(stack)
    const listeners = await Promise.all(Array.from({ length: 20 }, () => RpcTestClient.open(stack)))
    for (let round = 1; round <= 5; round += 1) {
      transfer(stack)
      await received.until(() => received.messagesOf('transfer').length === round)
      const truth = (await rpcCall(devnet, ...nonceQuery(devnet))).result
      const [before, begin] = [devnet.requests.eth_getTransactionCount, performance.now()]
      expect(new Set(await callAtOnce(listeners, nonceQuery(devnet)))).toEqual(new Set([truth]))
      const refreshes = 1 + Math.floor((performance.now() - begin) / REFRESH_MS)
      const asked = devnet.requests.eth_getTransactionCount - before
      expect(asked).toBeGreaterThan(0)
      expect(asked).toBeLessThanOrEqual(refreshes)
    }
  })

  it('of the latest block, or of a sealed one, cost one question per head, or one alone', async () => {
    const stack = await openTestStack(highLimits)
    const { devnet } = stack
    const listeners = await Promise.all(Array.from({ length: 20 }, () => RpcTestClient.open(stack)))
    const number = `0x${devnet.chain.head.number.toString(16)}`
    const sealed: RpcQuery = ['eth_getCode', devnet.list.addressOf('AAPLc'), number]
    const latest: RpcQuery = ['eth_getTransactionCount', devnet.custodian, 'latest']
    const published = await listeners[0]?.subscribe('newHeads')
    for (let head = 1; head <= 3; head += 1) {
      transfer(stack)
      devnet.seal()
      await published?.waitForResults(head)
      const before = devnet.requests.eth_getTransactionCount
      const truth = (await rpcCall(devnet, ...latest)).result
      expect(new Set(await callAtOnce(listeners, latest))).toEqual(new Set([truth]))
      expect(new Set(await callAtOnce(listeners, sealed)).size).toBe(1)
      // The test itself asked once.
      expect(devnet.requests.eth_getTransactionCount - before - 1).toBe(1)
    }
    expect(devnet.requests.eth_getCode).toBe(1)
    const metrics = await (await fetch(`${stack.relay.url}/metrics`)).text()
    expect(metrics).toContain('stocktape_rpc_passed_total{method="eth_getCode"} 1\n')
  })

  it('while a busy block is pushed log by log cost no question per log', async () => {
    const stack = await openTestStack(highLimits)
    const { devnet } = stack
    const received = await listenToAll(stack)
    const listeners = await Promise.all(Array.from({ length: 20 }, () => RpcTestClient.open(stack)))
    await callAtOnce(listeners, nonceQuery(devnet))
    const [before, begin] = [devnet.requests.eth_getTransactionCount, performance.now()]
    transfer(stack, 'AAPLc', 200)
    while (received.messagesOf('transfer').length < 200) await callAtOnce(listeners, nonceQuery(devnet))
    // What comes in one turn is one move; the logs of a flashblock come in a few.
    const refreshes = 2 + Math.floor((performance.now() - begin) / REFRESH_MS)
    expect(devnet.requests.eth_getTransactionCount - before).toBeLessThanOrEqual(refreshes + 200 / 4)
    expect(new Set(await callAtOnce(listeners, nonceQuery(devnet))).size).toBe(1)
  })
})

/** A devnet, an upstream before it that answers some questions itself, and a relay that asks that one first. */
async function openRelayBehindNode(
  answers: (method: string) => Responder | null,
  more: (devnet: Devnet) => readonly string[],
) {
  const devnet = await openDevnet()
  const upstream = await nodeWithOverrides(devnet, ({ method }) => answers(method))
  const rpcUrl = [upstream.url, ...more(devnet)].join(',')
  const relay = await openRelayFor({ ...devnet, rpcUrl }, highRpcRateSettings)
  const received = await listenToAll({ relay }, 'start')
  await received.waitFor('status', ({ source }) => source === 'pendingLogs')
  return { devnet, upstream, relay, heard: received, node: throughRelay(devnet, relay) }
}

const neverAnswers: Responder = () => {}
const resetsConnection: Responder = (_, response) => response.destroy()

describe('an upstream that fails', () => {
  const balance = (devnet: Devnet): RpcQuery => ['eth_getBalance', devnet.custodian, 'latest']

  it.each<[string, Responder]>([
    ['answers 503', rawResponder(503)],
    ['answers 429', rawResponder(429)],
    ['says that it is busy', errorResponder(429, -32_016, 'over rate limit')],
    ['says that it is not well', errorResponder(200, -32_011, 'no backend is currently healthy to serve traffic')],
    ['lacks the block', errorResponder(200, -32_000, 'header not found')],
    ['answers garbage', rawResponder(200, '<html>')],
    ['breaks off', resetsConnection],
    ['hangs', neverAnswers],
  ])('is stood in for by the second of UPSTREAM_RPC_URL where it %s', async (_, failing) => {
    const fails = (method: string) => (method === 'eth_getBalance' ? failing : null)
    const { devnet, node, heard } = await openRelayBehindNode(fails, ({ rpcUrl }) => [rpcUrl])
    expect(await rpcCall(node, ...balance(devnet))).toEqual(await rpcCall(devnet, ...balance(devnet)))
    expect(heard.messagesOf('status').map(({ reason }) => reason)).toEqual(['ok'])
  })

  it('is stood in for where nobody is there', async () => {
    const devnet = await openDevnet()
    const rpcUrl = `http://127.0.0.1:${await freePort()},${devnet.rpcUrl}`
    const relay = await openRelayFor({ ...devnet, rpcUrl }, highRpcRateSettings)
    expect(await rpcCall(throughRelay(devnet, relay), ...balance(devnet))).toEqual(
      await rpcCall(devnet, ...balance(devnet)),
    )
  })

  it('has what it says passed on with its code, where all fail, and nothing of where it is', async () => {
    const busy = errorResponder(429, -32_016, 'over rate limit of key-9f8e7d')
    const { devnet, node } = await openRelayBehindNode(
      (method) => (method === 'eth_getBalance' ? busy : null),
      () => [],
    )
    const { status, error } = await rpcCall(node, ...balance(devnet))
    expect({ status, error }).toEqual({ status: 200, error: { code: -32_016, message: 'over rate limit of …' } })
  })

  it('is left alone after a 429, for as long as it asks for, and nobody else is told down', async () => {
    const busy = errorResponder(429, -32_016, 'over rate limit', { 'retry-after': '1' })
    let fails = true
    const { devnet, upstream, node, heard } = await openRelayBehindNode(
      (method) => (fails && method === 'eth_getBalance' ? busy : null),
      () => [],
    )
    const asked = () => upstream.methods().filter((method) => method === 'eth_getBalance').length
    expect((await rpcCall(node, ...balance(devnet))).error).toMatchObject({ code: -32_016 })
    expect((await rpcCall(node, ...balance(devnet))).error).toMatchObject({ code: -32_005 })
    expect(asked()).toBe(1)
    fails = false
    const begin = performance.now()
    await until(async () => (await rpcCall(node, ...balance(devnet))).error === undefined, 'an answer')
    expect(performance.now() - begin).toBeGreaterThan(500)
    expect(asked()).toBe(2)
    expect(heard.messagesOf('status').map(({ source, reason }) => `${source} ${reason}`)).toEqual(['pendingLogs ok'])
  })
})

describe('a question that always times out', () => {
  it('is -32000 each time, and leaves the source of the relay and all other questions as they are', async () => {
    const { devnet, relay, node, heard } = await openRelayBehindNode(
      (method) => (method === 'eth_getStorageAt' ? neverAnswers : null),
      () => [],
    )
    const token = devnet.list.addressOf('AAPLc')
    const slow = ['0x1', '0x2', '0x1', '0x3'].map((slot) => rpcCall(node, 'eth_getStorageAt', token, slot, 'latest'))
    let over = 0
    for (const answer of slow) void answer.then(() => (over += 1))
    let raw = 0n
    while (over < slow.length) {
      raw += 1n
      transfer({ devnet }, 'AAPLc', 1, raw)
      devnet.seal()
      await heard.waitFor('transfer', (one) => one.raw === String(raw))
      const nonce = ['eth_getTransactionCount', devnet.custodian, 'pending'] as const
      await until(
        async () => (await rpcCall(node, ...nonce)).result === (await rpcCall(devnet, ...nonce)).result,
        'the nonce',
      )
    }
    for (const { status, error } of await Promise.all(slow))
      expect({ status, code: error?.code }).toEqual({ status: 200, code: -32_000 })
    expect(heard.messagesOf('status').map(({ source, reason }) => `${source} ${reason}`)).toEqual(['pendingLogs ok'])
    expect((await fetch(`${relay.url}/readyz`)).status).toBe(200)
  })
})
