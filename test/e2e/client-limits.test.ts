import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { listenNdjson, listenSse, listenWs, type TestListener } from '../support/test-listener.ts'
import { fetchDocumented, messageTypesOf, openTestStack } from '../support/test-stack.ts'
import { closeAfterTest, waitUntilLive } from './listeners.ts'

const forwardedFor = (address: string) => ({ 'x-forwarded-for': address })
/** All clients here are on this machine, so the proxy is this machine too. */
const behindProxy = { MAX_CLIENTS_PER_ADDRESS: '2', TRUSTED_PROXIES: '127.0.0.0/8' }

describe('listeners of one address', () => {
  it('are refused above the bound, over every transport, until one of them closes', async () => {
    const stack = await openTestStack({ MAX_CLIENTS_PER_ADDRESS: '2' })
    const url = `${stack.relay.url}/v1/stream/AAPLc`
    const first = await waitUntilLive(listenSse(url))
    await waitUntilLive(listenWs(`${stack.relay.wsUrl}?symbols=AAPLc`))
    const third = await closeAfterTest(listenWs(`${stack.relay.wsUrl}?symbols=AAPLc`))
    expect(await third.closed).toEqual({ code: 4102, reason: 'too_many_connections' })
    expect(messageTypesOf(third.received)).toEqual(['bye'])
    const other = await fetchDocumented(url)
    expect(other).toMatchObject({ status: 429, json: { code: 429, details: [{ '@type': 'stocktape/too_many_connections' }] } })
    expect(Number(other.headers.get('retry-after'))).toBeGreaterThan(0)
    const browser = await fetchDocumented(url, { headers: { accept: 'text/event-stream' } })
    expect(browser.status).toBe(200)
    expect(browser.text).toMatch(/^retry: 30000$/m)
    first.close()
    while (!(await fetchDocumented(`${stack.relay.url}/metrics`)).text.includes('stocktape_listeners{transport="sse"} 0'));
    await waitUntilLive(listenNdjson(url))
  })

  it('do not count against other addresses behind the same proxy', async () => {
    const stack = await openTestStack(behindProxy)
    const url = `${stack.relay.url}/v1/stream/AAPLc`
    const headers = forwardedFor('203.0.113.7')
    for (let count = 0; count < 2; count += 1) await waitUntilLive(listenSse(url, headers))
    expect((await fetchDocumented(url, { headers })).status).toBe(429)
    const crowded = await closeAfterTest(listenWs(`${stack.relay.wsUrl}?symbols=AAPLc`, { headers }))
    expect((await crowded.closed).code).toBe(4102)
    await waitUntilLive(listenSse(url, forwardedFor('203.0.113.8')))
    await waitUntilLive(listenWs(`${stack.relay.wsUrl}?symbols=AAPLc`, { headers: forwardedFor('2001:db8::1') }))
  })
})

describe('a client that sends too many messages', () => {
  const open = async (): Promise<TestListener> => {
    const stack = await openTestStack()
    return waitUntilLive(listenWs(`${stack.relay.wsUrl}?symbols=AAPLc`))
  }

  it('gets 50 answers at once, then an error, and is closed with a time to wait', async () => {
    const listener = await open()
    for (let req = 1; req <= 60; req += 1) listener.send({ type: 'ping', req })
    expect(await listener.closed).toMatchObject({ code: 4101, reason: expect.stringMatching(/^too_many_messages /) })
    expect(listener.messagesOf('pong').length).toBeGreaterThanOrEqual(50)
    expect(listener.messagesOf('pong').length).toBeLessThan(60)
    expect(listener.received.slice(-2).map(({ message }) => message)).toMatchObject([
      { type: 'error', code: 429, reason: 'too_many_messages' },
      { type: 'bye', reason: 'too_many_messages' },
    ])
  })

  it('is closed for control frames too', async () => {
    const stack = await openTestStack()
    const socket = new WebSocket(`${stack.relay.wsUrl}?symbols=AAPLc`)
    onTestFinished(() => socket.terminate())
    await new Promise((resolve) => socket.once('message', resolve))
    for (let ping = 0; ping < 60; ping += 1) socket.ping()
    const code = await new Promise((resolve) => socket.once('close', resolve))
    expect(code).toBe(4101)
  })
})
