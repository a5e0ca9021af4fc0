import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { book } from '../../../../src/sdk/client/book.ts'
import type { ConnectOptions, StreamItem, StreamOptions, StreamState } from '../../../../src/sdk/client/stream-types.ts'
import { examples } from '../../../../src/sdk/generated/examples.ts'
import type { Update } from '../../../../src/sdk/generated/messages.ts'
import { updateTypes } from '../../../../src/sdk/generated/names.ts'
import { TestRelay } from '../../../../src/sdk/testing/test-relay.ts'
import { ExactTape } from '../../../../src/tools/conform/exact-tape.ts'
import { assertValidMessage } from '../../../support/message-validator.ts'

const textOf = (item: StreamItem): string =>
  item.type === 'gap' ? `gap ${item.reason}` : item.type === 'snapshot' ? `snapshot ${item.symbol}` : `${item.type} ${item.id}`

/** A stream of a relay with a consumer that takes everything. It is live. */
async function follow(relay: TestRelay, options: StreamOptions = {}, connectOptions: ConnectOptions = {}) {
  const items: StreamItem[] = []
  const states: StreamState[] = []
  const stream = relay
    .connect({ retry: { maxDelay: 1 }, ...connectOptions })
    .updates('AAPLc', { onState: (state) => states.push(state), snapshot: false, ...options })
  onTestFinished(() => stream.close())
  const done = (async () => {
    for await (const item of stream) items.push(item)
  })()
  await relay.connected()
  await vi.waitFor(() => expect(states.at(-1)?.phase).toBe('live'))
  const expectReceived = (...expected: readonly string[]) => vi.waitFor(() => expect(items.map(textOf)).toEqual(expected))
  return { stream, done, items, states, expectReceived }
}

const label = ({ type, id }: Update) => `${type} ${id}`

