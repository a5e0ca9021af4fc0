import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openRelayBeforeList } from '../support/in-process-relay.ts'
import { listenNdjson, listenSse, type TestListener } from '../support/test-listener.ts'
import {
  fetchDocumented,
  messageTypesOf,
  openDevnet,
  openTestStack,
  sequenceOf,
  type TestStack,
  tapeUpdatesOf,
  transfer,
} from '../support/test-stack.ts'
import { closeAfterTest } from './listeners.ts'

const ACCOUNT = `0x${'ab'.repeat(20)}`
const TOPIC = `0x${'77'.repeat(32)}` as const

/** Opens a listener that closes with the test. */
const sse = (stack: TestStack, path: string, headers: Record<string, string> = {}): Promise<TestListener> =>
  closeAfterTest(listenSse(`${stack.relay.url}${path}`, headers))
const ndjson = (stack: TestStack, path: string): Promise<TestListener> => closeAfterTest(listenNdjson(`${stack.relay.url}${path}`))

/** The first text of a stream, up to the chunk that matches. */
const firstText = async (url: string, pattern: RegExp, headers: Record<string, string> = {}) => {
  const abort = new AbortController()
  const response = await fetch(url, { signal: abort.signal, headers })
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    if (pattern.test(text)) break
  }
  abort.abort()
  return { text, headers: response.headers, status: response.status }
}

/** The newest position of the tape. */
const tapeEnd = async (stack: TestStack): Promise<string> => {
  const listener = await listenNdjson(`${stack.relay.url}/v1/stream?symbols=*&snapshot=false`)
  const { end } = await listener.waitFor('hello')
  listener.close()
  return end
}

