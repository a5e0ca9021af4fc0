import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { launchRelay } from '../support/in-process-relay.ts'
import { type Ear, listenWs } from '../support/test-listener.ts'
import { ask, openDevnet, openWorld, seqOf, tapeOf, transfer, typesOf, type World } from '../support/test-stack.ts'

const TOPIC = `0x${'77'.repeat(32)}` as const

/** Connects, and leaves with the test. */
const connectTo = async ({ relay }: World, query = '', options: Parameters<typeof listenWs>[1] = {}): Promise<Ear> => {
  const ear = await listenWs(`${relay.wsUrl}${query}`, options)
  onTestFinished(() => ear.close())
  return ear
}

/** Everything said before this has been answered once it resolves. */
const answered = async (ear: Ear): Promise<void> => {
  const req = `after ${ear.heard.length}`
  ear.send({ type: 'ping', req })
  await ear.hear('pong', (pong) => pong.req === req)
}

describe('a socket whose URL says what to hear', () => {
  it('needs no message', async () => {
    const world = await openWorld()
    const ear = await connectTo(world, '?symbols=aapl,TSLAc&types=transfer,nav')
    const { id } = await ear.hear('live')
    expect(typesOf(ear.heard)).toEqual(['hello', 'subscribed', 'snapshot', 'snapshot', 'live'])
    expect(await ear.hear('hello')).toMatchObject({ id, end: id })
    expect(ear.all('subscribed')).toEqual([
      { type: 'subscribed', id, symbols: ['AAPLc', 'TSLAc'], rejected: [], resume: 'none' },
    ])
    transfer(world, 'NVDAc')
    transfer(world, 'TSLAc')
    expect(await ear.hear('transfer')).toMatchObject({ symbol: 'TSLAc' })
  })

  it('resumes after a position, without snapshots', async () => {
    const world = await openWorld()
    const first = await connectTo(world, '?symbols=AAPLc')
    const { id } = await first.hear('live')
    transfer(world, 'AAPLc', 2)
    await first.until(() => first.all('transfer').length === 2)
    const ear = await connectTo(world, `?symbols=AAPLc&since=${id}`)
    expect(await ear.hear('live')).toMatchObject({ replayed: 2, id: first.all('transfer')[1]?.id })
    expect(typesOf(ear.heard)).toEqual(['hello', 'subscribed', 'transfer', 'transfer', 'live'])
    expect(await ear.hear('subscribed')).toMatchObject({ resume: 'full', id })
  })

  it('is told of a mistake after hello, and stays', async () => {
    const world = await openWorld()
    const ear = await connectTo(world, '?symbols=AAPLc&types=dividends')
    expect(await ear.hear('error')).toMatchObject({ code: 400, message: expect.stringContaining('types') })
    expect(typesOf(ear.heard)).toEqual(['hello', 'error'])
    ear.send({ type: 'subscribe', symbols: ['AAPLc'] })
    await ear.hear('live')
  })
})

