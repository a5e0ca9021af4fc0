import { describe, expect, it, onTestFinished } from 'vitest'
import { openChainSwitch } from '../support/chain-switch.ts'
import { openRelayBeforeList } from '../support/in-process-relay.ts'
import type { TestListener } from '../support/test-listener.ts'
import { listenToAll, movementKeysOf, openDevnet, openRelayFor, transfer } from '../support/test-stack.ts'
import { openStackWithListener, waitForSource } from './listeners.ts'

const waitForMovements = (listener: TestListener, count: number) =>
  listener.until(() => movementKeysOf(listener).length >= count, `${count} movements`)

/** Expects each movement once, by its amount. Backfilled movements may follow newer ones. */
const expectEachOnce = (listener: TestListener, raws: readonly bigint[]) => {
  const published = listener.messagesOf('transfer').map(({ raw }) => raw)
  expect(published.toSorted((a, b) => Number(a) - Number(b))).toEqual(raws.map(String))
  expect(new Set(movementKeysOf(listener)).size).toBe(raws.length)
}

describe('an upstream socket that is lost', () => {
  it('is replaced by polling within SILENCE, and used again when it is back', async () => {
    const { stack, devnet, listener } = await openStackWithListener({ SILENCE: '3s' }, 'start')
    transfer(stack, 'AAPLc', 1, 1n)
    await waitForMovements(listener, 1)
    const lostAt = Date.now()
    devnet.faults.dropSockets()
    transfer(stack, 'AAPLc', 1, 2n)
    await waitForSource(listener, 'poll')
    await waitForMovements(listener, 2)
    expect(listener.messagesOf('transfer')[1]).toMatchObject({ stage: 'preconfirmed', late: false, ingest: { source: 'poll' } })
    expect(Date.now() - lostAt).toBeLessThan(3_000)
    devnet.seal()
    transfer(stack, 'AAPLc', 1, 3n)
    await waitForMovements(listener, 3)
    devnet.faults.sockets = undefined
    await waitForSource(listener, 'pendingLogs')
    transfer(stack, 'AAPLc', 1, 4n)
    await waitForMovements(listener, 4)
    expectEachOnce(listener, [1n, 2n, 3n, 4n])
    const statuses = listener.messagesOf('status').map((status) => [status.source, status.reason])
    expect(statuses.slice(-3)).toEqual([
      ['pendingLogs', 'ok'],
      ['poll', 'unreachable'],
      ['pendingLogs', 'ok'],
    ])
  })

  it('that is closed and reopened loses no log in between', async () => {
    const { stack, devnet, listener } = await openStackWithListener({}, 'start')
    const raws: bigint[] = []
    for (let round = 1; round <= 4; round += 1) {
      devnet.faults.cutSockets()
      for (const raw of [1n, 2n, 3n]) {
        raws.push(BigInt(round) * 10n + raw)
        transfer(stack, 'AAPLc', 1, BigInt(round) * 10n + raw)
        if (raw === 2n) devnet.seal()
      }
      await waitForMovements(listener, raws.length)
    }
    expectEachOnce(listener, raws)
  })
})

describe('an upstream outage', () => {
  it('is published as down, and its movements are published after it', async () => {
    const { stack, devnet, listener } = await openStackWithListener({}, 'start')
    transfer(stack, 'AAPLc', 1, 1n)
    await waitForMovements(listener, 1)
    devnet.faults.rpc = { status: 503 }
    devnet.faults.dropSockets()
    await waitForSource(listener, 'down')
    expect(listener.messagesOf('status').at(-1)).toMatchObject({ source: 'down', reason: 'unreachable' })
    expect((await fetch(`${stack.relay.url}/readyz`)).status).toBe(503)
    expect((await fetch(`${stack.relay.url}/healthz`)).status).toBe(200)
    transfer(stack, 'AAPLc', 1, 2n)
    devnet.seal()
    transfer(stack, 'AAPLc', 1, 3n)
    devnet.seal()
    transfer(stack, 'AAPLc', 1, 4n)
    devnet.faults.clear()
    await waitForMovements(listener, 4)
    await waitForSource(listener, 'pendingLogs')
    expectEachOnce(listener, [1n, 2n, 3n, 4n])
    expect(
      listener
        .messagesOf('transfer')
        .map(({ raw, stage }) => `${raw} ${stage}`)
        .toSorted(),
    ).toEqual(['1 preconfirmed', '2 sealed', '3 sealed', '4 preconfirmed'])
    for (const { stage, block } of listener.messagesOf('transfer')) expect(block.hash === null).toBe(stage === 'preconfirmed')
    expect((await fetch(`${stack.relay.url}/readyz`)).status).toBe(200)
  })
})

describe('a subscription that is refused', () => {
  it('is replaced by polling, and nothing is published twice when sealed logs are pushed', async () => {
    const devnet = await openDevnet()
    devnet.faults.refused = ['pendingLogs']
    const relay = await openRelayFor(devnet)
    const listener = await listenToAll({ relay }, 'start')
    await devnet.until(() => devnet.subscriptions().logs === 1)
    await listener.waitFor('status', (status) => status.source === 'poll' && status.reason === 'refused')
    transfer({ devnet }, 'AAPLc', 2, 1n)
    await waitForMovements(listener, 2)
    devnet.seal()
    transfer({ devnet }, 'AAPLc', 1, 3n)
    await waitForMovements(listener, 3)
    devnet.seal()
    transfer({ devnet }, 'AAPLc', 1, 4n)
    await waitForMovements(listener, 4)
    expectEachOnce(listener, [1n, 2n, 3n, 4n])
    for (const update of listener.messagesOf('transfer')) expect(update).toMatchObject({ stage: 'preconfirmed', late: false })
  })
})

