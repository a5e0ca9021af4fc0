import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type Ear, listenWs } from '../../support/test-listener.ts'
import { openWorld, seqOf, tapeOf, transfer, typesOf, type World } from '../../support/test-stack.ts'
import { answered, liveOn, whole } from './stream-listeners.ts'

/** What a connection may take before it subscribes to something. */
const IDLE_MS = 30_000
/** Said while a subscription is being made: more than a few, and not more than may be said at once. */
const EARLY = 45

const connect = async ({ relay }: World, query = ''): Promise<Ear> => {
  const ear = await listenWs(`${relay.wsUrl}${query}`)
  onTestFinished(() => ear.close())
  return ear
}

describe('a request', () => {
  it.each([[1], [0], [-7], [Number.MAX_SAFE_INTEGER], ['one'], [''], ['x'.repeat(64)]])(
    'numbered %j has that number in its answer, in a good one and in an error',
    async (req) => {
      const world = await openWorld()
      const ear = await connect(world)
      ear.send({ type: 'subscribe', req, symbols: ['AAPLc'], types: ['transfer'] })
      await ear.hear('live')
      ear.send({ type: 'unsubscribe', req, symbols: ['TSLAc'] })
      ear.send({ type: 'list', req })
      ear.send({ type: 'subscribe', req, since: 'start' })
      ear.send({ type: 'subscribe', req, types: ['dividends'] })
      ear.send({ type: 'ping', req })
      await ear.hear('pong')
      const answers = ear.messages.flatMap((message) => ('req' in message ? [[message.type, message.req]] : []))
      expect(answers).toEqual(
        ['subscribed', 'unsubscribed', 'subscribed', 'error', 'error', 'pong'].map((type) => [type, req]),
      )
    },
  )

  it('without a number is answered without one', async () => {
    const world = await openWorld()
    const ear = await connect(world, '?symbols=AAPLc')
    await ear.hear('live')
    ear.send({ type: 'list' })
    ear.send({ type: 'unsubscribe', symbols: ['AAPLc'] })
    ear.send({ type: 'shout' })
    ear.send({ type: 'ping' })
    const pong = await ear.hear('pong')
    expect(new Date(pong.time).toISOString()).toBe(pong.time)
    for (const message of ear.messages) expect(message).not.toHaveProperty('req')
  })

  it('to list or to ping is answered before anything is subscribed to', async () => {
    const world = await openWorld()
    const ear = await connect(world)
    ear.send({ type: 'list', req: 1 })
    ear.send({ type: 'unsubscribe', req: 2, symbols: ['AAPLc'] })
    ear.send({ type: 'ping', req: 3 })
    await ear.hear('pong')
    expect(ear.messages.slice(1)).toMatchObject([
      { type: 'subscribed', req: 1, id: null, symbols: [], rejected: [], resume: 'none' },
      { type: 'unsubscribed', req: 2, symbols: [] },
      { type: 'pong', req: 3 },
    ])
    ear.send({ type: 'subscribe', symbols: ['AAPLc'], since: 'start', stage: 'sealed' })
    await ear.hear('live')
  })
})

