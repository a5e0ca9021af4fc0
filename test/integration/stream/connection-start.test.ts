import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { defaultTypes } from '../../../src/protocol/updates.ts'
import type { TestListener } from '../../support/test-listener.ts'
import { openTestStack, sequenceOf, transfer } from '../../support/test-stack.ts'
import { listen, listenLive, type Transport, tapeTextsOf, transports, wholeTokens } from './stream-listeners.ts'

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
    for (const transport of transports) {
      const listener = await listenLive(stack, transport, 'symbols=AAPLc,INTCc')
      const [apple, intel] = listener.messagesOf('snapshot')
      expect(apple).toMatchObject({
        id: listener.messagesOf('subscribed')[0]?.id,
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
    }
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

  it('is left out on request, and sent for a start at a time or at the oldest position', async () => {
    const stack = await openTestStack()
    for (const transport of transports) {
      for (const [rest, count] of [
        ['snapshot=false', 0],
        ['snapshot=0&since=start', 0],
        ['snapshot=true&since=start', 1],
        ['snapshot=1&since=5m', 1],
        ['since=2000-01-01T00:00:00Z', 1],
      ] as const) {
        const listener = await listenLive(stack, transport, `symbols=AAPLc&${rest}`)
        expect(listener.messagesOf('snapshot'), rest).toHaveLength(count)
        expect(listener.messagesOf('subscribed')).toMatchObject([{ resume: 'none' }])
      }
    }
  })
})

describe('a snapshot after a position', () => {
  it('comes only where it is always wanted, with the state at that moment', async () => {
    const stack = await openTestStack()
    for (const transport of transports) {
      const { id } = await (await listenLive(stack, transport, 'symbols=AAPLc')).waitFor('live')
      for (const [rest, count] of [
        ['', 0],
        ['&snapshot=true', 0],
        ['&snapshot=always', 1],
      ] as const) {
        const listener = await listenLive(stack, transport, `symbols=AAPLc&since=${id}${rest}`)
        expect(listener.messagesOf('snapshot'), rest).toHaveLength(count)
        expect(listener.messagesOf('subscribed')).toMatchObject([{ resume: 'full' }])
      }
    }
  })
})

describe('subscribed', () => {
  it.each([
    ['symbols=AAPLc', { types: defaultTypes, stage: 'preconfirmed', min_value: null, min_shares: null, account: null }],
    ['symbols=*&types=*', { symbols: ['*'], types: ['*'] }],
    [
      'symbols=aapl&types=nav,transfer&stage=sealed&min_value=010.50&min_shares=0&account=0xABCDEF0000000000000000000000000000000001',
      {
        symbols: ['AAPLc'],
        types: ['transfer', 'nav'],
        stage: 'sealed',
        min_value: '10.5',
        min_shares: '0',
        account: ['0xabcdef0000000000000000000000000000000001'],
      },
    ],
  ])('shows the whole selection, with its defaults: %s', async (query, selection) => {
    const stack = await openTestStack()
    for (const transport of transports) {
      const listener = await listenLive(stack, transport, query)
      expect(listener.messagesOf('subscribed')).toMatchObject([selection])
    }
  })
})

describe('the order of messages', () => {
  it('is hello, subscribed, snapshots, replay, live, live updates on every transport', async () => {
    const stack = await openTestStack()
    const steady = await listenLive(stack, 'ws', 'symbols=*&types=transfer')
    transfer(stack, 'AAPLc', 230)
    await steady.until(() => steady.messagesOf('transfer').length === 230)
    for (const transport of transports) {
      const listener = await listenLive(stack, transport, 'symbols=*&types=transfer&since=start')
      const before = tapeTextsOf(steady).length
      transfer(stack, 'TSLAc', 1, wholeTokens(2))
      await steady.until(() => tapeTextsOf(steady).length > before)
      await listener.until(() => tapeTextsOf(listener).length === tapeTextsOf(steady).length)
      const snapshots = stack.devnet.tokens.length
      const runs = listener.messages.map(({ type }) => type).filter((type, at, all) => type !== all[at - 1])
      expect(runs).toEqual(['hello', 'subscribed', 'snapshot', 'transfer', 'live', 'transfer'])
      expect(listener.messagesOf('snapshot')).toHaveLength(snapshots)
      expect(listener.messagesOf('live')).toMatchObject([{ replayed: before }])
      expect(sequenceOf(listener.messagesOf('live')[0]?.id)).toBeGreaterThanOrEqual(
        sequenceOf(steady.messagesOf('transfer')[before - 1]?.id),
      )
      const start = listener.messagesOf('hello')[0]?.id
      for (const { id } of [...listener.messagesOf('subscribed'), ...listener.messagesOf('snapshot')]) expect(id).toBe(start)
    }
  })
})

describe('a ping frame', () => {
  it('comes to every WebSocket, also before a subscription', async () => {
    const { relay } = await openTestStack({ HEARTBEAT: '100ms' })
    for (const query of ['', '?symbols=AAPLc']) {
      const socket = new WebSocket(`${relay.wsUrl}${query}`)
      onTestFinished(() => socket.terminate())
      let pings = 0
      // Three exceed the number that may stay unanswered.
      await new Promise<void>((resolve) => {
        socket.on('ping', () => {
          pings += 1
          if (pings === 3) resolve()
        })
      })
      expect(socket.readyState).toBe(WebSocket.OPEN)
    }
  })

  it('keeps a listener connected that receives no updates', async () => {
    const stack = await openTestStack({ HEARTBEAT: '100ms' })
    const listener = await listen(stack, 'ws', 'symbols=AAPLc&types=burn')
    await listener.until(() => listener.messagesOf('heartbeat').length === 4, 'heartbeats')
    stack.devnet.transfer({ symbol: 'AAPLc', to: `0x${'0'.repeat(40)}`, raw: 1n })
    stack.devnet.makeFlashblock()
    await listener.waitFor('burn')
  })
})
