import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, it, type TestContext } from 'vitest'
import { startDevnet } from '../../../src/devnet/devnet.ts'
import { DeployedRelay } from './deployed-relay.ts'

/** A relay that was told to stop while a request to it was half written: how the request goes on is the test. */
async function openHalfSentRequest(
  test: TestContext,
  lines: string,
): Promise<{ relay: DeployedRelay; socket: Socket }> {
  const devnet = await startDevnet({ pace: 'manual' })
  test.onTestFinished(() => devnet.stop())
  const relay = await DeployedRelay.open(test, devnet)
  const { hostname, port } = new URL(relay.url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.write(lines)
  await (await fetch(`${relay.url}/healthz`)).text()
  relay.signal('SIGTERM')
  while ((await fetch(relay.url).catch(() => null)) !== null);
  return { relay, socket }
}

it('a browser that comes while the relay stops is not turned away for good', async (test) => {
  const { socket } = await openHalfSentRequest(test, 'GET /v1/stream/AAPLc HTTP/1.1\r\naccept: text/event-stream\r\n')
  socket.write('host: localhost\r\n\r\n')
  const answer = (await socket.setEncoding('utf8').toArray()).join('')
  expect(answer).toMatch(/^HTTP\/1\.1 200 /)
  const [, retry] = /^retry: (\d+)$/m.exec(answer) ?? []
  expect(Number(retry)).toBeGreaterThanOrEqual(1_000)
  expect(Number(retry)).toBeLessThanOrEqual(3_000)
  expect(answer).toContain('"reason":"going_away"')
})

it('anybody else who comes then is told so by the status', async (test) => {
  const { socket } = await openHalfSentRequest(test, 'GET /v1/stream/AAPLc HTTP/1.1\r\n')
  socket.write('host: localhost\r\n\r\n')
  const answer = (await socket.setEncoding('utf8').toArray()).join('')
  expect(answer).toMatch(/^HTTP\/1\.1 503 /)
  expect(answer).toMatch(/^retry-after: \d+\r$/m)
})

it('whoever asked something when the relay was told to stop does not keep it from stopping', async (test) => {
  const { relay, socket } = await openHalfSentRequest(test, 'GET /readyz HTTP/1.1\r\n')
  const answeredAt = performance.now()
  socket.write('host: localhost\r\n\r\n')
  socket.resume()
  expect(await relay.waitForExit()).toBe(0)
  expect(performance.now() - answeredAt).toBeLessThan(2_000)
})

it('whoever connected and never asked anything does not keep it from stopping', async (test) => {
  const { relay, socket } = await openHalfSentRequest(test, '')
  const begunAt = performance.now()
  socket.resume()
  expect(await relay.waitForExit()).toBe(0)
  expect(performance.now() - begunAt).toBeLessThan(2_000)
})