describe('options', () => {
  it('in the URL hold for the subscription that follows, as far as it does not say otherwise', async () => {
    const world = await openWorld()
    const first = await liveOn(world, 'ws', 'symbols=*&types=transfer')
    transfer(world, 'AAPLc', 1, whole(1))
    transfer(world, 'AAPLc', 1, whole(20))
    await first.until(() => first.all('transfer').length === 2)
    const ear = await connect(world, '?types=transfer&since=start&snapshot=false&min_shares=10')
    expect(typesOf(ear.heard)).toEqual(['hello'])
    ear.send({ type: 'subscribe', symbols: ['AAPLc'] })
    await ear.hear('live')
    expect(typesOf(ear.heard)).toEqual(['hello', 'subscribed', 'transfer', 'live'])
    expect(ear.all('transfer')).toMatchObject([{ amount: '20' }])
    const other = await connect(world, '?types=transfer&since=start&snapshot=false&min_shares=10')
    other.send({ type: 'subscribe', symbols: ['AAPLc'], types: null, min_shares: '1', snapshot: true })
    await other.hear('live')
    expect(other.all('transfer')).toHaveLength(2)
    expect(other.all('snapshot')).toHaveLength(1)
    expect(other.all('token')).toHaveLength(1)
  })

  it('that are replaced hold from the next message of the tape on, and each that is not named stays', async () => {
    const world = await openWorld()
    const ear = await liveOn(world, 'ws', 'symbols=AAPLc,TSLAc&types=transfer&min_value=1000&min_shares=2')
    const all = await liveOn(world, 'ws', 'symbols=AAPLc,TSLAc&types=transfer')
    const move = async (symbol: string, tokens: number) => {
      const before = all.all('transfer').length
      transfer(world, symbol, 1, whole(tokens))
      await all.until(() => all.all('transfer').length > before)
      await answered(ear)
    }
    const heard = () => ear.all('transfer').map(({ symbol, amount }) => `${symbol} ${amount}`)
    const say = async (options: Record<string, unknown>) => {
      ear.send({ type: 'subscribe', req: ear.heard.length, ...options })
      await answered(ear)
    }
    await move('AAPLc', 3)
    await move('AAPLc', 4)
    await say({ min_shares: '5' })
    await move('AAPLc', 4)
    await move('AAPLc', 6)
    // The value stays asked for: two shares are not worth it.
    await say({ min_shares: null })
    await move('AAPLc', 2)
    await move('AAPLc', 7)
    await say({ min_value: null })
    await move('AAPLc', 2)
    await say({ party: `0x${'ab'.repeat(20)}`, symbols: ['NVDAc'] })
    await move('TSLAc', 9)
    await say({ party: null, types: ['nav'] })
    await move('TSLAc', 10)
    await say({ types: ['transfer', 'nav'] })
    await move('TSLAc', 11)
    expect(heard()).toEqual(['AAPLc 4', 'AAPLc 6', 'AAPLc 7', 'AAPLc 2', 'TSLAc 11'])
    expect(ear.all('error')).toEqual([])
    expect(ear.all('snapshot').map(({ symbol }) => symbol)).toEqual(['AAPLc', 'TSLAc', 'NVDAc'])
  })

  it('of which one is wrong replace none, and add no symbol', async () => {
    const world = await openWorld()
    const ear = await liveOn(world, 'ws', 'symbols=AAPLc&types=transfer')
    for (const wrong of [{ min_value: '-1' }, { party: '0x12' }, { since: 'start' }, { stage: 'sealed' }]) {
      ear.send({ type: 'subscribe', req: 1, symbols: ['TSLAc'], types: ['nav'], min_shares: '1000', ...wrong })
    }
    await ear.until(() => ear.all('error').length === 4)
    expect(ear.all('error').map(({ reason }) => reason)).toEqual([
      ...['bad_parameter', 'bad_parameter', 'since_not_first', 'stage_not_first'],
    ])
    ear.send({ type: 'list', req: 2 })
    expect(await ear.hear('subscribed', ({ req }) => req === 2)).toMatchObject({ symbols: ['AAPLc'] })
    transfer(world)
    await ear.hear('transfer')
  })
})

describe('what is said before live', () => {
  it('takes effect right after live, all of it, in its order', async () => {
    const world = await openWorld()
    const first = await liveOn(world, 'ws', 'symbols=AAPLc&types=transfer')
    const { id } = await first.hear('live')
    transfer(world, 'AAPLc', 250)
    await first.until(() => first.all('transfer').length === 250)
    const ear = await connect(world)
    ear.send({ type: 'subscribe', req: 'first', symbols: ['AAPLc'], types: ['transfer'], since: id })
    const words = ['subscribe', 'unsubscribe', 'list', 'ping', 'nonsense'] as const
    const said = Array.from({ length: EARLY }, (_, at) => words[at % words.length] ?? 'ping')
    for (const [req, type] of said.entries()) ear.send({ type, req, symbols: ['TSLAc'], snapshot: false })
    ear.send({ type: 'unsubscribe', req: 'last', symbols: ['AAPLc'] })
    await ear.hear('unsubscribed', ({ req }) => req === 'last')
    const live = typesOf(ear.heard).indexOf('live')
    expect(typesOf(ear.heard).slice(0, live)).toEqual(['hello', 'subscribed', ...Array(250).fill('transfer')])
    const answers = { subscribe: 'subscribed', unsubscribe: 'unsubscribed', list: 'subscribed', ping: 'pong' } as const
    expect(
      ear.messages.slice(live + 1, -1).flatMap((message) => ('req' in message ? [[message.type, message.req]] : [])),
    ).toEqual(said.map((type, req) => [type === 'nonsense' ? 'error' : answers[type], req]))
    transfer(world, 'AAPLc')
    await first.until(() => first.all('transfer').length === 251)
    await answered(ear)
    expect(tapeOf(ear)).toHaveLength(250)
  })

  it('of the second subscription is nothing but a second one, however early it comes', async () => {
    const world = await openWorld()
    const ear = await connect(world, '?symbols=AAPLc&types=transfer')
    ear.send({ type: 'subscribe', req: 1, symbols: ['TSLAc'], since: 'start' })
    ear.send({ type: 'subscribe', req: 2, symbols: ['TSLAc'], stage: 'sealed' })
    ear.send({ type: 'subscribe', req: 3, symbols: ['TSLAc'] })
    await ear.hear('subscribed', ({ req }) => req === 3)
    expect(typesOf(ear.heard)).toEqual([
      ...['hello', 'subscribed', 'snapshot', 'live', 'error', 'error', 'subscribed'],
      ...ear
        .all('snapshot')
        .slice(1)
        .map(({ type }) => type),
    ])
    expect(ear.all('error').map(({ req, reason }) => [req, reason])).toEqual([
      [1, 'since_not_first'],
      [2, 'stage_not_first'],
    ])
  })
})

