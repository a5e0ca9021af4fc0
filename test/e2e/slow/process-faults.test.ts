import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, readdirSync, writeSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect, it, type TestContext, vi } from 'vitest'
import { ChildProgram, createTempFolder, freePort, spawnRelay, startCommand, upstreamOf } from '../../support/child-program.ts'
import { listenNdjson, listenSse, listenWs, type TestListener } from '../../support/test-listener.ts'
import { openDevnet, tapeUpdatesOf, transfer } from '../../support/test-stack.ts'
import { brokenPrevChains } from './reconnecting-readers.ts'

vi.setConfig({ testTimeout: 60_000 })

/** A signal that comes sooner after the first one is the same signal. */
const SAME_SIGNAL_MS = 1_000
/** Only a second signal ends such a stop sooner. */
const LONG_STOP_MS = 9_000
/** How long the relay is stopped: longer than two pings of a client that asks for one each second. */
const STALL_MS = 4_000
/** Connections that come while the relay is busy: more than Node lets wait, and fewer than Linux does. */
const WAITING_CONNECTIONS = 800
/** How many more descriptors the relay may open, and how many connections want one. */
const [FREE_DESCRIPTORS, WANTED_DESCRIPTORS, MANY_DESCRIPTORS] = [4, 40, 1_000]
/** A heap that the relay alone fits into, and a long list does not. */
const SMALL_HEAP_MIB = 48
const LONG_LIST = 30_000
/** A pipe takes no less at once. */
const PIPE_PAGE_BYTES = 4_096

async function openChain(test: TestContext) {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const settings = {
    ...{ PORT: '0', DATA_DIR: await createTempFolder(test), STOCKS_REFRESH: '100ms', DRAIN: '1s' },
    ...upstreamOf(devnet),
  }
  const start = (more: Record<string, string> = {}) => spawnRelay(test, { ...settings, ...more })
  return { devnet, settings, start }
}

const closeAtEnd = async (test: TestContext, opening: Promise<TestListener>): Promise<TestListener> => {
  const listener = await opening
  test.onTestFinished(() => listener.close())
  return listener
}

const isReady = async (url: string): Promise<boolean> => (await fetch(`${url}/readyz`).catch(() => null))?.status === 200

/** A module that runs first in the relay. */
const preloaded = (source: string): string => `--import data:text/javascript,${encodeURIComponent(source)}`

it.concurrent('a second signal ends a stop at once, but not within a second of the first', async (test) => {
  const { start } = await openChain(test)
  const relay = start({ DRAIN: `${LONG_STOP_MS}ms` })
  const { hostname, port } = new URL(await relay.listeningUrl())
  const socket = connect(Number(port), hostname).on('error', () => {})
  test.onTestFinished(() => void socket.destroy())
  // Half of a request, which the relay waits for.
  await new Promise<void>((resolve) => socket.write('GET /healthz HTTP/1.1\r\n', () => resolve()))
  await (await fetch(`http://${hostname}:${port}/healthz`)).text()
  relay.signal('SIGTERM')
  const signalledAt = performance.now()
  let code: number | null | undefined
  void relay.waitForExit().then((exitCode) => {
    code = exitCode
  })
  await vi.waitUntil(
    () => {
      relay.signal('SIGINT')
      return code !== undefined
    },
    { timeout: LONG_STOP_MS, interval: 20 },
  )
  expect(code).toBe(1)
  const tookMs = performance.now() - signalledAt
  expect(tookMs).toBeGreaterThan(SAME_SIGNAL_MS)
  expect(tookMs).toBeLessThan(LONG_STOP_MS)
})

it.concurrent.for([
  ['an exception', 'throw new Error("planted")'],
  ['a rejection', 'Promise.reject(new Error("planted"))'],
] as const)('%s that nothing handles is logged and ends the relay, which says bye', async ([, failure], test) => {
  const { devnet, start } = await openChain(test)
  const relay = start({ NODE_OPTIONS: preloaded(`process.on("SIGUSR2",()=>{${failure}})`) })
  const listener = await closeAtEnd(test, listenNdjson(`${await relay.listeningUrl()}/v1/stream?symbols=*&types=*`))
  await listener.waitFor('live')
  transfer({ devnet })
  await listener.waitFor('transfer')
  relay.signal('SIGUSR2')
  expect(await relay.waitForExit()).toBe(1)
  expect(relay.stderr).toMatch(/"planted".*the relay cannot continue/)
  expect(listener.messages.at(-1)).toMatchObject({ type: 'bye', id: tapeUpdatesOf(listener).at(-1)?.id, reason: 'going_away' })
})

