import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import type { Ear } from '../../support/test-listener.ts'
import { openWorld, seqOf, transfer } from '../../support/test-stack.ts'
import { type Carrier, carriers, listen, liveOn, toldTo, whole } from './stream-listeners.ts'

describe('hello', () => {
  it('says which house this is, what its bounds are and where its tape begins and ends, and names each connection', async () => {
    const world = await openWorld({
      ...{ REPLAY_BOUND: '77', BACKLOG_BOUND_BYTES: '99999', SELECTIONS_BOUND: '5', TAPE_RETENTION_MS: '7200000' },
      HEARTBEAT_MS: '3000',
    })
    const ears = await Promise.all(carriers.map((carrier) => liveOn(world, carrier, 'symbols=AAPLc')))
    const hellos = ears.flatMap((ear) => ear.all('hello'))
    for (const hello of hellos) {
      expect(hello).toMatchObject({
        id: hello.end,
        protocol: 'stocktape.v1',
        server: expect.stringMatching(/^stocktape\/\d/),
        chain_id: world.devnet.chainId,
        heartbeat_s: 3,
        limits: { symbols: 200, selections: 5, replay: 77, backlog: 99_999, message: 4_096, retention_ms: 7_200_000 },
        source: expect.stringMatching(/^(pendingLogs|poll)$/),
        demo: false,
      })
      expect(seqOf(hello.oldest)).toBe(0)
      expect(hello.head.sealed).toBe(world.devnet.chain.head.number)
    }
    expect(new Set(hellos.map(({ connection }) => connection)).size).toBe(carriers.length)
  })
})

describe('a snapshot', () => {
  it('shows how a token stands: record, multiplier and its source, what is scheduled and paused, supply and NAV', async () => {
    const world = await openWorld()
    const { devnet } = world
    const ear = await liveOn(world, 'ws', 'symbols=AAPLc&types=multiplier,pause')
    const symbol = 'AAPLc'
    devnet.act.split({ symbol, to: '2' })
    devnet.act.pause({ symbol, features: [1, 5] })
    const effectiveAt = devnet.chain.head.timestamp + 86_400
    devnet.act.split({ symbol, to: '3', effectiveAt })
    devnet.flash()
    await ear.hear('multiplier', ({ phase }) => phase === 'scheduled')
    await ear.hear('pause')
    const [record] = devnet.list.records().filter((one) => one.symbol === symbol)
    for (const carrier of carriers) {
      const one = await liveOn(world, carrier, 'symbols=AAPLc,INTCc')
      const [apple, intel] = one.all('snapshot')
      expect(apple).toMatchObject({
        id: one.all('subscribed')[0]?.id,
        symbol,
        address: devnet.list.addressOf(symbol),
        multiplier: '2',
        multiplier_source: 'log',
        scheduled: { to: '3', effective_at: new Date(effectiveAt * 1_000).toISOString() },
        paused: ['MINT', 'UNKNOWN_5'],
        nav: { state: 'fresh', price: expect.any(String) },
      })
      expect(apple?.token).toMatchObject({ name: record?.name, isin: record?.isin, icon_url: record?.icon_url })
      expect(Number(apple?.supply.shares)).toBeCloseTo(2 * Number(apple?.supply.tokens), 6)
      expect(intel).toMatchObject({ scheduled: null, paused: [], nav: { state: 'missing', price: null } })
      expect(seqOf(apple?.as_of)).toBeGreaterThanOrEqual(seqOf(apple?.id))
    }
  })

  it('holds all that was told up to as_of and nothing that was told after it, while the tape is being written', async () => {
    const world = await openWorld()
    const steady = await liveOn(world, 'ws', 'symbols=AAPLc&types=multiplier')
    const joining: Promise<Ear>[] = []
    for (let round = 2; round < 42; round += 1) {
      world.devnet.act.split({ symbol: 'AAPLc', to: String(round) })
      const since = round % 2 === 0 ? 'now' : 'start'
      const query = `symbols=AAPLc&types=multiplier&since=${since}`
      joining.push(liveOn(world, carriers[round % carriers.length] as Carrier, query))
      world.devnet.flash()
      await steady.until(() => steady.all('multiplier').length === round - 1)
    }
    const told = steady.all('multiplier')
    for (const ear of await Promise.all(joining)) {
      const [snapshot] = ear.all('snapshot')
      const last = told.findLast(({ id }) => seqOf(id) <= seqOf(snapshot?.as_of))
      expect(snapshot?.multiplier).toBe(last?.to ?? '1')
      // And from where it was subscribed on nothing is missing that the state did not hold yet.
      const after = told.filter(({ id }) => seqOf(id) > seqOf(snapshot?.id))
      await ear.until(() => ear.all('multiplier').length >= after.length, 'what came after')
      expect(ear.all('multiplier').map(({ id }) => id)).toEqual(after.map(({ id }) => id))
    }
  })

  it('is left out where that is asked for, and comes for who begins at a time or at the start', async () => {
    const world = await openWorld()
    for (const carrier of carriers) {
      for (const [rest, count] of [
        ['snapshot=false', 0],
        ['snapshot=0&since=start', 0],
        ['snapshot=true&since=start', 1],
        ['snapshot=1&since=5m', 1],
        ['since=2000-01-01T00:00:00Z', 1],
      ] as const) {
        const ear = await liveOn(world, carrier, `symbols=AAPLc&${rest}`)
        expect(ear.all('snapshot'), rest).toHaveLength(count)
        expect(ear.all('subscribed')).toMatchObject([{ resume: 'none' }])
      }
    }
  })
})

