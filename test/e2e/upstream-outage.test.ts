import { describe, expect, it, onTestFinished } from 'vitest'
import { launchRelay } from '../support/in-process-relay.ts'
import { type Ear, listenSse } from '../support/test-listener.ts'
import { hearAll, movedKeys, openDevnet, openWorld, relayOn, transfer, type World } from '../support/test-stack.ts'

/** The newest thing said of the source is this. */
const source = (ear: Ear, name: string) =>
  ear.until(() => ear.all('status').at(-1)?.source === name, `that the source is ${name}`)

const moves = (ear: Ear, count: number) => ear.until(() => movedKeys(ear).length >= count, `${count} movements`)

/** Every movement was told, each once: the amounts tell them apart. What is caught up may come after what is new. */
const eachOnce = (ear: Ear, raws: readonly bigint[]) => {
  const told = ear.all('transfer').map(({ raw }) => raw)
  expect(told.toSorted((a, b) => Number(a) - Number(b))).toEqual(raws.map(String))
  expect(new Set(movedKeys(ear)).size).toBe(raws.length)
}

describe('an upstream socket that is lost', () => {
  it('is stood in for by polling within SILENCE_MS, and listened to again when it is back', async () => {
    const world = await openWorld({ SILENCE_MS: '3000' })
    const { devnet } = world
    const ear = await hearAll(world, 'start')
    await source(ear, 'pendingLogs')
    transfer(world, 'AAPLc', 1, 1n)
    await moves(ear, 1)
    const lostAt = Date.now()
    devnet.weather.dropSockets()
    transfer(world, 'AAPLc', 1, 2n)
    await source(ear, 'poll')
    await moves(ear, 2)
    expect(ear.all('transfer')[1]).toMatchObject({ stage: 'preconfirmed', late: false, ingest: { source: 'poll' } })
    expect(Date.now() - lostAt).toBeLessThan(3_000)
    devnet.seal()
    transfer(world, 'AAPLc', 1, 3n)
    await moves(ear, 3)
    devnet.weather.sockets = undefined
    await source(ear, 'pendingLogs')
    transfer(world, 'AAPLc', 1, 4n)
    await moves(ear, 4)
    eachOnce(ear, [1n, 2n, 3n, 4n])
    const said = ear.all('status').map((status) => [status.source, status.reason])
    expect(said.slice(-3)).toEqual([
      ['pendingLogs', 'ok'],
      ['poll', 'unreachable'],
      ['pendingLogs', 'ok'],
    ])
  })

  it('that is closed and let in again loses nothing that was made in between', async () => {
    const world = await openWorld()
    const { devnet } = world
    const ear = await hearAll(world, 'start')
    await source(ear, 'pendingLogs')
    const raws: bigint[] = []
    for (let round = 1; round <= 4; round += 1) {
      devnet.weather.cut()
      for (const raw of [1n, 2n, 3n]) {
        raws.push(BigInt(round) * 10n + raw)
        transfer(world, 'AAPLc', 1, BigInt(round) * 10n + raw)
        if (raw === 2n) devnet.seal()
      }
      await moves(ear, raws.length)
    }
    eachOnce(ear, raws)
  })
})

describe('an upstream that is gone', () => {
  it('is called down, and what happened meanwhile is told once it is back', async () => {
    const world = await openWorld()
    const { devnet } = world
    const ear = await hearAll(world, 'start')
    await source(ear, 'pendingLogs')
    transfer(world, 'AAPLc', 1, 1n)
    await moves(ear, 1)
    devnet.weather.rpc = { status: 503 }
    devnet.weather.dropSockets()
    await source(ear, 'down')
    expect(ear.all('status').at(-1)).toMatchObject({ source: 'down', reason: 'unreachable' })
    expect((await fetch(`${world.relay.url}/readyz`)).status).toBe(503)
    expect((await fetch(`${world.relay.url}/healthz`)).status).toBe(200)
    transfer(world, 'AAPLc', 1, 2n)
    devnet.seal()
    transfer(world, 'AAPLc', 1, 3n)
    devnet.seal()
    transfer(world, 'AAPLc', 1, 4n)
    devnet.weather.clear()
    await moves(ear, 4)
    await source(ear, 'pendingLogs')
    eachOnce(ear, [1n, 2n, 3n, 4n])
    expect(
      ear
        .all('transfer')
        .map(({ raw, stage }) => `${raw} ${stage}`)
        .toSorted(),
    ).toEqual(['1 preconfirmed', '2 sealed', '3 sealed', '4 preconfirmed'])
    for (const { stage, block } of ear.all('transfer')) expect(block.hash === null).toBe(stage === 'preconfirmed')
    expect((await fetch(`${world.relay.url}/readyz`)).status).toBe(200)
  })

  it('is polled for ever where it has no socket at all', async () => {
    const devnet = await openDevnet()
    const relay = await relayOn(devnet, { UPSTREAM_WS_URL: '' })
    const ear = await hearAll({ relay }, 'start')
    await source(ear, 'poll')
    expect(ear.all('status').at(-1)).toMatchObject({ reason: 'ok' })
    transfer({ devnet }, 'AAPLc', 2, 1n)
    await moves(ear, 2)
    devnet.seal()
    transfer({ devnet }, 'AAPLc', 1, 3n)
    await moves(ear, 3)
    eachOnce(ear, [1n, 2n, 3n])
    expect(devnet.requests.socket).toBe(0)
    for (const update of ear.all('transfer')) expect(update).toMatchObject({ stage: 'preconfirmed', late: false })
  })
})