describe('a stream', () => {
  it('begins with hello, subscribed, snapshots, replayed updates and live, in this order', async () => {
    const stack = await openTestStack()
    const first = await sse(stack, '/v1/stream/AAPLc')
    await first.waitFor('live')
    transfer(stack)
    await first.waitFor('transfer')
    const listener = await sse(stack, '/v1/stream?symbols=AAPLc,TSLAc&since=start')
    const live = await listener.waitFor('live')
    transfer(stack)
    const last = await listener.waitFor('transfer', ({ id }) => sequenceOf(id) > sequenceOf(live.id))
    const types = messageTypesOf(listener.received)
    expect(types.slice(0, 4)).toEqual(['hello', 'subscribed', 'snapshot', 'snapshot'])
    expect(types.indexOf('live')).toBe(4 + live.replayed)
    const published = tapeUpdatesOf(listener)
    expect(published.length).toBe(live.replayed + 1)
    expect(published.filter(({ symbol }) => symbol === 'AAPLc').map(({ type }) => type)).toEqual([
      'token',
      'multiplier',
      'nav',
      'transfer',
      'transfer',
    ])
    expect(listener.messagesOf('hello')[0]).toMatchObject({ protocol: 'stocktape.v1', chain_id: stack.devnet.chainId, demo: false })
    expect(listener.messagesOf('subscribed')[0]).toMatchObject({ symbols: ['AAPLc', 'TSLAc'], rejected: [], resume: 'none' })
    expect(last.id).toBe(published.at(-1)?.id)
  })

  it('has an id line for every message with an id, and no event line', async () => {
    const stack = await openTestStack()
    const listener = await sse(stack, '/v1/stream?symbols=*&since=start')
    const { id: liveAt } = await listener.waitFor('live')
    const hello = await listener.waitFor('hello')
    expect(hello.id).toBe(hello.oldest)
    expect(liveAt).toBe(hello.end)
    for (const { message, id, event } of listener.received) {
      expect(id).toBe('id' in message ? message.id : undefined)
      expect(event).toBeUndefined()
    }
    expect(listener.messagesOf('subscribed')[0]?.id).toBe(hello.id)
    expect(listener.messagesOf('snapshot').map(({ id }) => id)).toEqual(listener.messagesOf('snapshot').map(() => hello.id))
    expect(listener.messagesOf('snapshot').length).toBe(stack.devnet.tokens.length)
    expect(tapeUpdatesOf(listener).map(({ id }) => sequenceOf(id))).toEqual(
      tapeUpdatesOf(listener)
        .map(({ id }) => sequenceOf(id))
        .toSorted((a, b) => a - b),
    )
  })

  it('sends its headers, a comment and a retry time at once', async () => {
    const stack = await openTestStack()
    const { text, headers, status } = await firstText(`${stack.relay.url}/v1/stream/aapl`, /data: /)
    expect(status).toBe(200)
    expect(text).toMatch(/^:[^\n]*\n/)
    const retry = Number(/^retry: (\d+)$/m.exec(text)?.[1])
    expect(retry).toBeGreaterThanOrEqual(1_000)
    expect(retry).toBeLessThanOrEqual(3_000)
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'access-control-allow-origin': '*',
    })
  })

  it('has an event line for heartbeats alone, whose id is the position of the listener', async () => {
    const stack = await openTestStack({ HEARTBEAT: '1s' })
    const quiet = await ndjson(stack, '/v1/stream/AAPLc')
    const requested = await ndjson(stack, '/v1/stream/AAPLc?heartbeat=1')
    const listener = await sse(stack, '/v1/stream/AAPLc')
    await listener.waitFor('live')
    transfer(stack, 'AAPLc')
    transfer(stack, 'TSLAc', 3)
    const heartbeat = await listener.waitFor('heartbeat')
    await requested.waitFor('heartbeat')
    const received = listener.received.find(({ message }) => message.type === 'heartbeat')
    expect(received).toMatchObject({ event: 'heartbeat', id: heartbeat.id })
    expect(heartbeat).toMatchObject({ sent: 1, source: 'pendingLogs' })
    expect(sequenceOf(heartbeat.id)).toBe(sequenceOf(listener.messagesOf('transfer')[0]?.id) + 3)
    expect(quiet.messagesOf('heartbeat')).toEqual([])
  })

  it('has an event line for every message with events=named', async () => {
    const stack = await openTestStack()
    const listener = await sse(stack, '/v1/stream/AAPLc?events=named')
    await listener.waitFor('live')
    transfer(stack)
    await listener.waitFor('transfer')
    expect(listener.received.map(({ event }) => event)).toEqual(messageTypesOf(listener.received))
  })

  it('is NDJSON or text on request', async () => {
    const stack = await openTestStack()
    const { url } = stack.relay
    const byFormat = await firstText(`${url}/v1/stream/AAPLc?format=ndjson`, /"live"/)
    const byAccept = await firstText(`${url}/v1/stream/AAPLc`, /"live"/, { accept: 'application/x-ndjson' })
    for (const { text, headers } of [byFormat, byAccept]) {
      expect(headers.get('content-type')).toMatch(/^application\/x-ndjson/)
      for (const line of text.trimEnd().split('\n')) expect(JSON.parse(line)).toHaveProperty('type')
    }
    const accepts = async (accept: string) =>
      (await fetchDocumented(`${url}/v1/stream/AAPLc`, { method: 'HEAD', headers: { accept } })).headers.get('content-type')
    expect(await accepts('application/X-NDJSON')).toMatch(/ndjson/)
    for (const other of ['text/html, application/x-ndjson;q=0', 'text/event-stream, application/x-ndjson;q=0.1', '*/*']) {
      expect(await accepts(other)).toMatch(/event-stream/)
    }
    transfer(stack)
    const tail = await firstText(`${url}/v1/tail/AAPLc?since=start`, /transfer .*\n/)
    expect(tail.headers.get('content-type')).toMatch(/^text\/plain/)
    expect(tail.text).toMatch(/AAPLc +transfer +1 /)
  })

  it('has several symbols in the order of the tape', async () => {
    const stack = await openTestStack()
    const listener = await sse(stack, '/v1/stream/AAPLc,TSLAc?types=transfer')
    const all = await sse(stack, '/v1/stream?symbols=*&types=transfer')
    await Promise.all([listener.waitFor('live'), all.waitFor('live')])
    const symbols = ['AAPLc', 'TSLAc', 'NVDAc', 'TSLAc', 'AAPLc', 'TSLAc']
    for (const symbol of symbols) stack.devnet.transfer({ symbol, raw: 1n })
    stack.devnet.makeFlashblock()
    await Promise.all([
      listener.until(() => tapeUpdatesOf(listener).length === 5),
      all.until(() => tapeUpdatesOf(all).length === symbols.length),
    ])
    expect(tapeUpdatesOf(listener).map(({ symbol }) => symbol)).toEqual(['AAPLc', 'TSLAc', 'TSLAc', 'AAPLc', 'TSLAc'])
    expect(tapeUpdatesOf(all).map(({ symbol }) => symbol)).toEqual(symbols)
  })
})