describe('one order', () => {
  it('holds on every carrier: hello, subscribed, snapshots, replay, live, and then what is live', async () => {
    const world = await openWorld()
    const steady = await liveOn(world, 'ws', 'symbols=*&types=transfer')
    transfer(world, 'AAPLc', 230)
    await steady.until(() => steady.all('transfer').length === 230)
    for (const carrier of carriers) {
      const ear = await liveOn(world, carrier, 'symbols=*&types=transfer&since=start')
      const before = toldTo(steady).length
      transfer(world, 'TSLAc', 1, whole(2))
      await steady.until(() => toldTo(steady).length > before)
      await ear.until(() => toldTo(ear).length === toldTo(steady).length)
      const snapshots = world.devnet.tokens.length
      const runs = ear.messages.map(({ type }) => type).filter((type, at, all) => type !== all[at - 1])
      expect(runs).toEqual(['hello', 'subscribed', 'snapshot', 'transfer', 'live', 'transfer'])
      expect(ear.all('snapshot')).toHaveLength(snapshots)
      expect(ear.all('live')).toMatchObject([{ replayed: before }])
      expect(seqOf(ear.all('live')[0]?.id)).toBeGreaterThanOrEqual(seqOf(steady.all('transfer')[before - 1]?.id))
      const start = ear.all('hello')[0]?.id
      for (const { id } of [...ear.all('subscribed'), ...ear.all('snapshot')]) expect(id).toBe(start)
    }
  })
})

describe('a ping frame', () => {
  it('comes to every socket, also to one that has not subscribed to anything yet', async () => {
    const { relay } = await openWorld({ HEARTBEAT_MS: '100' })
    for (const query of ['', '?symbols=AAPLc']) {
      const socket = new WebSocket(`${relay.wsUrl}${query}`)
      onTestFinished(() => socket.terminate())
      let pings = 0
      // Three are more than go unanswered before a connection counts as dead.
      await new Promise<void>((resolve) => {
        socket.on('ping', () => {
          pings += 1
          if (pings === 3) resolve()
        })
      })
      expect(socket.readyState).toBe(WebSocket.OPEN)
    }
  })

  it('is answered by who listens, so that a quiet listener stays', async () => {
    const world = await openWorld({ HEARTBEAT_MS: '100' })
    const ear = await listen(world, 'ws', 'symbols=AAPLc&types=burn')
    await ear.until(() => ear.all('heartbeat').length === 4, 'heartbeats')
    world.devnet.transfer({ symbol: 'AAPLc', to: `0x${'0'.repeat(40)}`, raw: 1n })
    world.devnet.flash()
    await ear.hear('burn')
  })
})
