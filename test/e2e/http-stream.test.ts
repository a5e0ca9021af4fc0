import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { launchRelay } from '../support/in-process-relay.ts'
import type { Ear } from '../support/test-listener.ts'
import { listenNdjson, listenSse } from '../support/test-listener.ts'
import { ask, openDevnet, openWorld, seqOf, tapeOf, transfer, typesOf, type World } from '../support/test-stack.ts'

const PARTY = `0x${'ab'.repeat(20)}`
const TOPIC = `0x${'77'.repeat(32)}` as const

/** Listens, and leaves with the test. */
const sse = async (world: World, path: string, headers: Record<string, string> = {}): Promise<Ear> => {
  const ear = await listenSse(`${world.relay.url}${path}`, headers)
  onTestFinished(() => ear.close())
  return ear
}
const ndjson = async (world: World, path: string): Promise<Ear> => {
  const ear = await listenNdjson(`${world.relay.url}${path}`)
  onTestFinished(() => ear.close())
  return ear
}

/** The first bytes of a stream as they come, up to the first that show what is looked for. */
const firstText = async (url: string, shows: RegExp, headers: Record<string, string> = {}) => {
  const abort = new AbortController()
  const response = await fetch(url, { signal: abort.signal, headers })
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    if (shows.test(text)) break
  }
  abort.abort()
  return { text, headers: response.headers, status: response.status }
}

/** The position of the newest thing on the tape. */
const endOf = async (world: World): Promise<string> => {
  const ear = await listenNdjson(`${world.relay.url}/v1/stream?symbols=*&snapshot=false`)
  const { end } = await ear.hear('hello')
  ear.close()
  return end
}