describe('a conversation', () => {
  it('begins with hello, without a position, and goes on from subscribe to live', async () => {
    const world = await openWorld()
    const ear = await connectTo(world)
    expect(await ear.hear('hello')).toMatchObject({ id: null, protocol: 'stocktape.v1', heartbeat_s: 15 })
    ear.send({ type: 'subscribe', req: 1, symbols: ['AAPLc', 'isin:US88160R1014'], types: ['transfer'] })
    const live = await ear.hear('live')
    expect(typesOf(ear.heard)).toEqual(['hello', 'subscribed', 'snapshot', 'snapshot', 'live'])
    expect(await ear.hear('subscribed')).toMatchObject({ req: 1, id: live.id, symbols: ['AAPLc', 'TSLAc'] })
    ear.send({ type: 'list', req: 'two' })
    expect(await ear.hear('subscribed', ({ req }) => req === 'two')).toMatchObject({
      symbols: ['AAPLc', 'TSLAc'],
      rejected: [],
      resume: 'none',
    })
    ear.send({ type: 'unsubscribe', req: 3, symbols: ['TSLAc', 'NVDAc'] })
    expect(await ear.hear('unsubscribed')).toEqual({ type: 'unsubscribed', req: 3, symbols: ['TSLAc'] })
    ear.send({ type: 'ping', req: 4 })
    expect(await ear.hear('pong')).toMatchObject({ req: 4 })
    transfer(world, 'TSLAc')
    transfer(world, 'AAPLc')
    expect(await ear.hear('transfer')).toMatchObject({ symbol: 'AAPLc' })
  })

  it('adds symbols at the present, with their snapshots and no further live', async () => {
    const world = await openWorld()
    const ear = await connectTo(world, '?symbols=AAPLc&types=transfer')
    await ear.hear('live')
    const other = await connectTo(world, '?symbols=TSLAc')
    await other.hear('live')
    transfer(world, 'TSLAc')
    await other.hear('transfer')
    ear.send({ type: 'subscribe', req: 1, symbols: ['TSLAc', 'AAPLc'] })
    const subscribed = await ear.hear('subscribed', ({ req }) => req === 1)
    expect(subscribed).toMatchObject({ symbols: ['AAPLc', 'TSLAc'], resume: 'none' })
    transfer(world, 'TSLAc', 1, 7n)
    expect(await ear.hear('transfer')).toMatchObject({ raw: '7' })
    expect(ear.all('snapshot').map(({ symbol }) => symbol)).toEqual(['AAPLc', 'TSLAc'])
    expect(ear.all('snapshot')[1]?.id).toBe(subscribed.id)
    expect(ear.all('live').length).toBe(1)
    ear.send({ type: 'subscribe', req: 2, symbols: ['NVDAc'], snapshot: false })
    await ear.hear('subscribed', ({ req }) => req === 2)
    await answered(ear)
    expect(ear.all('snapshot').length).toBe(2)
  })

  it('names what it does not know, and hears the rest', async () => {
    const world = await openWorld()
    const ear = await connectTo(world)
    ear.send({ type: 'subscribe', symbols: ['APPL', 'TSLAc', `0x${'12'.repeat(20)}`] })
    expect(await ear.hear('subscribed')).toMatchObject({
      symbols: ['TSLAc'],
      rejected: [
        { symbol: 'APPL', reason: 'unknown_symbol', suggest: ['AAPLc'] },
        { symbol: `0x${'12'.repeat(20)}`, reason: 'unknown_symbol' },
      ],
    })
    await ear.hear('live')
  })

  it('replaces the options that are given, and clears those that are null', async () => {
    const world = await openWorld()
    const ear = await connectTo(world, '?symbols=AAPLc&types=transfer&min_shares=10')
    await ear.hear('live')
    const share = 100_000_000n
    const move = (shares: bigint) => {
      world.devnet.emit({ address: world.devnet.list.addressOf('AAPLc'), topics: [TOPIC], data: '0x' })
      world.devnet.transfer({ symbol: 'AAPLc', raw: shares * share })
      world.devnet.flash()
    }
    const heardAs = (amount: string) => ear.hear('transfer', (update) => update.amount === amount)
    move(1n)
    move(11n)
    await heardAs('11')
    ear.send({ type: 'subscribe', req: 1, min_shares: '2' })
    await answered(ear)
    move(1n)
    move(3n)
    await heardAs('3')
    ear.send({ type: 'subscribe', req: 2, min_shares: null, types: ['transfer', 'log'] })
    await answered(ear)
    move(1n)
    await heardAs('1')
    await ear.hear('log')
    ear.send({ type: 'subscribe', req: 3, types: null })
    await answered(ear)
    move(4n)
    move(5n)
    await heardAs('5')
    expect(tapeOf(ear).map((update) => (update.type === 'transfer' ? update.amount : update.type))).toEqual([
      '11',
      '3',
      'log',
      '1',
      '4',
      '5',
    ])
    expect(ear.all('subscribed').map(({ symbols }) => symbols)).toEqual(Array(4).fill(['AAPLc']))
    expect(ear.all('snapshot').length).toBe(1)
  })

  it('says since and stage only at the first subscription', async () => {
    const world = await openWorld()
    const ear = await connectTo(world, '?symbols=AAPLc&types=transfer')
    await ear.hear('live')
    ear.send({ type: 'subscribe', req: 1, symbols: ['TSLAc'], since: 'start' })
    expect(await ear.hear('error', ({ req }) => req === 1)).toMatchObject({ code: 400, reason: 'since_not_first' })
    ear.send({ type: 'subscribe', req: 2, symbols: ['TSLAc'], stage: 'sealed' })
    expect(await ear.hear('error', ({ req }) => req === 2)).toMatchObject({ code: 400, reason: 'stage_not_first' })
    ear.send({ type: 'list', req: 3 })
    expect(await ear.hear('subscribed', ({ req }) => req === 3)).toMatchObject({ symbols: ['AAPLc'] })
  })

  it('lists * as *, takes no single symbol out of it, and takes * out whole', async () => {
    const world = await openWorld()
    const ear = await connectTo(world, '?symbols=*&types=transfer')
    await ear.hear('live')
    expect(await ear.hear('subscribed')).toMatchObject({ symbols: ['*'] })
    ear.send({ type: 'unsubscribe', req: 1, symbols: ['AAPLc'] })
    expect(await ear.hear('error')).toMatchObject({ req: 1, code: 400 })
    ear.send({ type: 'unsubscribe', req: 2, symbols: ['*'] })
    expect(await ear.hear('unsubscribed')).toMatchObject({ symbols: ['*'] })
    transfer(world, 'AAPLc')
    ear.send({ type: 'subscribe', req: 3, symbols: ['TSLAc'] })
    expect(await ear.hear('subscribed', ({ req }) => req === 3)).toMatchObject({ symbols: ['TSLAc'] })
    transfer(world, 'TSLAc')
    expect(await ear.hear('transfer')).toMatchObject({ symbol: 'TSLAc' })
  })

  it('does what was said while it began right after live', async () => {
    const world = await openWorld()
    const first = await connectTo(world, '?symbols=AAPLc&types=transfer')
    const { id } = await first.hear('live')
    transfer(world, 'AAPLc', 300)
    await first.until(() => first.all('transfer').length === 300)
    const ear = await connectTo(world)
    ear.send({ type: 'subscribe', req: 1, symbols: ['AAPLc'], types: ['transfer'], since: id })
    ear.send({ type: 'subscribe', req: 2, symbols: ['TSLAc'] })
    ear.send({ type: 'unsubscribe', req: 3, symbols: ['AAPLc'] })
    ear.send({ type: 'ping', req: 4 })
    await ear.hear('pong')
    const types = typesOf(ear.heard)
    expect(types.slice(0, 2)).toEqual(['hello', 'subscribed'])
    expect(types.slice(2, 302)).toEqual(Array(300).fill('transfer'))
    expect(types.slice(302)).toEqual(['live', 'subscribed', 'snapshot', 'unsubscribed', 'pong'])
    expect(ear.all('subscribed')[1]).toMatchObject({ req: 2, symbols: ['AAPLc', 'TSLAc'] })
    transfer(world, 'AAPLc')
    transfer(world, 'TSLAc')
    expect(
      await ear.hear('transfer', (update) => seqOf(update.id) > seqOf(first.all('transfer')[299]?.id)),
    ).toMatchObject({ symbol: 'TSLAc' })
  })
})

