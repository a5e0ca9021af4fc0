import { describe, expect, it } from 'vitest'
import { EventsPage } from '../../../src/protocol/history.ts'
import type { MessageOf, TestListener } from '../../support/test-listener.ts'
import {
  fetchDocumented,
  messageTypesOf,
  openTestStack,
  sequenceOf,
  type TestStack,
  tapeUpdatesOf,
  transfer,
} from '../../support/test-stack.ts'
import { listen, listenLive, type Transport, transports } from './stream-listeners.ts'

const query = 'symbols=AAPLc&types=transfer'

/** A tape of transfers with distinct times. */
async function openStackWithTimes(count = 4): Promise<{ stack: TestStack; published: readonly MessageOf<'transfer'>[] }> {
  const stack = await openTestStack()
  const listener = await listenLive(stack, 'ws', query)
  while (listener.messagesOf('transfer').length < count) {
    const last = listener.messagesOf('transfer').at(-1)
    transfer(stack)
    await listener.until(() => listener.messagesOf('transfer').at(-1) !== last)
    waitUntilPast(listener.messagesOf('transfer').at(-1)?.time)
  }
  return { stack, published: listener.messagesOf('transfer') }
}

/** Waits until a millisecond is past, so that neither the next transfer nor `now` falls into it. */
function waitUntilPast(time = ''): void {
  while (Date.now() <= Date.parse(time));
}

const queryWithSince = (since: string) => `${query}&since=${encodeURIComponent(since)}`
const idsOf = (listener: TestListener) => tapeUpdatesOf(listener).map(({ id }) => id)

describe('a time', () => {
  it('starts with the first update at or after it', async () => {
    const { stack, published } = await openStackWithTimes()
    for (const [index, { time }] of published.entries()) {
      const zoned = time.replace('Z', '-00:00')
      const next = new Date(Date.parse(time) + 1).toISOString()
      for (const [since, first] of [
        [time, index],
        [zoned, index],
        [next, index + 1],
      ] as const) {
        const listener = await listenLive(stack, transports[index % transports.length] as Transport, queryWithSince(since))
        expect(idsOf(listener), since).toEqual(published.slice(first).map(({ id }) => id))
      }
    }
  })

  it.each([
    ['2100-01-01T00:00:00Z', 'end'],
    ['0s', 'end'],
    ['1970-01-01T00:00:00Z', 'oldest'],
    ['start', 'oldest'],
  ] as const)('in the future starts at the end, one before the oldest position there, without a gap: %s', async (since, at) => {
    const { stack, published } = await openStackWithTimes(2)
    for (const transport of transports) {
      const listener = await listenLive(stack, transport, queryWithSince(since))
      const [hello] = listener.messagesOf('hello')
      expect(hello?.id).toBe(hello?.[at])
      expect(idsOf(listener)).toEqual(at === 'end' ? [] : published.map(({ id }) => id))
      expect(listener.messagesOf('subscribed')).toMatchObject([{ resume: 'none', id: hello?.id }])
      expect(listener.messagesOf('gap')).toEqual([])
    }
  })
})

/** Waits for a gap. The messages before it have no id, and it has one. */
async function waitForGap(listener: TestListener): Promise<MessageOf<'gap'>> {
  await listener.waitFor('live')
  const [hello, subscribed] = listener.messages
  expect(hello).toMatchObject({ type: 'hello', id: null })
  expect(subscribed).toMatchObject({ type: 'subscribed', id: null, resume: 'gap' })
  const gap = await listener.waitFor('gap')
  expect(listener.messages.indexOf(gap)).toBe(2)
  expect(gap.through).toBe(gap.id)
  return gap
}

