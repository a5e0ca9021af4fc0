import { expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { readConfig } from '../../src/relay/config/config.ts'
import { openMetrics } from '../../src/relay/metrics.ts'
import { startRelay } from '../../src/relay/relay.ts'
import { silentLog } from '../support/in-process-relay.ts'

/** Nothing listens there. */
const nowhere = 'http://127.0.0.1:1'

it('a relay without the gateway serves everything but /rpc', async () => {
  const settings = { PORT: '0', DATA_DIR: ':memory:', DRAIN: '0', UPSTREAM_RPC_URL: nowhere, STOCKS_API_URL: nowhere }
  const result = readConfig([], settings)
  if (result.kind !== 'settings') throw new Error('the settings are wrong')
  const failures: unknown[] = []
  const relay = await startRelay({
    config: result.config,
    log: silentLog,
    metrics: openMetrics(),
    loadDocuments: async () => new Map(),
    onFailure: (failure) => void failures.push(failure),
    openParts: [],
  })
  onTestFinished(() => relay.stop())
  const url = `http://127.0.0.1:${relay.port}`
  const status = await fetch(`${url}/v1/status`)
  expect(status.status).toBe(200)
  expect(await status.json()).toMatchObject({ clients: { rpc: 0 } })
  expect((await fetch(`${url}/rpc`, { method: 'POST', body: '{}' })).status).toBe(404)
  expect((await fetch(`${url}/rpc`)).status).toBe(404)
  const webSocket = new WebSocket(`ws://127.0.0.1:${relay.port}/rpc`)
  const refusal = new Promise((resolve) => webSocket.once('error', ({ message }) => resolve(message)))
  expect(await refusal).toBe('Unexpected server response: 404')
  expect(failures).toEqual([])
})
