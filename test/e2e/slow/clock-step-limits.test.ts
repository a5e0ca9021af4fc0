import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished, vi } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { spawnRelay } from '../../support/child-program.ts'
import { serveNode } from '../../support/loopback-server.ts'
import { listenWs } from '../../support/test-listener.ts'
import { TEST_TIMEOUT_MS } from './deployed-relay.ts'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

const HOUR_MS = 3_600_000
const TOO_MANY_REQUESTS = 429
const TOO_MANY_MESSAGES = 4101
/** What a client may do at once: requests with RPC_RATE=1, messages on a WebSocket. */
const [REQUESTS_AT_ONCE, MESSAGES_AT_ONCE] = [100, 50]
/** The longest delay after a first failure, and the least one after the third in a row. */
const [FIRST_DELAY_MS, THIRD_DELAY_MS] = [250, 500]
const settableDate = fileURLToPath(new URL('settable-date.ts', import.meta.url))

/** An upstream that passes requests on to a node, unless it refuses them. It counts both. */
async function openUpstream(node: Devnet, refuses: (body: string) => boolean, retryAfter = '0') {
  const upstream = { url: '', refused: 0, answered: 0 }
  upstream.url = await serveNode(onTestFinished, node.rpcUrl, (body, response) => {
    const isRefused = refuses(body)
    upstream[isRefused ? 'refused' : 'answered'] += 1
    if (isRefused) response.writeHead(TOO_MANY_REQUESTS, { 'retry-after': retryAfter }).end()
    return isRefused
  })
  return upstream
}

/** A relay on a devnet whose wall clock the test sets an hour ahead. */
async function openRelay(devnet: Devnet, settings: Record<string, string> = {}) {
  const relay = spawnRelay(
    { onTestFinished },
    {
      ...{ PORT: '0', DATA_DIR: ':memory:', UPSTREAM_RPC_URL: devnet.rpcUrl, STOCKS_API_URL: devnet.url },
      ...{ RPC_RATE: '1', PENDING_POLL: '20ms' },
      ...{ CLOCK_STEPS_MS: String(HOUR_MS), NODE_OPTIONS: `--import ${settableDate}`, ...settings },
    },
  )
  const url = await relay.listeningUrl()
  const ask = (request: unknown): Promise<Response> => fetch(`${url}/rpc`, { method: 'POST', body: JSON.stringify(request) })
  const setClock = async () => {
    relay.signal('SIGUSR2')
    await relay.waitForOutput('stdout', /the wall clock is \d+ ms off/)
  }
  return { url, ask, setClock }
}

import { openDevnet } from '../../support/test-stack.ts'

const callOf = (method: string, params: readonly unknown[] = [], id = 1) => ({ jsonrpc: '2.0', id, method, params })

/** What a wall clock that is an hour ahead must not end. */
const limits: readonly (readonly [string, (devnet: Devnet) => Promise<void>])[] = [
  [
    'the rate limit of requests',
    async (devnet) => {
      const { ask, setClock } = await openRelay(devnet)
      const batchOf = (size: number) => Array.from({ length: size }, (_, id) => callOf('eth_chainId', [], id))
      expect((await ask(batchOf(REQUESTS_AT_ONCE))).status).toBe(200)
      await setClock()
      expect((await ask(batchOf(REQUESTS_AT_ONCE))).status).toBe(TOO_MANY_REQUESTS)
    },
  ],
  [
    'the rate limit of messages',
    async (devnet) => {
      const { url, setClock } = await openRelay(devnet)
      const listener = await listenWs(`${url.replace('http', 'ws')}/v1/ws`)
      const ping = (messages: number) => {
        for (let req = 1; req <= messages; req += 1) listener.send({ type: 'ping', req })
      }
      ping(MESSAGES_AT_ONCE)
      await listener.waitFor('pong', ({ req }) => req === MESSAGES_AT_ONCE)
      await setClock()
      ping(MESSAGES_AT_ONCE)
      expect((await listener.closed).code).toBe(TOO_MANY_MESSAGES)
    },
  ],
  [
    'the pause that an upstream asked for',
    async (devnet) => {
      const account = `0x${'7'.repeat(40)}`
      const upstream = await openUpstream(devnet, (body) => body.includes(account), '5')
      const { ask, setClock } = await openRelay(devnet, { UPSTREAM_RPC_URL: upstream.url })
      const call = async (method: string) => (await ask(callOf(method, [account, 'latest']))).text()
      expect(await call('eth_getBalance')).toContain('error')
      expect(upstream.refused).toBe(1)
      await setClock()
      expect(await call('eth_getCode')).toContain('error')
      expect(upstream.refused).toBe(1)
    },
  ],
  [
    'the delay before an upstream socket is opened again',
    async (devnet) => {
      const sockets: Socket[] = []
      const server = createServer((socket) => void sockets.push(socket.on('error', () => {}))).listen(0, '127.0.0.1')
      await once(server, 'listening')
      onTestFinished(() => void server.close())
      const { port } = server.address() as AddressInfo
      const { setClock } = await openRelay(devnet, { UPSTREAM_WS_URL: `ws://127.0.0.1:${port}` })
      for (let attempt = 1; attempt <= 3; attempt += 1) {
        await vi.waitUntil(() => sockets.length === attempt, { timeout: TEST_TIMEOUT_MS, interval: 5 })
        if (attempt === 3) await setClock()
        sockets.at(-1)?.destroy()
      }
      const lostAt = performance.now()
      await vi.waitUntil(() => sockets.length === 4, { timeout: TEST_TIMEOUT_MS, interval: 5 })
      expect(performance.now() - lostAt).toBeGreaterThan((FIRST_DELAY_MS + THIRD_DELAY_MS) / 2)
      sockets.at(-1)?.destroy()
    },
  ],
]

it.each(limits)('a wall clock that is set does not end %s', async (_, test) => {
  const devnet = await openDevnet({ pace: 'manual' }, { onTestFinished })
  await test(devnet)
})
