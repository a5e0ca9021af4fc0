import { describe, expect, it } from 'vitest'
import { listenSse, listenWs } from '../support/test-listener.ts'
import { fetchDocumented, messageTypesOf, openTestStack, type TestStack } from '../support/test-stack.ts'
import { closeAfterTest } from './listeners.ts'

/** The headers of a request. */
type Headers = Record<string, string>

const page = 'https://trade.example'
const key = 'k-0123456789abcdef'

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
      expect(await fetchDocumented(`${stack.relay.url}${path}`, { headers: foreign })).toMatchObject({
        status: 403,
        json: { code: 403, details: [{ '@type': 'stocktape/forbidden' }] },
      })
    }
    const tail = await fetchDocumented(`${stack.relay.url}/v1/tail/AAPLc`, { headers: foreign })
    expect(tail).toMatchObject({ status: 403, text: 'Pages of this origin may not connect here.\n' })
    const socket = await listenWithHeaders(stack, foreign)
    expect(await socket.closed).toMatchObject({ code: 4003, reason: 'forbidden' })
    expect(messageTypesOf(socket.received)).toEqual(['hello', 'error', 'bye'])
  })
})

describe('a list of API keys', () => {
  it('serves only clients with a key, in a header or in the URL', async () => {
    const stack = await openTestStack({ API_KEYS: `another,${key}` })
    const url = `${stack.relay.url}/v1/stream/AAPLc`
    await (await closeAfterTest(listenSse(url, { authorization: `Bearer ${key}` }))).waitFor('live')
    await (await closeAfterTest(listenSse(`${url}?key=${key}`))).waitFor('live')
    await (await listenWithHeaders(stack, {}, `&key=${key}`)).waitFor('live')
    const wrong: Headers[] = [{}, { authorization: `Bearer ${key}x` }, { authorization: key }]
    for (const headers of wrong) {
      const answer = await fetchDocumented(url, { headers })
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
      expect(answer).toMatchObject({ status: 401, json: { code: 401, details: [{ '@type': 'stocktape/unauthorized' }] } })
      expect((await (await listenWithHeaders(stack, headers)).closed).code).toBe(4003)
    }
    // The board asks with the key of its own URL.
    for (const path of ['/healthz', '/docs', '/']) expect((await fetch(`${stack.relay.url}${path}`)).status).toBe(200)
  })
})

describe('the metrics', () => {
  it('need the token when a proxy on this machine forwards the request', async () => {
    const { relay } = await openTestStack({ METRICS_TOKEN: key })
    const elsewhere = { 'x-forwarded-for': '203.0.113.7' }
    expect((await fetchDocumented(`${relay.url}/metrics`)).status).toBe(200)
    expect((await fetchDocumented(`${relay.url}/metrics`, { headers: elsewhere })).status).toBe(403)
    const wrong = { ...elsewhere, authorization: 'Bearer nothing' }
    expect((await fetchDocumented(`${relay.url}/metrics`, { headers: wrong })).status).toBe(403)
    const right = { ...elsewhere, authorization: `Bearer ${key}` }
    expect((await fetchDocumented(`${relay.url}/metrics`, { headers: right })).status).toBe(200)
  })
})
