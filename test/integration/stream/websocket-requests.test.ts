import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { listenWs, type TestListener } from '../../support/test-listener.ts'
import { messageTypesOf, openTestStack, sequenceOf, type TestStack, tapeUpdatesOf, transfer } from '../../support/test-stack.ts'
import { listenLive, waitForAnswers, wholeTokens } from './stream-listeners.ts'

/** The time within which a connection must subscribe. */
const IDLE_MS = 30_000
/** Messages sent while a subscription starts; fewer than the rate limit's burst. */
const EARLY = 45
/** Symbols of one connection. */
const SYMBOLS_BOUND = 200

const connect = async ({ relay }: TestStack, query = ''): Promise<TestListener> => {
  const listener = await listenWs(`${relay.wsUrl}${query}`)
  onTestFinished(() => listener.close())
  return listener
}

describe('a request', () => {
  it('for the default stage does not end the sealed view', async () => {
    const stack = await openTestStack()
    const listener = await connect(stack, '?symbols=AAPLc&types=transfer&stage=sealed')
    const plain = await connect(stack, '?symbols=AAPLc&types=transfer')
    for (const one of [listener, plain]) {
      await one.waitFor('live')
      one.send({ type: 'subscribe', req: 1, symbols: ['TSLAc'], stage: null, since: null })
      one.send({ type: 'list', req: 2 })
      await one.waitFor('subscribed', ({ req }) => req === 2)
    }
    expect(listener.messagesOf('error')).toMatchObject([{ req: 1, reason: 'stage_not_first' }])
    expect(listener.messagesOf('subscribed').at(-1)).toMatchObject({ symbols: ['AAPLc'], stage: 'sealed' })
    expect(plain.messagesOf('error')).toEqual([])
    expect(plain.messagesOf('subscribed').at(-1)).toMatchObject({ symbols: ['AAPLc', 'TSLAc'], stage: 'preconfirmed' })
  })

  it('to list or to ping is answered before any subscription', async () => {
    const stack = await openTestStack()
    const listener = await connect(stack)
    listener.send({ type: 'list', req: 1 })
    listener.send({ type: 'unsubscribe', req: 2, symbols: ['AAPLc'] })
    listener.send({ type: 'ping', req: 3 })
    await listener.waitFor('pong')
    expect(listener.messages.slice(1)).toMatchObject([
      { type: 'subscribed', req: 1, id: null, symbols: [], rejected: [], resume: 'none' },
      { type: 'unsubscribed', req: 2, symbols: [] },
      { type: 'pong', req: 3 },
    ])
    listener.send({ type: 'subscribe', symbols: ['AAPLc'], since: 'start', stage: 'sealed' })
    await listener.waitFor('live')
  })
})

describe('a request for symbols', () => {
  it('for more than 200 symbols in all is an error, and the others stay', async () => {
    const stack = await openTestStack()
    const contracts = Array.from({ length: SYMBOLS_BOUND }, (_, nth) => `0x${'b'.repeat(32)}${nth.toString(16).padStart(8, '0')}`)
    const all = await listenLive(stack, 'ws', 'symbols=*&types=token')
    for (const contract_address of contracts) stack.devnet.list.add({ contract_address, symbol: contract_address, decimals: 8 })
    await all.until(() => all.messagesOf('token').length === contracts.length)
    const listener = await listenLive(stack, 'ws', 'symbols=AAPLc&types=transfer')
    // A message of 4 KiB holds no more.
    const subscribe = (from: number, to: number, req: number) =>
      listener.send({ type: 'subscribe', req, symbols: contracts.slice(from, to), snapshot: false })
    for (const [req, from] of [0, 70, 140].entries()) subscribe(from, Math.min(from + 70, SYMBOLS_BOUND - 1), req)
    await listener.waitFor('subscribed', ({ req }) => req === 2)
    subscribe(SYMBOLS_BOUND - 1, SYMBOLS_BOUND, 3)
    expect(await listener.waitFor('error')).toMatchObject({ req: 3, code: 400, reason: 'too_many_symbols' })
    listener.send({ type: 'list', req: 4 })
    expect((await listener.waitFor('subscribed', ({ req }) => req === 4)).symbols).toHaveLength(SYMBOLS_BOUND)
  })
})

