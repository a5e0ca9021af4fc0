import { describe, expect, it, onTestFinished } from 'vitest'
import { type Ear, listenSse, listenWs } from '../support/test-listener.ts'
import { ask, openWorld, typesOf, type World } from '../support/test-stack.ts'

/** What a request says beside its URL. */
type Headers = Record<string, string>

const page = 'https://trade.example'
const key = 'k-0123456789abcdef'

const keep = async (opening: Promise<Ear>): Promise<Ear> => {
  const ear = await opening
  onTestFinished(() => ear.close())
  return ear
}
const socketOf = ({ relay }: World, headers: Headers = {}, query = '') =>
  keep(listenWs(`${relay.wsUrl}?symbols=AAPLc${query}`, { headers }))

describe('where only some origins may listen', () => {
  it('their pages and every program are served, and pages of others are told why not', async () => {
    const world = await openWorld({ ORIGINS: `${page},https://other.example:8443` })
    const url = `${world.relay.url}/v1/stream/AAPLc`
    const welcome: Headers[] = [{ origin: page }, { origin: 'https://other.example:8443' }, {}]
    for (const headers of welcome) {
      await (await keep(listenSse(url, headers))).hear('live')
      await (await socketOf(world, headers)).hear('live')
    }
    const foreign = { origin: 'https://trade.example.evil' }
    for (const path of ['/v1/stream/AAPLc', '/v1/tail/AAPLc', '/v1/events', '/v1/ws']) {
      expect(await ask(`${world.relay.url}${path}`, { headers: foreign })).toMatchObject({
        status: 403,
        json: { code: 403, details: [{ '@type': 'stocktape/forbidden' }] },
      })
    }
    const socket = await socketOf(world, foreign)
    expect(await socket.ended).toMatchObject({ code: 4003, reason: 'forbidden' })
    expect(typesOf(socket.heard)).toEqual(['hello', 'error', 'bye'])
  })
})

describe('where a key is asked for', () => {
  it('is served who bears one, in a header or in the URL, and nobody else', async () => {
    const world = await openWorld({ API_KEYS: `another,${key}` })
    const url = `${world.relay.url}/v1/stream/AAPLc`
    await (await keep(listenSse(url, { authorization: `Bearer ${key}` }))).hear('live')
    await (await keep(listenSse(`${url}?key=${key}`))).hear('live')
    await (await socketOf(world, {}, `&key=${key}`)).hear('live')
    const wrong: Headers[] = [{}, { authorization: `Bearer ${key}x` }, { authorization: key }]
    for (const given of wrong) {
      const answer = await ask(url, { headers: given })
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
      expect(answer).toMatchObject({
        status: 401,
        json: { code: 401, details: [{ '@type': 'stocktape/unauthorized' }] },
      })
      expect((await (await socketOf(world, given)).ended).code).toBe(4003)
    }
    expect((await ask(`${world.relay.url}/healthz`)).status).toBe(200)
  })
})

describe('the metrics', () => {
  it('are not given to whom a proxy on this machine asks for, unless it bears the token', async () => {
    const { relay } = await openWorld({ METRICS_TOKEN: key })
    const elsewhere = { 'x-forwarded-for': '203.0.113.7' }
    expect((await ask(`${relay.url}/metrics`)).status).toBe(200)
    expect((await ask(`${relay.url}/metrics`, { headers: elsewhere })).status).toBe(403)
    const wrong = { ...elsewhere, authorization: 'Bearer nothing' }
    expect((await ask(`${relay.url}/metrics`, { headers: wrong })).status).toBe(403)
    const right = { ...elsewhere, authorization: `Bearer ${key}` }
    expect((await ask(`${relay.url}/metrics`, { headers: right })).status).toBe(200)
  })
})
