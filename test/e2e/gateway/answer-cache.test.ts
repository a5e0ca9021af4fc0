import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { freePort } from '../../support/child-program.ts'
import { until } from '../../support/rpc-scenarios.ts'
import { hearAll, openDevnet, openWorld, relayOn, transfer } from '../../support/test-stack.ts'
import { type Answering, bare, refusal } from '../../unit/chain/rpc/fake-endpoint.ts'
import { ask } from '../../unit/devnet/devnet-client.ts'
import { eager, standIn, through } from './node-and-gateway.ts'
import { generous, RpcEar } from './rpc-test-client.ts'

/** How long an answer about the pending state is given again. */
const REFRESH_MS = 200
const CROWD = 1_000

type Asking = readonly [method: string, ...params: unknown[]]

/** A crowd over a few connections, each of whom asks the same at the same time; all that they were answered. */
async function crowd(ears: readonly RpcEar[], [method, ...params]: Asking): Promise<readonly unknown[]> {
  const given = Array.from({ length: CROWD }, (_, n) => ears[n % ears.length]?.call(method, ...params))
  return (await Promise.all(given)).map((answer) => answer?.result)
}

const nonceOf = (devnet: Devnet): Asking => ['eth_getTransactionCount', devnet.custodian, 'pending']

describe('a thousand who ask the same at once', () => {
  it('of the pending state cost one question per refresh, and are told what it is', async () => {
    const world = await openWorld(generous)
    const { devnet } = world
    const heard = await hearAll(world)
    const ears = await Promise.all(Array.from({ length: 20 }, () => RpcEar.open(world)))
    for (let round = 1; round <= 5; round += 1) {
      transfer(world)
      await heard.until(() => heard.all('transfer').length === round)
      const truth = (await ask(devnet, ...nonceOf(devnet))).result
      const [before, begin] = [devnet.requests.eth_getTransactionCount, performance.now()]
      expect(new Set(await crowd(ears, nonceOf(devnet)))).toEqual(new Set([truth]))
      const refreshes = 1 + Math.floor((performance.now() - begin) / REFRESH_MS)
      const asked = devnet.requests.eth_getTransactionCount - before
      expect(asked).toBeGreaterThan(0)
      expect(asked).toBeLessThanOrEqual(refreshes)
    }
  })

  it('of the latest block, or of a sealed one, cost one question per head, or one alone', async () => {
    const world = await openWorld(generous)
    const { devnet } = world
    const ears = await Promise.all(Array.from({ length: 20 }, () => RpcEar.open(world)))
    const number = `0x${devnet.chain.head.number.toString(16)}`
    const sealed: Asking = ['eth_getCode', devnet.list.addressOf('AAPLc'), number]
    const latest: Asking = ['eth_getTransactionCount', devnet.custodian, 'latest']
    const told = await ears[0]?.subscribe('newHeads')
    for (let head = 1; head <= 3; head += 1) {
      transfer(world)
      devnet.seal()
      await told?.hear(head)
      const before = devnet.requests.eth_getTransactionCount
      const truth = (await ask(devnet, ...latest)).result
      expect(new Set(await crowd(ears, latest))).toEqual(new Set([truth]))
      expect(new Set(await crowd(ears, sealed)).size).toBe(1)
      // The test itself asked once.
      expect(devnet.requests.eth_getTransactionCount - before - 1).toBe(1)
    }
    expect(devnet.requests.eth_getCode).toBe(1)
    const metrics = await (await fetch(`${world.relay.url}/metrics`)).text()
    expect(metrics).toContain('stocktape_rpc_passed_total{method="eth_getCode"} 1\n')
  })

  it('while a busy block is pushed log by log cost no question per log', async () => {
    const world = await openWorld(generous)
    const { devnet } = world
    const heard = await hearAll(world)
    const ears = await Promise.all(Array.from({ length: 20 }, () => RpcEar.open(world)))
    await crowd(ears, nonceOf(devnet))
    const [before, begin] = [devnet.requests.eth_getTransactionCount, performance.now()]
    transfer(world, 'AAPLc', 200)
    while (heard.all('transfer').length < 200) await crowd(ears, nonceOf(devnet))
    // What comes in one turn is one move; the logs of a flashblock come in a few.
    const refreshes = 2 + Math.floor((performance.now() - begin) / REFRESH_MS)
    expect(devnet.requests.eth_getTransactionCount - before).toBeLessThanOrEqual(refreshes + 200 / 4)
    expect(new Set(await crowd(ears, nonceOf(devnet))).size).toBe(1)
  })
})

