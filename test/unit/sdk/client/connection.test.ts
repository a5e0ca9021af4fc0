import { describe, expect, it, vi } from 'vitest'
import { ConnectionError, RelayError, type StocktapeError } from '../../../../src/sdk/client/errors.ts'
import type { RetryOptions } from '../../../../src/sdk/client/stream-types.ts'
import { FakeRelay, heartbeat, hello, nav, type Reader, readFrom } from './fake-relay.ts'

/** When each connection was opened, by which transport, while every one of them ends in the same way. */
async function attemptsOf(relay: FakeRelay, ms: number, end: (relay: FakeRelay) => void) {
  const attempts: [number, string][] = []
  for (const until = relay.nowMs + ms; relay.nowMs < until; ) {
    if (attempts.length > 0) await relay.skip()
    else await relay.advance(0)
    while (attempts.length < relay.connections.length) {
      attempts.push([relay.nowMs, relay.last.transport])
      end(relay)
      await relay.advance(0)
    }
  }
  return attempts
}

/** Milliseconds until the next attempt, on a wall clock that stands still at 0. */
const waitOf = ({ stream }: Reader) => stream.state.retryAt?.getTime()

const waits = (attempts: readonly [number, string][]) => attempts.slice(1).map(([at], index) => at - (attempts[index]?.[0] ?? 0))

