import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, type TestContext, vi } from 'vitest'
import { WebSocket } from 'ws'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import type { LogKind } from '../../../src/relay/log-lines.ts'
import { apiKey } from '../../support/api-keys.ts'
import { childrenOf, createTempFolder, freePort, spawnRelay, upstreamOf } from '../../support/child-program.ts'
import { hasNats, NatsServer } from '../../support/nats-server.ts'
import { listenNdjson, listenSse, listenWs, type TestListener } from '../../support/test-listener.ts'
import { fetchDocumented, openDevnet, tapeUpdatesOf } from '../../support/test-stack.ts'
import { brokenPrevChains } from './reconnecting-readers.ts'

vi.setConfig({ testTimeout: 60_000 })

/** One process writes the tape, and two serve it behind one port. */

const WORKERS = 2
const WAIT = { timeout: 15_000, interval: 50 }

async function openRelay(test: TestContext, devnet: Devnet, settings: Record<string, string> = {}) {
  const program = spawnRelay(test, {
    ...{ PORT: '0', DRAIN: '2s', WORKERS: String(WORKERS), ...upstreamOf(devnet) },
    ...{ DATA_DIR: await createTempFolder(test), STOCKS_REFRESH: '1s', ...settings },
  })
  const url = await program.listeningUrl()
  // A signal of the program would reach its workers too.
  const signal = (name: NodeJS.Signals, pid = program.pid) => process.kill(pid, name)
  return {
    ...{ url, signal },
    kill: (pid = program.pid) => signal('SIGKILL', pid),
    /** Ends as an operator ends it. Resolves with the exit code. */
    stop: () => {
      signal('SIGTERM')
      return program.waitForExit()
    },
    get log() {
      return program.log
    },
    /** The processes that serve, without the one that writes. */
    get workers() {
      return childrenOf(program.pid)
    },
  }
}

const openBusyDevnet = (test: TestContext): Promise<Devnet> =>
  openDevnet({ pace: 'clock', flashblockMs: 100, blockMs: 500, transactionsPerFlashblock: 2 }, test)

const query = 'symbols=*&types=*&snapshot=false'

async function listenMany(test: TestContext, url: string, count: number): Promise<readonly TestListener[]> {
  const listeners = await Promise.all(
    Array.from({ length: count }, (_, nth) => {
      if (nth % 3 === 0) return listenWs(`${url.replace('http', 'ws')}/v1/ws?${query}`)
      return nth % 3 === 1 ? listenSse(`${url}/v1/stream?${query}`) : listenNdjson(`${url}/v1/stream?${query}`)
    }),
  )
  for (const listener of listeners) test.onTestFinished(() => listener.close())
  for (const listener of listeners) await listener.waitFor('live')
  return listeners
}