describe('a gap', () => {
  it.each(transports)('comes for one update above the replay bound, not at the bound: %s', async (transport) => {
    const stack = await openTestStack({ MAX_REPLAY: '3' })
    const first = await listenLive(stack, 'ws', query)
    const { id: before } = await first.waitFor('live')
    transfer(stack, 'AAPLc', 2)
    transfer(stack, 'TSLAc', 5)
    transfer(stack, 'AAPLc', 1)
    await first.until(() => first.messagesOf('transfer').length === 3)
    const fits = await listenLive(stack, transport, query, before)
    expect(messageTypesOf(fits.received)).toEqual(['hello', 'subscribed', 'transfer', 'transfer', 'transfer', 'live'])
    expect(fits.messagesOf('hello')).toMatchObject([{ limits: { replay_max: 3 } }])
    transfer(stack, 'AAPLc', 1)
    await first.until(() => first.messagesOf('transfer').length === 4)
    const long = await listen(stack, transport, query, before)
    const gap = await waitForGap(long)
    expect(gap).toMatchObject({ reason: 'long', after: before, through: long.messagesOf('hello')[0]?.end })
    expect(messageTypesOf(long.received).slice(3)).toEqual(['snapshot', 'live'])
    expect(long.messagesOf('live')).toMatchObject([{ replayed: 0, id: gap.id }])
    // Without a position in the request the gap has no `from`.
    const start = await listen(stack, transport, `${query}&since=start`)
    expect(await waitForGap(start)).toMatchObject({ reason: 'long', after: null })
    transfer(stack, 'AAPLc', 1, 77n)
    expect(await long.waitFor('transfer')).toMatchObject({ raw: '77' })
    const resumed = await listenLive(stack, transport, query, gap.id)
    expect(resumed.messagesOf('transfer')).toMatchObject([{ raw: '77' }])
  })

  it.each(transports)('for lost updates comes before one that is only too long: %s', async (transport) => {
    const stack = await openTestStack({ MAX_REPLAY: '3' })
    const first = await listenLive(stack, 'ws', query)
    transfer(stack, 'AAPLc', 5)
    await first.until(() => first.messagesOf('transfer').length === 5)
    const listener = await listen(stack, transport, query, 'elsewhere.5')
    await listener.waitFor('live')
    const [{ oldest, end } = { oldest: '', end: '' }] = listener.messagesOf('hello')
    const [lost, long] = listener.messagesOf('gap')
    expect(lost).toMatchObject({ reason: 'epoch', id: oldest, after: 'elsewhere.5', through: oldest, backfill: null })
    expect(long).toMatchObject({ reason: 'long', id: end, after: oldest, through: end })
    expect(messageTypesOf(listener.received)).toEqual(['hello', 'subscribed', 'gap', 'gap', 'snapshot', 'live'])
    const { json } = await fetchDocumented(`${stack.relay.url}${long?.backfill}`)
    expect(json).toMatchObject({ events: first.messagesOf('transfer') })
  })

  it.each(transports)('comes for an evicted position, not for the oldest one: %s', async (transport) => {
    const stack = await openTestStack({ TAPE_MAX_MESSAGES: '100', FINALITY_POLL: '1h', STOCKS_REFRESH: '1h' })
    const first = await listenLive(stack, 'ws', query)
    for (let flash = 0; flash < 5; flash += 1) transfer(stack, 'AAPLc', 50)
    await first.until(() => first.messagesOf('transfer').length === 250)
    // What is open is not evicted.
    stack.devnet.seal()
    await first.waitFor('seal')
    const published = idsOf(first)
    /** The oldest position as this listener saw it. Every other update that is written evicts a transfer. */
    const oldestFor = (listener: TestListener) => listener.messagesOf('hello')[0]?.oldest ?? ''
    const keptFor = (listener: TestListener) => published.filter((id) => sequenceOf(id) > sequenceOf(oldestFor(listener)))
    const resumeAtOldest = async (): Promise<TestListener> => {
      const at = oldestFor(await listenLive(stack, 'ws', query))
      const listener = await listenLive(stack, transport, query, at)
      return oldestFor(listener) === at ? listener : resumeAtOldest()
    }
    const full = await resumeAtOldest()
    expect(full.messagesOf('subscribed')).toMatchObject([{ resume: 'full', id: oldestFor(full) }])
    expect(idsOf(full)).toEqual(keptFor(full))
    const before = published[published.indexOf(oldestFor(full)) - 1]
    const expired = await listen(stack, transport, query, before)
    expect(await waitForGap(expired)).toMatchObject({ reason: 'expired', after: before, through: oldestFor(expired) })
    const kept = keptFor(expired)
    expect(messageTypesOf(expired.received).slice(2)).toEqual([
      'gap',
      'snapshot',
      ...kept.slice(1).map(() => 'transfer'),
      'seal',
      'live',
    ])
    expect(idsOf(expired)).toEqual(kept)
    expect(kept.length).toBeGreaterThan(0)
    const start = await listenLive(stack, transport, `${query}&since=start`)
    expect(start.messagesOf('hello')).toMatchObject([{ id: oldestFor(start) }])
    expect(idsOf(start)).toEqual(keptFor(start))
    expect(start.messagesOf('gap')).toEqual([])
  })

  it.each(transports)('is followed by the end where the client skips what it missed: %s', async (transport) => {
    const { stack, published } = await openStackWithTimes(2)
    const [epoch = ''] = published[0]?.id.split('.') ?? []
    const skipping = await listen(stack, transport, `${query}&on_gap=skip`, `${epoch}x.1`)
    const gap = await waitForGap(skipping)
    const { end } = await skipping.waitFor('hello')
    expect(gap).toMatchObject({
      reason: 'epoch',
      after: `${epoch}x.1`,
      through: end,
      backfill: expect.stringMatching(/^\/v1\/events\?/),
    })
    await skipping.waitFor('live')
    expect(messageTypesOf(skipping.received).slice(3)).toEqual(['snapshot', 'live'])
    const page = EventsPage.parse((await fetchDocumented(`${stack.relay.url}${gap.backfill}`)).json)
    expect(page.events.map(({ id }) => id)).toEqual(published.map(({ id }) => id))
  })
})
