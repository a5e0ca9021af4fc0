import { describe, expect, it, onTestFinished } from 'vitest'
import { openedOnce } from '../../e2e/gateway/node-and-gateway.ts'
import { openRelayBeforeList } from '../../support/in-process-relay.ts'
import { fetchDocumented, openDevnet, openTestStack } from '../../support/test-stack.ts'
import { listen, listenLive } from './stream-listeners.ts'

const stack = openedOnce((lifecycle) => openTestStack({}, lifecycle))

describe('a bad parameter', () => {
  // What each parameter refuses is tested with its parser.
  it.each([
    ['symbols', ''],
    ['since', 'symbols=AAPLc&since='],
    ['format', 'symbols=AAPLc&format=JSON'],
  ])('%s is a 400 that names it, for GET and HEAD, in every format: %s', async (parameter, query) => {
    const url = `${stack().relay.url}/v1/stream?${query}`
    for (const accept of ['text/event-stream', 'application/x-ndjson', '*/*']) {
      const { status, json, headers } = await fetchDocumented(url, { headers: { accept } })
      expect({ status, type: headers.get('content-type') }).toEqual({ status: 400, type: 'application/json' })
      expect(json).toEqual({
        code: 400,
        reason: expect.stringMatching(/^\w+$/),
        message: expect.stringMatching(new RegExp(`^${parameter}\\b`)),
        details: [expect.objectContaining({ '@type': expect.stringMatching(/^stocktape\//), parameter })],
      })
      expect(headers.get('access-control-allow-origin')).toBe('*')
    }
    expect(await fetchDocumented(url, { method: 'HEAD' })).toMatchObject({ status: 400, text: '' })
  })
})

describe('the routes', () => {
  it('repeats no control characters in text, as they would change a terminal', async () => {
    const { relay } = stack()
    const { status, text } = await fetchDocumented(`${relay.url}/v1/tail/%1B]0;x%07`)
    expect(status).toBe(404)
    expect(text).toContain(']0;x')
    expect(text.trimEnd()).not.toMatch(/\p{Cc}/u)
  })

  const sse = 'text/event-stream; charset=utf-8'
  const ndjson = 'application/x-ndjson; charset=utf-8'
  const text = 'text/plain; charset=utf-8'

  it.each([
    ['/v1/stream/AAPLc', sse],
    ['/v1/stream/*', sse],
    ['/v1/stream/%2A', sse],
    ['/v1/stream/AAPLc?format=ndjson', ndjson],
    ['/v1/stream/AAPLc', ndjson, 'application/X-NDJSON'],
    ['/v1/stream/AAPLc', sse, 'text/html, application/x-ndjson;q=0'],
    ['/v1/stream/AAPLc', sse, 'text/event-stream, application/x-ndjson;q=0.1'],
    ['/v1/stream/AAPLc?format=text', text],
    ['/v1/tail/AAPLc', text],
  ])('%s is answered at once, with the headers of a stream, to GET and to HEAD alike', async (path, type, accept = '*/*') => {
    const { relay } = stack()
    const abort = new AbortController()
    const { status, headers } = await fetch(`${relay.url}${path}`, { headers: { accept }, signal: abort.signal })
    abort.abort()
    const head = await fetchDocumented(`${relay.url}${path}`, { headers: { accept }, method: 'HEAD' })
    for (const answer of [{ status, headers }, head]) {
      expect(answer.status).toBe(200)
      expect(Object.fromEntries(answer.headers)).toMatchObject({
        'content-type': type,
        'cache-control': 'no-cache, no-transform',
        'x-accel-buffering': 'no',
        'access-control-allow-origin': '*',
        'access-control-expose-headers': expect.stringMatching(/(?=.*\betag\b)(?=.*\bage\b)(?=.*\bretry-after\b)/i),
      })
      expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
    }
    expect(head.text).toBe('')
  })

  it.each(['/', '/healthz', '/readyz', '/v1/ws', '/v1/stream', '/v1/stream/APPL', '/v1/tail/AAPLc', '/v1/nothing'])(
    '%s answers OPTIONS, and pages of any origin may read the response, errors too',
    async (path) => {
      const { relay } = stack()
      const url = `${relay.url}${path}`
      const preflight = await fetchDocumented(url, {
        method: 'OPTIONS',
        headers: { origin: 'https://example.com', 'access-control-request-method': 'GET' },
      })
      expect(preflight.status).toBeLessThan(300)
      expect(preflight.headers.get('access-control-allow-methods')).toMatch(/GET/)
      const allowed = preflight.headers.get('access-control-allow-headers')?.toLowerCase().split(/, */).toSorted()
      expect(allowed).toEqual(['authorization', 'content-type', 'if-none-match', 'last-event-id'])
      const head = await fetchDocumented(url, { method: 'HEAD', headers: { origin: 'https://example.com' } })
      for (const { headers } of [preflight, head]) {
        expect(headers.get('access-control-allow-origin')).toBe('*')
        expect(headers.get('access-control-allow-credentials')).toBeNull()
      }
    },
  )
})

describe('before the first list', () => {
  it('every stream is 503 no_list, a WebSocket stays open with an error, and both work after it', async () => {
    const devnet = await openDevnet()
    devnet.faults.list = { status: 500 }
    const relay = await openRelayBeforeList(devnet)
    onTestFinished(() => relay.stop())
    for (const path of ['/v1/stream/AAPLc', '/v1/stream?symbols=*', '/v1/stream/APPL?format=ndjson']) {
      const { status, json, headers } = await fetchDocumented(`${relay.url}${path}`)
      expect({ status, json }, path).toMatchObject({
        status: 503,
        json: { code: 503, details: [{ '@type': 'stocktape/no_list' }] },
      })
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
      expect(await fetchDocumented(`${relay.url}${path}`, { method: 'HEAD' }), path).toMatchObject({ status: 503, text: '' })
    }
    const text = await fetchDocumented(`${relay.url}/v1/tail/AAPLc`)
    expect(text).toMatchObject({ status: 503, text: expect.stringMatching(/^The list of tokenized stocks .*\.\n$/) })
    const event = await fetchDocumented(`${relay.url}/v1/stream/AAPLc`, { headers: { accept: 'text/event-stream' } })
    expect(event).toMatchObject({
      status: 200,
      text: expect.stringMatching(/^retry: 2000\n\ndata: \{"type":"error","code":503,"reason":"no_list",.*\}\n\n$/),
    })
    // An error in the request itself comes first: a retry would not help.
    expect(await fetchDocumented(`${relay.url}/v1/stream/AAPLc?types=dividends`)).toMatchObject({ status: 400 })
    const listener = await listen({ relay }, 'ws', 'symbols=*')
    expect(await listener.waitFor('error')).toMatchObject({ code: 503, reason: 'no_list' })
    listener.send({ type: 'subscribe', req: 1, symbols: ['AAPLc'] })
    expect(await listener.waitFor('error', ({ req }) => req === 1)).toMatchObject({ code: 503, reason: 'no_list' })
    devnet.faults.list = undefined
    await relay.listed
    listener.send({ type: 'subscribe', req: 2, symbols: ['AAPLc'], since: 'start', stage: 'sealed' })
    await listener.waitFor('live')
    expect(listener.messagesOf('subscribed')).toMatchObject([{ req: 2, symbols: ['AAPLc'] }])
    await listenLive({ relay }, 'sse', 'symbols=AAPLc')
  })
})
