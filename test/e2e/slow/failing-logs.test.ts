import type { ServerResponse } from 'node:http'
import { expect, it } from 'vitest'
import { openRelay } from '../../support/in-process-relay.ts'
import { serveNode } from '../../support/loopback-server.ts'
import { fetchDocumented, openDevnet, transfer } from '../../support/test-stack.ts'
import { sealedLog } from '../../unit/relay/chain/node-json.ts'

const BLOCK_MS = 1_000
/** Right after the start settling may lag for ten seconds. Ten more seconds of it are borne. */
const UNREADY_BOUND_MS = 10_000 + 10_000

const answerWith =
  (status: number, body: object) =>
  (id: number, response: ServerResponse): unknown =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, ...body }))

it.concurrent.each([
  ['429', answerWith(429, {})],
  ['-32000', answerWith(200, { error: { code: -32_000, message: 'internal error' } })],
  ['403', answerWith(403, {})],
  ['nothing', () => {}],
  ['logs of another block', answerWith(200, { result: [sealedLog({ block: 1 })] })],
] as const)(
  'a relay whose node answers eth_getLogs with %s, and headers well, is behind, unready and recovers',
  async (_, answerLogs) => {
    const cleanups: (() => unknown)[] = []
    let answerItself: typeof answerLogs | null = null
    const lifecycle = { onTestFinished: ((cleanup: () => unknown) => cleanups.push(cleanup)) as never }
    try {
      const devnet = await openDevnet({ pace: 'manual' }, lifecycle)
      const url = await serveNode(lifecycle.onTestFinished, devnet.rpcUrl, (body, response) => {
        const { id, method } = JSON.parse(body)
        if (method !== 'eth_getLogs' || !answerItself) return false
        answerItself(id, response)
        return true
      })
      const relay = await openRelay(devnet, { UPSTREAM_RPC_URL: url })
      cleanups.push(() => relay.stop())
      const blocks = setInterval(() => {
        devnet.seal()
        transfer({ devnet })
      }, BLOCK_MS)
      cleanups.push(() => clearInterval(blocks))
      const get = async (path: string) => fetchDocumented(`${relay.url}${path}`)
      const status = async () => (await get('/v1/status')).json as { source: string; reason: string; lag_ms: number }
      const until = async (holds: () => Promise<boolean>) => {
        while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 50))
      }
      const oldestOpen = async () => Number(/^stocktape_oldest_open_key_seconds (\S+)$/m.exec((await get('/metrics')).text)?.[1])

      await until(async () => (await status()).source === 'pendingLogs' && (await oldestOpen()) > 0)
      answerItself = answerLogs
      const failedAt = Date.now()
      await until(async () => (await status()).reason === 'behind')
      expect(await status()).toMatchObject({ source: 'pendingLogs', reason: 'behind' })
      await until(async () => (await get('/readyz')).status === 503)
      const failedMs = Date.now() - failedAt
      expect(failedMs).toBeLessThan(UNREADY_BOUND_MS + 5 * BLOCK_MS)
      expect((await get('/readyz')).json).toMatchObject({ reasons: ['the logs of the newest sealed blocks cannot be read'] })
      expect(await oldestOpen()).toBeGreaterThan(9)
      expect((await status()).lag_ms).toBeGreaterThan(9_000)
      answerItself = null
      await until(async () => (await status()).reason === 'ok' && (await get('/readyz')).status === 200)
      await until(async () => (await oldestOpen()) < 2)
      expect((await status()).lag_ms).toBeLessThan(5_000)
    } finally {
      for (const cleanup of cleanups.reverse()) await cleanup()
    }
  },
  40_000,
)
