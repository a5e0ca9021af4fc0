import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { openRelayBeforeList } from '../support/in-process-relay.ts'
import { listenWs, type TestListener } from '../support/test-listener.ts'
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

const TOPIC = `0x${'77'.repeat(32)}` as const

/** Opens a listener that closes with the test. */
const connectTo = ({ relay }: TestStack, query = '', options: Parameters<typeof listenWs>[1] = {}): Promise<TestListener> =>
  closeAfterTest(listenWs(`${relay.wsUrl}${query}`, options))

/** Resolves once every earlier message was answered. */
const waitForAnswers = async (listener: TestListener): Promise<void> => {
  const req = `after ${listener.received.length}`
  listener.send({ type: 'ping', req })
  await listener.waitFor('pong', (pong) => pong.req === req)
}

describe('a socket with a selection in its URL', () => {
  it('needs no message', async () => {
    const stack = await openTestStack()
    const listener = await connectTo(stack, '?symbols=aapl,TSLAc&types=transfer,nav')
    const { id } = await listener.waitFor('live')
    expect(messageTypesOf(listener.received)).toEqual(['hello', 'subscribed', 'snapshot', 'snapshot', 'live'])
    expect(await listener.waitFor('hello')).toMatchObject({ id, end: id })
    expect(listener.messagesOf('subscribed')).toMatchObject([
      { id, symbols: ['AAPLc', 'TSLAc'], types: ['transfer', 'nav'], rejected: [], resume: 'none' },
    ])
    transfer(stack, 'NVDAc')
    transfer(stack, 'TSLAc')
    expect(await listener.waitFor('transfer')).toMatchObject({ symbol: 'TSLAc' })
  })

  it('resumes after a position, without snapshots', async () => {
    const stack = await openTestStack()
    const first = await connectTo(stack, '?symbols=AAPLc')
    const { id } = await first.waitFor('live')
    transfer(stack, 'AAPLc', 2)
    await first.until(() => first.messagesOf('transfer').length === 2)
    const listener = await connectTo(stack, `?symbols=AAPLc&since=${id}`)
    expect(await listener.waitFor('live')).toMatchObject({ replayed: 2, id: first.messagesOf('transfer')[1]?.id })
    expect(messageTypesOf(listener.received)).toEqual(['hello', 'subscribed', 'transfer', 'transfer', 'live'])
    expect(await listener.waitFor('subscribed')).toMatchObject({ resume: 'full', id })
  })

  it('receives an error after hello for an invalid selection, and stays open', async () => {
    const stack = await openTestStack()
    const listener = await connectTo(stack, '?symbols=AAPLc&types=dividends')
    expect(await listener.waitFor('error')).toMatchObject({ code: 400, message: expect.stringContaining('types') })
    expect(messageTypesOf(listener.received)).toEqual(['hello', 'error'])
    listener.send({ type: 'subscribe', symbols: ['AAPLc'] })
    await listener.waitFor('live')
  })
})

