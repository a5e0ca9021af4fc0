import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { get } from 'node:http'
import { createPublicClient, http, webSocket } from 'viem'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { DevnetOptions } from '../../../src/devnet/devnet.ts'
import { apiKey } from '../../support/api-keys.ts'
import { ChildProgram, freePort } from '../../support/child-program.ts'
import { needPrograms, pathOf } from '../../support/debian-programs.ts'
import { serve } from '../../support/loopback-server.ts'
import { listenNdjson, listenSse, listenWs } from '../../support/test-listener.ts'
import { openDevnet, type TestLifecycle, transfer } from '../../support/test-stack.ts'
import { DeployedRelay, TEST_TIMEOUT_MS } from './deployed-relay.ts'
import { openHaproxy } from './haproxy-proxy.ts'
import { type OpenedProxy, openNginx } from './nginx-proxy.ts'
import { allReceivedUpdates, differencesFromTape, ReturningReader, resumeResultsOf, upTo } from './reconnecting-readers.ts'

needPrograms('curl', 'python')

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

/** The relay behind nginx and HAProxy with the configurations of docs/. */

/** The number of transfers; each follows once every listener has the previous one. */
const TRANSFER_COUNT = 5
/** The defaults are about a minute; the test does not wait that long. */
const READ_TIMEOUT_S = 2

type Edit = (configuration: string) => string

const proxies: readonly {
  readonly name: string
  readonly open: typeof openNginx
  readonly withTimeout: Edit
  /** Caches all that may be cached, and joins equal requests where it can. */
  readonly withCache: Edit
}[] = [
  {
    name: 'nginx',
    open: openNginx,
    withTimeout: (configuration) => configuration.replace('proxy_read_timeout 60s;', `proxy_read_timeout ${READ_TIMEOUT_S}s;`),
    withCache: (configuration) =>
      `proxy_cache_path temp/cache keys_zone=all:1m;\n${configuration.replaceAll(
        'proxy_pass http://stocktape;',
        'proxy_cache all; proxy_cache_lock on; proxy_cache_valid any 1m; proxy_pass http://stocktape;',
      )}`,
  },
  {
    name: 'HAProxy',
    open: openHaproxy,
    withTimeout: (configuration) => configuration.replaceAll(/timeout (client|server) 50s/g, `timeout $1 ${READ_TIMEOUT_S}s`),
    withCache: (configuration) =>
      `${configuration.replaceAll(/ {2}server .*\n/g, '  http-request cache-use all\n  http-response cache-store all\n$&')}cache all\n  total-max-size 4\n  max-age 60\n`,
  },
]

/** Opens a listener over every transport of JSON. */
async function listenAll(test: TestLifecycle, { url, wsUrl }: OpenedProxy, query: string) {
  const listeners = await Promise.all([
    listenSse(`${url}/v1/stream?${query}`),
    listenNdjson(`${url}/v1/stream?${query}`),
    listenWs(`${wsUrl}/v1/ws?${query}`),
  ])
  for (const listener of listeners) {
    test.onTestFinished(() => listener.close())
    await listener.waitFor('live')
  }
  return listeners
}