describe('a bad message', () => {
  it('gets an error that names what is wrong, and the connection stays', async () => {
    const world = await openWorld()
    const ear = await connectTo(world)
    const bad: readonly (readonly [unknown, RegExp])[] = [
      ['{"type":', /JSON/],
      ['[]', /object/],
      [{ type: 'shout', req: 7 }, /subscribe/],
      [{ type: 'subscribe', symbols: [] }, /symbol/],
      [{ type: 'subscribe', symbols: ['AAPLc'], types: ['dividends'] }, /dividends/],
      [{ type: 'subscribe', symbols: ['AAPLc'], since: 'yesterday' }, /since/],
      [Buffer.from('{"type":"ping"}'), /binary/],
    ]
    for (const [index, [message, says]] of bad.entries()) {
      ear.send(message)
      await ear.until(() => ear.all('error').length === index + 1, `the error of ${String(message)}`)
      expect(ear.all('error')[index]).toMatchObject({ code: 400, message: expect.stringMatching(says) })
    }
    expect(ear.all('error')[2]).toMatchObject({ req: 7 })
    ear.send({ type: 'subscribe', symbols: ['AAPLc'] })
    await ear.hear('live')
  })

  it('ends the connection if it is the tenth in a row, and not if a good one came between', async () => {
    const world = await openWorld()
    const ear = await connectTo(world, '?symbols=AAPLc')
    const { id } = await ear.hear('live')
    for (let time = 0; time < 9; time += 1) ear.send('nonsense')
    await answered(ear)
    for (let time = 0; time < 10; time += 1) ear.send('nonsense')
    const { code, reason } = await ear.ended
    expect({ code, reason }).toEqual({ code: 4000, reason: `protocol ${id}` })
    expect(ear.all('error').length).toBe(19)
    expect(ear.messages.at(-1)).toMatchObject({ type: 'bye', id, reason: 'protocol' })
  })

  it('of more than 4 KiB ends the connection with 1009, one of 4 KiB does not', async () => {
    const world = await openWorld()
    const ear = await connectTo(world)
    const long = JSON.stringify({ type: 'ping', req: 1, more: '' })
    ear.send(JSON.stringify({ type: 'ping', req: 1, more: 'x'.repeat(4_096 - long.length) }))
    await ear.hear('pong')
    ear.send(JSON.stringify({ type: 'ping', req: 2, more: 'x'.repeat(4_097 - long.length) }))
    expect(await ear.ended).toMatchObject({ code: 1009 })
  })
})