it.concurrent('a relay that crashes again and again in the middle of its start is ready at last, with nothing lost', async (test) => {
  const { devnet, start } = await openChain(test)
  const first = start()
  const listener = await closeAtEnd(test, listenNdjson(`${await first.listeningUrl()}/v1/stream?symbols=*&types=*`))
  await listener.waitFor('live')
  transfer({ devnet }, 'AAPLc', 3)
  await listener.until(() => listener.messagesOf('transfer').length === 3)
  const last = tapeUpdatesOf(listener).at(-1)?.id ?? ''
  await first.kill()
  const { socket, list } = devnet.requests
  const moments: readonly (() => boolean)[] = [() => devnet.requests.socket > socket, () => devnet.requests.list > list]
  for (const isNow of moments) {
    const relay = start()
    await vi.waitUntil(isNow, { timeout: 20_000, interval: 5 })
    await relay.kill()
  }
  transfer({ devnet }, 'AAPLc', 2, 7n)
  const relay = start()
  const url = await relay.listeningUrl()
  const resumed = await closeAtEnd(test, listenNdjson(`${url}/v1/stream?symbols=*&types=*&since=${last}`))
  expect(await resumed.waitFor('subscribed')).toMatchObject({ resume: 'full' })
  await resumed.until(() => resumed.messagesOf('transfer').length === 2)
  expect(brokenPrevChains([...tapeUpdatesOf(listener), ...tapeUpdatesOf(resumed)])).toEqual([])
  await vi.waitUntil(() => isReady(url))
})

it.concurrent('a relay that runs out of memory ends, and the next one continues its tape', async (test) => {
  const { devnet, start } = await openChain(test)
  const relay = start({ NODE_OPTIONS: `--max-old-space-size=${SMALL_HEAP_MIB}` })
  const listener = await closeAtEnd(test, listenNdjson(`${await relay.listeningUrl()}/v1/stream?symbols=*&types=transfer`))
  await listener.waitFor('live')
  transfer({ devnet })
  const { id } = await listener.waitFor('transfer')
  devnet.list.corrupt((body) => {
    const contract = (nth: number) => `0x${'b'.repeat(32)}${nth.toString(16).padStart(8, '0')}`
    const many = Array.from({ length: LONG_LIST }, (_, nth) => ({
      symbol: `S${nth}c`,
      contract_address: contract(nth),
      decimals: 8,
    }))
    return JSON.stringify({ tokens: [...JSON.parse(body).tokens, ...many] })
  })
  expect(await relay.waitForExit()).not.toBe(0)
  expect(relay.stderr).toContain('heap out of memory')
  devnet.list.corrupt((body) => body)
  const next = start()
  const resumed = await closeAtEnd(
    test,
    listenSse(`${await next.listeningUrl()}/v1/stream?symbols=*&types=transfer`, { 'last-event-id': id }),
  )
  transfer({ devnet }, 'AAPLc', 1, 9n)
  await resumed.waitFor('transfer', ({ raw }) => raw === '9')
  expect(resumed.messagesOf('gap')).toEqual([])
})

it.concurrent('a relay that is stopped for some seconds disconnects nobody, and its ages are right', async (test) => {
  const { devnet, start } = await openChain(test)
  const relay = start()
  const url = await relay.listeningUrl()
  const query = 'symbols=*&types=transfer,nav,status&heartbeat=1'
  const listeners = await Promise.all([
    closeAtEnd(test, listenWs(`${url.replace('http', 'ws')}/v1/ws?${query}`)),
    closeAtEnd(test, listenSse(`${url}/v1/stream?${query}`)),
    closeAtEnd(test, listenNdjson(`${url}/v1/stream?${query}`)),
  ])
  for (const listener of listeners) {
    await listener.waitFor('live')
    await listener.waitFor('heartbeat')
  }
  relay.signal('SIGSTOP')
  transfer({ devnet }, 'AAPLc', 5)
  await new Promise((resolve) => setTimeout(resolve, STALL_MS))
  relay.signal('SIGCONT')
  for (const listener of listeners) {
    await listener.until(() => listener.messagesOf('transfer').length === 5)
    const heartbeats = listener.messagesOf('heartbeat').length
    await listener.until(() => listener.messagesOf('heartbeat').length >= heartbeats + 3)
    for (const { time, nav } of listener.messagesOf('transfer')) {
      expect(nav.age_s).toBe(Math.max(0, Math.floor((Date.parse(time) - Date.parse(nav.updated_at ?? '')) / 1_000)))
    }
    expect([listener.messagesOf('gap'), listener.messagesOf('bye')]).toEqual([[], []])
  }
})

it.concurrent('connections that come while the relay is busy wait for it', { skip: process.platform !== 'linux' }, async (test) => {
  const relay = (await openChain(test)).start()
  const url = await relay.listeningUrl()
  const { hostname, port } = new URL(url)
  relay.signal('SIGSTOP')
  const sockets = Array.from({ length: WAITING_CONNECTIONS }, () => connect(Number(port), hostname).on('error', () => {}))
  test.onTestFinished(() => sockets.forEach((socket) => void socket.destroy()))
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  for (const socket of sockets) socket.destroy()
  relay.signal('SIGCONT')
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
})

