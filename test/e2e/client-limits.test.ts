import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { type Ear, listenNdjson, listenSse, listenWs } from '../support/test-listener.ts'
import { ask, openWorld, typesOf } from '../support/test-stack.ts'

const keep = async (opening: Promise<Ear>): Promise<Ear> => {
  const ear = await opening
  onTestFinished(() => ear.close())
  return ear
}
const live = async (opening: Promise<Ear>): Promise<Ear> => {
  const ear = await keep(opening)
  await ear.hear('live')
  return ear
}
const from = (address: string) => ({ 'x-forwarded-for': address })
/** Here everybody comes from this machine, so that the proxy in front is this machine too. */
const behindProxy = { CLIENTS_PER_ADDRESS_BOUND: '2', TRUSTED_PROXIES: '127.0.0.0/8' }

describe('many listeners of one address', () => {
  it('are turned away above the bound, each as it understands, until one of them leaves', async () => {
    const world = await openWorld({ CLIENTS_PER_ADDRESS_BOUND: '2' })
    const url = `${world.relay.url}/v1/stream/AAPLc`
    const first = await live(listenSse(url))
    await live(listenWs(`${world.relay.wsUrl}?symbols=AAPLc`))
    const third = await keep(listenWs(`${world.relay.wsUrl}?symbols=AAPLc`))
    expect(await third.ended).toEqual({ code: 4102, reason: 'too_many_connections' })
    expect(typesOf(third.heard)).toEqual(['bye'])
    const other = await ask(url)
    expect(other).toMatchObject({
      status: 429,
      json: { code: 429, details: [{ '@type': 'stocktape/too_many_connections' }] },
    })
    expect(Number(other.headers.get('retry-after'))).toBeGreaterThan(0)
    const browser = await ask(url, { headers: { accept: 'text/event-stream' } })
    expect(browser.status).toBe(200)
    expect(browser.text).toMatch(/^retry: 30000$/m)
    first.close()
    while (!(await ask(`${world.relay.url}/metrics`)).text.includes('stocktape_listeners{carrier="sse"} 0'));
    await live(listenNdjson(url))
  })

  it('take no room from those who come from elsewhere through the same proxy', async () => {
    const world = await openWorld(behindProxy)
    const url = `${world.relay.url}/v1/stream/AAPLc`
    const headers = from('203.0.113.7')
    for (let one = 0; one < 2; one += 1) await live(listenSse(url, headers))
    expect((await ask(url, { headers })).status).toBe(429)
    const crowded = await keep(listenWs(`${world.relay.wsUrl}?symbols=AAPLc`, { headers }))
    expect((await crowded.ended).code).toBe(4102)
    await live(listenSse(url, from('203.0.113.8')))
    await live(listenWs(`${world.relay.wsUrl}?symbols=AAPLc`, { headers: from('2001:db8::1') }))
  })
})

describe('a client that says more than it may', () => {
  const talk = async (): Promise<Ear> => {
    const world = await openWorld()
    return live(listenWs(`${world.relay.wsUrl}?symbols=AAPLc`))
  }

  it('is answered up to 50 at once, then told why, and sent away to come back slower', async () => {
    const ear = await talk()
    for (let req = 1; req <= 60; req += 1) ear.send({ type: 'ping', req })
    expect(await ear.ended).toMatchObject({ code: 4101, reason: expect.stringMatching(/^too_many_messages /) })
    expect(ear.all('pong').length).toBeGreaterThanOrEqual(50)
    expect(ear.all('pong').length).toBeLessThan(60)
    expect(ear.heard.slice(-2).map(({ message }) => message)).toMatchObject([
      { type: 'error', code: 429, reason: 'too_many_messages' },
      { type: 'bye', reason: 'too_many_messages' },
    ])
  })

  it('is counted for control frames too', async () => {
    const world = await openWorld()
    const socket = new WebSocket(`${world.relay.wsUrl}?symbols=AAPLc`)
    onTestFinished(() => socket.terminate())
    await new Promise((resolve) => socket.once('message', resolve))
    for (let ping = 0; ping < 60; ping += 1) socket.ping()
    const code = await new Promise((resolve) => socket.once('close', resolve))
    expect(code).toBe(4101)
  })
})