describe('a connection', () => {
  it('that subscribes to nothing is ended after thirty seconds with 4009, one that subscribes is not', async () => {
    const world = await openWorld()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const [idle, unknown, chatty, busy] = await Promise.all(
      ['', '?symbols=APPL', '', ''].map((query) => connect(world, query)),
    )
    if (!idle || !unknown || !chatty || !busy) throw new Error('unreachable')
    for (const ear of [idle, unknown, chatty, busy]) await ear.hear('hello')
    chatty.send({ type: 'subscribe', symbols: ['APPL'] })
    busy.send({ type: 'subscribe', symbols: ['AAPLc'] })
    await busy.hear('live')
    await chatty.hear('live')
    vi.advanceTimersByTime(IDLE_MS - 1)
    for (const ear of [idle, unknown, chatty, busy]) await answered(ear)
    vi.advanceTimersByTime(1)
    for (const ear of [idle, unknown, chatty]) {
      expect(await ear.ended).toMatchObject({ code: 4009, reason: expect.stringMatching(/^nothing_subscribed/) })
      expect(ear.messages.at(-1)).toMatchObject({ type: 'bye', reason: 'nothing_subscribed' })
    }
    await answered(busy)
  })

  it('ends with 4000 at the tenth bad message in a row, whatever is wrong with each', async () => {
    const world = await openWorld()
    const ear = await liveOn(world, 'ws', 'symbols=AAPLc&types=transfer')
    transfer(world)
    const { id } = await ear.hear('transfer')
    const bad = [
      ...['', '{', '[]', 'null', '"ping"', '{"type":"shout"}', '{"type":"subscribe","since":"start"}'],
      ...['{"type":"unsubscribe"}', '{"type":"list","req":1.5}'],
    ]
    for (const text of bad) ear.send(text)
    await answered(ear)
    for (const text of [...bad, new Uint8Array([123, 125])]) ear.send(text)
    const ending = await ear.ended
    const [bye] = ear.all('bye')
    expect(ending).toEqual({ code: 4000, reason: `protocol ${bye?.id}` })
    expect(ear.all('error')).toHaveLength(2 * bad.length + 1)
    expect(ear.messages.at(-1)).toBe(bye)
    expect(bye).toMatchObject({ reason: 'protocol', retry_ms: expect.any(Number) })
    expect(seqOf(bye?.id)).toBeGreaterThanOrEqual(seqOf(id))
  })

  it('ends with 1009 at a binary message of more than 4 KiB, and counts the bytes of a text, not its characters', async () => {
    const world = await openWorld()
    const [binary, text] = [await connect(world), await connect(world)]
    binary.send(new Uint8Array(4_096))
    expect(await binary.hear('error')).toMatchObject({ code: 400, reason: 'binary' })
    binary.send(new Uint8Array(4_097))
    expect(await binary.ended).toMatchObject({ code: 1009 })
    text.send(JSON.stringify({ type: 'ping', more: 'ä'.repeat(2_040) }))
    expect(await text.ended).toMatchObject({ code: 1009 })
  })
})

describe('a mistake in the URL', () => {
  it.each([
    'symbols=AAPLc&types=dividends',
    'symbols=AAPLc&stage=final',
    'symbols=AAPLc&since=yesterday',
    'symbols=AAPLc&since=',
    'symbols=AAPLc&snapshot=perhaps',
    'symbols=AAPLc&min_value=1e9',
    'symbols=AAPLc&min_shares=-1',
    'symbols=AAPLc&party=0x12',
    'symbols=AAPLc&heartbeat=0',
    'symbols=AAPLc&heartbeat=61',
    'symbols=AAPLc&symbols=TSLAc',
    'symbols=APPL',
    `symbols=${Array(201).fill('AAPLc').join()}`,
  ])('is an error after hello, and the connection stays: %s', async (query) => {
    const world = await openWorld()
    const ear = await connect(world, `?${query}`)
    const { code, message } = await ear.hear('error')
    expect([400, 404]).toContain(code)
    expect(message.length).toBeGreaterThan(0)
    expect(ear.messages).toMatchObject([{ type: 'hello', id: null }, { type: 'error' }])
    expect(ear.heard[0]?.text).toContain('"id":null')
    ear.send({ type: 'subscribe', req: 1, symbols: ['TSLAc'], types: ['transfer'], since: 'now', snapshot: false })
    const { id } = await ear.hear('live')
    transfer(world, 'TSLAc')
    expect(seqOf((await ear.hear('transfer')).id)).toBeGreaterThan(seqOf(id))
  })
})
