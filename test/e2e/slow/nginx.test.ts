import { expect, it, onTestFinished, vi } from 'vitest'
import { freePort } from '../../support/child-program.ts'
import { openDevnet, transfer } from '../../support/test-stack.ts'
import { openChromium, readEventSourceInPage } from './chromium-readers.ts'
import { DeployedRelay, TEST_TIMEOUT_MS } from './deployed-relay.ts'
import { type OpenedProxy, openNginx } from './nginx-proxy.ts'
import { type ReconnectingReader, resumeResultsOf } from './reconnecting-readers.ts'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

/** The relay behind nginx with the configuration of docs/nginx.conf. */

const withoutRetry = (configuration: string): string => configuration.replace(/^ *error_page .*$/m, '')

it('a browser survives a downtime after which it would give up without the retry answer', async (test) => {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const relay = await DeployedRelay.open(test, devnet)
  const [bare, patient] = await Promise.all([openNginx(test, relay.url, withoutRetry), openNginx(test, relay.url)])
  const browser = await openChromium()
  test.onTestFinished(() => browser.close())
  const listen = ({ url }: OpenedProxy) => readEventSourceInPage(test, browser, devnet.stocksUrl, `${url}/v1/stream/AAPLc`)
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
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const relay = await DeployedRelay.open(test, devnet)
  const nginx = await openNginx(test, relay.url)
  await devnet.stop()
  await vi.waitUntil(async () => (await fetch(`${nginx.url}/readyz`)).status === 503, TEST_TIMEOUT_MS)
  expect(await (await fetch(`${nginx.url}/readyz`)).json()).toMatchObject({ status: 'unready', reasons: ['the upstream is down'] })
  expect((await fetch(`${nginx.url}/v1/stream/NOPE`)).status).toBe(404)
})
