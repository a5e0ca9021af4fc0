import { createPublicClient, http, webSocket } from 'viem'
import { expect, it, onTestFinished, vi } from 'vitest'
import { type Devnet, type DevnetOptions, startDevnet } from '../../../src/devnet/devnet.ts'
import { ChildProgram, freePort } from '../../support/child-program.ts'
import { listenNdjson, listenSse, listenWs } from '../../support/test-listener.ts'
import { transfer } from '../../support/test-stack.ts'
import { openChromium, readEventSourceInPage } from './chromium-readers.ts'
import { DeployedRelay, TEST_TIMEOUT_MS, type TestLifecycle } from './deployed-relay.ts'
import { type NginxProxy, openNginx } from './nginx-proxy.ts'
import {
  allReceivedUpdates,
  differencesFromTape,
  type ReconnectingReader,
  ReturningReader,
  resumeResultsOf,
  upTo,
} from './reconnecting-readers.ts'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

/** The relay behind nginx with the configuration of docs/nginx.conf. */

/** The number of transfers; each follows once every listener has the previous one. */
const TRANSFER_COUNT = 5
/** The default is a minute; the test does not wait that long. */
const READ_TIMEOUT_S = 2

const withReadTimeout = (configuration: string): string =>
  configuration.replace('proxy_read_timeout 60s;', `proxy_read_timeout ${READ_TIMEOUT_S}s;`)

const withoutRetry = (configuration: string): string => configuration.replace(/^ *error_page .*$/m, '')

const openDevnet = async (test: TestLifecycle, options: DevnetOptions): Promise<Devnet> => {
  const devnet = await startDevnet(options)
  test.onTestFinished(() => devnet.stop())
  return devnet
}