describe('a session', () => {
  it('begins with hello without a position, and continues from subscribe to live', async () => {
    const stack = await openTestStack()
    const listener = await connectTo(stack)
    expect(await listener.waitFor('hello')).toMatchObject({ id: null, protocol: 'stocktape.v1', heartbeat_s: 15 })
    listener.send({ type: 'subscribe', req: 1, symbols: ['AAPLc', 'isin:US88160R1014'], types: ['transfer'] })
    const live = await listener.waitFor('live')
    expect(messageTypesOf(listener.received)).toEqual(['hello', 'subscribed', 'snapshot', 'snapshot', 'live'])
    expect(await listener.waitFor('subscribed')).toMatchObject({ req: 1, id: live.id, symbols: ['AAPLc', 'TSLAc'] })
    listener.send({ type: 'list', req: 'two' })
    expect(await listener.waitFor('subscribed', ({ req }) => req === 'two')).toMatchObject({
      symbols: ['AAPLc', 'TSLAc'],
      rejected: [],
      resume: 'none',
    })
    listener.send({ type: 'unsubscribe', req: 3, symbols: ['TSLAc', 'NVDAc'] })
    expect(await listener.waitFor('unsubscribed')).toEqual({ type: 'unsubscribed', req: 3, symbols: ['TSLAc'] })
    listener.send({ type: 'ping', req: 4 })
    expect(await listener.waitFor('pong')).toMatchObject({ req: 4 })
    transfer(stack, 'TSLAc')
    transfer(stack, 'AAPLc')
    expect(await listener.waitFor('transfer')).toMatchObject({ symbol: 'AAPLc' })
  })

  it('adds symbols from now on, with their snapshots and no second live', async () => {
    const stack = await openTestStack()
    const listener = await connectTo(stack, '?symbols=AAPLc&types=transfer')
    await listener.waitFor('live')
    const other = await connectTo(stack, '?symbols=TSLAc')
    await other.waitFor('live')
    transfer(stack, 'TSLAc')
    await other.waitFor('transfer')
    listener.send({ type: 'subscribe', req: 1, symbols: ['TSLAc', 'AAPLc'] })
    const subscribed = await listener.waitFor('subscribed', ({ req }) => req === 1)
    expect(subscribed).toMatchObject({ symbols: ['AAPLc', 'TSLAc'], resume: 'none' })
    transfer(stack, 'TSLAc', 1, 7n)
    expect(await listener.waitFor('transfer')).toMatchObject({ raw: '7' })
    expect(listener.messagesOf('snapshot').map(({ symbol }) => symbol)).toEqual(['AAPLc', 'TSLAc'])
    expect(listener.messagesOf('snapshot')[1]?.id).toBe(subscribed.id)
    expect(listener.messagesOf('live').length).toBe(1)
    listener.send({ type: 'subscribe', req: 2, symbols: ['NVDAc'], snapshot: false })
    await listener.waitFor('subscribed', ({ req }) => req === 2)
    await waitForAnswers(listener)
    expect(listener.messagesOf('snapshot').length).toBe(2)
  })

  it('rejects unknown symbols and receives the others', async () => {
    const stack = await openTestStack()
    const listener = await connectTo(stack)
    listener.send({ type: 'subscribe', symbols: ['APPL', 'TSLAc', `0x${'12'.repeat(20)}`] })
    expect(await listener.waitFor('subscribed')).toMatchObject({
      symbols: ['TSLAc'],
      rejected: [
        { symbol: 'APPL', reason: 'unknown_symbol', suggest: ['AAPLc'] },
        { symbol: `0x${'12'.repeat(20)}`, reason: 'unknown_symbol' },
      ],
    })
    await listener.waitFor('live')
  })

  it('replaces the options of the message and clears those that are null', async () => {
    const stack = await openTestStack()
    const listener = await connectTo(stack, '?symbols=AAPLc&types=transfer&min_shares=10')
    await listener.waitFor('live')
    const share = 100_000_000n
    const move = (shares: bigint) => {
      stack.devnet.emit({ address: stack.devnet.list.addressOf('AAPLc'), topics: [TOPIC], data: '0x' })
      stack.devnet.transfer({ symbol: 'AAPLc', raw: shares * share })
      stack.devnet.makeFlashblock()
    }
    const heardAs = (amount: string) => listener.waitFor('transfer', (update) => update.amount === amount)
    move(1n)
    move(11n)
    await heardAs('11')
    listener.send({ type: 'subscribe', req: 1, min_shares: '2' })
    await waitForAnswers(listener)
    move(1n)
    move(3n)
    await heardAs('3')
    listener.send({ type: 'subscribe', req: 2, min_shares: null, types: ['transfer', 'log'] })
    await waitForAnswers(listener)
    move(1n)
    await heardAs('1')
    await listener.waitFor('log')
    listener.send({ type: 'subscribe', req: 3, types: null })
    await waitForAnswers(listener)
    move(4n)
    move(5n)
    await heardAs('5')
    expect(tapeUpdatesOf(listener).map((update) => (update.type === 'transfer' ? update.amount : update.type))).toEqual([
      '11',
      '3',
      'log',
      '1',
      '4',
      '5',
    ])
    expect(listener.messagesOf('subscribed').map(({ symbols }) => symbols)).toEqual(Array(4).fill(['AAPLc']))
    expect(listener.messagesOf('snapshot').length).toBe(1)
  })

  it('accepts since and stage only in the first subscription', async () => {
    const stack = await openTestStack()
    const listener = await connectTo(stack, '?symbols=AAPLc&types=transfer')
    await listener.waitFor('live')
    listener.send({ type: 'subscribe', req: 1, symbols: ['TSLAc'], since: 'start' })
    expect(await listener.waitFor('error', ({ req }) => req === 1)).toMatchObject({ code: 400, reason: 'since_not_first' })
    listener.send({ type: 'subscribe', req: 2, symbols: ['TSLAc'], stage: 'sealed' })
    expect(await listener.waitFor('error', ({ req }) => req === 2)).toMatchObject({ code: 400, reason: 'stage_not_first' })
    listener.send({ type: 'list', req: 3 })
    expect(await listener.waitFor('subscribed', ({ req }) => req === 3)).toMatchObject({ symbols: ['AAPLc'] })
  })

  it('lists * as *, cannot remove a single symbol from it, and removes * as a whole', async () => {
    const stack = await openTestStack()
    const listener = await connectTo(stack, '?symbols=*&types=transfer')
    await listener.waitFor('live')
    expect(await listener.waitFor('subscribed')).toMatchObject({ symbols: ['*'] })
    listener.send({ type: 'unsubscribe', req: 1, symbols: ['AAPLc'] })
    expect(await listener.waitFor('error')).toMatchObject({ req: 1, code: 400 })
    listener.send({ type: 'unsubscribe', req: 2, symbols: ['*'] })
    expect(await listener.waitFor('unsubscribed')).toMatchObject({ symbols: ['*'] })
    transfer(stack, 'AAPLc')
    listener.send({ type: 'subscribe', req: 3, symbols: ['TSLAc'] })
    expect(await listener.waitFor('subscribed', ({ req }) => req === 3)).toMatchObject({ symbols: ['TSLAc'] })
    transfer(stack, 'TSLAc')
    expect(await listener.waitFor('transfer')).toMatchObject({ symbol: 'TSLAc' })
  })

  it('applies messages that arrive before live right after it', async () => {
    const stack = await openTestStack()
    const first = await connectTo(stack, '?symbols=AAPLc&types=transfer')
    const { id } = await first.waitFor('live')
    transfer(stack, 'AAPLc', 300)
    await first.until(() => first.messagesOf('transfer').length === 300)
    const listener = await connectTo(stack)
    listener.send({ type: 'subscribe', req: 1, symbols: ['AAPLc'], types: ['transfer'], since: id })
    listener.send({ type: 'subscribe', req: 2, symbols: ['TSLAc'] })
    listener.send({ type: 'unsubscribe', req: 3, symbols: ['AAPLc'] })
    listener.send({ type: 'ping', req: 4 })
    await listener.waitFor('pong')
    const types = messageTypesOf(listener.received)
    expect(types.slice(0, 2)).toEqual(['hello', 'subscribed'])
    expect(types.slice(2, 302)).toEqual(Array(300).fill('transfer'))
    expect(types.slice(302)).toEqual(['live', 'subscribed', 'snapshot', 'unsubscribed', 'pong'])
    expect(listener.messagesOf('subscribed')[1]).toMatchObject({ req: 2, symbols: ['AAPLc', 'TSLAc'] })
    transfer(stack, 'AAPLc')
    transfer(stack, 'TSLAc')
    expect(
      await listener.waitFor('transfer', (update) => sequenceOf(update.id) > sequenceOf(first.messagesOf('transfer')[299]?.id)),
    ).toMatchObject({ symbol: 'TSLAc' })
  })
})

