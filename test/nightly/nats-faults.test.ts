import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { DiscardPolicy, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { describe, expect, it, type TestContext, vi } from 'vitest'
import type { Devnet } from '../../src/devnet/devnet.ts'
import { decodeBatch, encodeBatch } from '../../src/relay/tape/batch-message.ts'
import { brokenPrevChains } from '../e2e/slow/reconnecting-readers.ts'
import { serve } from '../support/loopback-server.ts'
import { hasNats, type NatsServer } from '../support/nats-server.ts'
import { type ClusterMember, openCluster, type RelayCluster } from '../support/relay-cluster.ts'
import { isNightly } from '../support/test-length.ts'
import { listenNdjson, listenWs, type TestListener } from '../support/test-listener.ts'
import { openDevnet, sequenceOf, tapeUpdatesOf } from '../support/test-stack.ts'

/** One fault at a time of a cluster over NATS, under traffic: what clients and operators see of it. */

vi.setConfig({ testTimeout: 90_000 })

/** How soon another ingester has to write. */
const TAKEOVER_MS = 3_000
const WAIT = { timeout: 15_000, interval: 100 }
const STREAM = 'STOCKTAPE'
const HOUR_MS = 3_600_000
const settableDate = fileURLToPath(new URL('../e2e/slow/settable-date.ts', import.meta.url))
/** NATS elects the server that leads a stream, and then the ingesters elect the one that writes. */
const ELECTION_TIMEOUT_MS = 30_000

const openBusyDevnet = (test: TestContext): Promise<Devnet> =>
  openDevnet({ pace: 'clock', flashblockMs: 100, blockMs: 500, transactionsPerFlashblock: 2 }, test)

async function listen(test: TestContext, { url }: ClusterMember, since = 'now'): Promise<TestListener> {
  const listener = await listenNdjson(`${url}/v1/stream?symbols=*&types=*&snapshot=false&heartbeat=1&since=${since}`)
  test.onTestFinished(() => listener.close())
  return listener
}

const idsOf = (listener: TestListener): readonly string[] => tapeUpdatesOf(listener).map(({ id }) => id)

/** Resolves when a listener has received so many more updates. */
async function receiveMore(listener: TestListener, count: number): Promise<void> {
  const before = idsOf(listener).length
  await listener.until(() => idsOf(listener).length >= before + count, `${count} more updates`)
}

/** A cluster under traffic, and a listener of its first edge that has received some updates. */
async function openBusyCluster(test: TestContext, size: Parameters<typeof openCluster>[2] = {}, since = 'now') {
  const cluster = await openCluster(test, await openBusyDevnet(test), size)
  const [[ingester], [edge]] = [cluster.ingesters, cluster.edges] as [[ClusterMember], [ClusterMember]]
  const listener = await listen(test, edge, since)
  await receiveMore(listener, 20)
  return { ...cluster, cluster, ingester, edge, listener }
}

/** A listener has received every update, each after the one before it, over one connection. */
function expectWhole(listener: TestListener): void {
  expect(brokenPrevChains(tapeUpdatesOf(listener))).toEqual([])
  expect([listener.messagesOf('gap'), listener.messagesOf('bye')]).toEqual([[], []])
}

/** The ingester that writes, and the other one. */
async function leaderFirst({ ingesters: [one, other] }: RelayCluster): Promise<readonly [ClusterMember, ClusterMember]> {
  if (!one || !other) throw new Error('two ingesters are needed')
  let leads: readonly boolean[] = []
  await vi.waitFor(async () => {
    leads = await Promise.all([one.isLeading(), other.isLeading()])
    expect(leads.toSorted()).toEqual([false, true])
  }, WAIT)
  return leads[0] ? [one, other] : [other, one]
}

/** The list of a devnet in which the first token has another symbol. Resolves with the address. */
const openRenamedList = (test: TestContext, devnet: Devnet, symbol: string): Promise<string> =>
  serve(test.onTestFinished, async (_, response) => {
    const list = await (await fetch(`${devnet.url}/v1/tokenized-stocks`)).text()
    response.end(list.replace(/"symbol": ?"[^"]*"/, `"symbol":"${symbol}"`))
  })

/** Calls JetStream as an operator would. */
async function withStream<Result>(
  { url }: NatsServer,
  use: (jetstream: Awaited<ReturnType<typeof jetstreamManager>>, publish: (bytes: string | Uint8Array) => void) => Promise<Result>,
): Promise<Result> {
  const connection = await connect({ servers: url.replace('nats://', '') })
  try {
    return await use(await jetstreamManager(connection), (bytes) => connection.publish(STREAM.toLowerCase(), bytes))
  } finally {
    await connection.drain()
  }
}

const epochOf = (position: string): string => position.slice(0, position.indexOf('.'))

describe.skipIf(!hasNats)('over NATS', () => {
  it.for(['SIGKILL', 'SIGTERM', 'SIGSTOP', 'cut', 'clock an hour ahead'] as const)(
    'another ingester writes within three seconds of a %s of the leader, and nothing is lost or repeated',
    async (fault, test) => {
      const clock = { CLOCK_STEPS_MS: String(HOUR_MS), NODE_OPTIONS: `--import ${settableDate}` }
      const settings = fault === 'clock an hour ahead' ? clock : {}
      const { cluster, listener } = await openBusyCluster(test, { settings })
      const [leader, other] = await leaderFirst(cluster)
      if (fault === 'clock an hour ahead') {
        leader.signal('SIGUSR2')
        await receiveMore(listener, 20)
        expect(await other.isLeading()).toBe(false)
      }
      const killedAt = performance.now()
      if (fault === 'cut') leader.proxy.cut()
      else leader.signal(fault === 'clock an hour ahead' ? 'SIGKILL' : fault)
      await vi.waitFor(async () => expect(await other.isLeading()).toBe(true), { ...WAIT, interval: 20 })
      await receiveMore(listener, 1)
      expect(performance.now() - killedAt).toBeLessThan(TAKEOVER_MS)
      await receiveMore(listener, 20)
      if (fault === 'SIGSTOP' || fault === 'cut') {
        leader.signal('SIGCONT')
        leader.proxy.mend()
        await vi.waitFor(async () => expect(await leader.isLeading()).toBe(false), WAIT)
        await receiveMore(listener, 20)
        expect(await other.isLeading()).toBe(true)
      }
      const sequence = idsOf(listener).map(sequenceOf)
      expect(sequence).toEqual(sequence.toSorted((a, b) => a - b))
      expectWhole(listener)
    },
  )

  it('an edge that lags refuses a client that is ahead, and serves it once it has caught up', async (test) => {
    const { cluster, edge, listener } = await openBusyCluster(test)
    const [, other] = cluster.edges as [ClusterMember, ClusterMember]
    edge.proxy.cut()
    const ahead = await listen(test, other)
    await receiveMore(ahead, 50)
    const position = idsOf(ahead).at(-1) ?? ''
    const path = (format: string, since = position) => `${edge.url}/v1/stream?symbols=*&format=${format}&since=${since}`
    const socket = await listenWs(`${edge.url.replace('http', 'ws')}/v1/ws?symbols=*&since=${position}`)
    const [lines, events] = await Promise.all([
      fetch(path('ndjson')),
      fetch(path('sse'), { headers: { accept: 'text/event-stream' } }),
    ])
    expect([lines.status, lines.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await lines.json()).toMatchObject({ code: 503, reason: 'lagging' })
    expect(await events.text()).toMatch(/^retry: \d+\n\ndata: \{"type":"error","code":503,"reason":"lagging"/)
    expect(await socket.waitFor('error')).toMatchObject({ code: 503, reason: 'lagging' })
    expect((await socket.closed).code).toBe(4103)
    edge.proxy.mend()
    await receiveMore(listener, 20)
    const back = await listen(test, edge, position)
    await receiveMore(back, 20)
    expectWhole(back)
    const beyond = await listen(test, edge, `${epochOf(position)}.${sequenceOf(position) + 10 * HOUR_MS * 1_000}`)
    expect(await beyond.waitFor('gap')).toMatchObject({ reason: 'ahead' })
  })

  it.for<readonly [string, (cluster: RelayCluster) => unknown, (cluster: RelayCluster) => unknown]>([
    ['NATS is away', ({ nats }) => nats.kill(), ({ nats }) => nats.start()],
    ['it alone is cut off', ({ edges }) => edges[0]?.proxy.cut(), ({ edges }) => edges[0]?.proxy.mend()],
    [
      'no ingester lives',
      ({ ingesters }) => Promise.all(ingesters.map((one) => one.kill())),
      ({ ingesters }) => ingesters[0]?.start(),
    ],
    [
      'NATS refuses to store',
      async (cluster) => {
        const [leader] = await leaderFirst(cluster)
        await withStream(cluster.nats, ({ streams }) => streams.update(STREAM, { max_msgs: 1, discard: DiscardPolicy.New }))
        const words = 'NATS does not store the tape: maximum messages exceeded'
        await vi.waitFor(async () => expect(await leader.unreadyReasons()).toContain(words), WAIT)
        expect(await (await fetch(`${leader.url}/v1/status`)).json()).toMatchObject({ tape: { durable: false } })
        await leader.waitForOutput(/nats_refuses.*maximum messages exceeded/)
      },
      ({ nats }) => withStream(nats, ({ streams }) => streams.update(STREAM, { max_msgs: 1e6, discard: DiscardPolicy.Old })),
    ],
  ])('an edge keeps its clients while %s, tells them, and goes on without a gap', async ([, cause, end], test) => {
    const { cluster, edge, listener } = await openBusyCluster(test)
    await cause(cluster)
    await listener.waitFor('heartbeat', ({ source }) => source === 'down')
    expect(await edge.unreadyReasons()).toEqual(['no updates from NATS: it cannot be reached, or no ingester writes'])
    const replay = await listen(test, edge, 'start')
    await replay.waitFor('live')
    expect(idsOf(replay)).toEqual(expect.arrayContaining([...idsOf(listener)]))
    await end(cluster)
    await receiveMore(listener, 100)
    expect(await edge.unreadyReasons()).toEqual([])
    const isUp = () => listener.messagesOf('heartbeat').at(-1)?.source !== 'down'
    await listener.until(isUp, 'a heartbeat with a source')
    expectWhole(listener)
  })

  it('ingesters with different lists publish the same keys, and the names of the one that writes', async (test) => {
    const devnet = await openBusyDevnet(test)
    const lists = await Promise.all(['ONEc', 'OTHERc'].map((symbol) => openRenamedList(test, devnet, symbol)))
    const settingsOf = (nth: number) => ({ STOCKS_API_URL: lists[nth] ?? '' })
    const cluster = await openCluster(test, devnet, { edges: 1, settingsOf })
    const [leader, other] = await leaderFirst(cluster)
    const [edge] = cluster.edges as [ClusterMember]
    const listener = await listen(test, edge)
    await receiveMore(listener, 50)
    await leader.kill()
    await vi.waitFor(async () => expect(await other.isLeading()).toBe(true), WAIT)
    const [before, after] = cluster.ingesters[0] === leader ? ['ONEc', 'OTHERc'] : ['OTHERc', 'ONEc']
    const renamed = await listener.waitFor('token', ({ symbol }) => symbol === after)
    // What the chain changed meanwhile is in the same message.
    expect(renamed).toMatchObject({ change: 'changed', changed: expect.arrayContaining(['symbol']), before: { symbol: before } })
    await receiveMore(listener, 50)
    const told = tapeUpdatesOf(listener).flatMap((update) =>
      'stage' in update && 'key' in update && update.key ? [update.key] : [],
    )
    expect(new Set(told).size).toBe(told.length)
    expectWhole(listener)
  })

  it('of three servers of NATS any one may go away, with nothing lost or repeated', async (test) => {
    const { natsServers, edges } = await openCluster(test, await openBusyDevnet(test), { natsServers: 3 })
    const listeners = await Promise.all(edges.map((edge) => listen(test, edge)))
    for (const listener of listeners) await receiveMore(listener, 20)
    for (const server of isNightly ? natsServers : natsServers.slice(0, 1)) {
      await server.kill()
      const received = listeners.map((listener) => idsOf(listener).length)
      const receivesAgain = () =>
        expect(listeners.every((listener, nth) => idsOf(listener).length > (received[nth] ?? 0))).toBe(true)
      await vi.waitFor(receivesAgain, { timeout: ELECTION_TIMEOUT_MS, interval: 100 })
      await server.start()
      for (const listener of listeners) await receiveMore(listener, 50)
    }
    // Without a majority nothing is stored.
    const [one, two] = natsServers as [NatsServer, NatsServer]
    await Promise.all([one.kill(), two.kill()])
    for (const listener of listeners) await listener.waitFor('heartbeat', ({ source }) => source === 'down')
    await one.start()
    for (const listener of listeners) {
      await receiveMore(listener, 50)
      expectWhole(listener)
    }
  })

  it('processes that start before NATS wait for it, and say so', async (test) => {
    const { nats, ingesters, edges } = await openCluster(test, await openBusyDevnet(test), { isStarted: false })
    await Promise.all([...ingesters, ...edges].map((member) => member.start()))
    for (const member of [...ingesters, ...edges]) {
      expect((await fetch(`${member.url}/healthz`)).status).toBe(200)
      expect(await member.unreadyReasons()).toContain('no updates from NATS: it cannot be reached, or no ingester writes')
      await member.waitForOutput(/nats_unreachable/)
    }
    await nats.start()
    for (const edge of edges) {
      await vi.waitFor(async () => expect(await edge.unreadyReasons()).toEqual([]), WAIT)
      const listener = await listen(test, edge)
      await receiveMore(listener, 10)
    }
  })

  it('where the stream is gone, a new epoch begins, and a client that comes back gets a gap', async (test) => {
    const { nats, edges, listener } = await openBusyCluster(test)
    const [edge, otherEdge] = edges as [ClusterMember, ClusterMember]
    await nats.kill()
    await nats.wipeStore()
    await nats.start()
    await listener.waitFor('bye')
    const last = idsOf(listener).at(-1) ?? ''
    for (const member of [edge, otherEdge]) {
      // An edge that has not noticed yet goes on, and ends the stream when it notices.
      const resumed = await vi.waitFor(async () => {
        const back = await listen(test, member, last)
        await back.until(() => back.messagesOf('gap').length + back.messagesOf('bye').length > 0, 'a gap or a bye')
        expect(back.messagesOf('gap')).toMatchObject([{ reason: 'epoch', after: last }])
        return back
      }, WAIT)
      await receiveMore(resumed, 10)
      expect(epochOf(idsOf(resumed).at(-1) ?? '')).not.toBe(epochOf(last))
    }
    await vi.waitFor(async () => expect(await otherEdge.tape()).toEqual(await edge.tape()), WAIT)
  })

  it('an edge keeps its clients where the stream is gone and no ingester writes', async (test) => {
    const { nats, ingester, edge, listener } = await openBusyCluster(test, { ingesters: 1, edges: 1 })
    await ingester.kill()
    await nats.kill()
    await nats.wipeStore()
    await nats.start()
    await withStream(nats, ({ streams }) => streams.add({ name: STREAM, subjects: [STREAM.toLowerCase()] }))
    const heartbeats = listener.messagesOf('heartbeat').length
    await listener.until(() => listener.messagesOf('heartbeat').length >= heartbeats + 4, 'four heartbeats')
    expect(listener.messagesOf('bye')).toEqual([])
    await ingester.start()
    await listener.waitFor('bye')
    const resumed = await vi.waitFor(() => listen(test, edge, idsOf(listener).at(-1)), WAIT)
    await resumed.waitFor('gap', ({ reason }) => reason === 'epoch')
  })

  it.for([
    ['and the processes keep their folders, a new epoch begins', false] as const,
    ['and the processes lose their folders, numbers go on after all that were given', true] as const,
  ])('where the store goes back %s: no position names two messages', async ([, losesFolders], test) => {
    const { cluster, nats, ingesters, edges, edge, listener } = await openBusyCluster(test, {}, 'start')
    await receiveMore(listener, 30)
    await nats.copyStore()
    await receiveMore(listener, 100)
    const before = tapeUpdatesOf(listener)
    const members = [...ingesters, ...edges]
    await Promise.all(members.map((member) => member.kill()))
    await nats.kill()
    await nats.restoreCopy()
    if (losesFolders) await cluster.deleteFolders()
    await nats.start()
    await Promise.all(members.map((member) => member.start()))
    const texts = new Map(listener.received.flatMap(({ message, text }) => ('prev' in message ? [[message.id, text]] : [])))
    // Clients of before the copy, from after it, and the newest.
    for (const { id } of [before[10], before.at(-40), before.at(-1)].flatMap((update) => update ?? [])) {
      const resumed = await vi.waitFor(() => listen(test, edge, id), WAIT)
      await receiveMore(resumed, 30)
      const start = await resumed.waitFor('subscribed')
      const isKnown = start.resume === 'full'
      expect([id, isKnown || resumed.messagesOf('gap').length > 0]).toEqual([id, true])
      for (const { message, text } of resumed.received) {
        if (!('prev' in message)) continue
        expect([message.id, texts.get(message.id) ?? text]).toEqual([message.id, text])
      }
    }
    const tape = await edge.tape()
    expect(tape.length).toBeGreaterThan(0)
    for (const text of tape) {
      const { id } = JSON.parse(text)
      expect([id, texts.get(id) ?? text]).toEqual([id, text])
    }
    if (!losesFolders) expect(epochOf(JSON.parse(tape[0] ?? '').id)).not.toBe(epochOf(before[0]?.id ?? ''))
  })

  it('a message that is no batch is skipped and counted', async (test) => {
    const { cluster, nats, ingester, edge, listener } = await openBusyCluster(test, { ingesters: 1, edges: 1 })
    await withStream(nats, async ({ streams }, publish) => {
      const { state } = await streams.info(STREAM)
      const { data } = (await streams.getMessage(STREAM, { seq: state.last_seq })) ?? {}
      const batch = data && decodeBatch(data)
      if (!batch) throw new Error('the stream has no batch')
      const noJson = encodeBatch({ ...batch, first: batch.after + 1_000_000, texts: ['{"type":"transfer"'] })
      for (const bytes of ['', 'poison', '{"epoch":"x"}\n{}', '\u0000\u0001', noJson]) publish(bytes)
    })
    await receiveMore(listener, 50)
    expect(await (await fetch(`${edge.url}/metrics`)).text()).toContain('stocktape_stream_unreadable_total 5')
    expectWhole(listener)
    // Processes that start later read it, too.
    await ingester.kill()
    await cluster.addEdge('new-edge')
    await ingester.start()
    await receiveMore(listener, 50)
    expect(listener.messagesOf('gap')).toEqual([])
  })

  it('after a purge of the stream a new edge is soon ready, and a new ingester takes the lead from nobody who lives', async (test) => {
    const { cluster, ingester: leader, listener } = await openBusyCluster(test, { ingesters: 1, edges: 1 })
    for (const open of [cluster.addEdge, cluster.addIngester]) {
      await withStream(cluster.nats, ({ streams }) => streams.purge(STREAM))
      const added = await open(`new-${open === cluster.addEdge ? 'edge' : 'ingester'}`)
      await vi.waitFor(async () => expect(await added.unreadyReasons()).toEqual([]), WAIT)
      expect([await leader.isLeading(), await added.isLeading()]).toEqual([true, false])
      await receiveMore(listener, 20)
    }
    await leader.kill()
    await receiveMore(listener, 50)
    expectWhole(listener)
  })

  it('an edge that is behind what the stream keeps jumps, and its clients get a gap', async (test) => {
    const cluster = await openCluster(test, await openBusyDevnet(test))
    const [edge, late] = cluster.edges as [ClusterMember, ClusterMember]
    const listener = await listen(test, late)
    await receiveMore(listener, 30)
    const last = idsOf(listener).at(-1) ?? ''
    await late.kill()
    await receiveMore(await listen(test, edge), 50)
    const [leader, other] = await leaderFirst(cluster)
    const { state } = await withStream(cluster.nats, ({ streams }) => streams.info(STREAM))
    await leader.stop()
    await vi.waitFor(async () => expect(await other.isLeading()).toBe(true), WAIT)
    // A new leader begins with a checkpoint.
    await withStream(cluster.nats, ({ streams }) => streams.purge(STREAM, { seq: state.last_seq }))
    await late.start()
    const resumed = await listen(test, late, last)
    expect(await resumed.waitFor('gap')).toMatchObject({ reason: 'expired', after: last })
    await receiveMore(resumed, 30)
    const newEdge = await cluster.addEdge('new-edge')
    await other.kill()
    await pause(500)
    const tape = await edge.tape()
    for (const member of [late, newEdge]) {
      const kept = await member.tape()
      expect(kept.length).toBeGreaterThan(30)
      expect(kept).toEqual(tape.slice(-kept.length))
    }
  })
})