/** The lines of a text stream. */
async function* linesOf(test: TestLifecycle, url: string): AsyncGenerator<string, never> {
  const abort = new AbortController()
  test.onTestFinished(() => abort.abort())
  const { body } = await fetch(url, { signal: abort.signal })
  let rest = ''
  for await (const text of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  throw new Error(`the lines ended with ${JSON.stringify(rest)}`)
}

/** Reads up to a line that matches. */
async function readUntil(lines: AsyncGenerator<string, never>, pattern: RegExp): Promise<void> {
  while (!pattern.test((await lines.next()).value));
}

const asEventSource = { headers: { accept: 'text/event-stream' } }

describe.each(proxies)('behind $name', ({ open, withTimeout, withCache }) => {
  const openBehind = async (test: TestLifecycle, settings = {}, edit?: Edit, options: DevnetOptions = { pace: 'manual' }) => {
    const devnet = await openDevnet(options, test)
    const relay = await DeployedRelay.open(test, devnet, settings)
    return { devnet, relay, proxy: await open(test, relay.url, edit) }
  }

  it('every update passes at once, over every transport', async (test) => {
    const { devnet, proxy } = await openBehind(test)
    const listeners = await listenAll(test, proxy, 'symbols=AAPLc')
    const { certificatePath, tlsUrl } = proxy
    const secure = execFileSync('curl', ['-sI', '--cacert', certificatePath, `${tlsUrl}/healthz`], { encoding: 'utf8' })
    expect(secure).toMatch(/^strict-transport-security: max-age=\d+/m)
    const lines = linesOf(test, `${proxy.url}/v1/tail/AAPLc`)
    await readUntil(lines, /^# live/)
    for (let time = 1; time <= TRANSFER_COUNT; time += 1) {
      transfer({ devnet }, 'AAPLc', 1, BigInt(time) * 10n ** 8n)
      await Promise.all([
        ...listeners.map((listener) => listener.waitFor('transfer', ({ amount }) => amount === String(time))),
        readUntil(lines, new RegExp(` transfer +${time} `)),
      ])
    }
    for (const listener of listeners) expect(listener.messagesOf('transfer')).toHaveLength(TRANSFER_COUNT)
  })

  it('the program of the contract verifies the receipts of a stream and of an export', async (test) => {
    const { devnet, relay, proxy } = await openBehind(test)
    await relay.waitForPendingLogs()
    transfer({ devnet }, 'AAPLc', 300)
    devnet.seal()
    await relay.waitForResponse('/v1/events?types=seal', (text) => text.includes('"type":"seal"'))
    const [, program = ''] = /^```python\n(.*?)^```$/ms.exec(readFileSync('src/protocol/README.md', 'utf8')) ?? []
    const verify = (url: string) => spawnSync(pathOf('python'), ['-c', program, url], { encoding: 'utf8' })
    for (const base of [relay.url, proxy.url])
      for (const path of ['/v1/stream?symbols=*&since=start&format=ndjson', '/v1/events?symbols=*&format=ndjson&receipt=true'])
        expect(verify(base + path), base + path).toMatchObject({ status: 0, stderr: '' })
  })

  it('heartbeats keep silent streams open', async (test) => {
    const { devnet, proxy } = await openBehind(test, {}, withTimeout)
    const listeners = await listenAll(test, proxy, 'symbols=AAPLc&heartbeat=1')
    const lines = linesOf(test, `${proxy.url}/v1/tail/AAPLc?heartbeat=1`)
    await readUntil(lines, /^# live/)
    const silent = await listenNdjson(`${proxy.url}/v1/stream/AAPLc?heartbeat=0`)
    await silent.waitFor('live')
    expect(['cut', 'ended']).toContain((await silent.closed).reason)
    for (const listener of listeners)
      await listener.until(() => listener.messagesOf('heartbeat').length > READ_TIMEOUT_S, 'one more heartbeat')
    transfer({ devnet })
    await Promise.all([...listeners.map((listener) => listener.waitFor('transfer')), readUntil(lines, / transfer /)])
  })

  it('the last id and the bye pass, over restarts of the relay', async (test) => {
    const busy = { blockMs: 400, flashblockMs: 40, transactionsPerFlashblock: 1, calendar: true }
    const { relay, proxy } = await openBehind(test, {}, undefined, busy)
    const { url, wsUrl } = proxy
    const query = 'symbols=*&types=*&snapshot=false'
    const sse = new ReturningReader(test, 'SSE', (last) =>
      listenSse(`${url}/v1/stream?${query}&since=start`, last ? { 'last-event-id': last } : {}),
    )
    const ndjson = new ReturningReader(test, 'NDJSON', (last) => listenNdjson(`${url}/v1/stream?${query}&since=${last ?? 'start'}`))
    const ws = new ReturningReader(test, 'WebSocket', (last) => listenWs(`${wsUrl}/v1/ws?${query}&since=${last ?? 'start'}`))
    const readers: readonly ReturningReader[] = [sse, ndjson, ws]
    const live = (times: number) =>
      Promise.all(readers.map((reader) => reader.until(() => reader.connections[times]?.messagesOf('live').length === 1, 'live')))
    await live(0)
    expect(await relay.restart('SIGTERM')).toBe(0)
    await live(1)
    expect(await relay.restart('SIGKILL')).toBeNull()
    const last = await relay.waitForNewPosition()
    await Promise.all(
      readers.map((reader) => reader.until(() => allReceivedUpdates(reader).some(({ update }) => update.id === last), last)),
    )
    const tape = await relay.readTape(last)
    for (const reader of readers) {
      expect(differencesFromTape(upTo(last, allReceivedUpdates(reader)), tape), reader.name).toEqual([])
      expect(resumeResultsOf(reader), reader.name).toEqual(['none', 'full', 'full'])
      const [bye] = reader.connections[0]?.messagesOf('bye') ?? []
      expect(bye?.reason, reader.name).toBe('going_away')
      expect(reader.connections[1]?.messagesOf('bye'), reader.name).toEqual([])
    }
    expect(ws.closeResults[0]?.code).toBe(4_200)
  })

  it('a stream comes over TLS and HTTP/2, and a key is in no log', async (test) => {
    const { relay, proxy } = await openBehind(test, { API_KEYS: apiKey })
    const url = `${proxy.tlsUrl}/v1/stream/AAPLc?key=${apiKey}&format=text`
    const curl = new ChildProgram(['curl', '-sSN', '--cacert', proxy.certificatePath, '-w', '%{http_version}', url], {
      env: { PATH: process.env.PATH },
    })
    test.onTestFinished(() => curl.kill())
    await curl.waitForOutput('stdout', /# live/)
    relay.signal('SIGTERM')
    await relay.waitForExit()
    await curl.waitForExit()
    expect(curl.stdout).toMatch(/\n2$/)
    await fetch(`${proxy.url}/v1/stream/AAPLc?key=${apiKey}`)
    await proxy.waitForLog(/ 503 /)
    expect(proxy.log()).toContain('/v1/stream/AAPLc')
    expect(proxy.log()).not.toContain(apiKey)
  })

  it('JSON-RPC requests and subscriptions pass', async (test) => {
    const { devnet, proxy } = await openBehind(test)
    const client = createPublicClient({ transport: http(`${proxy.url}/rpc`, { batch: true }) })
    const pushed = webSocket(`${proxy.wsUrl}/rpc`)({})
    const received: unknown[] = []
    const params = ['pendingLogs', {}] as never
    const { unsubscribe } = (await pushed.value?.subscribe({ params, onData: (data) => received.push(data.result) })) ?? {}
    transfer({ devnet }, 'AAPLc', 1, 7n)
    await vi.waitUntil(() => received.length > 0, TEST_TIMEOUT_MS)
    const [number, pending] = await Promise.all([client.getBlockNumber(), client.getBlock({ blockTag: 'pending' })])
    expect([Number(number), Number(pending.number)]).toEqual([devnet.chain.head.number, devnet.chain.head.number + 1])
    expect(received).toMatchObject([{ address: devnet.list.addressOf('AAPLc'), removed: false }])
    await unsubscribe?.()
    const socket = (await pushed.value?.getRpcClient())?.socket
    socket?.close()
  })

  it('equal streams are neither joined nor cached', async (test) => {
    const { devnet, proxy } = await openBehind(test, {}, withCache)
    const url = `${proxy.url}/v1/stream/AAPLc`
    const listeners = await Promise.all([listenSse(url), listenSse(url), listenNdjson(url), listenNdjson(url)])
    for (const listener of listeners) test.onTestFinished(() => listener.close())
    await Promise.all(listeners.map((listener) => listener.waitFor('live')))
    transfer({ devnet })
    await Promise.all(listeners.map((listener) => listener.waitFor('transfer')))
    const connections = listeners.map((listener) => listener.messagesOf('hello')[0]?.connection)
    expect(new Set(connections).size).toBe(listeners.length)
    listeners[0]?.close()
    const later = await listenSse(url)
    test.onTestFinished(() => later.close())
    expect((await later.waitFor('hello')).connection).not.toBe(connections[0])
  })

  it('each client counts by its own address, and cannot forge another one', async (test) => {
    const { proxy } = await openBehind(test, { TRUSTED_PROXIES: '127.0.0.1', MAX_CLIENTS_PER_ADDRESS: '1' })
    const statusFor = (localAddress: string, forwarded: string) =>
      new Promise<number>((resolve, reject) => {
        const headers = { 'x-forwarded-for': forwarded }
        const request = get(`${proxy.url}/v1/stream/AAPLc`, { localAddress, headers, agent: false }, (answer) => {
          resolve(answer.statusCode ?? 0)
          answer.on('error', () => {})
        })
        request.on('error', reject)
        test.onTestFinished(() => void request.destroy())
      })
    expect(await statusFor('127.0.0.2', '192.0.2.1')).toBe(200)
    expect(await statusFor('127.0.0.3', '192.0.2.1')).toBe(200)
    expect(await statusFor('127.0.0.2', '192.0.2.2')).toBe(429)
  })

  it.each([
    ['a stream of EventSource', '/v1/stream/AAPLc', asEventSource, 200, 'retry: 1000\n\n'],
    ['a stream of EventSource with a query', '/v1/stream?symbols=*', asEventSource, 200, 'retry: 1000\n\n'],
    ['a stream without EventSource', '/v1/stream?format=ndjson', {}, 503, /^\{"code":503,/],
    ['readiness', '/readyz', asEventSource, 503, /^\{"code":503,/],
    ['a request', '/rpc', { method: 'POST', body: '{}' }, 503, /^\{"code":503,/],
    ['a download', '/v1/events?format=ndjson', {}, 503, /^\{"code":503,/],
  ])('without a relay, %s is answered so that its client does the right thing', async (_, path, init, status, body) => {
    const proxy = await open({ onTestFinished }, `http://127.0.0.1:${await freePort()}`)
    const answer = await fetch(proxy.url + path, init)
    expect(answer.status).toBe(status)
    if (status === 503) expect(answer.headers.get('retry-after')).toBe('2')
    expect(await answer.text()).toMatch(body)
  })

  it('a stream that an edge refuses with 503 opens on the other one, and EventSource never sees the last 503', async (test) => {
    let stopping = 1
    const edges = await Promise.all(
      [1, 2].map((edge) =>
        serve(test.onTestFinished, ({ url }, response) => {
          const isRefused = edge <= stopping && url === '/v1/stream/AAPLc'
          response.writeHead(isRefused ? 503 : 200).end(`edge ${edge}`)
        }),
      ),
    )
    const proxy = await open(test, edges)
    const answerTo = async (init: RequestInit) => {
      const answer = await fetch(`${proxy.url}/v1/stream/AAPLc`, init)
      return `${answer.status} ${await answer.text()}`
    }
    const twice = async () => [await answerTo({}), await answerTo(asEventSource), await answerTo({}), await answerTo(asEventSource)]
    expect(await twice()).toEqual(Array(4).fill('200 edge 2'))
    stopping = 2
    const refused = expect.stringMatching(/^503 edge [12]$/)
    expect(await twice()).toEqual([refused, '200 retry: 1000\n\n', refused, '200 retry: 1000\n\n'])
  })
})