describe('an upstream of another chain', () => {
  it('is never published from', async () => {
    const devnet = await openDevnet()
    const relay = await openRelayBeforeList(devnet, { CHAIN_ID: '8453' })
    onTestFinished(() => relay.stop())
    await relay.listed
    const listener = await listenToAll({ relay }, 'start')
    expect(await listener.waitFor('hello')).toMatchObject({ chain_id: 8_453 })
    await waitForSource(listener, 'down')
    transfer({ devnet }, 'AAPLc', 2)
    devnet.seal()
    const sockets = devnet.requests.socket
    await devnet.until(() => devnet.requests.socket > sockets)
    expect(movementKeysOf(listener)).toEqual([])
    expect(devnet.requests.eth_getLogs).toBe(0)
    expect(devnet.requests.eth_subscribe).toBe(0)
    expect(await (await fetch(`${relay.url}/v1/status`)).json()).toMatchObject({ reason: 'wrong_chain', chain_id: 8_453 })
    const ready = await fetch(`${relay.url}/readyz`)
    expect(ready.status).toBe(503)
    expect(JSON.stringify(await ready.json())).toMatch(/wrong_chain/)
  })
})

describe('another chain that takes over a URL, with no request that fails', () => {
  it.each([
    ['HTTP', ({ url }: { readonly url: string }) => ({ UPSTREAM_RPC_URL: url, UPSTREAM_WS_URL: '' })],
    ['WebSocket, the only upstream', ({ wsUrl }: { readonly wsUrl: string }) => ({ UPSTREAM_RPC_URL: '', UPSTREAM_WS_URL: wsUrl })],
  ])('over %s: is noticed before anything is retracted, and is never sealed', async (_, settingsOf) => {
    const devnet = await openDevnet()
    const foreign = await openDevnet({ pace: 'manual', chainId: 7, seed: 'another' })
    const upstream = await openChainSwitch(devnet)
    const relay = await openRelayFor(devnet, settingsOf(upstream))
    const listener = await listenToAll({ relay }, 'start')
    await waitForSource(listener, 'poll')
    for (const raw of [1n, 2n, 3n]) {
      transfer({ devnet }, 'AAPLc', 1, raw)
      devnet.seal()
    }
    await listener.until(() => listener.messagesOf('seal').length === 3, 'three seals')
    transfer({ devnet }, 'AAPLc', 1, 4n)
    await waitForMovements(listener, 4)
    for (const raw of [7n, 8n, 9n, 10n, 11n]) {
      transfer({ devnet: foreign }, 'AAPLc', 1, raw)
      foreign.seal()
    }
    const reason = async () => ((await (await fetch(`${relay.url}/v1/status`)).json()) as { readonly reason: string }).reason
    upstream.devnet = foreign
    while ((await reason()) !== 'wrong_chain' && listener.messagesOf('retract').length === 0) await foreign.until(() => true)
    expect(await reason()).toBe('wrong_chain')
    expect(listener.messagesOf('retract')).toEqual([])
    expect(listener.messagesOf('seal')).toHaveLength(3)
    expectEachOnce(listener, [1n, 2n, 3n, 4n])
  })
})

describe('a new listing', () => {
  const NEW = `0xb2${'00'.repeat(17)}beef`

  it.each([
    ['pushed', {}],
    ['polled', { UPSTREAM_WS_URL: '' }],
  ])('is published within one refresh and its logs follow, without losing others, where logs are %s', async (_, settings) => {
    const devnet = await openDevnet()
    const relay = await openRelayFor(devnet, settings)
    const listener = await listenToAll({ relay }, 'start')
    await waitForSource(listener, Object.keys(settings).length > 0 ? 'poll' : 'pendingLogs')
    devnet.list.add({ contract_address: NEW, symbol: 'NEWc', name: 'New', decimals: 6, multiplier: 1 })
    const requestsBefore = devnet.requests.list
    let sent = 0
    const isListed = () => listener.messagesOf('token').some(({ symbol }) => symbol === 'NEWc')
    while (!isListed()) {
      sent += 1
      transfer({ devnet }, 'AAPLc', 1, BigInt(sent))
      if (sent % 20 === 0) devnet.seal()
      await listener.until(() => listener.messagesOf('transfer').length === sent)
    }
    expect(devnet.requests.list - requestsBefore).toBeLessThanOrEqual(2)
    expect(listener.messagesOf('token').at(-1)).toMatchObject({ change: 'listed', symbol: 'NEWc', address: NEW, before: null })
    devnet.transfer({ address: NEW, raw: 1_500_000n })
    devnet.makeFlashblock()
    const first = await listener.waitFor('transfer', ({ symbol }) => symbol === 'NEWc')
    expect(first).toMatchObject({ amount: '1.5', shares: '1.5', reference_value: null })
    expect(listener.messages.findIndex(({ type }) => type === 'transfer')).toBeGreaterThan(0)
    const others = listener.messagesOf('transfer').filter(({ symbol }) => symbol === 'AAPLc')
    expect(others.map(({ raw }) => Number(raw))).toEqual(Array.from({ length: sent }, (_, at) => at + 1))
  })
})

describe('a repeated log', () => {
  it.each(['one', 'all'] as const)('is published once, five times in the shape of %s', async (shape) => {
    const { stack, devnet, listener } = await openStackWithListener({}, 'start')
    devnet.faults.shape = shape
    devnet.faults.repeats = 5
    for (const raw of [1n, 2n, 3n]) transfer(stack, 'AAPLc', 1, raw)
    devnet.seal()
    for (const raw of [4n, 5n]) transfer(stack, 'TSLAc', 1, raw)
    await waitForMovements(listener, 5)
    expectEachOnce(listener, [1n, 2n, 3n, 4n, 5n])
  })
})