describe('an invalid message', () => {
  it('gets an error with the reason, and the connection stays', async () => {
    const stack = await openTestStack()
    const listener = await connectTo(stack)
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
      listener.send(message)
      await listener.until(() => listener.messagesOf('error').length === index + 1, `the error of ${String(message)}`)
      expect(listener.messagesOf('error')[index]).toMatchObject({ code: 400, message: expect.stringMatching(says) })
    }
    expect(listener.messagesOf('error')[2]).toMatchObject({ req: 7 })
    listener.send({ type: 'subscribe', symbols: ['AAPLc'] })
    await listener.waitFor('live')
  })

  it('closes the connection as the tenth in a row, but not after a valid one', async () => {
    const stack = await openTestStack()
    const listener = await connectTo(stack, '?symbols=AAPLc')
    const { id } = await listener.waitFor('live')
    for (let time = 0; time < 9; time += 1) listener.send('nonsense')
    await waitForAnswers(listener)
    for (let time = 0; time < 10; time += 1) listener.send('nonsense')
    const { code, reason } = await listener.closed
    expect({ code, reason }).toEqual({ code: 4000, reason: `protocol ${id}` })
    expect(listener.messagesOf('error').length).toBe(19)
    expect(listener.messages.at(-1)).toMatchObject({ type: 'bye', id, reason: 'protocol' })
  })

  it('of more than 4 KiB closes the connection with 1009, one of 4 KiB does not', async () => {
    const stack = await openTestStack()
    const listener = await connectTo(stack)
    listener.send('{"type":"ping"}'.padEnd(4_096))
    await listener.waitFor('pong')
    listener.send('{"type":"ping"}'.padEnd(4_097))
    expect(await listener.closed).toMatchObject({ code: 1009 })
  })
})

