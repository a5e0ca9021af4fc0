import { once } from 'node:events'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { openedOnce } from '../../e2e/gateway/node-and-gateway.ts'
import type { TestListener } from '../../support/test-listener.ts'
import { openTestStack, sequenceOf } from '../../support/test-stack.ts'
import { listenLive, type Transport, transports } from './stream-listeners.ts'

/** For tests that write nothing. */
const atRest = openedOnce((lifecycle) => openTestStack({}, lifecycle))

describe('hello', () => {
  it('names the server, its limits, the bounds of the tape and the connection', async () => {
    const stack = await openTestStack({
      ...{ MAX_REPLAY: '77', MAX_BACKLOG: '99999B', MAX_SELECTIONS: '5', TAPE_RETENTION: '2h' },
      HEARTBEAT: '3s',
    })
    const listeners = await Promise.all(transports.map((transport) => listenLive(stack, transport, 'symbols=AAPLc')))
    const hellos = listeners.flatMap((listener) => listener.messagesOf('hello'))
    for (const hello of hellos) {
      expect(hello).toMatchObject({
        id: hello.end,
        protocol: 'stocktape.v1',
        server: expect.stringMatching(/^stocktape\/\d/),
        chain_id: stack.devnet.chainId,
        heartbeat_s: 3,
        limits: {
          symbols_max: 200,
          selections_max: 5,
          replay_max: 77,
          backlog_bytes: 99_999,
          message_bytes: 4_096,
          retention_ms: 7_200_000,
        },
        source: expect.stringMatching(/^(pendingLogs|poll)$/),
        demo: false,
      })
      expect(sequenceOf(hello.oldest)).toBe(0)
      expect(hello.head.sealed).toBe(stack.devnet.chain.head.number)
    }
    expect(new Set(hellos.map(({ connection }) => connection)).size).toBe(transports.length)
  })
})

describe('a snapshot', () => {
  it('has the record, the multiplier and its source, the schedule, pauses, supply and NAV', async () => {
    const stack = await openTestStack()
    const { devnet } = stack
    const listener = await listenLive(stack, 'ws', 'symbols=AAPLc&types=multiplier,pause')
    const symbol = 'AAPLc'
    devnet.issuer.split({ symbol, to: '2' })
    devnet.issuer.pause({ symbol, features: [1, 5] })
    const effectiveAt = devnet.chain.head.timestamp + 86_400
    devnet.issuer.split({ symbol, to: '3', effectiveAt })
    devnet.makeFlashblock()
    await listener.waitFor('multiplier', ({ phase }) => phase === 'scheduled')
    await listener.waitFor('pause')
    const [record] = devnet.list.records().filter((listed) => listed.symbol === symbol)
    const [apple, intel] = (await listenLive(stack, 'sse', 'symbols=AAPLc,INTCc')).messagesOf('snapshot')
    expect(apple).toMatchObject({
      symbol,
      address: devnet.list.addressOf(symbol),
      multiplier: '2',
      multiplier_source: 'log',
      scheduled: { multiplier: '3', effective_at: new Date(effectiveAt * 1_000).toISOString() },
      paused: ['MINT', 'UNKNOWN_5'],
      nav: { state: 'fresh', price: expect.any(String) },
    })
    expect(apple?.token).toMatchObject({ name: record?.name, isin: record?.isin, icon_url: record?.icon_url })
    expect(Number(apple?.supply.shares)).toBeCloseTo(2 * Number(apple?.supply.tokens), 6)
    expect(intel).toMatchObject({ scheduled: null, paused: [], nav: { state: 'missing', price: null } })
    expect(sequenceOf(apple?.as_of)).toBeGreaterThanOrEqual(sequenceOf(apple?.id))
  })

  it('includes all updates up to as_of and none after it, while the tape is written', async () => {
    const stack = await openTestStack()
    // Its first multiplier followed its listing.
    const steady = await listenLive(stack, 'ws', 'symbols=AAPLc&types=multiplier&since=start')
    const joining: Promise<TestListener>[] = []
    for (let round = 2; round < 42; round += 1) {
      stack.devnet.issuer.split({ symbol: 'AAPLc', to: String(round) })
      const since = round % 2 === 0 ? 'now' : 'start'
      const query = `symbols=AAPLc&types=multiplier&since=${since}`
      joining.push(listenLive(stack, transports[round % transports.length] as Transport, query))
      stack.devnet.makeFlashblock()
      await steady.until(() => steady.messagesOf('multiplier').length === round)
    }
    const published = steady.messagesOf('multiplier')
    for (const listener of await Promise.all(joining)) {
      const [snapshot] = listener.messagesOf('snapshot')
      const last = published.findLast(({ id }) => sequenceOf(id) <= sequenceOf(snapshot?.as_of))
      expect(snapshot?.multiplier).toBe(last?.multiplier ?? '1')
      // The stream continues with every update that the snapshot does not include.
      const after = published.filter(({ id }) => sequenceOf(id) > sequenceOf(snapshot?.id))
      await listener.until(() => listener.messagesOf('multiplier').length >= after.length, 'the later updates')
      expect(listener.messagesOf('multiplier').map(({ id }) => id)).toEqual(after.map(({ id }) => id))
    }
  })

  it.each<[string, number, 'full' | 'none']>([
    ['snapshot=0&since=start', 0, 'none'],
    ['snapshot=1&since=5m', 1, 'none'],
    ['since=2000-01-01T00:00:00Z', 1, 'none'],
    ['since=POSITION&snapshot=true', 0, 'full'],
    ['since=POSITION&snapshot=always', 1, 'full'],
  ])('comes as the client wants it, and after a position only where it is always wanted: %s', async (rest, count, resume) => {
    const { id } = await (await listenLive(atRest(), 'ws', 'symbols=AAPLc')).waitFor('live')
    for (const transport of transports) {
      const listener = await listenLive(atRest(), transport, `symbols=AAPLc&${rest.replace('POSITION', id)}`)
      expect(listener.messagesOf('snapshot')).toHaveLength(count)
      expect(listener.messagesOf('subscribed')).toMatchObject([{ resume }])
    }
  })
})

it('subscribed shows the whole selection', async () => {
  const account = '0xABCDEF0000000000000000000000000000000001'
  const query = `symbols=aapl&types=nav,transfer&stage=sealed&min_value=010.50&min_shares=0&account=${account}`
  expect((await listenLive(atRest(), 'ndjson', query)).messagesOf('subscribed')).toMatchObject([
    {
      ...{ symbols: ['AAPLc'], types: ['transfer', 'nav'], stage: 'sealed' },
      ...{ min_value: '10.5', min_shares: '0', account: [account.toLowerCase()] },
    },
  ])
})

it('a ping frame comes to every WebSocket, and a heartbeat only once the stream has a position', async () => {
  const { relay } = await openTestStack({ HEARTBEAT: '100ms' })
  for (const [query, isSubscribed] of [
    ['', false],
    ['?symbols=AAPLc&types=burn', true],
  ] as const) {
    const socket = new WebSocket(`${relay.wsUrl}${query}`)
    onTestFinished(() => socket.terminate())
    const types = new Set<string>()
    socket.on('message', (data) => types.add(JSON.parse(String(data)).type))
    // Three exceed the number that may stay unanswered.
    for (let pings = 0; pings < 3; pings += 1) await once(socket, 'ping')
    expect([socket.readyState, types.has('hello'), types.has('heartbeat')]).toEqual([WebSocket.OPEN, true, isSubscribed])
  }
})