describe('a subscription that is refused', () => {
  it('is stood in for by polling, and nothing is told twice when the sealed logs are pushed', async () => {
    const devnet = await openDevnet()
    devnet.weather.refused = ['pendingLogs']
    const relay = await relayOn(devnet)
    const ear = await hearAll({ relay }, 'start')
    await devnet.until(() => devnet.subscriptions().logs === 1)
    await ear.hear('status', (status) => status.source === 'poll' && status.reason === 'refused')
    transfer({ devnet }, 'AAPLc', 2, 1n)
    await moves(ear, 2)
    devnet.seal()
    transfer({ devnet }, 'AAPLc', 1, 3n)
    await moves(ear, 3)
    devnet.seal()
    transfer({ devnet }, 'AAPLc', 1, 4n)
    await moves(ear, 4)
    eachOnce(ear, [1n, 2n, 3n, 4n])
    for (const update of ear.all('transfer')) expect(update).toMatchObject({ stage: 'preconfirmed', late: false })
  })
})

describe('an upstream of another chain', () => {
  it('is never relayed', async () => {
    const devnet = await openDevnet()
    const relay = await launchRelay(devnet, { CHAIN_ID: '8453' })
    onTestFinished(() => relay.stop())
    await relay.listed
    const ear = await hearAll({ relay }, 'start')
    expect(await ear.hear('hello')).toMatchObject({ chain_id: 8_453 })
    await source(ear, 'down')
    transfer({ devnet }, 'AAPLc', 2)
    devnet.seal()
    const sockets = devnet.requests.socket
    await devnet.until(() => devnet.requests.socket > sockets)
    expect(movedKeys(ear)).toEqual([])
    expect(devnet.requests.eth_getLogs).toBe(0)
    expect(devnet.requests.eth_subscribe).toBe(0)
  })

  it('behind the socket alone is never listened to either: the right one is polled', async () => {
    const devnet = await openDevnet()
    const foreign = await openDevnet({ pace: 'manual', chainId: 7, seed: 'another' })
    const relay = await relayOn(devnet, { UPSTREAM_WS_URL: foreign.wsUrl, CHAIN_ID: String(devnet.chainId) })
    const ear = await hearAll({ relay }, 'start')
    await source(ear, 'poll')
    transfer({ devnet: foreign }, 'AAPLc', 1, 7n)
    transfer({ devnet }, 'AAPLc', 1, 8n)
    await moves(ear, 1)
    const sockets = foreign.requests.socket
    await foreign.until(() => foreign.requests.socket > sockets)
    eachOnce(ear, [8n])
    expect(foreign.subscriptions().pendingLogs).toBe(0)
  })
})

describe('a list that cannot be read', () => {
  it.each([
    ['is refused', (world: World) => Object.assign(world.devnet.weather, { list: { status: 500 } })],
    ['is empty', (world: World) => world.devnet.list.corrupt('{"tokens":[]}')],
    ['is not JSON', (world: World) => world.devnet.list.corrupt('<html>')],
    ['is cut short', (world: World) => world.devnet.list.corrupt((body) => body.slice(0, 300))],
    ['has one bad record', (world: World) => world.devnet.list.add({ symbol: 'BADc', decimals: 8 })],
  ])('because it %s keeps the last good one', async (_, spoil) => {
    const world = await openWorld()
    const { devnet, relay } = world
    const ear = await hearAll(world, 'start')
    await source(ear, 'pendingLogs')
    spoil(world)
    const asked = devnet.requests.list
    await devnet.until(() => devnet.requests.list >= asked + 3)
    transfer(world, 'TSLAc')
    await ear.hear('transfer')
    const late = await listenSse(`${relay.url}/v1/stream?symbols=*&types=token&since=start`)
    onTestFinished(() => late.close())
    await late.hear('live')
    expect(late.all('snapshot').length).toBe(devnet.tokens.length)
    expect(late.all('token').map(({ change }) => change)).toEqual(Array(devnet.tokens.length).fill('listed'))
  })
})

