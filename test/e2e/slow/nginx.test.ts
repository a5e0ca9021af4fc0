import { expect, it, vi } from 'vitest'
import { openDevnet, transfer } from '../../support/test-stack.ts'
import { openChromium, readEventSourceInPage } from './chromium-readers.ts'
import { DeployedRelay, TEST_TIMEOUT_MS } from './deployed-relay.ts'
import { type OpenedProxy, openNginx } from './nginx-proxy.ts'
import { type ReconnectingReader, resumeResultsOf } from './reconnecting-readers.ts'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

/** The relay behind nginx with the configuration of docs/nginx.conf. */

const withoutRetry = (configuration: string): string => configuration.replace(/^ *error_page .* = @stocktape_retry;$/m, '')

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

it('an unready relay stays unready, and its other refusals pass', async (test) => {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const relay = await DeployedRelay.open(test, devnet)
  const nginx = await openNginx(test, relay.url)
  await devnet.stop()
  await vi.waitUntil(async () => (await fetch(`${nginx.url}/readyz`)).status === 503, TEST_TIMEOUT_MS)
  expect(await (await fetch(`${nginx.url}/readyz`)).json()).toMatchObject({ status: 'unready', reasons: ['the upstream is down'] })
  expect((await fetch(`${nginx.url}/v1/stream/NOPE`)).status).toBe(404)
})