describe('the selection of a stream', () => {
  it('matches the named types, or by default all but approvals and other logs', async () => {
    const stack = await openTestStack()
    const [plain, transfers, all, logs] = await Promise.all(
      ['', '?types=transfer', '?types=*', '?types=log,approval'].map((query) => sse(stack, `/v1/stream/AAPLc${query}`)),
    )
    for (const listener of [plain, transfers, all, logs]) await listener?.waitFor('live')
    const address = stack.devnet.list.addressOf('AAPLc')
    stack.devnet.emit({ address, topics: [TOPIC], data: '0x01' })
    stack.devnet.transfer({ symbol: 'AAPLc', from: `0x${'0'.repeat(40)}`, raw: 7n })
    transfer(stack)
    for (const listener of [plain, transfers, all]) await listener?.waitFor('transfer')
    await logs?.waitFor('log')
    expect(tapeUpdatesOf(plain as TestListener).map(({ type }) => type)).toEqual(['mint', 'transfer'])
    expect(tapeUpdatesOf(transfers as TestListener).map(({ type }) => type)).toEqual(['transfer'])
    expect(tapeUpdatesOf(all as TestListener).map(({ type }) => type)).toEqual(['log', 'mint', 'transfer'])
    expect(tapeUpdatesOf(logs as TestListener).map(({ type }) => type)).toEqual(['log'])
  })

  it('combines a least value, least shares and an account; an unknown value never matches', async () => {
    const stack = await openTestStack()
    const listeners = await Promise.all(
      [
        '?types=transfer&min_value=1000',
        '?types=transfer&min_shares=10.5',
        `?types=transfer&account=${ACCOUNT.toUpperCase()}`,
        `?types=transfer&min_shares=5&account=${ACCOUNT}`,
      ].map((query) => sse(stack, `/v1/stream${query}&symbols=AAPLc,INTCc`)),
    )
    for (const listener of listeners) await listener.waitFor('live')
    const share = 100_000_000n
    const give = (symbol: string, raw: bigint, to?: string) => stack.devnet.transfer({ symbol, raw, ...(to ? { to } : {}) })
    give('AAPLc', 1n * share)
    give('AAPLc', 1n * share, ACCOUNT)
    give('AAPLc', (105n * share) / 10n)
    give('INTCc', 1_000n * share)
    give('AAPLc', 20n * share, ACCOUNT)
    stack.devnet.makeFlashblock()
    for (const listener of listeners) await listener.waitFor('transfer', ({ amount }) => amount === '20')
    expect(listeners.map((listener) => listener.messagesOf('transfer').map(({ amount }) => amount))).toEqual([
      ['10.5', '20'],
      ['10.5', '1000', '20'],
      ['1', '20'],
      ['20'],
    ])
  })

  it('applies a least value to movements alone', async () => {
    const stack = await openTestStack()
    const listener = await sse(stack, '/v1/stream/AAPLc?min_value=1000000000000&since=start')
    await listener.waitFor('live')
    expect(tapeUpdatesOf(listener).map(({ type }) => type)).toEqual(expect.arrayContaining(['token', 'nav', 'status']))
  })

  it('rejects an unknown symbol and serves the others', async () => {
    const stack = await openTestStack()
    const listener = await sse(stack, '/v1/stream?symbols=APPL,isin:us88160r1014,0xB200000000000000000000C2E324D24D7EECD1FB')
    expect(await listener.waitFor('subscribed')).toMatchObject({
      symbols: ['AAPLc', 'TSLAc'],
      rejected: [{ symbol: 'APPL', reason: 'unknown_symbol', suggest: ['AAPLc'] }],
    })
  })
})