describe('a stream', () => {
  it('says hello, what is heard, how things stand, what was missed and that it is live, in this order', async () => {
    const world = await openWorld()
    const first = await sse(world, '/v1/stream/AAPLc')
    await first.hear('live')
    transfer(world)
    await first.hear('transfer')
    const ear = await sse(world, '/v1/stream?symbols=AAPLc,TSLAc&since=start')
    const live = await ear.hear('live')
    transfer(world)
    const last = await ear.hear('transfer', ({ id }) => seqOf(id) > seqOf(live.id))
    const types = typesOf(ear.heard)
    expect(types.slice(0, 4)).toEqual(['hello', 'subscribed', 'snapshot', 'snapshot'])
    expect(types.indexOf('live')).toBe(4 + live.replayed)
    const told = tapeOf(ear)
    expect(told.length).toBe(live.replayed + 1)
    expect(told.filter(({ symbol }) => symbol === 'AAPLc').map(({ type }) => type)).toEqual([
      'token',
      'nav',
      'transfer',
      'transfer',
    ])
    expect(ear.all('hello')[0]).toMatchObject({ protocol: 'stocktape.v1', chain_id: world.devnet.chainId, demo: false })
    expect(ear.all('subscribed')[0]).toMatchObject({ symbols: ['AAPLc', 'TSLAc'], rejected: [], resume: 'none' })
    expect(last.id).toBe(told.at(-1)?.id)
  })

  it('gives every message that has an id an id line of the same, and no event line', async () => {
    const world = await openWorld()
    const ear = await sse(world, '/v1/stream?symbols=*&since=start')
    const { id: liveAt } = await ear.hear('live')
    const hello = await ear.hear('hello')
    expect(hello.id).toBe(hello.oldest)
    expect(liveAt).toBe(hello.end)
    for (const { message, id, event } of ear.heard) {
      expect(id).toBe('id' in message ? message.id : undefined)
      expect(event).toBeUndefined()
    }
    expect(ear.all('subscribed')[0]?.id).toBe(hello.id)
    expect(ear.all('snapshot').map(({ id }) => id)).toEqual(ear.all('snapshot').map(() => hello.id))
    expect(ear.all('snapshot').length).toBe(world.devnet.tokens.length)
    expect(tapeOf(ear).map(({ id }) => seqOf(id))).toEqual(
      tapeOf(ear)
        .map(({ id }) => seqOf(id))
        .toSorted((a, b) => a - b),
    )
  })

  it('begins at once, with its headers, a comment and a time to come back after', async () => {
    const world = await openWorld()
    const { text, headers, status } = await firstText(`${world.relay.url}/v1/stream/aapl`, /data: /)
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

  it('names heartbeats alone, and gives them the position up to which nothing is missing', async () => {
    const world = await openWorld({ HEARTBEAT_MS: '1000' })
    const quiet = await ndjson(world, '/v1/stream/AAPLc')
    const asked = await ndjson(world, '/v1/stream/AAPLc?heartbeat=1')
    const ear = await sse(world, '/v1/stream/AAPLc')
    await ear.hear('live')
    transfer(world, 'AAPLc')
    transfer(world, 'TSLAc', 3)
    const heartbeat = await ear.hear('heartbeat')
    await asked.hear('heartbeat')
    const heard = ear.heard.find(({ message }) => message.type === 'heartbeat')
    expect(heard).toMatchObject({ event: 'heartbeat', id: heartbeat.id })
    expect(heartbeat).toMatchObject({ sent: 1, source: 'pendingLogs' })
    expect(seqOf(heartbeat.id)).toBe(seqOf(ear.all('transfer')[0]?.id) + 3)
    expect(quiet.all('heartbeat')).toEqual([])
  })

  it('names every event where that is asked for', async () => {
    const world = await openWorld()
    const ear = await sse(world, '/v1/stream/AAPLc?events=named')
    await ear.hear('live')
    transfer(world)
    await ear.hear('transfer')
    expect(ear.heard.map(({ event }) => event)).toEqual(typesOf(ear.heard))
  })

  it('is NDJSON or text where that is asked for', async () => {
    const world = await openWorld()
    const { url } = world.relay
    const byFormat = await firstText(`${url}/v1/stream/AAPLc?format=ndjson`, /"live"/)
    const byAccept = await firstText(`${url}/v1/stream/AAPLc`, /"live"/, { accept: 'application/x-ndjson' })
    for (const { text, headers } of [byFormat, byAccept]) {
      expect(headers.get('content-type')).toMatch(/^application\/x-ndjson/)
      for (const line of text.trimEnd().split('\n')) expect(JSON.parse(line)).toHaveProperty('type')
    }
    const accepts = async (accept: string) =>
      (await ask(`${url}/v1/stream/AAPLc`, { method: 'HEAD', headers: { accept } })).headers.get('content-type')
    expect(await accepts('application/X-NDJSON')).toMatch(/ndjson/)
    for (const other of [
      'text/html, application/x-ndjson;q=0',
      'text/event-stream, application/x-ndjson;q=0.1',
      '*/*',
    ]) {
      expect(await accepts(other)).toMatch(/event-stream/)
    }
    transfer(world)
    const tail = await firstText(`${url}/v1/tail/AAPLc?since=start`, /transfer .*\n/)
    expect(tail.headers.get('content-type')).toMatch(/^text\/plain/)
    expect(tail.text).toMatch(/AAPLc +transfer +1 /)
  })

  it('gives several symbols in one order, that of the tape', async () => {
    const world = await openWorld()
    const ear = await sse(world, '/v1/stream/AAPLc,TSLAc?types=transfer')
    const all = await sse(world, '/v1/stream?symbols=*&types=transfer')
    await Promise.all([ear.hear('live'), all.hear('live')])
    const symbols = ['AAPLc', 'TSLAc', 'NVDAc', 'TSLAc', 'AAPLc', 'TSLAc']
    for (const symbol of symbols) world.devnet.transfer({ symbol, raw: 1n })
    world.devnet.flash()
    await Promise.all([
      ear.until(() => tapeOf(ear).length === 5),
      all.until(() => tapeOf(all).length === symbols.length),
    ])
    expect(tapeOf(ear).map(({ symbol }) => symbol)).toEqual(['AAPLc', 'TSLAc', 'TSLAc', 'AAPLc', 'TSLAc'])
    expect(tapeOf(all).map(({ symbol }) => symbol)).toEqual(symbols)
  })
})

describe('what a stream lets through', () => {
  it('is the types that were named, and all but approvals and other logs where none were', async () => {
    const world = await openWorld()
    const [plain, transfers, all, logs] = await Promise.all(
      ['', '?types=transfer', '?types=*', '?types=log,approval'].map((query) => sse(world, `/v1/stream/AAPLc${query}`)),
    )
    for (const ear of [plain, transfers, all, logs]) await ear?.hear('live')
    const address = world.devnet.list.addressOf('AAPLc')
    world.devnet.emit({ address, topics: [TOPIC], data: '0x01' })
    world.devnet.transfer({ symbol: 'AAPLc', from: `0x${'0'.repeat(40)}`, raw: 7n })
    transfer(world)
    for (const ear of [plain, transfers, all]) await ear?.hear('transfer')
    await logs?.hear('log')
    expect(tapeOf(plain as Ear).map(({ type }) => type)).toEqual(['mint', 'transfer'])
    expect(tapeOf(transfers as Ear).map(({ type }) => type)).toEqual(['transfer'])
    expect(tapeOf(all as Ear).map(({ type }) => type)).toEqual(['log', 'mint', 'transfer'])
    expect(tapeOf(logs as Ear).map(({ type }) => type)).toEqual(['log'])
  })

  it('is movements of a value, of a number of shares and of a party, all at once; what is unknown never passes', async () => {
    const world = await openWorld()
    const ears = await Promise.all(
      [
        '?types=transfer&min_value=1000',
        '?types=transfer&min_shares=10.5',
        `?types=transfer&party=${PARTY.toUpperCase().replace('X', 'x')}`,
        `?types=transfer&min_shares=5&party=${PARTY}`,
      ].map((query) => sse(world, `/v1/stream${query}&symbols=AAPLc,INTCc`)),
    )
    for (const ear of ears) await ear.hear('live')
    const share = 100_000_000n
    const give = (symbol: string, raw: bigint, to?: string) =>
      world.devnet.transfer({ symbol, raw, ...(to ? { to } : {}) })
    give('AAPLc', 1n * share)
    give('AAPLc', 1n * share, PARTY)
    give('AAPLc', (105n * share) / 10n)
    give('INTCc', 1_000n * share)
    give('AAPLc', 20n * share, PARTY)
    world.devnet.flash()
    for (const ear of ears) await ear.hear('transfer', ({ amount }) => amount === '20')
    expect(ears.map((ear) => ear.all('transfer').map(({ amount }) => amount))).toEqual([
      ['10.5', '20'],
      ['10.5', '1000', '20'],
      ['1', '20'],
      ['20'],
    ])
  })

  it('is other types too, whatever value is asked for', async () => {
    const world = await openWorld()
    const ear = await sse(world, '/v1/stream/AAPLc?min_value=1000000000000&since=start')
    await ear.hear('live')
    expect(tapeOf(ear).map(({ type }) => type)).toEqual(expect.arrayContaining(['token', 'nav', 'status']))
  })

  it('names what it does not know and goes on with the rest', async () => {
    const world = await openWorld()
    const ear = await sse(world, '/v1/stream?symbols=APPL,isin:us88160r1014,0xB200000000000000000000C2E324D24D7EECD1FB')
    expect(await ear.hear('subscribed')).toMatchObject({
      symbols: ['AAPLc', 'TSLAc'],
      rejected: [{ symbol: 'APPL', reason: 'unknown_symbol', suggest: ['AAPLc'] }],
    })
  })
})

describe('since', () => {
  it('begins now, at the start, after a position, so long ago or at a time', async () => {
    const world = await openWorld()
    const first = await sse(world, '/v1/stream/AAPLc?types=transfer')
    await first.hear('live')
    transfer(world, 'AAPLc', 3)
    await first.until(() => tapeOf(first).length === 3)
    const told = tapeOf(first)
    const replayed = async (since: string) => {
      const ear = await sse(world, `/v1/stream/AAPLc?types=transfer&since=${encodeURIComponent(since)}`)
      const { id } = await ear.hear('live')
      expect(seqOf(id)).toBeGreaterThanOrEqual(seqOf(told[2]?.id))
      return { ids: tapeOf(ear).map((update) => update.id), ear }
    }
    const ids = told.map(({ id }) => id)
    expect((await replayed('now')).ids).toEqual([])
    expect((await replayed('start')).ids).toEqual(ids)
    expect((await replayed('2h')).ids).toEqual(ids)
    expect((await replayed(told[0]?.time ?? '')).ids).toEqual(ids)
    expect((await replayed('2000-01-01T00:00:00+02:00')).ids).toEqual(ids)
    expect((await replayed('2100-01-01T00:00:00Z')).ids).toEqual([])
    const { ear, ids: after } = await replayed(ids[0] ?? '')
    expect(after).toEqual(ids.slice(1))
    expect(await ear.hear('hello')).toMatchObject({ id: ids[0] })
    expect(await ear.hear('subscribed')).toMatchObject({ id: ids[0], resume: 'full' })
    expect(ear.all('snapshot')).toEqual([])
  })

  it('gives way to a Last-Event-ID, unless that is empty', async () => {
    const world = await openWorld()
    const first = await sse(world, '/v1/stream/AAPLc?types=transfer')
    await first.hear('live')
    transfer(world, 'AAPLc', 2)
    await first.until(() => tapeOf(first).length === 2)
    const ids = tapeOf(first).map(({ id }) => id)
    const resumed = await sse(world, '/v1/stream/AAPLc?types=transfer&since=now', { 'last-event-id': ids[0] ?? '' })
    await resumed.hear('live')
    expect(tapeOf(resumed).map(({ id }) => id)).toEqual(ids.slice(1))
    const empty = await sse(world, `/v1/stream/AAPLc?types=transfer&since=${ids[0]}`, { 'last-event-id': '' })
    await empty.hear('live')
    expect(tapeOf(empty).map(({ id }) => id)).toEqual(ids.slice(1))
    expect(empty.all('gap')).toEqual([])
  })
})

describe('a gap', () => {
  /** Hears a gap, and checks what is so with every one. */
  const gapOf = async (world: World, path: string, headers: Record<string, string> = {}) => {
    const ear = await sse(world, path, headers)
    await ear.hear('live')
    const types = typesOf(ear.heard)
    expect(types.slice(0, 4)).toEqual(['hello', 'subscribed', 'gap', 'snapshot'])
    const gap = await ear.hear('gap')
    expect(gap.to).toBe(gap.id)
    expect(await ear.hear('hello')).toMatchObject({ id: null })
    expect(await ear.hear('subscribed')).toMatchObject({ id: null, resume: 'gap' })
    expect(ear.heard.slice(0, 3).map(({ id }) => id)).toEqual([undefined, undefined, gap.id])
    expect(ear.all('snapshot')[0]?.id).toBe(gap.id)
    return { gap, ear }
  }

  it('of another epoch goes on at the oldest', async () => {
    const world = await openWorld()
    const { gap, ear } = await gapOf(world, '/v1/stream/AAPLc?since=zzzzzz9.7')
    expect(gap).toMatchObject({ reason: 'epoch', from: 'zzzzzz9.7', to: ear.all('hello')[0]?.oldest })
    expect(tapeOf(ear).length).toBeGreaterThan(1)
  })

  it.each([
    ['that cannot be read', 'yesterday'],
    ['that is too long', `${'a'.repeat(20)}.${'1'.repeat(250)}`],
  ])('of a Last-Event-ID %s is one of another epoch', async (_, header) => {
    const world = await openWorld()
    const { gap } = await gapOf(world, '/v1/stream/AAPLc', { 'last-event-id': header })
    expect(gap.reason).toBe('epoch')
  })

  it('of a position beyond the end goes on at the end', async () => {
    const world = await openWorld()
    const end = await endOf(world)
    const ahead = `${end.split('.')[0]}.${seqOf(end) + 5_000}`
    const { gap, ear } = await gapOf(world, `/v1/stream/AAPLc?since=${ahead}`)
    expect(gap).toMatchObject({ reason: 'ahead', from: ahead, to: ear.all('hello')[0]?.end })
    expect(await ear.hear('live')).toMatchObject({ replayed: 0, id: gap.id })
  })

  it('of a replay that would be too long goes on at the end', async () => {
    const world = await openWorld({ REPLAY_BOUND: '5' })
    const first = await sse(world, '/v1/stream/AAPLc?types=transfer')
    const { id: before } = await first.hear('live')
    transfer(world, 'AAPLc', 6)
    await first.until(() => tapeOf(first).length === 6)
    const end = await endOf(world)
    const { gap, ear } = await gapOf(world, `/v1/stream/AAPLc?types=transfer&since=${before}`)
    expect(gap).toMatchObject({ reason: 'long', from: before, to: end })
    expect(await ear.hear('live')).toMatchObject({ replayed: 0 })
    const fitting = await sse(world, `/v1/stream/AAPLc?types=transfer&since=${tapeOf(first)[0]?.id}`)
    expect(await fitting.hear('live')).toMatchObject({ replayed: 5 })
    const other = await sse(world, `/v1/stream/TSLAc?types=transfer&since=${before}`)
    expect(await other.hear('live')).toMatchObject({ replayed: 0 })
    expect(other.all('gap')).toEqual([])
  })

  it('of what was evicted goes on at the oldest, which is no gap for who asks for the start', async () => {
    const world = await openWorld({ TAPE_BOUND: '1000', FINALITY_POLL_MS: '3600000' })
    // Whatever else is written takes the place of a transfer.
    const others = await sse(world, '/v1/stream?symbols=*&types=finality&since=start')
    await others.until(() => others.all('finality').length === 2)
    const first = await sse(world, '/v1/stream/AAPLc?types=transfer')
    await first.hear('live')
    transfer(world, 'AAPLc', 1_100)
    await first.until(() => tapeOf(first).length === 1_100)
    const from = tapeOf(first)[0]?.id
    const { gap, ear } = await gapOf(world, `/v1/stream/AAPLc?types=transfer&since=${from}`)
    const hello = await ear.hear('hello')
    expect(gap).toMatchObject({ reason: 'expired', from, to: hello.oldest })
    const kept = tapeOf(first).filter(({ id }) => seqOf(id) > seqOf(hello.oldest))
    expect(kept.length).toBeLessThan(1_000)
    expect(tapeOf(ear).map(({ id }) => id)).toEqual(kept.map(({ id }) => id))
    for (const since of ['start', '1h', '2001-01-01T00:00:00Z']) {
      const whole = await sse(world, `/v1/stream/AAPLc?types=transfer&since=${since}`)
      await whole.hear('live')
      expect(whole.all('gap')).toEqual([])
      const { oldest } = await whole.hear('hello')
      const still = kept.filter(({ id }) => seqOf(id) > seqOf(oldest))
      expect(tapeOf(whole).map(({ id }) => id)).toEqual(still.map(({ id }) => id))
    }
  })
})

describe('a mistake', () => {
  it.each([
    ['/v1/stream', /symbols/],
    ['/v1/stream?symbols=', /symbols/],
    ['/v1/stream/AAPLc?types=dividends', /dividends/],
    ['/v1/stream/AAPLc?stage=final', /stage/],
    ['/v1/stream/AAPLc?since=yesterday', /since/],
    ['/v1/stream/AAPLc?snapshot=perhaps', /snapshot/],
    ['/v1/stream/AAPLc?min_value=1e9', /min_value/],
    ['/v1/stream/AAPLc?min_shares=-1', /min_shares/],
    ['/v1/stream/AAPLc?party=0x12', /party/],
    ['/v1/stream/AAPLc?heartbeat=0', /heartbeat/],
    ['/v1/stream/AAPLc?heartbeat=61', /heartbeat/],
    ['/v1/stream/AAPLc?format=xml', /format/],
  ])('in %s is a 400 that names it', async (path, names) => {
    const { relay } = await openWorld()
    const { status, json, headers } = await ask(`${relay.url}${path}`)
    expect(status).toBe(400)
    expect(json).toMatchObject({ code: 400, message: expect.stringMatching(names), details: expect.any(Array) })
    expect(headers.get('access-control-allow-origin')).toBe('*')
  })

  it('in the only symbol is a 404 that says what may have been meant', async () => {
    const { relay } = await openWorld()
    const { status, json } = await ask(`${relay.url}/v1/stream/APPL`)
    expect(status).toBe(404)
    expect(json).toEqual({
      code: 404,
      message: "No tokenized stock 'APPL'. Did you mean AAPLc?",
      details: [{ '@type': 'stocktape/unknown_symbol', suggest: ['AAPLc'] }],
    })
  })

  it('of method is a 405, and of path a 404', async () => {
    const { relay } = await openWorld()
    const posted = await ask(`${relay.url}/v1/stream/AAPLc`, { method: 'POST', body: '{}' })
    expect(posted).toMatchObject({ status: 405, json: { code: 405 } })
    expect(posted.headers.get('allow')).toContain('GET')
    expect(await ask(`${relay.url}/v1/nothing`)).toMatchObject({ status: 404, json: { code: 404 } })
  })
})

describe('the door', () => {
  it('answers OPTIONS for every origin, and HEAD without a body', async () => {
    const { relay } = await openWorld()
    const preflight = await ask(`${relay.url}/v1/stream/AAPLc`, {
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
    const head = await ask(`${relay.url}/v1/stream/AAPLc`, { method: 'HEAD' })
    expect(head).toMatchObject({ status: 200, text: '' })
    expect(head.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(await ask(`${relay.url}/v1/stream/APPL`, { method: 'HEAD' })).toMatchObject({ status: 404, text: '' })
  })

  it('says 503 before the first list', async () => {
    const devnet = await openDevnet()
    devnet.weather.list = { status: 500 }
    const relay = await launchRelay(devnet)
    onTestFinished(() => relay.stop())
    const { status, json, headers } = await ask(`${relay.url}/v1/stream/AAPLc`)
    expect(status).toBe(503)
    expect(json).toMatchObject({ code: 503, details: [{ '@type': 'stocktape/no_list' }] })
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    devnet.weather.list = undefined
    await relay.listed
    expect((await ask(`${relay.url}/v1/stream/AAPLc`, { method: 'HEAD' })).status).toBe(200)
  })

  it('sends a browser away with a time to come back after, and everybody else with 503, where the house is full', async () => {
    const world = await openWorld({ CLIENTS_BOUND: '1' })
    const ear = await sse(world, '/v1/stream/AAPLc')
    await ear.hear('live')
    const url = `${world.relay.url}/v1/stream/AAPLc`
    const browser = await ask(url, { headers: { accept: 'text/event-stream' } })
    expect(browser.status).toBe(200)
    expect(browser.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(browser.text).toMatch(/^retry: 30000$/m)
    expect(JSON.parse(/^data: (.*)$/m.exec(browser.text)?.[1] ?? '')).toMatchObject({ type: 'error', code: 503 })
    const other = await ask(url)
    expect(other).toMatchObject({ status: 503, json: { code: 503 } })
    expect(Number(other.headers.get('retry-after'))).toBeGreaterThan(0)
  })
})

describe('a selection for which there is no room', () => {
  it('is a 429, and to a browser a stream that says when to come back', async () => {
    const world = await openWorld({ SELECTIONS_BOUND: '1' })
    const ear = await sse(world, '/v1/stream/AAPLc?min_value=1')
    await ear.hear('live')
    const url = `${world.relay.url}/v1/stream/AAPLc?min_value=2`
    const other = await ask(url)
    expect(other).toMatchObject({
      status: 429,
      json: { code: 429, details: [{ '@type': 'stocktape/too_many_selections' }] },
    })
    expect(Number(other.headers.get('retry-after'))).toBeGreaterThan(0)
    const browser = await ask(url, { headers: { accept: 'text/event-stream' } })
    expect(browser.text).toMatch(/^retry: 30000$/m)
  })
})

describe('a listener that reads too slowly', () => {
  it('is shown out with its position, from which nothing is missing, while another hears everything', async () => {
    const world = await openWorld({ BACKLOG_BOUND_BYTES: '16384' })
    const { devnet, relay } = world
    const other = await sse(world, '/v1/stream/AAPLc?types=log')
    await other.hear('live')
    const slow = connect(Number(new URL(relay.url).port), '127.0.0.1')
    onTestFinished(() => void slow.destroy())
    slow.write('GET /v1/stream/AAPLc?types=log&format=ndjson HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
    await once(slow, 'readable')
    const shownOut = async () => /stocktape_shown_out_total 1\b/.test((await ask(`${relay.url}/metrics`)).text)
    const address = devnet.list.addressOf('AAPLc')
    let sent = 0
    while (!(await shownOut())) {
      for (let log = 0; log < 20; log += 1) {
        devnet.emit({ address, topics: [TOPIC], data: `0x${'5a'.repeat(16_000)}` })
      }
      devnet.flash()
      sent += 20
      await other.until(() => other.all('log').length === sent)
    }
    let text = ''
    for await (const chunk of slow.setEncoding('utf8')) text += chunk
    const told = [...text.matchAll(/^(\{"type":"log".*\})$/gm)].map(([line]) => JSON.parse(line).id as string)
    const bye = JSON.parse(/^\{"type":"bye".*\}$/m.exec(text)?.[0] ?? '{}')
    expect(bye).toMatchObject({ reason: 'too_slow', id: expect.any(String), retry_ms: expect.any(Number) })
    const resumed = await sse(world, `/v1/stream/AAPLc?types=log&since=${bye.id}`)
    await resumed.hear('live')
    expect([...told, ...tapeOf(resumed).map(({ id }) => id)]).toEqual(tapeOf(other).map(({ id }) => id))
    expect(tapeOf(resumed).length).toBeGreaterThan(0)
  })
})