/** Opens WebSockets: the code that each is closed with, or zero once it is live, and whether it is open now. */
const connectMany = (test: TestContext, url: string, count: number) =>
  Array.from({ length: count }, () => {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/ws?symbols=AAPLc`)
    test.onTestFinished(() => socket.terminate())
    const code = new Promise<number>((resolve) => {
      socket.on('close', resolve)
      socket.on('message', (data) => String(data).includes('"type":"live"') && resolve(0))
    })
    return { code, isOpen: () => socket.readyState === WebSocket.OPEN }
  })

const textsOf = (listener: TestListener) =>
  new Map(listener.received.flatMap(({ message, text }) => ('prev' in message ? [[message.id, text]] : [])))

describe('a relay with two workers', () => {
  it('gives every listener the same bytes, whichever worker serves it, and counts all of them', async (test) => {
    const relay = await openRelay(test, await openBusyDevnet(test))
    expect(relay.workers).toHaveLength(WORKERS)
    const listeners = await listenMany(test, relay.url, 12)
    for (const listener of listeners) await listener.until(() => tapeUpdatesOf(listener).length >= 60, '60 updates')
    const [first, ...others] = listeners.map(textsOf)
    const known = [...(first ?? [])]
    for (const texts of others) {
      const common = known.filter(([id]) => texts.has(id))
      expect(common.length).toBeGreaterThan(20)
      for (const [id, text] of common) expect(texts.get(id)).toBe(text)
    }
    for (const listener of listeners) expect(brokenPrevChains(tapeUpdatesOf(listener))).toEqual([])
    for (let request = 0; request < 2 * WORKERS; request += 1) {
      const { json } = await fetchDocumented(`${relay.url}/v1/status`)
      expect(json).toMatchObject({ clients: { ws: 4, sse: 4, ndjson: 4 } })
      const { text } = await fetchDocumented(`${relay.url}/metrics`)
      expect(text).toContain('stocktape_listeners{transport="ws"} 4')
      expect(text).toMatch(/stocktape_updates_total\{type="transfer"\} [1-9]/)
    }
  })

  it('goes on when a worker is killed: its clients come back, the others notice nothing', async (test) => {
    const relay = await openRelay(test, await openBusyDevnet(test))
    const listeners = await listenMany(test, relay.url, 12)
    for (const listener of listeners) await listener.until(() => tapeUpdatesOf(listener).length >= 10, '10 updates')
    const closed = new Set<TestListener>()
    for (const listener of listeners) void listener.closed.then(() => closed.add(listener))
    const [victim = 0] = relay.workers
    relay.kill(victim)
    await vi.waitFor(() => expect(relay.workers.filter((pid) => pid !== victim)).toHaveLength(WORKERS), WAIT)
    // The new one serves: it can be seen in its own clients.
    const later = await listenMany(test, relay.url, 12)
    for (const listener of later) await listener.until(() => tapeUpdatesOf(listener).length >= 10, '10 updates')
    const countOf = (wanted: LogKind) => relay.log.filter(({ kind }) => kind === wanted).length
    const kinds = ['worker_ended', 'worker_started', 'list_read', 'source_changed'] as const
    await vi.waitFor(() => expect(kinds.map(countOf)).toEqual([1, WORKERS + 1, 1, 1]), WAIT)
    const left = listeners.filter((listener) => !closed.has(listener))
    expect([closed.size, left.length].every((count) => count > 0)).toBe(true)
    for (const listener of left) {
      const before = tapeUpdatesOf(listener).length
      await listener.until(() => tapeUpdatesOf(listener).length >= before + 20, '20 more updates')
      expect(brokenPrevChains(tapeUpdatesOf(listener))).toEqual([])
    }
    for (const listener of closed) {
      const last = tapeUpdatesOf(listener).at(-1)?.id
      const resumed = await listenNdjson(`${relay.url}/v1/stream?${query}&since=${last}`)
      test.onTestFinished(() => resumed.close())
      expect(await resumed.waitFor('subscribed')).toMatchObject({ resume: 'full' })
      await resumed.until(() => tapeUpdatesOf(resumed).length >= 20, '20 updates')
      expect(brokenPrevChains([...tapeUpdatesOf(listener), ...tapeUpdatesOf(resumed)])).toEqual([])
    }
  })

  it('tells a worker that replaces another which blocks are known, so that it caches answers', async (test) => {
    const devnet = await openDevnet({ pace: 'manual' }, test)
    const relay = await openRelay(test, devnet)
    const at = `0x${devnet.seal().number.toString(16)}`
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_getCode', params: [devnet.list.addressOf('AAPLc'), at] })
    /** Asks each worker several times, and counts what the node was asked. */
    const countForwarded = async () => {
      const before = devnet.requests.eth_getCode
      // One connection after the other goes to the next worker.
      for (let request = 0; request < 3 * WORKERS; request += 1)
        await fetch(`${relay.url}/rpc`, { method: 'POST', body, headers: { connection: 'close' } })
      return devnet.requests.eth_getCode - before
    }
    await vi.waitFor(async () => expect(await countForwarded()).toBe(0), WAIT)
    const [victim = 0] = relay.workers
    relay.kill(victim)
    await vi.waitFor(() => expect(relay.log.filter(({ kind }) => kind === 'worker_started')).toHaveLength(WORKERS + 1), WAIT)
    expect(await countForwarded()).toBe(1)
  })

  it('answers or closes every connection that is opened while a worker dies', async (test) => {
    const relay = await openRelay(test, await openBusyDevnet(test))
    const [victim = 0] = relay.workers
    relay.kill(victim)
    const requests = Array.from({ length: 10 }, () => fetch(`${relay.url}/healthz`).then((response) => response.text()))
    const settled = await Promise.allSettled(requests)
    expect(settled.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThanOrEqual(8)
  })

  it('bounds connections and requests of one address across its workers', async (test) => {
    const bound = 5
    const settings = { MAX_CLIENTS_PER_ADDRESS: String(bound), RPC_RATE: '50' }
    const relay = await openRelay(test, await openBusyDevnet(test), settings)
    const codes = await Promise.all(connectMany(test, relay.url, 4 * bound).map(({ code }) => code))
    expect(codes.toSorted()).toEqual([...Array(bound).fill(0), ...Array(3 * bound).fill(4102)])
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] })
    const statuses: number[] = []
    // All of them at once would be more connections than one address may have.
    const ask = async () => {
      for (let request = 0; request < 6; request += 1)
        statuses.push((await fetch(`${relay.url}/rpc`, { method: 'POST', body })).status)
    }
    await Promise.all(Array.from({ length: 50 }, ask))
    const passed = statuses.filter((status) => status === 200).length
    // The bucket holds a hundred, and fills up while the requests go on.
    expect(passed).toBeGreaterThanOrEqual(100)
    expect(passed).toBeLessThan(200)
  })

  it('accepts a token of one worker in all of them', async (test) => {
    const headers = { authorization: `Bearer ${apiKey}` }
    const relay = await openRelay(test, await openBusyDevnet(test), { API_KEYS: apiKey })
    const { json } = await fetchDocumented(`${relay.url}/v1/token`, { method: 'POST', headers })
    const { token } = json as { token: string }
    // One connection after the other goes to the next worker.
    for (let connection = 0; connection < 2 * WORKERS; connection += 1)
      expect((await fetch(`${relay.url}/v1/status?key=${token}`, { headers: { connection: 'close' } })).status).toBe(200)
  })

  it('ends with its signal, and its workers with it: every listener gets its position', async (test) => {
    const relay = await openRelay(test, await openBusyDevnet(test))
    const listeners = await listenMany(test, relay.url, 6)
    const workers = relay.workers
    expect(await relay.stop()).toBe(0)
    for (const listener of listeners) expect(await listener.waitFor('bye')).toMatchObject({ reason: 'going_away' })
    expect(workers.filter(isRunning)).toEqual([])
  })

  it('is unready before it stops, in a worker too that starts only then', async (test) => {
    const PORT = String(await freePort())
    const relay = await openRelay(test, await openBusyDevnet(test), { PORT, PRE_DRAIN: '1m' })
    const { workers } = relay
    relay.signal('SIGTERM')
    for (const pid of workers) relay.kill(pid)
    await vi.waitFor(() => expect(workers.filter(isRunning)).toEqual([]), WAIT)
    const answer = () => fetch(`${relay.url}/readyz`).then((response) => response.json())
    await vi.waitFor(async () => expect(await answer()).toMatchObject({ status: 'unready', reasons: ['stopping'] }), WAIT)
  })

  it('replaces its workers after the temporary files were removed, and their limits hold', async (test) => {
    const bound = 4
    const [TMPDIR, PORT] = [await createTempFolder(test), String(await freePort())]
    const settings = { TMPDIR, PORT, MAX_CLIENTS_PER_ADDRESS: String(bound) }
    const relay = await openRelay(test, await openBusyDevnet(test), settings)
    const first = connectMany(test, relay.url, bound)
    expect(await Promise.all(first.map(({ code }) => code))).toEqual(Array(bound).fill(0))
    for (const name of readdirSync(TMPDIR)) rmSync(join(TMPDIR, name), { recursive: true })
    const [victim = 0, survivor = 0] = relay.workers
    relay.kill(victim)
    await vi.waitFor(() => expect(relay.workers.filter((pid) => pid !== victim)).toHaveLength(WORKERS), WAIT)
    const kept = first.filter(({ isOpen }) => isOpen()).length
    const clientsOf = async () => (await fetchDocumented(`${relay.url}/v1/status`)).json
    await vi.waitFor(async () => expect(await clientsOf()).toMatchObject({ clients: { ws: kept } }), WAIT)
    const codes = await Promise.all(connectMany(test, relay.url, 3 * bound).map(({ code }) => code))
    expect(codes.filter((code) => code === 0)).toHaveLength(bound - kept)
    // Now only new ones can serve.
    relay.kill(survivor)
    await vi.waitFor(() => expect(relay.workers.filter((pid) => pid !== survivor)).toHaveLength(WORKERS), WAIT)
    await vi.waitFor(() => listenMany(test, relay.url, 1), WAIT)
    expect(relay.log.filter(({ level }) => level === 'fatal')).toEqual([])
  })

  it('removes what a killed one left in the temporary folder, and nothing else', async (test) => {
    const [TMPDIR, devnet] = [await createTempFolder(test), await openBusyDevnet(test)]
    const others = ['stocktape-usage-abcdef', `stocktape-usage-${process.pid}-abcdef`, 'stocktape-workers-x1-abcdef']
    for (const name of others) mkdirSync(join(TMPDIR, name))
    const settings = { TMPDIR, DATA_DIR: ':memory:' }
    const killed = await openRelay(test, devnet, settings)
    const { workers } = killed
    killed.kill()
    await vi.waitFor(() => expect(workers.filter(isRunning)).toEqual([]), WAIT)
    const left = readdirSync(TMPDIR).filter((name) => !others.includes(name))
    expect(left.length).toBeGreaterThan(0)
    const next = await openRelay(test, devnet, settings)
    expect(readdirSync(TMPDIR).filter((name) => left.includes(name))).toEqual([])
    expect(await next.stop()).toBe(0)
    expect(readdirSync(TMPDIR).toSorted()).toEqual(others.toSorted())
  })

  it('refuses a folder that another relay uses, and leaves that alone', async (test) => {
    const devnet = await openBusyDevnet(test)
    const DATA_DIR = await createTempFolder(test)
    const first = await openRelay(test, devnet, { DATA_DIR })
    const second = spawnRelay(test, { ...upstreamOf(devnet), DATA_DIR, PORT: '0', WORKERS: String(WORKERS) })
    expect(await second.waitForExit()).toBe(2)
    expect(second.log.map(({ kind }) => kind)).toEqual(['started', 'cannot_start'])
    expect(second.stderr).toMatch(/DATA_DIR .* is in use by another stocktape/)
    // A worker that is replaced now needs the folder.
    const [victim = 0] = first.workers
    first.kill(victim)
    await vi.waitFor(() => expect(first.workers.filter((pid) => pid !== victim)).toHaveLength(WORKERS), WAIT)
    const listeners = await listenMany(test, first.url, 6)
    for (const listener of listeners) await listener.until(() => tapeUpdatesOf(listener).length >= 10, '10 updates')
  })

  it('says in one line that its port is in use', async (test) => {
    const devnet = await openBusyDevnet(test)
    const { url } = await openRelay(test, devnet)
    const more = { PORT: new URL(url).port, DATA_DIR: ':memory:', WORKERS: String(WORKERS) }
    const second = spawnRelay(test, { ...upstreamOf(devnet), ...more })
    expect(await second.waitForExit()).toBe(2)
    const reason = expect.stringMatching(/^port \d+ on 127\.0\.0\.1 is in use/)
    expect(second.log.filter(({ level }) => level === 'fatal')).toMatchObject([{ kind: 'cannot_start', detail: { reason } }])
  })

  it('of the built-in chain keeps its tape in memory, and reads its secret from the file that the file of --env-file names', async (test) => {
    const folder = await createTempFolder(test)
    writeFileSync(join(folder, 'token'), 'from-file\n')
    writeFileSync(join(folder, 'env'), `METRICS_TOKEN_FILE=${join(folder, 'token')}\nTRUSTED_PROXIES=127.0.0.1\n`)
    const relay = spawnRelay(test, { WORKERS: String(WORKERS), PORT: '0', TMPDIR: folder }, ['--env-file', join(folder, 'env')])
    const url = await relay.listeningUrl()
    expect(relay.log).toContainEqual(expect.objectContaining({ kind: 'listening', detail: { url, tape: 'memory' } }))
    const statusFor = async (token: string) => {
      const headers = { authorization: `Bearer ${token}`, 'x-forwarded-for': '192.0.2.1' }
      return (await fetch(`${url}/metrics`, { headers })).status
    }
    expect([await statusFor('from-file'), await statusFor('another')]).toEqual([200, 403])
    const listeners = await listenMany(test, url, 6)
    for (const listener of listeners) await listener.until(() => tapeUpdatesOf(listener).length >= 10, '10 updates')
    relay.signal('SIGTERM')
    expect(await relay.waitForExit()).toBe(0)
    expect(readdirSync(folder).toSorted()).toEqual(['env', 'token'])
  })

  it.skipIf(!hasNats)('serves a tape over NATS, as an edge, and says that its data is that of a built-in chain', async (test) => {
    const nats = await NatsServer.start()
    test.onTestFinished(() => nats.remove())
    const own = { PORT: '0', DRAIN: '2s', NATS_URL: nats.url, DATA_DIR: ':memory:' }
    await spawnRelay(test, { ...own, ROLE: 'ingest' }).listeningUrl()
    const url = await spawnRelay(test, { ...own, ROLE: 'edge', WORKERS: String(WORKERS) }).listeningUrl()
    const listeners = await listenMany(test, url, 6)
    for (const listener of listeners) await listener.until(() => tapeUpdatesOf(listener).length >= 30, '30 updates')
    for (const listener of listeners) expect(listener.messagesOf('hello')).toMatchObject([{ demo: true }])
    for (const path of ['/v1/status', '/readyz'])
      expect((await fetchDocumented(url + path)).json, path).toMatchObject({ demo: true })
    await nats.kill()
    const pings = await listenNdjson(`${url}/v1/stream?${query}&heartbeat=1`)
    test.onTestFinished(() => pings.close())
    await pings.waitFor('heartbeat', ({ source }) => source === 'down')
  })
})

function isRunning(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return false
  }
}