describe('since', () => {
  it('starts now, at the start, after a position, a duration ago or at a time', async () => {
    const stack = await openTestStack()
    const first = await sse(stack, '/v1/stream/AAPLc?types=transfer')
    await first.waitFor('live')
    transfer(stack, 'AAPLc', 3)
    await first.until(() => tapeUpdatesOf(first).length === 3)
    const published = tapeUpdatesOf(first)
    const replayed = async (since: string) => {
      const listener = await sse(stack, `/v1/stream/AAPLc?types=transfer&since=${encodeURIComponent(since)}`)
      const { id } = await listener.waitFor('live')
      expect(sequenceOf(id)).toBeGreaterThanOrEqual(sequenceOf(published[2]?.id))
      return { ids: tapeUpdatesOf(listener).map((update) => update.id), listener }
    }
    const ids = published.map(({ id }) => id)
    expect((await replayed('now')).ids).toEqual([])
    expect((await replayed('start')).ids).toEqual(ids)
    expect((await replayed('2h')).ids).toEqual(ids)
    expect((await replayed(published[0]?.time ?? '')).ids).toEqual(ids)
    expect((await replayed('2000-01-01T00:00:00+02:00')).ids).toEqual(ids)
    expect((await replayed('2100-01-01T00:00:00Z')).ids).toEqual([])
    const { listener, ids: after } = await replayed(ids[0] ?? '')
    expect(after).toEqual(ids.slice(1))
    expect(await listener.waitFor('hello')).toMatchObject({ id: ids[0] })
    expect(await listener.waitFor('subscribed')).toMatchObject({ id: ids[0], resume: 'full' })
    expect(listener.messagesOf('snapshot')).toEqual([])
  })

  it('is ignored beside a Last-Event-ID that is not empty', async () => {
    const stack = await openTestStack()
    const first = await sse(stack, '/v1/stream/AAPLc?types=transfer')
    await first.waitFor('live')
    transfer(stack, 'AAPLc', 2)
    await first.until(() => tapeUpdatesOf(first).length === 2)
    const ids = tapeUpdatesOf(first).map(({ id }) => id)
    const resumed = await sse(stack, '/v1/stream/AAPLc?types=transfer&since=now', { 'last-event-id': ids[0] ?? '' })
    await resumed.waitFor('live')
    expect(tapeUpdatesOf(resumed).map(({ id }) => id)).toEqual(ids.slice(1))
    const empty = await sse(stack, `/v1/stream/AAPLc?types=transfer&since=${ids[0]}`, { 'last-event-id': '' })
    await empty.waitFor('live')
    expect(tapeUpdatesOf(empty).map(({ id }) => id)).toEqual(ids.slice(1))
    expect(empty.messagesOf('gap')).toEqual([])
  })
})

