import { describe, expect, it } from 'vitest'
import { listenNdjson, listenSse, listenWs } from '../support/test-listener.ts'
import { fetchDocumented, messageTypesOf, openTestStack } from '../support/test-stack.ts'
import { closeAfterTest, waitUntilLive } from './listeners.ts'

const browser = { accept: 'text/event-stream' }
const ndjson = { accept: 'application/x-ndjson' }

describe('a client above a limit', () => {
  it.each([
    ['MAX_CLIENTS_PER_ADDRESS', '2', 429, 'too_many_connections', 4_102],
    ['MAX_CLIENTS', '2', 503, 'full', 4_100],
  ])('of %s is refused over every transport, until another one closes', async (name, bound, code, reason, closeCode) => {
    const { relay } = await openTestStack({ [name]: bound })
    const url = `${relay.url}/v1/stream/AAPLc`
    const first = await waitUntilLive(listenSse(url))
    await waitUntilLive(listenWs(`${relay.wsUrl}?symbols=AAPLc`))
    const third = await closeAfterTest(listenWs(`${relay.wsUrl}?symbols=AAPLc`))
    expect(await third.closed).toEqual({ code: closeCode, reason })
    expect(messageTypesOf(third.received)).toEqual(['bye'])
    // An export of the history counts as a connection too.
    for (const [path, headers] of [
      ['/v1/stream/AAPLc', {}],
      ['/v1/events', ndjson],
    ] as const) {
      const refused = await fetchDocumented(`${relay.url}${path}`, { headers })
      expect(refused, path).toMatchObject({ status: code, json: { code, details: [{ '@type': `stocktape/${reason}` }] } })
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    }
    const inBrowser = await fetchDocumented(url, { headers: browser })
    expect([inBrowser.status, inBrowser.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
    expect(inBrowser.text).toMatch(/^retry: 30000$/m)
    expect(JSON.parse(/^data: (.*)$/m.exec(inBrowser.text)?.[1] ?? '')).toMatchObject({ type: 'error', code, reason })
    first.close()
    while ((await fetch(`${relay.url}/v1/events`, { headers: ndjson })).status !== 200);
    // An export counts until its last byte is taken.
    while (!(await (await fetch(`${relay.url}/v1/status`)).text()).includes('"ndjson":0'));
    await waitUntilLive(listenNdjson(url))
  })

  it('of MAX_SELECTIONS is refused, unless its selection replaces the one that counts', async () => {
    const { relay } = await openTestStack({ MAX_SELECTIONS: '1' })
    const listener = await waitUntilLive(listenWs(`${relay.wsUrl}?symbols=AAPLc&min_value=1`))
    listener.send({ type: 'subscribe', req: 7, min_value: '2' })
    await listener.waitFor('subscribed', ({ req }) => req === 7)
    expect(listener.messagesOf('error')).toEqual([])
    const url = `${relay.url}/v1/stream/AAPLc?min_value=3`
    const refused = await fetchDocumented(url)
    expect(refused).toMatchObject({ status: 429, json: { code: 429, details: [{ '@type': 'stocktape/too_many_selections' }] } })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await fetchDocumented(url, { headers: browser })).text).toMatch(/^retry: 30000$/m)
    const second = await closeAfterTest(listenWs(`${relay.wsUrl}?symbols=AAPLc&min_value=3`))
    expect(await second.waitFor('error')).toMatchObject({ code: 429, reason: 'too_many_selections' })
    second.send({ type: 'subscribe', req: 1, symbols: ['AAPLc'] })
    await second.waitFor('live')
    expect(messageTypesOf(second.received)).toEqual(['hello', 'error', 'subscribed', 'snapshot', 'live'])
  })
})

describe('a client that sends too many messages', () => {
  it('gets 50 answers at once, then an error, and is closed with a time to wait', async () => {
    const { relay } = await openTestStack()
    const listener = await waitUntilLive(listenWs(`${relay.wsUrl}?symbols=AAPLc`))
    for (let req = 1; req <= 60; req += 1) listener.send({ type: 'ping', req })
    expect(await listener.closed).toMatchObject({ code: 4101, reason: expect.stringMatching(/^too_many_messages /) })
    expect(listener.messagesOf('pong').length).toBeGreaterThanOrEqual(50)
    expect(listener.messagesOf('pong').length).toBeLessThan(60)
    expect(listener.messages.slice(-2)).toMatchObject([
      { type: 'error', code: 429, reason: 'too_many_messages' },
      { type: 'bye', reason: 'too_many_messages' },
    ])
  })
})