describe('a relay for tests', () => {
  it('sends only messages that fit the schemas of the contract', () => {
    const tape = new ExactTape('a')
    const transfer = tape.transfer()
    const updates = updateTypes.map((type) => tape.write(type as Update['type']))
    const ends = [tape.seal(transfer), tape.retract(transfer), tape.withMemo(transfer), tape.action(1_000)]
    const notices = [tape.hello(null), tape.snapshot('AAPLc', tape.end), tape.heartbeat(tape.end, 1), tape.gapAfter('b.1')]
    for (const message of [...updates, ...ends, ...notices]) assertValidMessage(message)
    expect(updates.length).toBe(updateTypes.length)
  })

  it.each(['websocket', 'sse'] as const)(
    'sends what is published to open streams over %s, and a replay with a receipt',
    async (transport) => {
      const relay = new TestRelay()
      const first = relay.publish('transfer', { shares: '2' })
      const { expectReceived, states, items } = await follow(relay, { since: 'start' }, { transport })
      const [nav, seal] = [relay.publish('nav'), relay.seal(first)]
      await expectReceived(label(first), label(nav), label(seal))
      expect(items[0]).toEqual(first)
      expect(states.at(-1)).toMatchObject({ verified: true, transport, source: 'pendingLogs' })
    },
  )

  it('selects symbols, types and values as the contract says, and sends how a fact ends', async () => {
    const relay = new TestRelay(['AAPLc', 'TSLAc'])
    const options = { types: ['transfer', 'nav'], minShares: 5, account: examples.transfer.from } as const
    const { expectReceived } = await follow(relay, options)
    const [small, large, null_] = ['4', '6', null].map((shares) => relay.publish('transfer', { shares }))
    relay.publish('transfer', { shares: '7', from: examples.transfer.to, to: examples.transfer.to })
    relay.publish('transfer', { symbol: 'TSLAc', shares: '8' })
    const nav = relay.publish('nav')
    relay.publish('quote')
    if (!small || !large || !null_) throw new Error('three transfers')
    relay.retract(small, { reason: 'reorg' })
    const grown = relay.amend(null_, { shares: '9' })
    const retract = relay.retract(large)
    await expectReceived(...[large, nav, grown, retract].map(label))
  })

  it.each(['aaplc', 'AAPL', ' AAPLc , tslac', examples.transfer.address.toUpperCase().replace('0X', '0x')])(
    'knows a token by %s',
    async (symbols) => {
      const relay = new TestRelay(['AAPLc', 'TSLAc'])
      const nav = relay.publish('nav')
      expect(await Array.fromAsync(relay.connect().history(symbols))).toEqual([nav])
      const aborted = relay.connect().status({ signal: AbortSignal.abort(new Error('gone')) })
      await expect(aborted).rejects.toThrow('gone')
    },
  )

  it('keeps the state of its tokens for the snapshots that a book begins with', async () => {
    const relay = new TestRelay(['AAPLc'])
    relay.setState('TSLAc', { multiplier: '2' })
    const { nav } = relay.publish('nav', { symbol: 'TSLAc', nav: { ...examples.nav.nav, price: '250.5' } })
    const stream = relay.connect().updates('*')
    onTestFinished(() => stream.close())
    const stocks = book(stream)
    await vi.waitFor(() => expect(stocks.all().map(({ symbol }) => symbol)).toEqual(['AAPLc', 'TSLAc']))
    expect(stocks.get('TSLAc')).toMatchObject({ multiplier: '2', nav })
    await relay.connected()
    const transfer = relay.publish('transfer', { symbol: 'TSLAc' })
    relay.seal(transfer)
    await vi.waitFor(() => expect(stocks.get('TSLAc')?.movements).toMatchObject([{ key: transfer.key, stage: 'sealed' }]))
  })

  it.each<[string, StreamOptions, (relay: TestRelay) => readonly string[]]>([
    [
      'shows a loss with the next message',
      {},
      (relay) => {
        relay.lose('nav')
        return ['gap missed', label(relay.publish('nav'))]
      },
    ],
    [
      'shows a loss with the next heartbeat, and has the message in its history',
      { gaps: 'fill' },
      (relay) => {
        const lost = relay.lose('nav')
        relay.heartbeat()
        return [label(lost)]
      },
    ],
    [
      'sends a gap from a new tape',
      {},
      (relay) => {
        relay.renewTape()
        return ['gap epoch', label(relay.publish('nav'))]
      },
    ],
  ])('%s', async (_, options, act) => {
    const relay = new TestRelay()
    const { expectReceived } = await follow(relay, options)
    const first = relay.publish('nav')
    relay.heartbeat()
    await expectReceived(label(first))
    await expectReceived(label(first), ...act(relay))
  })

  it.each<[string, (relay: TestRelay) => unknown, StreamOptions | string, object]>([
    ['is stopped', (relay) => relay.stop(), 'AAPLc', { name: 'ConnectionError', code: 'unreachable' }],
    [
      'refuses',
      (relay) => relay.refuse({ code: 401, reason: 'no_key', message: 'A key, please.' }),
      'AAPLc',
      { name: 'RelayError', code: 401, reason: 'no_key', message: 'A key, please.' },
    ],
    ['has no such symbol', () => {}, 'APPL', { code: 404, reason: 'unknown_symbol' }],
    [
      'is asked for the sealed view',
      () => {},
      { stage: 'sealed' },
      { code: 400, message: 'stage: the test relay has no sealed view.' },
    ],
  ])('fails a stream at once if it %s', async (_, prepare, selection, error) => {
    const relay = new TestRelay()
    prepare(relay)
    const [symbols, options] = typeof selection === 'string' ? [selection, {}] : ['AAPLc', selection]
    const reading = (async () => {
      for await (const item of relay.connect().updates(symbols, options)) expect(item).toBeUndefined()
    })()
    await expect(reading).rejects.toMatchObject(error)
  })

  it('answers requests for status, snapshots and history', async () => {
    const relay = new TestRelay()
    const written = [relay.publish('transfer'), relay.publish('nav'), relay.publish('transfer')]
    const client = relay.connect()
    expect(await client.status()).toMatchObject({ source: 'pendingLogs', tape: { end: written[2]?.id } })
    expect(await client.snapshot('AAPLc')).toMatchObject({ symbol: 'AAPLc', as_of: written[2]?.id })
    expect(await Array.fromAsync(client.history('AAPLc'))).toEqual(written)
    expect(await Array.fromAsync(client.history('AAPLc', { types: ['transfer'], order: 'desc', limit: 1 }))).toEqual(
      written.slice(2),
    )
    expect(await Array.fromAsync(client.history(['AAPLc', 'MSFTc'], { types: ['nav'] }))).toEqual(written.slice(1, 2))
    expect(await client.snapshots(['AAPLc', 'MSFTc'])).toMatchObject({
      snapshots: [{ symbol: 'AAPLc' }],
      rejected: [{ symbol: 'MSFTc' }],
    })
    await expect(client.snapshot('MSFTc')).rejects.toMatchObject({ code: 404, reason: 'unknown_symbol' })
    expect(() => relay.publish('navs' as 'nav')).toThrow('there is no message of the type navs')
    expect(() => relay.publish('nav', { symbol: 'MSFTc' })).toThrow('the tape has no token MSFTc; it has AAPLc')
  })
})