describe('options', () => {
  it('in the URL are defaults for the first subscription', async () => {
    const stack = await openTestStack()
    const first = await listenLive(stack, 'ws', 'symbols=*&types=transfer')
    transfer(stack, 'AAPLc', 1, wholeTokens(1))
    transfer(stack, 'AAPLc', 1, wholeTokens(20))
    await first.until(() => first.messagesOf('transfer').length === 2)
    const filtered = 'types=transfer&since=start&snapshot=false&min_shares=10'
    for (const [query, options, expected] of [
      [filtered, {}, ['transfer']],
      [filtered, { types: null, min_shares: '1', snapshot: true }, ['snapshot', 'token', 'transfer', 'transfer']],
      [`${filtered}&stage=sealed`, { since: null, stage: null, snapshot: null }, ['snapshot']],
    ] as const) {
      const listener = await connect(stack, `?${query}`)
      expect(messageTypesOf(listener.received)).toEqual(['hello'])
      listener.send({ type: 'subscribe', symbols: ['AAPLc'], ...options })
      await listener.waitFor('live')
      const shown = messageTypesOf(listener.received).filter((type) => ['snapshot', 'token', 'transfer'].includes(type))
      expect(shown, JSON.stringify(options)).toEqual(expected)
      expect(listener.messagesOf('subscribed')).toMatchObject([{ stage: 'preconfirmed' }])
    }
  })

  it('change from the next update on, and those that are not named stay', async () => {
    const stack = await openTestStack()
    const listener = await listenLive(stack, 'ws', 'symbols=AAPLc,TSLAc&types=transfer&min_value=1000&min_shares=2')
    const all = await listenLive(stack, 'ws', 'symbols=AAPLc,TSLAc&types=transfer')
    // Two shares are worth far less than the minimum value, four far more, wherever the NAV has moved.
    for (const [options, symbol, tokens, isReceived] of [
      [{}, 'AAPLc', 2, false],
      [{}, 'AAPLc', 4, true],
      [{ min_shares: '5' }, 'AAPLc', 4, false],
      // One bad value, and nothing changes.
      [{ symbols: ['METAc'], types: ['nav'], min_shares: '1000', account: ['0x12'] }, 'AAPLc', 6, true],
      [{ min_shares: null }, 'AAPLc', 2, false],
      [{ min_value: null }, 'AAPLc', 2, true],
      [{ account: [`0x${'ab'.repeat(20)}`], symbols: ['NVDAc'] }, 'TSLAc', 9, false],
      [{ account: null, types: ['nav'] }, 'TSLAc', 10, false],
      [{ types: null }, 'TSLAc', 12, true],
    ] as const) {
      listener.send({ type: 'subscribe', req: listener.received.length, ...options })
      await waitForAnswers(listener)
      const [before, received] = [all.messagesOf('transfer').length, listener.messagesOf('transfer').length]
      transfer(stack, symbol, 1, wholeTokens(tokens))
      await all.until(() => all.messagesOf('transfer').length > before)
      await waitForAnswers(listener)
      expect(listener.messagesOf('transfer').length - received, JSON.stringify(options)).toBe(isReceived ? 1 : 0)
    }
    expect(listener.messagesOf('error').map(({ reason }) => reason)).toEqual(['bad_parameter'])
    expect(listener.messagesOf('snapshot').map(({ symbol }) => symbol)).toEqual(['AAPLc', 'TSLAc', 'NVDAc'])
  })
})

it('the account of a selection is a party of each movement that comes', async () => {
  const stack = await openTestStack()
  const account = `0x${'ab'.repeat(20)}` as const
  const listener = await listenLive(stack, 'ws', `symbols=AAPLc&types=transfer&account=0x${'cd'.repeat(20)},${account}`)
  stack.devnet.transfer({ symbol: 'AAPLc', raw: 1n, from: account })
  stack.devnet.transfer({ symbol: 'AAPLc', raw: 2n })
  stack.devnet.transfer({ symbol: 'AAPLc', raw: 3n, to: account })
  stack.devnet.makeFlashblock()
  await listener.until(() => listener.messagesOf('transfer').length === 2)
  expect(listener.messagesOf('transfer').map(({ raw }) => raw)).toEqual(['1', '3'])
})

it('a message before live takes effect right after live, in order with the others', async () => {
  const stack = await openTestStack()
  const first = await listenLive(stack, 'ws', 'symbols=AAPLc&types=transfer')
  const { id } = await first.waitFor('live')
  transfer(stack, 'AAPLc', 250)
  await first.until(() => first.messagesOf('transfer').length === 250)
  const listener = await connect(stack)
  listener.send({ type: 'subscribe', req: 'first', symbols: ['AAPLc'], types: ['transfer'], since: id })
  const types = ['subscribe', 'unsubscribe', 'list', 'ping', 'nonsense'] as const
  const requests = Array.from({ length: EARLY }, (_, at) => types[at % types.length] ?? 'ping')
  const fields = { subscribe: { symbols: ['TSLAc'], snapshot: false }, unsubscribe: { symbols: ['TSLAc'] } }
  for (const [req, type] of requests.entries())
    listener.send({ type, req, ...(type === 'subscribe' || type === 'unsubscribe' ? fields[type] : {}) })
  listener.send({ type: 'unsubscribe', req: 'last', symbols: ['AAPLc'] })
  await listener.waitFor('unsubscribed', ({ req }) => req === 'last')
  const live = messageTypesOf(listener.received).indexOf('live')
  expect(messageTypesOf(listener.received).slice(0, live)).toEqual(['hello', 'subscribed', ...Array(250).fill('transfer')])
  const answers = { subscribe: 'subscribed', unsubscribe: 'unsubscribed', list: 'subscribed', ping: 'pong' } as const
  expect(
    listener.messages.slice(live + 1, -1).flatMap((message) => ('req' in message ? [[message.type, message.req]] : [])),
  ).toEqual(requests.map((type, req) => [type === 'nonsense' ? 'error' : answers[type], req]))
  transfer(stack, 'AAPLc')
  await first.until(() => first.messagesOf('transfer').length === 251)
  await waitForAnswers(listener)
  expect(tapeUpdatesOf(listener)).toHaveLength(250)
})

