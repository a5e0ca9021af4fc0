import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { apiKey, otherApiKey } from '../support/api-keys.ts'
import { listenSse, listenWs } from '../support/test-listener.ts'
import { fetchDocumented, messageTypesOf, openTestStack, type TestStack } from '../support/test-stack.ts'
import { closeAfterTest } from './listeners.ts'

/** The headers of a request. */
type Headers = Record<string, string>

const page = 'https://trade.example'

const listenWithHeaders = ({ relay }: TestStack, headers: Headers = {}, query = '') =>
  closeAfterTest(listenWs(`${relay.wsUrl}?symbols=AAPLc${query}`, { headers }))

describe('a list of allowed origins', () => {
  it('serves their pages and all programs, and refuses other pages with a reason', async () => {
    const stack = await openTestStack({ ORIGINS: `${page},https://other.example:8443` })
    const url = `${stack.relay.url}/v1/stream/AAPLc`
    const allowed: Headers[] = [{ origin: page }, { origin: 'https://other.example:8443' }, {}]
    for (const headers of allowed) {
      await (await closeAfterTest(listenSse(url, headers))).waitFor('live')
      await (await listenWithHeaders(stack, headers)).waitFor('live')
    }
    const foreign = { origin: 'https://trade.example.evil' }
    for (const path of ['/v1/stream/AAPLc', '/v1/events', '/v1/ws']) {
      for (const origin of ['null', `${page}.`, `${page}:443`, page.toUpperCase(), new URL(stack.relay.url).origin])
        expect((await fetch(`${stack.relay.url}${path}`, { headers: { origin } })).status).toBe(403)
      expect(await fetchDocumented(`${stack.relay.url}${path}`, { headers: foreign })).toMatchObject({
        status: 403,
        json: { code: 403, details: [{ '@type': 'stocktape/forbidden' }] },
      })
    }
    const tail = await fetchDocumented(`${stack.relay.url}/v1/tail/AAPLc`, { headers: foreign })
    expect(tail).toMatchObject({ status: 403, text: 'Pages of this origin may not connect here.\n' })
    const socket = await listenWithHeaders(stack, foreign)
    expect(await socket.closed).toMatchObject({ code: 4003, reason: 'forbidden' })
    expect(messageTypesOf(socket.received)).toEqual(['error'])
  })
})

describe('a list of API keys', () => {
  it('serves only clients with a key, in a header or in the URL', async () => {
    const stack = await openTestStack({ API_KEYS: `${otherApiKey},${apiKey}` })
    const url = `${stack.relay.url}/v1/stream/AAPLc`
    await (await closeAfterTest(listenSse(url, { authorization: `Bearer ${apiKey}` }))).waitFor('live')
    await (await closeAfterTest(listenSse(`${url}?key=${apiKey}`))).waitFor('live')
    await (await listenWithHeaders(stack, {}, `&key=${apiKey}`)).waitFor('live')
    const wrong: Headers[] = [{}, { authorization: `Bearer ${apiKey}x` }, { authorization: apiKey }]
    for (const headers of wrong) {
      const answer = await fetchDocumented(url, { headers })
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
      expect(answer).toMatchObject({ status: 401, json: { code: 401, details: [{ '@type': 'stocktape/unauthorized' }] } })
      const socket = await listenWithHeaders(stack, headers)
      // Without any key, the first message may bring one.
      if (!headers.authorization) socket.send({ type: 'ping' })
      expect(await socket.closed).toEqual({ code: 4003, reason: 'forbidden' })
      expect(messageTypesOf(socket.received)).toEqual(['error'])
    }
    // The board asks with the key of its own URL.
    for (const path of ['/healthz', '/docs', '/']) expect((await fetch(`${stack.relay.url}${path}`)).status).toBe(200)
    for (const path of ['/v1/status', '/v1/events?format=ndjson', '/v1/snapshot']) {
      expect((await fetch(`${stack.relay.url}${path}`)).status).toBe(401)
      expect((await fetch(`${stack.relay.url}${path}`, { headers: { authorization: `Bearer ${apiKey}` } })).status).toBe(200)
    }
  })
})