describe('the handshake', () => {
  it('selects the subprotocol and compression only where they are offered', async () => {
    const { relay } = await openTestStack()
    const offering = async (...protocols: string[]) => {
      const socket = new WebSocket(relay.wsUrl, protocols, { perMessageDeflate: protocols.length > 0 })
      onTestFinished(() => socket.terminate())
      await once(socket, 'open')
      return { protocol: socket.protocol, extensions: socket.extensions }
    }
    expect(await offering()).toEqual({ protocol: '', extensions: '' })
    expect(await offering('other', 'stocktape.v1')).toEqual({ protocol: 'stocktape.v1', extensions: 'permessage-deflate' })
    const headers = { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
    const key = Buffer.alloc(16).toString('base64')
    const answer = await sendUpgradeRequest(relay.url, '/v1/ws', {
      ...headers,
      'sec-websocket-key': key,
      'sec-websocket-protocol': 'x',
    })
    expect(answer.head).toMatch(/^HTTP\/1.1 101 /)
    expect(answer.head.toLowerCase()).not.toContain('sec-websocket-protocol')
  })

  it.each([['another path', '/v1/nothing', 'websocket', 404]])(
    'with %s gets a plain answer and is closed',
    async (_, path, upgrade, status) => {
      const { relay } = await openTestStack()
      const { head, ended } = await sendUpgradeRequest(relay.url, path, {
        connection: 'upgrade',
        upgrade,
        'sec-websocket-version': '13',
        'sec-websocket-key': Buffer.alloc(16).toString('base64'),
      })
      expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
      expect(head).toMatch(/^access-control-allow-origin: \*\r?$/m)
      const body = await ended
      expect(JSON.parse(body.slice(body.indexOf('{')))).toMatchObject({ code: status })
    },
  )

  it.each([
    ['without a key', { 'sec-websocket-version': '13' }],
    ['with an unknown version', { 'sec-websocket-version': '7', 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' }],
  ])('%s is refused with 400', async (_, headers) => {
    const { relay } = await openTestStack()
    const { head, ended } = await sendUpgradeRequest(relay.url, '/v1/ws', {
      connection: 'upgrade',
      upgrade: 'websocket',
      ...headers,
    })
    expect(head).toMatch(/^HTTP\/1.1 400 /)
    const body = await ended
    expect(JSON.parse(body.slice(body.indexOf('{')))).toMatchObject({ details: [{ '@type': 'stocktape/bad_handshake' }] })
  })

  it('that is not HTTP is refused with 400', async () => {
    const { relay } = await openTestStack()
    const socket = connect(Number(new URL(relay.url).port), '127.0.0.1')
    let received = ''
    socket.setEncoding('utf8').on('data', (text: string) => {
      received += text
    })
    socket.write('GARBAGE\r\n\r\n')
    await once(socket, 'close')
    expect(received).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/)
    expect(received).toMatch(/^access-control-allow-origin: \*\r$/m)
    expect(JSON.parse(received.slice(received.indexOf('{')))).toMatchObject({ details: [{ '@type': 'stocktape/bad_request' }] })
  })

  it('that is a plain request is refused with 426', async () => {
    const { relay } = await openTestStack()
    expect((await fetchDocumented(`${relay.url}/v1/ws`)).headers.get('upgrade')).toBe('websocket')
    expect(await fetchDocumented(`${relay.url}/v1/ws`, { method: 'POST' })).toMatchObject({ status: 405 })
    expect(await fetchDocumented(`${relay.url}/v1/ws`)).toMatchObject({ status: 426, json: { code: 426 } })
  })

  it('is closed with 4100 where MAX_CLIENTS is reached', async () => {
    const stack = await openTestStack({ MAX_CLIENTS: '1' })
    const first = await connectTo(stack, '?symbols=AAPLc')
    await first.waitFor('live')
    const second = await connectTo(stack, '?symbols=AAPLc')
    expect(await second.closed).toMatchObject({ code: 4100, reason: expect.stringMatching(/^full/) })
  })
})

describe('a URL with an invalid selection', () => {
  it.each([
    ['?symbols=APPL', { code: 404, reason: 'unknown_symbol', details: [{ suggest: ['AAPLc'] }] }],
    ['?symbols=', { code: 400, reason: 'bad_parameter' }],
  ])('gets an error after hello and may still subscribe: %s', async (query, error) => {
    const stack = await openTestStack()
    const listener = await connectTo(stack, query)
    expect(await listener.waitFor('error')).toMatchObject(error)
    expect(listener.messages.map(({ type }) => type)).toEqual(['hello', 'error'])
    listener.send({ type: 'subscribe', symbols: ['AAPLc'], since: 'start' })
    await listener.waitFor('live')
  })
})

describe('a heartbeat', () => {
  it('arrives only once the stream has a position', async () => {
    const stack = await openTestStack({ HEARTBEAT: '100ms' })
    const listener = await connectTo(stack)
    const other = await connectTo(stack, '?symbols=AAPLc')
    await other.until(() => other.messagesOf('heartbeat').length >= 3)
    expect(listener.messages.map(({ type }) => type)).toEqual(['hello'])
    listener.send({ type: 'subscribe', symbols: ['AAPLc'] })
    await listener.waitFor('heartbeat')
  })
})

describe('a subscription over MAX_SELECTIONS', () => {
  it('is not counted beside the one that it replaces', async () => {
    const stack = await openTestStack({ MAX_SELECTIONS: '1' })
    const listener = await connectTo(stack, '?symbols=AAPLc&min_value=1')
    await listener.waitFor('live')
    listener.send({ type: 'subscribe', req: 7, min_value: '2' })
    await listener.waitFor('subscribed', ({ req }) => req === 7)
    expect(listener.messagesOf('error')).toEqual([])
  })

  it('is an error after hello for the URL, and the next one may be served', async () => {
    const stack = await openTestStack({ MAX_SELECTIONS: '1' })
    const first = await connectTo(stack, '?symbols=AAPLc&min_value=1')
    await first.waitFor('live')
    const second = await connectTo(stack, '?symbols=AAPLc&min_value=2')
    expect(await second.waitFor('error')).toMatchObject({ code: 429, reason: 'too_many_selections' })
    expect(second.messages.map(({ type }) => type)).toEqual(['hello', 'error'])
    second.send({ type: 'subscribe', req: 1, symbols: ['AAPLc'] })
    await second.waitFor('live')
    expect(second.messages.slice(2).map(({ type }) => type)).toEqual(['subscribed', 'snapshot', 'live'])
  })

  it('is an error before the first list and is served after it', async () => {
    const devnet = await openDevnet()
    devnet.faults.list = { status: 500 }
    const relay = await openRelayBeforeList(devnet)
    onTestFinished(() => relay.stop())
    const listener = await connectTo({ devnet, relay }, '?symbols=AAPLc')
    expect(await listener.waitFor('error')).toMatchObject({ code: 503, reason: 'no_list' })
    devnet.faults.list = undefined
    await relay.listed
    listener.send({ type: 'subscribe', symbols: ['AAPLc'] })
    await listener.waitFor('live')
  })
})

describe('a close', () => {
  it('by a stopping relay is a bye and 4200 with the position to resume from', async () => {
    const stack = await openTestStack()
    const listener = await connectTo(stack, '?symbols=AAPLc')
    const unsubscribed = await connectTo(stack)
    await listener.waitFor('live')
    await unsubscribed.waitFor('hello')
    transfer(stack)
    const { id } = await listener.waitFor('transfer')
    await stack.relay.stop()
    expect(await listener.closed).toEqual({ code: 4200, reason: `going_away ${id}` })
    expect(listener.messages.at(-1)).toMatchObject({ type: 'bye', id, reason: 'going_away', retry_ms: expect.any(Number) })
    expect(await unsubscribed.closed).toMatchObject({ code: 4200 })
    expect(unsubscribed.messages.at(-1)).toMatchObject({ type: 'bye' })
  })

  it('follows unanswered pings', async () => {
    const stack = await openTestStack()
    const socket = new WebSocket(`${stack.relay.wsUrl}?symbols=AAPLc&heartbeat=1`, { autoPong: false })
    onTestFinished(() => socket.terminate())
    const [code, reason] = await once(socket, 'close')
    expect({ code, reason: String(reason) }).toEqual({ code: 4201, reason: expect.stringMatching(/^no_pong \w+\.\d+$/) })
  })

  it('of a slow reader has its position, and affects no other listener', async () => {
    const stack = await openTestStack({ MAX_BACKLOG: '16KiB' })
    const { devnet, relay } = stack
    const other = await connectTo(stack, '?symbols=AAPLc&types=log')
    await other.waitFor('live')
    // These logs compress to almost nothing, which would fill no buffer.
    const slow = new WebSocket(`${relay.wsUrl}?symbols=AAPLc&types=log`, { perMessageDeflate: false })
    onTestFinished(() => slow.terminate())
    const published: string[] = []
    slow.on('message', (data) => {
      const message = JSON.parse(String(data))
      if (message.type === 'log') published.push(message.id)
      if (message.type === 'live') slow.pause()
    })
    await new Promise<void>((resolve) => {
      slow.on('message', () => slow.isPaused && resolve())
    })
    const address = devnet.list.addressOf('AAPLc')
    const disconnectedAsSlow = async () =>
      /stocktape_disconnects_total\{[^}]*reason="too_slow"[^}]*\} 1\b/.test((await fetchDocumented(`${relay.url}/metrics`)).text)
    let sent = 0
    while (!(await disconnectedAsSlow())) {
      for (let log = 0; log < 20; log += 1) devnet.emit({ address, topics: [TOPIC], data: `0x${'5a'.repeat(16_000)}` })
      devnet.makeFlashblock()
      sent += 20
      await other.until(() => other.messagesOf('log').length === sent)
    }
    const closed = once(slow, 'close')
    slow.resume()
    const [code, reason] = await closed
    const [word, position] = String(reason).split(' ')
    expect({ code, word }).toEqual({ code: 4202, word: 'too_slow' })
    const resumed = await connectTo(stack, `?symbols=AAPLc&types=log&since=${position}`)
    await resumed.waitFor('live')
    expect([...published, ...tapeUpdatesOf(resumed).map(({ id }) => id)]).toEqual(tapeUpdatesOf(other).map(({ id }) => id))
  })
})

/** Sends a request over a TCP socket; the head of the answer, and all of it once the relay closes. */
async function sendUpgradeRequest(url: string, path: string, headers: Record<string, string>) {
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
