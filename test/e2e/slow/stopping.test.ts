import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, it, type TestContext } from 'vitest'
import { listenNdjson } from '../../support/test-listener.ts'
import { openDevnet } from '../../support/test-stack.ts'
import { DeployedRelay } from './deployed-relay.ts'

/** A relay that stops after half of a request; the test sends the rest. */
async function openHalfSentRequest(test: TestContext, lines: string): Promise<{ relay: DeployedRelay; socket: Socket }> {
  const devnet = await openDevnet({ pace: 'manual' }, test)
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

it('a browser that connects while the relay stops gets a retry time', async (test) => {
  const { socket } = await openHalfSentRequest(test, 'GET /v1/stream/AAPLc HTTP/1.1\r\naccept: text/event-stream\r\n')
  socket.write('host: localhost\r\n\r\n')
  const answer = (await socket.setEncoding('utf8').toArray()).join('')
  expect(answer).toMatch(/^HTTP\/1\.1 200 /)
  const [, retry] = /^retry: (\d+)$/m.exec(answer) ?? []
  expect(Number(retry)).toBeGreaterThanOrEqual(1_000)
  expect(Number(retry)).toBeLessThanOrEqual(3_000)
  expect(answer).toContain('"reason":"going_away"')
})

it('another client that connects while the relay stops gets 503', async (test) => {
  const { socket } = await openHalfSentRequest(test, 'GET /v1/stream/AAPLc HTTP/1.1\r\n')
  socket.write('host: localhost\r\n\r\n')
  const answer = (await socket.setEncoding('utf8').toArray()).join('')
  expect(answer).toMatch(/^HTTP\/1\.1 503 /)
  expect(answer).toMatch(/^retry-after: \d+\r$/m)
})

it.for([
  ['a request under way', 'GET /readyz HTTP/1.1\r\n'],
  ['a connection without a request', ''],
] as const)('%s does not delay the stop', async ([_, lines], test) => {
  const { relay, socket } = await openHalfSentRequest(test, lines)
  const stoppedAt = performance.now()
  if (lines !== '') socket.write('host: localhost\r\n\r\n')
  socket.resume()
  expect(await relay.waitForExit()).toBe(0)
  expect(performance.now() - stoppedAt).toBeLessThan(2_000)
})

/** Workers take new connections in turn, so as many answers in a row as there are workers are the answers of all. */
async function waitUntilUnready({ url }: DeployedRelay, workers: number): Promise<void> {
  for (let unready = 0; unready < workers; ) {
    const answer = await fetch(`${url}/readyz`, { headers: { connection: 'close' } })
    unready = (await answer.text()).includes('"reasons":["stopping"]') ? unready + 1 : 0
  }
}

it.for([1, 2])('before it stops, a relay of %s workers is unready for PRE_DRAIN and serves on', async (workers, test) => {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const relay = await DeployedRelay.open(test, devnet, { PRE_DRAIN: '1500ms', WORKERS: String(workers) })
  await relay.waitForResponse('/readyz', (text) => text.includes('"ready"'))
  relay.signal('SIGTERM')
  await waitUntilUnready(relay, workers)
  const listener = await listenNdjson(`${relay.url}/v1/stream/AAPLc`)
  await listener.waitFor('live')
  expect(listener.messagesOf('bye')).toEqual([])
  await listener.waitFor('bye')
  expect(await relay.waitForExit()).toBe(0)
})