describe('a connection that ends', () => {
  it.each([1_000, 1_006, 4_100, 4_101, 4_102, 4_200, 4_201, 4_202])('with %i comes back', async (code) => {
    const { relay } = await readFrom()
    relay.last.live('e.1').end(code)
    await relay.advance(501)
    expect(relay.connections).toHaveLength(2)
  })

  it.each([4_000, 4_003, 4_009])('with %i does not come back', async (code) => {
    const { relay, reader } = await readFrom()
    relay.last.live('e.1').end(code, 'forbidden')
    await relay.advance(60_000)
    expect(reader.failure).toMatchObject({ name: 'RelayError', code, reason: 'forbidden' })
    expect([relay.connections.length, relay.timerCount]).toEqual([1, 0])
  })

  it.each([
    ['without a hello', (relay: FakeRelay) => relay.last.end()],
    ['after hello and live', (relay: FakeRelay) => relay.last.live('e.1').end()],
    ['with something that is not JSON', (relay: FakeRelay) => relay.last.sendText('<html>')],
    ['with JSON that is no message', (relay: FakeRelay) => relay.last.sendText('null')],
    ['with a refusal that passes', (relay: FakeRelay) => relay.last.send(hello(null), { type: 'error', code: 503, message: '' })],
  ])('again and again, %s, waits twice as long each time, at most 30 s', async (_, end) => {
    const { relay, reader } = await readFrom({}, 'websocket')
    const attempts = await attemptsOf(relay, 200_000, end)
    expect(waits(attempts).slice(0, 8)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
    expect(reader.stream.state).toMatchObject({ phase: 'waiting', attempts: attempts.length })
    await reader.stream.close()
    expect(relay.timerCount).toBe(0)
  })

  it('counts its attempts until a heartbeat, though it was live', async () => {
    const { relay, reader } = await readFrom({}, 'websocket')
    const counts: number[] = []
    const count = () => counts.push(reader.stream.state.attempts)
    relay.last.live('e.1').end()
    await relay.skip()
    relay.last.live('e.1', 'full')
    count()
    relay.last.end()
    count()
    await relay.skip()
    relay.last.live('e.1', 'full').send(heartbeat('e.1', 0))
    count()
    expect(counts).toEqual([1, 2, 0])
  })

  it.each([
    [0, 250],
    [0.999, 750],
  ])('waits a random time: %d', async (random, ms) => {
    const relay = new FakeRelay()
    relay.random = random
    const reader = relay.read()
    await relay.advance(0)
    relay.last.live('e.1').end()
    expect(waitOf(reader)).toBe(ms)
  })

  it.each<[string, number, (relay: FakeRelay) => void]>([
    ['a bye says', 20_000, (relay) => relay.last.live('e.1').send({ type: 'bye', retry_ms: 20_000 }).end(4_200)],
    ['an event stream says, and a delay of its own', 20_500, (relay) => relay.last.live('e.1').retry(20_000)],
  ])('waits as long as %s', async (_, ms, ask) => {
    const { relay, reader } = await readFrom()
    ask(relay)
    relay.last.end()
    expect(waitOf(reader)).toBe(ms)
    await relay.advance(ms)
    expect(relay.connections).toHaveLength(2)
    relay.last.live('e.1').end()
    expect(waitOf(reader)).toBe(1_000)
  })

  it('never waits longer than a timer can', async () => {
    const { relay, reader } = await readFrom()
    relay.last.live('e.1').send({ type: 'bye', retry_ms: 1e12 }).end(4_200)
    expect(waitOf(reader)).toBeLessThan(2 ** 31)
  })
})

describe('a relay that has never answered', () => {
  const unreachable = new ConnectionError('unreachable', 'http://relay/', null)
  const unknownRelay = async (retry?: RetryOptions) => {
    const relay = new FakeRelay()
    relay.found = unreachable
    Object.assign(relay.http, { retry, isKnown: false })
    const onError = vi.fn()
    const reader = relay.read({ onError })
    await relay.advance(0)
    return { relay, reader, onError }
  }

  it('ends the stream with what the probe found, once the WebSocket fails', async () => {
    const { relay, reader, onError } = await unknownRelay()
    relay.last.end()
    await relay.advance(0)
    expect(reader.failure).toBe(unreachable)
    expect(onError.mock.calls).toEqual([[unreachable]])
    expect([relay.connections.length, relay.timerCount]).toEqual([1, 0])
  })

  // The WebSocket of Node 22 does not say that its request was refused.
  it.each<[StocktapeError, boolean]>([
    [unreachable, true],
    [new RelayError(404, { reason: 'unknown_path' }), true],
    [new RelayError(429, { reason: 'too_many' }, 1_000), false],
  ])('ends the stream after half a second too, where the WebSocket hangs and the probe finds %s: %s', async (found, ends) => {
    const { relay, reader } = await unknownRelay()
    relay.found = found
    await relay.advance(499)
    expect(reader.failure).toBeNull()
    await relay.advance(1)
    expect(reader.failure).toBe(ends ? found : null)
  })

  it('is waited for if it refuses for the moment', async () => {
    const { relay, reader } = await unknownRelay()
    relay.found = new RelayError(503, { reason: 'full' }, 7_000)
    relay.last.end()
    await relay.advance(0)
    expect(reader.stream.state).toMatchObject({ phase: 'waiting', error: { code: 503, reason: 'full' } })
    expect(waitOf(reader)).toBe(7_500)
  })

  it('is tried as often as the program says', async () => {
    const { relay, reader, onError } = await unknownRelay({ attempts: 2 })
    const attempts = await attemptsOf(relay, 10_000, ({ last }) => last.end())
    expect(waits(attempts)).toEqual([500, 1_000])
    expect(reader.failure).toBe(unreachable)
    expect(onError).toHaveBeenCalledTimes(3)
  })

  it('is known from its hello on: the stream then comes back', async () => {
    const { relay, reader, onError } = await unknownRelay()
    relay.last.live('e.1').end()
    expect(reader.stream.state).toMatchObject({ phase: 'waiting', source: null, error: { code: 'lost' } })
    expect(onError).toHaveBeenCalledTimes(1)
    await relay.advance(500)
    relay.last.live('e.1', 'full')
    expect(reader.stream.state).toMatchObject({ phase: 'live', source: 'pendingLogs', error: null, retryAt: null })
  })
})

it('a stream gives up after as many attempts as the program allows, also if the relay was live', async () => {
  const relay = new FakeRelay()
  Object.assign(relay.http, { retry: { attempts: 3, maxDelay: 700 } })
  const reader = relay.read({}, 'websocket')
  await relay.advance(0)
  relay.last.live('e.1')
  const attempts = await attemptsOf(relay, 10_000, ({ last }) => last.end())
  expect(waits(attempts)).toEqual([500, 700, 700])
  expect(reader.failure).toMatchObject({ name: 'ConnectionError', code: 'lost' })
})

describe('a WebSocket that does not open', () => {
  it('is replaced by an event stream at once, and tried again when that does not open either', async () => {
    const { relay } = await readFrom()
    const attempts = await attemptsOf(relay, 4_000, ({ last }) => last.end())
    expect(attempts.slice(0, 4)).toEqual([
      [0, 'websocket'],
      [0, 'sse'],
      [500, 'websocket'],
      [500, 'sse'],
    ])
  })

  it('leaves the stream on the event stream, also after it breaks', async () => {
    const { relay } = await readFrom()
    relay.last.end()
    await relay.advance(0)
    relay.last.live('e.1').end()
    await relay.advance(1_000)
    expect(relay.last).toMatchObject({ transport: 'sse', since: 'e.1' })
  })

  it.each(['websocket', 'sse'] as const)('is not replaced where the transport is %s', async (transport) => {
    const { relay } = await readFrom({}, transport)
    const attempts = await attemptsOf(relay, 4_000, ({ last }) => last.end())
    expect(new Set(attempts.map(([, name]) => name))).toEqual(new Set([transport]))
  })
})

describe('a relay that is silent', () => {
  it('before its hello is left after ten seconds', async () => {
    const relay = new FakeRelay()
    const reader = relay.read({}, 'websocket')
    await relay.advance(9_999)
    expect(relay.last.isOpen).toBe(true)
    await relay.advance(1)
    expect(relay.last.isOpen).toBe(false)
    expect(reader.stream.state.error).toMatchObject({ code: 'silent' })
  })

  it('is left after three heartbeats of the interval that it named', async () => {
    const { relay, reader } = await readFrom()
    relay.last.send(hello('e.1', 2))
    await relay.advance(5_000)
    relay.last.send(nav('e.2', null))
    await relay.advance(5_999)
    expect(relay.last.isOpen).toBe(true)
    await relay.advance(1)
    expect([relay.connections.length, relay.last.isOpen]).toEqual([1, false])
    expect(reader.stream.state.error).toMatchObject({ code: 'silent' })
  })

  it('is left at once after a sleep', async () => {
    const { relay } = await readFrom()
    relay.last.live('e.1')
    relay.nowMs += 8 * 3_600_000
    await relay.advance(500)
    expect(relay.connections).toHaveLength(2)
  })
})