describe('a gap', () => {
  /** Receives a gap and checks what holds for every gap. */
  const gapOf = async (stack: TestStack, path: string, headers: Record<string, string> = {}) => {
    const listener = await sse(stack, path, headers)
    await listener.waitFor('live')
    const types = messageTypesOf(listener.received)
    expect(types.slice(0, 4)).toEqual(['hello', 'subscribed', 'gap', 'snapshot'])
    const gap = await listener.waitFor('gap')
    expect(gap.through).toBe(gap.id)
    expect(await listener.waitFor('hello')).toMatchObject({ id: null })
    expect(await listener.waitFor('subscribed')).toMatchObject({ id: null, resume: 'gap' })
    expect(listener.received.slice(0, 3).map(({ id }) => id)).toEqual([undefined, undefined, gap.id])
    expect(listener.messagesOf('snapshot')[0]?.id).toBe(gap.id)
    return { gap, listener }
  }

  it('of another epoch continues at the oldest position', async () => {
    const stack = await openTestStack()
    const { gap, listener } = await gapOf(stack, '/v1/stream/AAPLc?since=zzzzzz9.7')
    expect(gap).toMatchObject({ reason: 'epoch', after: 'zzzzzz9.7', through: listener.messagesOf('hello')[0]?.oldest })
    expect(tapeUpdatesOf(listener).length).toBeGreaterThan(1)
  })

  it.each([
    ['that cannot be read', 'yesterday'],
    ['that is too long', `${'a'.repeat(20)}.${'1'.repeat(250)}`],
  ])('after a Last-Event-ID %s has the reason epoch', async (_, header) => {
    const stack = await openTestStack()
    const { gap } = await gapOf(stack, '/v1/stream/AAPLc', { 'last-event-id': header })
    expect(gap.reason).toBe('epoch')
  })

  it('after a position beyond the end continues at the end', async () => {
    const stack = await openTestStack()
    const end = await tapeEnd(stack)
    const ahead = `${end.split('.')[0]}.${sequenceOf(end) + 5_000}`
    const { gap, listener } = await gapOf(stack, `/v1/stream/AAPLc?since=${ahead}`)
    expect(gap).toMatchObject({ reason: 'ahead', after: ahead, through: listener.messagesOf('hello')[0]?.end })
    expect(await listener.waitFor('live')).toMatchObject({ replayed: 0, id: gap.id })
  })

  it('for a replay that is too long continues at the end', async () => {
    const stack = await openTestStack({ MAX_REPLAY: '5' })
    const first = await sse(stack, '/v1/stream/AAPLc?types=transfer')
    const { id: before } = await first.waitFor('live')
    transfer(stack, 'AAPLc', 6)
    await first.until(() => tapeUpdatesOf(first).length === 6)
    const end = await tapeEnd(stack)
    const { gap, listener } = await gapOf(stack, `/v1/stream/AAPLc?types=transfer&since=${before}`)
    expect(gap).toMatchObject({ reason: 'long', after: before, through: end })
    expect(await listener.waitFor('live')).toMatchObject({ replayed: 0 })
    const fitting = await sse(stack, `/v1/stream/AAPLc?types=transfer&since=${tapeUpdatesOf(first)[0]?.id}`)
    expect(await fitting.waitFor('live')).toMatchObject({ replayed: 5 })
    const other = await sse(stack, `/v1/stream/TSLAc?types=transfer&since=${before}`)
    expect(await other.waitFor('live')).toMatchObject({ replayed: 0 })
    expect(other.messagesOf('gap')).toEqual([])
  })

  it('for evicted updates continues at the oldest position, which is no gap for since=start', async () => {
    const stack = await openTestStack({ TAPE_MAX_MESSAGES: '1000', FINALITY_POLL: '1h' })
    // Every other update on the tape evicts a transfer.
    const others = await sse(stack, '/v1/stream?symbols=*&types=finality&since=start')
    await others.until(() => others.messagesOf('finality').length === 2)
    const first = await sse(stack, '/v1/stream/AAPLc?types=transfer')
    await first.waitFor('live')
    transfer(stack, 'AAPLc', 1_100)
    await first.until(() => tapeUpdatesOf(first).length === 1_100)
    // Nothing that is open is evicted.
    const seals = await sse(stack, '/v1/stream/AAPLc?types=seal')
    stack.devnet.seal()
    await seals.waitFor('seal')
    transfer(stack, 'AAPLc', 1)
    await first.until(() => tapeUpdatesOf(first).length === 1_101)
    const from = tapeUpdatesOf(first)[0]?.id
    const { gap, listener } = await gapOf(stack, `/v1/stream/AAPLc?types=transfer&since=${from}`)
    const hello = await listener.waitFor('hello')
    expect(gap).toMatchObject({ reason: 'expired', after: from, through: hello.oldest })
    const kept = tapeUpdatesOf(first).filter(({ id }) => sequenceOf(id) > sequenceOf(hello.oldest))
    expect(kept.length).toBeLessThan(1_000)
    expect(tapeUpdatesOf(listener).map(({ id }) => id)).toEqual(kept.map(({ id }) => id))
    for (const since of ['start', '1h', '2001-01-01T00:00:00Z']) {
      const whole = await sse(stack, `/v1/stream/AAPLc?types=transfer&since=${since}`)
      await whole.waitFor('live')
      expect(whole.messagesOf('gap')).toEqual([])
      const { oldest } = await whole.waitFor('hello')
      const still = kept.filter(({ id }) => sequenceOf(id) > sequenceOf(oldest))
      expect(tapeUpdatesOf(whole).map(({ id }) => id)).toEqual(still.map(({ id }) => id))
    }
  })
})