describe('a connection', () => {
  it('without a subscription ends after thirty seconds with 4009', async () => {
    const stack = await openTestStack()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const [idle, unknown, chatty, busy] = await Promise.all(['', '?symbols=APPL', '', ''].map((query) => connect(stack, query)))
    if (!idle || !unknown || !chatty || !busy) throw new Error('unreachable')
    for (const listener of [idle, unknown, chatty, busy]) await listener.waitFor('hello')
    chatty.send({ type: 'subscribe', symbols: ['APPL'] })
    busy.send({ type: 'subscribe', symbols: ['AAPLc'] })
    await busy.waitFor('live')
    await chatty.waitFor('live')
    vi.advanceTimersByTime(IDLE_MS - 1)
    for (const listener of [idle, unknown, chatty, busy]) await waitForAnswers(listener)
    vi.advanceTimersByTime(1)
    for (const listener of [idle, unknown, chatty]) {
      expect(await listener.closed).toMatchObject({ code: 4009, reason: expect.stringMatching(/^nothing_subscribed/) })
      expect(listener.messages.at(-1)).toMatchObject({ type: 'bye', reason: 'nothing_subscribed' })
    }
    await waitForAnswers(busy)
  })

  it('ends with 4000 at the tenth consecutive bad message of any kind', async () => {
    const stack = await openTestStack()
    // The error in the URL does not count.
    const listener = await connect(stack, '?symbols=AAPLc&types=dividends')
    await listener.waitFor('error')
    listener.send({ type: 'subscribe', symbols: ['AAPLc'], types: ['transfer'] })
    await listener.waitFor('live')
    transfer(stack)
    const { id } = await listener.waitFor('transfer')
    const bad = [
      ...['', '{', '[]', 'null', '"ping"', '{"type":"shout"}', '{"type":"subscribe","since":"start"}'],
      ...['{"type":"unsubscribe"}', '{"type":"list","req":1.5}'],
    ]
    for (const text of bad) listener.send(text)
    await waitForAnswers(listener)
    for (const text of [...bad, new Uint8Array([123, 125])]) listener.send(text)
    const ending = await listener.closed
    const [bye] = listener.messagesOf('bye')
    expect(ending).toEqual({ code: 4000, reason: `protocol ${bye?.id}` })
    expect(listener.messagesOf('error')).toHaveLength(2 * bad.length + 2)
    expect(listener.messages.at(-1)).toBe(bye)
    expect(bye).toMatchObject({ reason: 'protocol', retry_ms: expect.any(Number) })
    expect(sequenceOf(bye?.id)).toBeGreaterThanOrEqual(sequenceOf(id))
  })
})

describe('an error in the URL', () => {
  it.each([
    ['symbols=AAPLc&types=dividends', 400],
    ['symbols=APPL&types=nav&since=start', 404],
  ])('is reported after hello, and the connection stays: %s', async (query, code) => {
    const stack = await openTestStack()
    const listener = await connect(stack, `?${query}`)
    await listener.waitFor('error')
    expect(listener.messages).toMatchObject([
      { type: 'hello', id: null },
      { type: 'error', code, message: expect.stringMatching(/./) },
    ])
    listener.send({ type: 'subscribe', req: 1, symbols: ['TSLAc'] })
    await listener.waitFor('live')
    // The other parameters are ignored too.
    expect(tapeUpdatesOf(listener)).toEqual([])
    transfer(stack, 'TSLAc')
    await listener.waitFor('transfer')
  })
})

it('a first subscription with unknown symbols only lets the next one set since', async () => {
  const stack = await openTestStack()
  const steady = await listenLive(stack, 'ws', 'symbols=AAPLc&types=transfer')
  transfer(stack)
  const { id } = await steady.waitFor('transfer')
  const listener = await connect(stack)
  listener.send({ type: 'subscribe', req: 1, symbols: ['APPL'], since: 'start' })
  listener.send({ type: 'subscribe', req: 2, symbols: ['AAPLc'], types: ['transfer'], since: 'start', snapshot: false })
  await listener.waitFor('live', (live) => live.replayed > 0)
  expect(listener.messagesOf('subscribed')).toMatchObject([
    { req: 1, symbols: [], rejected: [{ symbol: 'APPL', suggest: ['AAPLc'] }] },
    { req: 2, symbols: ['AAPLc'], rejected: [] },
  ])
  expect(tapeUpdatesOf(listener).map((update) => update.id)).toEqual([id])
})