/** A devnet, an upstream before it that answers some questions itself, and a relay that asks that one first. */
async function openBehind(answers: (method: string) => Answering | null, more: (devnet: Devnet) => readonly string[]) {
  const devnet = await openDevnet()
  const upstream = await standIn(devnet, ({ method }) => answers(method))
  const rpcUrl = [upstream.url, ...more(devnet)].join(',')
  const relay = await relayOn({ ...devnet, rpcUrl }, eager)
  const heard = await hearAll({ relay }, 'start')
  await heard.hear('status', ({ source }) => source === 'pendingLogs')
  return { devnet, upstream, relay, heard, node: through(devnet, relay) }
}

const hangs: Answering = () => {}
const breaksOff: Answering = (_, response) => response.destroy()

describe('an upstream that fails', () => {
  const balance = (devnet: Devnet): Asking => ['eth_getBalance', devnet.custodian, 'latest']

  it.each<[string, Answering]>([
    ['answers 503', bare(503)],
    ['answers 429', bare(429)],
    ['says that it is busy', refusal(429, -32_016, 'over rate limit')],
    ['says that it is not well', refusal(200, -32_011, 'no backend is currently healthy to serve traffic')],
    ['lacks the block', refusal(200, -32_000, 'header not found')],
    ['answers garbage', bare(200, '<html>')],
    ['breaks off', breaksOff],
    ['hangs', hangs],
  ])('is stood in for by the second of UPSTREAM_RPC_URL where it %s', async (_, failing) => {
    const fails = (method: string) => (method === 'eth_getBalance' ? failing : null)
    const { devnet, node, heard } = await openBehind(fails, ({ rpcUrl }) => [rpcUrl])
    expect(await ask(node, ...balance(devnet))).toEqual(await ask(devnet, ...balance(devnet)))
    expect(heard.all('status').map(({ reason }) => reason)).toEqual(['ok'])
  })

  it('is stood in for where nobody is there', async () => {
    const devnet = await openDevnet()
    const rpcUrl = `http://127.0.0.1:${await freePort()},${devnet.rpcUrl}`
    const relay = await relayOn({ ...devnet, rpcUrl }, eager)
    expect(await ask(through(devnet, relay), ...balance(devnet))).toEqual(await ask(devnet, ...balance(devnet)))
  })

  it('has what it says passed on with its code, where all fail, and nothing of where it is', async () => {
    const busy = refusal(429, -32_016, 'over rate limit of key-9f8e7d')
    const { devnet, node } = await openBehind(
      (method) => (method === 'eth_getBalance' ? busy : null),
      () => [],
    )
    const { status, error } = await ask(node, ...balance(devnet))
    expect({ status, error }).toEqual({ status: 200, error: { code: -32_016, message: 'over rate limit of …' } })
  })

  it('is left alone after a 429, for as long as it asks for, and nobody else is told down', async () => {
    const busy = refusal(429, -32_016, 'over rate limit', { 'retry-after': '1' })
    let fails = true
    const { devnet, upstream, node, heard } = await openBehind(
      (method) => (fails && method === 'eth_getBalance' ? busy : null),
      () => [],
    )
    const asked = () => upstream.methods().filter((method) => method === 'eth_getBalance').length
    expect((await ask(node, ...balance(devnet))).error).toMatchObject({ code: -32_016 })
    expect((await ask(node, ...balance(devnet))).error).toMatchObject({ code: -32_005 })
    expect(asked()).toBe(1)
    fails = false
    const begin = performance.now()
    await until(async () => (await ask(node, ...balance(devnet))).error === undefined, 'an answer')
    expect(performance.now() - begin).toBeGreaterThan(500)
    expect(asked()).toBe(2)
    expect(heard.all('status').map(({ source, reason }) => `${source} ${reason}`)).toEqual(['pendingLogs ok'])
  })
})

describe('a question that always times out', () => {
  it('is -32000 each time, and leaves the source of the relay and all other questions as they are', async () => {
    const { devnet, relay, node, heard } = await openBehind(
      (method) => (method === 'eth_getStorageAt' ? hangs : null),
      () => [],
    )
    const token = devnet.list.addressOf('AAPLc')
    const slow = ['0x1', '0x2', '0x1', '0x3'].map((slot) => ask(node, 'eth_getStorageAt', token, slot, 'latest'))
    let over = 0
    for (const answer of slow) void answer.then(() => (over += 1))
    let raw = 0n
    while (over < slow.length) {
      raw += 1n
      transfer({ devnet }, 'AAPLc', 1, raw)
      devnet.seal()
      await heard.hear('transfer', (one) => one.raw === String(raw))
      const nonce = ['eth_getTransactionCount', devnet.custodian, 'pending'] as const
      await until(async () => (await ask(node, ...nonce)).result === (await ask(devnet, ...nonce)).result, 'the nonce')
    }
    for (const { status, error } of await Promise.all(slow))
      expect({ status, code: error?.code }).toEqual({ status: 200, code: -32_000 })
    expect(heard.all('status').map(({ source, reason }) => `${source} ${reason}`)).toEqual(['pendingLogs ok'])
    expect((await fetch(`${relay.url}/readyz`)).status).toBe(200)
  })
})