describe('an invalid request', () => {
  it.each([
    ['/v1/stream', /symbols/],
    ['/v1/stream?symbols=', /symbols/],
    ['/v1/stream/AAPLc?types=dividends', /dividends/],
    ['/v1/stream/AAPLc?stage=final', /stage/],
    ['/v1/stream/AAPLc?since=yesterday', /since/],
    ['/v1/stream/AAPLc?snapshot=perhaps', /snapshot/],
    ['/v1/stream/AAPLc?min_value=1e9', /min_value/],
    ['/v1/stream/AAPLc?min_shares=-1', /min_shares/],
    ['/v1/stream/AAPLc?account=0x12', /account/],
    ['/v1/stream/AAPLc?heartbeat=0', /heartbeat/],
    ['/v1/stream/AAPLc?heartbeat=61', /heartbeat/],
    ['/v1/stream/AAPLc?format=xml', /format/],
  ])('to %s is a 400 that names the parameter', async (path, names) => {
    const { relay } = await openTestStack()
    const { status, json, headers } = await fetchDocumented(`${relay.url}${path}`)
    expect(status).toBe(400)
    expect(json).toMatchObject({ code: 400, message: expect.stringMatching(names), details: expect.any(Array) })
    expect(headers.get('access-control-allow-origin')).toBe('*')
  })

  it('with one unknown symbol is a 404 with a suggestion', async () => {
    const { relay } = await openTestStack()
    const { status, json } = await fetchDocumented(`${relay.url}/v1/stream/APPL`)
    expect(status).toBe(404)
    expect(json).toEqual({
      code: 404,
      reason: 'unknown_symbol',
      message: "No tokenized stock 'APPL'. Did you mean AAPLc?",
      details: [{ '@type': 'stocktape/unknown_symbol', suggest: ['AAPLc'] }],
    })
  })

  it('with a wrong method is a 405, with a wrong path a 404', async () => {
    const { relay } = await openTestStack()
    const posted = await fetchDocumented(`${relay.url}/v1/stream/AAPLc`, { method: 'POST', body: '{}' })
    expect(posted).toMatchObject({ status: 405, json: { code: 405 } })
    expect(posted.headers.get('allow')).toContain('GET')
    expect(await fetchDocumented(`${relay.url}/v1/nothing`)).toMatchObject({ status: 404, json: { code: 404 } })
  })
})

describe('a stream route', () => {
  it('answers OPTIONS for every origin, and HEAD without a body', async () => {
    const { relay } = await openTestStack()
    const preflight = await fetchDocumented(`${relay.url}/v1/stream/AAPLc`, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://example.com',
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'last-event-id',
      },
    })
    expect(preflight.status).toBeLessThan(300)
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*')
    expect(preflight.headers.get('access-control-allow-headers')?.toLowerCase()).toMatch(
      /content-type.*last-event-id|last-event-id.*content-type/,
    )
    expect(preflight.headers.get('access-control-allow-credentials')).toBeNull()
    const head = await fetchDocumented(`${relay.url}/v1/stream/AAPLc`, { method: 'HEAD' })
    expect(head).toMatchObject({ status: 200, text: '' })
    expect(head.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(await fetchDocumented(`${relay.url}/v1/stream/APPL`, { method: 'HEAD' })).toMatchObject({ status: 404, text: '' })
  })

  it('is a 503 before the first list', async () => {
    const devnet = await openDevnet()
    devnet.faults.list = { status: 500 }
    const relay = await openRelayBeforeList(devnet)
    onTestFinished(() => relay.stop())
    const { status, json, headers } = await fetchDocumented(`${relay.url}/v1/stream/AAPLc`)
    expect(status).toBe(503)
    expect(json).toMatchObject({ code: 503, details: [{ '@type': 'stocktape/no_list' }] })
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    devnet.faults.list = undefined
    await relay.listed
    expect((await fetchDocumented(`${relay.url}/v1/stream/AAPLc`, { method: 'HEAD' })).status).toBe(200)
  })

  it('refuses a browser with a retry time and other clients with 503 where MAX_CLIENTS is reached', async () => {
    const stack = await openTestStack({ MAX_CLIENTS: '1' })
    const listener = await sse(stack, '/v1/stream/AAPLc')
    await listener.waitFor('live')
    const url = `${stack.relay.url}/v1/stream/AAPLc`
    const browser = await fetchDocumented(url, { headers: { accept: 'text/event-stream' } })
    expect(browser.status).toBe(200)
    expect(browser.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(browser.text).toMatch(/^retry: 30000$/m)
    expect(JSON.parse(/^data: (.*)$/m.exec(browser.text)?.[1] ?? '')).toMatchObject({ type: 'error', code: 503 })
    const other = await fetchDocumented(url)
    expect(other).toMatchObject({ status: 503, json: { code: 503 } })
    expect(Number(other.headers.get('retry-after'))).toBeGreaterThan(0)
  })
})