describe('a list that loses tokens', () => {
  it('is news at once for the tokens that it holds, and delists none before it is confirmed', async () => {
    const world = await openWorld()
    const { devnet } = world
    const ear = await hearAll(world, 'start')
    devnet.list.change('AAPLc', { nav_price: 400.5, nav_price_updated_at: new Date().toISOString() })
    const address = devnet.list.addressOf('TSLAc')
    devnet.list.remove('TSLAc')
    await ear.hear('nav', ({ symbol, nav }) => symbol === 'AAPLc' && nav.price === '400.5')
    devnet.transfer({ address, raw: 1n })
    devnet.flash()
    await ear.hear('transfer', ({ symbol }) => symbol === 'TSLAc')
    expect(ear.all('token').filter(({ change }) => change === 'delisted')).toEqual([])
  })
})

describe('a new listing', () => {
  const NEW = `0xb2${'00'.repeat(17)}beef`

  it.each([
    ['pushed', {}],
    ['polled', { UPSTREAM_WS_URL: '' }],
  ])(
    'is heard within one refresh where logs are %s, and told as listed once it is, while no other log is lost',
    async (_, settings) => {
      const devnet = await openDevnet()
      const relay = await relayOn(devnet, settings)
      const ear = await hearAll({ relay }, 'start')
      await source(ear, Object.keys(settings).length > 0 ? 'poll' : 'pendingLogs')
      devnet.list.add({ contract_address: NEW, symbol: 'NEWc', name: 'New', decimals: 6, multiplier: 1 })
      const asked = devnet.requests.list
      let sent = 0
      const isListed = () => ear.all('token').some(({ symbol }) => symbol === 'NEWc')
      while (!isListed()) {
        sent += 1
        transfer({ devnet }, 'AAPLc', 1, BigInt(sent))
        if (sent % 20 === 0) devnet.seal()
        await ear.until(() => ear.all('transfer').length === sent)
      }
      expect(devnet.requests.list - asked).toBeLessThanOrEqual(2)
      expect(ear.all('token').at(-1)).toMatchObject({ change: 'listed', symbol: 'NEWc', address: NEW, was: null })
      devnet.transfer({ address: NEW, raw: 1_500_000n })
      devnet.flash()
      const first = await ear.hear('transfer', ({ symbol }) => symbol === 'NEWc')
      expect(first).toMatchObject({ amount: '1.5', shares: '1.5', reference_value: null })
      expect(ear.messages.findIndex(({ type }) => type === 'transfer')).toBeGreaterThan(0)
      const others = ear.all('transfer').filter(({ symbol }) => symbol === 'AAPLc')
      expect(others.map(({ raw }) => Number(raw))).toEqual(Array.from({ length: sent }, (_, at) => at + 1))
    },
  )
})

describe('a log that comes more than once', () => {
  it.each(['one', 'all'] as const)('is told once, five times in the shape of %s', async (shape) => {
    const world = await openWorld()
    const { devnet } = world
    const ear = await hearAll(world, 'start')
    await source(ear, 'pendingLogs')
    devnet.weather.shape = shape
    devnet.weather.repeats = 5
    for (const raw of [1n, 2n, 3n]) transfer(world, 'AAPLc', 1, raw)
    devnet.seal()
    for (const raw of [4n, 5n]) transfer(world, 'TSLAc', 1, raw)
    await moves(ear, 5)
    eachOnce(ear, [1n, 2n, 3n, 4n, 5n])
  })

  it.each(['one', 'all'] as const)('is told once, in the shape of %s and by both sources', async (shape) => {
    const world = await openWorld()
    const { devnet } = world
    const ear = await hearAll(world, 'start')
    await source(ear, 'pendingLogs')
    devnet.weather.shape = shape
    devnet.weather.repeats = 5
    transfer(world, 'AAPLc', 2, 1n)
    await moves(ear, 2)
    // Polling reads again what was pushed, and the next subscription what was polled.
    devnet.weather.dropSockets()
    await source(ear, 'poll')
    transfer(world, 'AAPLc', 2, 3n)
    await moves(ear, 4)
    devnet.weather.sockets = undefined
    await source(ear, 'pendingLogs')
    transfer(world, 'AAPLc', 2, 5n)
    await moves(ear, 6)
    eachOnce(ear, [1n, 2n, 3n, 4n, 5n, 6n])
  })
})