it.concurrent('a relay without free descriptors serves the clients that it has, and takes new ones when there are descriptors again', async (test) => {
  const { devnet, start } = await openChain(test)
  const relay = start()
  const url = await relay.listeningUrl()
  const { hostname, port } = new URL(url)
  const descriptors = () => readdirSync(`/proc/${relay.pid}/fd`).length
  const bound = (most: number) => execFileSync('prlimit', ['--pid', String(relay.pid), `--nofile=${most}:`])
  const listener = await closeAtEnd(test, listenNdjson(`${url}/v1/stream?symbols=*`))
  await listener.waitFor('live')
  await devnet.until(() => devnet.subscriptions().pendingLogs > 0)
  const most = descriptors() + FREE_DESCRIPTORS
  bound(most)
  const sockets = Array.from({ length: WANTED_DESCRIPTORS }, () => {
    const socket = connect(Number(port), hostname)
    return socket.on('error', () => {}).on('connect', () => void socket.write('GET /healthz HTTP/1.1\r\n'))
  })
  const closeAll = () => sockets.forEach((socket) => void socket.destroy())
  test.onTestFinished(closeAll)
  // Those that got no descriptor are closed, or wait.
  await vi.waitUntil(() => descriptors() >= most - 1)
  transfer({ devnet }, 'AAPLc', 1, 100_000_000n)
  const { number } = devnet.seal()
  await listener.waitFor('seal', ({ block }) => block.number === number)
  bound(MANY_DESCRIPTORS)
  closeAll()
  const late = connect(Number(port), hostname)
  test.onTestFinished(() => void late.destroy())
  late.write('GET /healthz HTTP/1.1\r\nhost: relay\r\nconnection: close\r\n\r\n')
  expect(String((await once(late, 'data'))[0])).toMatch(/^HTTP\/1\.1 200 /)
  transfer({ devnet }, 'AAPLc', 1, 200_000_000n)
  await listener.waitFor('transfer', ({ amount }) => amount === '2')
  expect(listener.messagesOf('gap')).toEqual([])
})

it.concurrent('a relay whose log is not read serves its clients, and stops', async (test) => {
  const { devnet, settings } = await openChain(test)
  const pipe = join(settings.DATA_DIR, 'log')
  execFileSync('mkfifo', [pipe])
  const descriptor = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK)
  test.onTestFinished(() => closeSync(descriptor))
  const fill = () => {
    for (;;) writeSync(descriptor, 'x'.repeat(PIPE_PAGE_BYTES))
  }
  expect(fill).toThrow('EAGAIN')
  const env = { PATH: process.env.PATH, ...settings, PORT: String(await freePort()) }
  const url = `http://127.0.0.1:${env.PORT}`
  const relay = new ChildProgram(['sh', '-c', `exec "$@" 2>${pipe}`, 'sh', ...startCommand], { env })
  test.onTestFinished(() => relay.kill())
  await vi.waitUntil(() => isReady(url), { timeout: 20_000, interval: 50 })
  const listener = await closeAtEnd(test, listenNdjson(`${url}/v1/stream?symbols=*&types=transfer`))
  await listener.waitFor('live')
  devnet.faults.rpc = { status: 503 }
  devnet.faults.dropSockets()
  await vi.waitUntil(() => devnet.subscriptions().pendingLogs === 0)
  devnet.faults.clear()
  await devnet.until(() => devnet.subscriptions().pendingLogs === 1)
  transfer({ devnet })
  await listener.waitFor('transfer')
  relay.signal('SIGTERM')
  expect(await relay.waitForExit()).toBe(0)
})

it.concurrent('a relay listens on an address of IPv6 alone', async (test) => {
  const { devnet, start } = await openChain(test)
  const relay = start({ HOST: '::1' })
  const { port } = new URL(await relay.listeningUrl())
  const listener = await closeAtEnd(test, listenWs(`ws://[::1]:${port}/v1/ws?symbols=AAPLc&types=transfer`))
  await listener.waitFor('live')
  transfer({ devnet })
  await listener.waitFor('transfer')
  await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow()
  expect(relay.stdout).toBe('')
})

it.concurrent('on a terminal the log is text, and a start prints three commands that work', async (test) => {
  const inTerminal = ['python3', '-c', 'import pty, sys; pty.spawn(sys.argv[1:])'] as const
  const program = new ChildProgram([...inTerminal, ...startCommand], { env: { PATH: process.env.PATH, PORT: '0' } })
  test.onTestFinished(() => program.kill())
  await program.waitForOutput('stdout', /EventSource\(.*\r\n/)
  expect(program.stdout).toMatch(/^[\d:.]{12} INFO {2}stocktape has started \{"version":/)
  const [, url = ''] = /INFO {2}stocktape listens \{"url":"([^"]*)"/.exec(program.stdout) ?? []
  const { host } = new URL(url)
  expect(program.stdout).toMatch(/built-in chain/)
  const lines = program.stdout.split('\r\n').filter((line) => line.startsWith('  '))
  expect(lines).toEqual([
    expect.stringContaining(`curl -N http://${host}/v1/tail/`),
    expect.stringContaining(`ws://${host}/v1/ws?symbols=`),
    expect.stringContaining(`new EventSource('http://${host}/v1/stream/`),
  ])
  const listener = await closeAtEnd(test, listenSse(/'(http:[^']*)'/.exec(lines[2] ?? '')?.[1] ?? ''))
  expect(await listener.waitFor('hello')).toMatchObject({ demo: true })
})