describe('a selection over MAX_SELECTIONS', () => {
  it('is a 429, and for a browser a stream with a retry time', async () => {
    const stack = await openTestStack({ MAX_SELECTIONS: '1' })
    const listener = await sse(stack, '/v1/stream/AAPLc?min_value=1')
    await listener.waitFor('live')
    const url = `${stack.relay.url}/v1/stream/AAPLc?min_value=2`
    const other = await fetchDocumented(url)
    expect(other).toMatchObject({ status: 429, json: { code: 429, details: [{ '@type': 'stocktape/too_many_selections' }] } })
    expect(Number(other.headers.get('retry-after'))).toBeGreaterThan(0)
    const browser = await fetchDocumented(url, { headers: { accept: 'text/event-stream' } })
    expect(browser.text).toMatch(/^retry: 30000$/m)
  })
})

describe('a listener that reads too slowly', () => {
  it('is disconnected as slow with its position, resumes there without a gap, and affects no other listener', async () => {
    const stack = await openTestStack({ MAX_BACKLOG: '16KiB' })
    const { devnet, relay } = stack
    const other = await sse(stack, '/v1/stream/AAPLc?types=log')
    await other.waitFor('live')
    const slow = connect(Number(new URL(relay.url).port), '127.0.0.1')
    onTestFinished(() => void slow.destroy())
    slow.write('GET /v1/stream/AAPLc?types=log&format=ndjson HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
    await once(slow, 'readable')
    const disconnectedAsSlow = async () =>
      /stocktape_disconnects_total\{[^}]*reason="too_slow"[^}]*\} 1\b/.test((await fetchDocumented(`${relay.url}/metrics`)).text)
    const address = devnet.list.addressOf('AAPLc')
    let sent = 0
    while (!(await disconnectedAsSlow())) {
      for (let log = 0; log < 20; log += 1) {
        devnet.emit({ address, topics: [TOPIC], data: `0x${'5a'.repeat(16_000)}` })
      }
      devnet.makeFlashblock()
      sent += 20
      await other.until(() => other.messagesOf('log').length === sent)
    }
    let text = ''
    for await (const chunk of slow.setEncoding('utf8')) text += chunk
    const published = [...text.matchAll(/^(\{"type":"log".*\})$/gm)].map(([line]) => JSON.parse(line).id as string)
    const bye = JSON.parse(/^\{"type":"bye".*\}$/m.exec(text)?.[0] ?? '{}')
    expect(bye).toMatchObject({ reason: 'too_slow', id: expect.any(String), retry_ms: expect.any(Number) })
    const resumed = await sse(stack, `/v1/stream/AAPLc?types=log&since=${bye.id}`)
    await resumed.waitFor('live')
    expect([...published, ...tapeUpdatesOf(resumed).map(({ id }) => id)]).toEqual(tapeUpdatesOf(other).map(({ id }) => id))
    expect(tapeUpdatesOf(resumed).length).toBeGreaterThan(0)
  })
})