/** Opens a listener over every transport of JSON. */
async function listenAll(test: TestLifecycle, { url, wsUrl }: NginxProxy, query: string) {
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

it('every update passes at once, over every transport', async (test) => {
  const devnet = await openDevnet(test, { pace: 'manual' })
  const relay = await DeployedRelay.open(test, devnet)
  const proxy = await openNginx(test, relay.url)
  const listeners = await listenAll(test, proxy, 'symbols=AAPLc')
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
  process.stdout.write(`${TRANSFER_COUNT} transfers passed nginx one by one, over four transports\n`)
})

it('heartbeats keep silent streams open', async (test) => {
  const devnet = await openDevnet(test, { pace: 'manual' })
  const relay = await DeployedRelay.open(test, devnet)
  const proxy = await openNginx(test, relay.url, withReadTimeout)
  const listeners = await listenAll(test, proxy, 'symbols=AAPLc&heartbeat=1')
  const lines = linesOf(test, `${proxy.url}/v1/tail/AAPLc?heartbeat=1`)
  await readUntil(lines, /^# live/)
  const silent = await listenNdjson(`${proxy.url}/v1/stream/AAPLc`)
  await silent.waitFor('live')
  expect(await silent.closed).toMatchObject({ reason: 'cut' })
  for (const listener of listeners)
    await listener.until(() => listener.messagesOf('heartbeat').length > READ_TIMEOUT_S, 'one more heartbeat')
  transfer({ devnet })
  await Promise.all([...listeners.map((listener) => listener.waitFor('transfer')), readUntil(lines, / transfer /)])
  process.stdout.write('heartbeats kept four silent streams open through nginx; one without them was cut\n')
})

it('the last id and the bye pass, over restarts of the relay', async (test) => {
  const devnet = await openDevnet(test, { blockMs: 400, flashblockMs: 40, transactionsPerFlashblock: 1, calendar: true })
  const relay = await DeployedRelay.open(test, devnet)
  const { url, wsUrl } = await openNginx(test, relay.url)
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
  process.stdout.write(`${tape.length} updates passed nginx over two restarts\n`)
})

it('a browser survives a downtime after which it would give up without the retry answer', async (test) => {
  const devnet = await openDevnet(test, { pace: 'manual' })
  const relay = await DeployedRelay.open(test, devnet)
  const [bare, patient] = await Promise.all([openNginx(test, relay.url, withoutRetry), openNginx(test, relay.url)])
  const browser = await openChromium()
  test.onTestFinished(() => browser.close())
  const listen = ({ url }: NginxProxy) => readEventSourceInPage(test, browser, devnet.stocksUrl, `${url}/v1/stream/AAPLc`)
  const [lost, kept] = await Promise.all([listen(bare), listen(patient)])
  const lives = ({ connections: [listener] }: ReconnectingReader) => listener?.messagesOf('live').length ?? 0
  await Promise.all([lost, kept].map((reader) => reader.until(() => lives(reader) === 1, 'live')))
  relay.signal('SIGTERM')
  await Promise.all([lost.waitForClosed(), patient.waitForLog(/ 200 502 .* 200 502 /s), relay.waitForExit()])
  transfer({ devnet })
  await relay.start()
  const moved = () => kept.connections[0]?.messagesOf('transfer').length === 1
  await kept.until(() => lives(kept) === 2 && moved(), 'live again and the transfer')
  expect(resumeResultsOf(kept)).toEqual(['none', 'full'])
  expect(lives(lost)).toBe(1)
  process.stdout.write('a browser survived a downtime behind nginx\n')
})

const sse = { accept: 'text/event-stream' }

it.each([
  ['a stream of EventSource', '/v1/stream/AAPLc', { headers: sse }, 200, 'retry: 1000\n\n'],
  ['a stream of EventSource with a query', '/v1/stream?symbols=*', { headers: sse }, 200, 'retry: 1000\n\n'],
  ['a stream without EventSource', '/v1/stream?format=ndjson', {}, 503, /^\{"code":503,/],
  ['readiness', '/readyz', { headers: sse }, 503, /^\{"code":503,/],
  ['a request', '/rpc', { method: 'POST', body: '{}' }, 503, /^\{"code":503,/],
  ['a download', '/v1/events?format=ndjson', {}, 503, /^\{"code":503,/],
])('without a relay, %s is answered so that its client does the right thing', async (_, path, init, status, body) => {
  const nginx = await openNginx({ onTestFinished }, `http://127.0.0.1:${await freePort()}`)
  const answer = await fetch(nginx.url + path, init)
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([status, status === 503 ? '2' : null])
  expect(await answer.text()).toMatch(body)
})

it('an unready relay stays unready, and its other refusals pass', async (test) => {
  const devnet = await openDevnet(test, { pace: 'manual' })
  const relay = await DeployedRelay.open(test, devnet)
  const nginx = await openNginx(test, relay.url)
  await devnet.stop()
  await vi.waitUntil(async () => (await fetch(`${nginx.url}/readyz`)).status === 503, TEST_TIMEOUT_MS)
  expect(await (await fetch(`${nginx.url}/readyz`)).json()).toMatchObject({ status: 'unready', reasons: ['the upstream is down'] })
  expect((await fetch(`${nginx.url}/v1/stream/NOPE`)).status).toBe(404)
})

it('a stream comes over TLS and HTTP/2, and a key is in no log', async (test) => {
  const devnet = await openDevnet(test, { pace: 'manual' })
  const relay = await DeployedRelay.open(test, devnet, { API_KEYS: 'SECRETKEY' })
  const nginx = await openNginx(test, relay.url)
  const url = `${nginx.tlsUrl}/v1/stream/AAPLc?key=SECRETKEY&format=text`
  const curl = new ChildProgram(['curl', '-sSN', '--cacert', nginx.certificatePath, '-w', '%{http_version}', url], {
    env: { PATH: process.env.PATH },
  })
  test.onTestFinished(() => curl.kill())
  await curl.waitForOutput('stdout', /# live/)
  relay.signal('SIGTERM')
  await relay.waitForExit()
  await curl.waitForExit()
  expect(curl.stdout).toMatch(/\n2$/)
  await fetch(`${nginx.url}/v1/stream/AAPLc?key=SECRETKEY`)
  await nginx.waitForLog(/ 503 502 /)
  expect(nginx.log()).toContain('/v1/stream/AAPLc')
  expect(nginx.log()).not.toContain('SECRETKEY')
})

it('JSON-RPC requests and subscriptions pass', async (test) => {
  const devnet = await openDevnet(test, { pace: 'manual' })
  const relay = await DeployedRelay.open(test, devnet)
  const proxy = await openNginx(test, relay.url)
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