describe('a key', () => {
  const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')
  const bearer = { authorization: `Bearer ${apiKey}` }

  it('may stand in the settings as its hash, and gives a token for the URL', async () => {
    const stack = await openTestStack({ API_KEYS: `${otherApiKey},sha256:${hashOf(apiKey)}` })
    const url = `${stack.relay.url}/v1/stream/AAPLc`
    const ask = (headers: Headers) => fetchDocumented(`${stack.relay.url}/v1/token`, { method: 'POST', headers })
    const { status, json } = await ask(bearer)
    expect(status).toBe(200)
    const { token, expires_at } = json as { token: string; expires_at: string }
    expect(Date.parse(expires_at) - Date.now()).toBeGreaterThan(30_000)
    expect(Date.parse(expires_at) - Date.now()).toBeLessThanOrEqual(61_000)
    await (await closeAfterTest(listenSse(`${url}?key=${token}`))).waitFor('live')
    await (await listenWithHeaders(stack, {}, `&key=${token}`)).waitFor('live')
    // The hash opens nothing, and a token gives no other token.
    expect((await fetchDocumented(`${url}?key=sha256:${hashOf(apiKey)}`)).status).toBe(401)
    expect((await fetchDocumented(`${url}?key=${hashOf(apiKey)}`)).status).toBe(401)
    for (const headers of [{}, { authorization: `Bearer ${token}` }] as Headers[]) expect((await ask(headers)).status).toBe(401)
  })

  it('gives tokens that another relay accepts only where it has the same TOKEN_SECRET', async () => {
    const TOKEN_SECRET = 'x'.repeat(32)
    const settings: Record<string, string>[] = [{}, {}, { TOKEN_SECRET }, { TOKEN_SECRET }]
    const [one, other, edge, otherEdge] = await Promise.all(settings.map((some) => openTestStack({ API_KEYS: apiKey, ...some })))
    const statusAt = async (asked: TestStack | undefined, used: TestStack | undefined) => {
      const { json } = await fetchDocumented(`${asked?.relay.url}/v1/token`, { method: 'POST', headers: bearer })
      const { token } = json as { token: string }
      return (await fetchDocumented(`${used?.relay.url}/v1/status?key=${token}`)).status
    }
    expect([await statusAt(one, one), await statusAt(one, other), await statusAt(edge, otherEdge)]).toEqual([200, 401, 200])
  })

  it('may come as the first message of a WebSocket', async () => {
    const stack = await openTestStack({ API_KEYS: apiKey })
    const socket = await listenWithHeaders(stack)
    socket.send({ type: 'auth', key: apiKey })
    await socket.waitFor('live')
    const other = await listenWithHeaders(stack)
    other.send({ type: 'auth', key: `${apiKey}x` })
    expect((await other.closed).code).toBe(4003)
    const silent = await listenWithHeaders(stack)
    expect((await silent.closed).code).toBe(4003)
    expect(messageTypesOf(silent.received)).toEqual(['error'])
  })

  it('comes too late while the relay stops', async () => {
    const stack = await openTestStack({ API_KEYS: apiKey })
    const socket = await listenWithHeaders(stack)
    const stopped = stack.relay.stop()
    socket.send({ type: 'auth', key: apiKey })
    expect((await socket.closed).code).toBe(4200)
    await stopped
  })

  it('counts on its own, with its own limits', async () => {
    const stack = await openTestStack({ API_KEYS: `${otherApiKey},${apiKey} clients=3`, MAX_CLIENTS_PER_ADDRESS: '1' })
    const url = `${stack.relay.url}/v1/stream/AAPLc`
    for (let count = 0; count < 3; count += 1) await (await closeAfterTest(listenSse(url, bearer))).waitFor('live')
    expect((await fetchDocumented(url, { headers: bearer })).status).toBe(429)
    await (await closeAfterTest(listenSse(`${url}?key=${otherApiKey}`))).waitFor('live')
    expect((await fetchDocumented(`${url}?key=${otherApiKey}`)).status).toBe(429)
  })

  it('is in no token where none is required', async () => {
    const { relay } = await openTestStack()
    expect((await fetchDocumented(`${relay.url}/v1/token`, { method: 'POST' })).status).toBe(404)
  })
})

describe('the metrics', () => {
  it('are for this machine alone without a token', async () => {
    const { relay } = await openTestStack()
    expect((await fetchDocumented(`${relay.url}/metrics`)).status).toBe(200)
    const elsewhere = { 'x-forwarded-for': '203.0.113.7' }
    for (const headers of [
      elsewhere,
      { via: '1.1 proxy' },
      { forwarded: 'for=203.0.113.7' },
      { origin: 'https://page.example' },
      { ...elsewhere, authorization: 'Bearer ' },
      { ...elsewhere, authorization: 'Bearer undefined' },
    ])
      expect((await fetchDocumented(`${relay.url}/metrics`, { headers })).status).toBe(403)
    expect((await fetchDocumented(`${relay.url}/debug`)).status).toBe(404)
  })

  it('need the token when a proxy on this machine forwards the request', async () => {
    const { relay } = await openTestStack({ METRICS_TOKEN: apiKey })
    const elsewhere = { 'x-forwarded-for': '203.0.113.7' }
    for (const [headers, status] of [
      [{}, 200],
      [elsewhere, 403],
      [{ ...elsewhere, authorization: 'Bearer nothing' }, 403],
      [{ ...elsewhere, authorization: `Bearer ${apiKey}` }, 200],
    ] as const)
      expect((await fetchDocumented(`${relay.url}/metrics`, { headers })).status).toBe(status)
  })
})