describe('the handshake', () => {
  it('selects the subprotocol only where it is offered, and compresses nothing', async () => {
    const { relay } = await openWorld()
    const offering = async (...protocols: string[]) => {
      const socket = new WebSocket(relay.wsUrl, protocols)
      onTestFinished(() => socket.terminate())
      await once(socket, 'open')
      return { protocol: socket.protocol, extensions: socket.extensions }
    }
    expect(await offering()).toEqual({ protocol: '', extensions: '' })
    expect(await offering('other', 'stocktape.v1')).toEqual({ protocol: 'stocktape.v1', extensions: '' })
    const headers = { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
    const key = Buffer.alloc(16).toString('base64')
    const answer = await say(relay.url, '/v1/ws', {
      ...headers,
      'sec-websocket-key': key,
      'sec-websocket-protocol': 'x',
    })
    expect(answer.head).toMatch(/^HTTP\/1.1 101 /)
    expect(answer.head.toLowerCase()).not.toContain('sec-websocket-protocol')
  })

  it.each([
    ['another path', '/v1/nothing', 'websocket', 404],
    ['another protocol', '/v1/ws', 'h2c', 400],
    ['another protocol on another path', '/v1/stream/AAPLc', 'h2c', 400],
  ])('with %s gets a plain answer and is closed', async (_, path, upgrade, status) => {
    const { relay } = await openWorld()
    const { head, ended } = await say(relay.url, path, {
      connection: 'upgrade',
      upgrade,
      'sec-websocket-version': '13',
      'sec-websocket-key': Buffer.alloc(16).toString('base64'),
    })
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(head).toMatch(/^access-control-allow-origin: \*\r?$/m)
    const body = await ended
    expect(JSON.parse(body.slice(body.indexOf('{')))).toMatchObject({ code: status })
  })

  it.each([
    ['without a key', { 'sec-websocket-version': '13' }],
    ['of a version that is none', { 'sec-websocket-version': '7', 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' }],
  ])('%s is a mistake like any other', async (_, headers) => {
    const { relay } = await openWorld()
    const { head, ended } = await say(relay.url, '/v1/ws', { connection: 'upgrade', upgrade: 'websocket', ...headers })
    expect(head).toMatch(/^HTTP\/1.1 400 /)
    const body = await ended
    expect(JSON.parse(body.slice(body.indexOf('{')))).toMatchObject({
      details: [{ '@type': 'stocktape/bad_handshake' }],
    })
  })

  it('that is not even HTTP is a mistake like any other', async () => {
    const { relay } = await openWorld()
    const socket = connect(Number(new URL(relay.url).port), '127.0.0.1')
    let heard = ''
    socket.setEncoding('utf8').on('data', (text: string) => {
      heard += text
    })
    socket.write('GARBAGE\r\n\r\n')
    await once(socket, 'close')
    expect(heard).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/)
    expect(heard).toMatch(/^access-control-allow-origin: \*\r$/m)
    expect(JSON.parse(heard.slice(heard.indexOf('{')))).toMatchObject({
      details: [{ '@type': 'stocktape/bad_request' }],
    })
  })

  it('that is none is told to upgrade', async () => {
    const { relay } = await openWorld()
    expect((await ask(`${relay.url}/v1/ws`)).headers.get('upgrade')).toBe('websocket')
    expect(await ask(`${relay.url}/v1/ws`, { method: 'POST' })).toMatchObject({ status: 405 })
    expect(await ask(`${relay.url}/v1/ws`)).toMatchObject({ status: 426, json: { code: 426 } })
  })

  it('where the house is full ends with 4100', async () => {
    const world = await openWorld({ CLIENTS_BOUND: '1' })
    const first = await connectTo(world, '?symbols=AAPLc')
    await first.hear('live')
    const second = await connectTo(world, '?symbols=AAPLc')
    expect(await second.ended).toMatchObject({ code: 4100, reason: expect.stringMatching(/^full/) })
  })
})

describe('a URL that names nothing that can be heard', () => {
  it.each([
    ['?symbols=APPL', { code: 404, reason: 'unknown_symbol', details: [{ suggest: ['AAPLc'] }] }],
    ['?symbols=', { code: 400, reason: 'bad_parameter' }],
  ])('is an error after hello, and a subscription may follow: %s', async (query, error) => {
    const world = await openWorld()
    const ear = await connectTo(world, query)
    expect(await ear.hear('error')).toMatchObject(error)
    expect(ear.messages.map(({ type }) => type)).toEqual(['hello', 'error'])
    ear.send({ type: 'subscribe', symbols: ['AAPLc'], since: 'start' })
    await ear.hear('live')
  })
})

describe('a heartbeat', () => {
  it('comes only once there is a place in the stream to name', async () => {
    const world = await openWorld({ HEARTBEAT_MS: '100' })
    const ear = await connectTo(world)
    const other = await connectTo(world, '?symbols=AAPLc')
    await other.until(() => other.all('heartbeat').length >= 3)
    expect(ear.messages.map(({ type }) => type)).toEqual(['hello'])
    ear.send({ type: 'subscribe', symbols: ['AAPLc'] })
    await ear.hear('heartbeat')
  })
})

describe('a subscription for which there is no room', () => {
  it('is none that takes the place of its own', async () => {
    const world = await openWorld({ SELECTIONS_BOUND: '1' })
    const ear = await connectTo(world, '?symbols=AAPLc&min_value=1')
    await ear.hear('live')
    ear.send({ type: 'subscribe', req: 7, min_value: '2' })
    await ear.hear('subscribed', ({ req }) => req === 7)
    expect(ear.all('error')).toEqual([])
  })

  it('is an error after hello where the URL asks for it, and the next one may be served', async () => {
    const world = await openWorld({ SELECTIONS_BOUND: '1' })
    const first = await connectTo(world, '?symbols=AAPLc&min_value=1')
    await first.hear('live')
    const second = await connectTo(world, '?symbols=AAPLc&min_value=2')
    expect(await second.hear('error')).toMatchObject({ code: 429, reason: 'too_many_selections' })
    expect(second.messages.map(({ type }) => type)).toEqual(['hello', 'error'])
    second.send({ type: 'subscribe', req: 1, symbols: ['AAPLc'] })
    await second.hear('live')
    expect(second.messages.slice(2).map(({ type }) => type)).toEqual(['subscribed', 'snapshot', 'live'])
  })

  it('is an error before the first list, and served after it', async () => {
    const devnet = await openDevnet()
    devnet.weather.list = { status: 500 }
    const relay = await launchRelay(devnet)
    onTestFinished(() => relay.stop())
    const ear = await connectTo({ devnet, relay }, '?symbols=AAPLc')
    expect(await ear.hear('error')).toMatchObject({ code: 503, reason: 'no_list' })
    devnet.weather.list = undefined
    await relay.listed
    ear.send({ type: 'subscribe', symbols: ['AAPLc'] })
    await ear.hear('live')
  })
})

describe('an end', () => {
  it('of the relay is a bye and 4200 with the position to come back from', async () => {
    const world = await openWorld()
    const ear = await connectTo(world, '?symbols=AAPLc')
    const unsubscribed = await connectTo(world)
    await ear.hear('live')
    await unsubscribed.hear('hello')
    transfer(world)
    const { id } = await ear.hear('transfer')
    await world.relay.stop()
    expect(await ear.ended).toEqual({ code: 4200, reason: `going_away ${id}` })
    expect(ear.messages.at(-1)).toMatchObject({ type: 'bye', id, reason: 'going_away', retry_ms: expect.any(Number) })
    expect(await unsubscribed.ended).toMatchObject({ code: 4200 })
    expect(unsubscribed.messages.at(-1)).toMatchObject({ type: 'bye' })
  })

  it('comes to who answers no ping', async () => {
    const world = await openWorld()
    const socket = new WebSocket(`${world.relay.wsUrl}?symbols=AAPLc&heartbeat=1`, { autoPong: false })
    onTestFinished(() => socket.terminate())
    const [code, reason] = await once(socket, 'close')
    expect({ code, reason: String(reason) }).toEqual({
      code: 4201,
      reason: expect.stringMatching(/^no_pong \w+\.\d+$/),
    })
  })

  it('comes to who reads too slowly, with its position, and nobody else notices', async () => {
    const world = await openWorld({ BACKLOG_BOUND_BYTES: '16384' })
    const { devnet, relay } = world
    const other = await connectTo(world, '?symbols=AAPLc&types=log')
    await other.hear('live')
    const slow = new WebSocket(`${relay.wsUrl}?symbols=AAPLc&types=log`)
    onTestFinished(() => slow.terminate())
    const told: string[] = []
    slow.on('message', (data) => {
      const message = JSON.parse(String(data))
      if (message.type === 'log') told.push(message.id)
      if (message.type === 'live') slow.pause()
    })
    await new Promise<void>((resolve) => {
      slow.on('message', () => slow.isPaused && resolve())
    })
    const address = devnet.list.addressOf('AAPLc')
    const shownOut = async () => /stocktape_shown_out_total 1\b/.test((await ask(`${relay.url}/metrics`)).text)
    let sent = 0
    while (!(await shownOut())) {
      for (let log = 0; log < 20; log += 1) devnet.emit({ address, topics: [TOPIC], data: `0x${'5a'.repeat(16_000)}` })
      devnet.flash()
      sent += 20
      await other.until(() => other.all('log').length === sent)
    }
    const closed = once(slow, 'close')
    slow.resume()
    const [code, reason] = await closed
    const [word, position] = String(reason).split(' ')
    expect({ code, word }).toEqual({ code: 4202, word: 'too_slow' })
    const resumed = await connectTo(world, `?symbols=AAPLc&types=log&since=${position}`)
    await resumed.hear('live')
    expect([...told, ...tapeOf(resumed).map(({ id }) => id)]).toEqual(tapeOf(other).map(({ id }) => id))
  })
})

/** Says a request over a bare socket; the head of the answer, and all of it once the other side has closed. */
async function say(url: string, path: string, headers: Record<string, string>) {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname).setEncoding('latin1')
  onTestFinished(() => void socket.destroy())
  const lines = Object.entries({ host: 'localhost', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
  let text = ''
  const ended = new Promise<string>((resolve) => socket.on('end', () => resolve(text)))
  await new Promise<void>((resolve) =>
    socket.on('data', (chunk) => {
      text += chunk
      if (text.includes('\r\n\r\n')) resolve()
    }),
  )
  return { head: text.slice(0, text.indexOf('\r\n\r\n')), ended }
}
