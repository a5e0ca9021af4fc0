import { describe, expect, it, vi } from 'vitest'
import type { StreamOptions } from '../../../../src/sdk/client/stream-types.ts'
import { UpdateStream } from '../../../../src/sdk/client/update-stream.ts'
import { exportOf, FakeRelay, gap, heartbeat, nav, readFrom, type Sent, snapshot } from './fake-relay.ts'

async function loadAndAbort(abort: AbortController): Promise<string> {
  abort.abort()
  return 'e.1'
}

/** A store that remembers all that was saved. */
function storeOf(position: string | null = null) {
  const saved: string[] = []
  return { saved, load: () => position, save: (position: string) => void saved.push(position) }
}

const live = (id: string, replayed: number) => ({ type: 'live', id, replayed })
const statusOf = (oldest: string) => ({ tape: { oldest } })

describe('a stream that breaks', () => {
  it('connects only when it is read, and goes on after the newest message', async () => {
    const relay = new FakeRelay()
    const stream = new UpdateStream(relay.source(), ['AAPLc', 'TSLAc'], { types: ['nav'], minShares: 2 })
    await relay.advance(60_000)
    expect(relay.connections).toHaveLength(0)
    const first = stream.next()
    await relay.advance(0)
    expect(String(relay.last.query)).toBe('symbols=AAPLc%2CTSLAc&min_shares=2&types=nav&heartbeat=5')
    relay.last.live('e.1').send(nav('e.2', null))
    expect(await first).toMatchObject({ done: false, value: { id: 'e.2' } })
    await stream.close()
    expect(await stream.next()).toEqual({ done: true, value: undefined })
    expect(relay.timerCount).toBe(0)
  })

  it.each([
    ['before hello', (relay: FakeRelay) => relay.last, null],
    ['after hello', (relay: FakeRelay) => relay.last.start('e.1'), 'e.1'],
    ['after one of its snapshots', (relay: FakeRelay) => relay.last.start('e.1').send(snapshot('A', 'e.1')), 'e.1'],
    ['after a gap', (relay: FakeRelay) => relay.last.start(null, 'gap').send(gap('e.1', 'd.9', 'epoch')), 'e.1'],
  ])('%s gets all snapshots again', async (_, begin, since) => {
    const { relay, reader } = await readFrom({}, 'websocket')
    begin(relay).end()
    await relay.advance(1_000)
    expect(relay.last.since).toBe(since)
    expect(relay.last.query.get('snapshot')).toBe(since === null ? null : 'always')
    relay.last.start('e.1', 'full').send(snapshot('A', 'e.2'), snapshot('B', 'e.2'), nav('e.2', null))
    relay.last.send({ type: 'live', id: 'e.2', replayed: 1 }).end()
    await relay.advance(1_000)
    expect(relay.last.query.get('snapshot')).toBeNull()
    expect(reader.received.slice(-3)).toEqual(['snapshot A e.2', 'snapshot B e.2', 'e.2'])
  })

  it('never asks for snapshots where it shall have none', async () => {
    const { relay } = await readFrom({ snapshot: false })
    relay.last.start('e.1').end()
    await relay.advance(1_000)
    expect(relay.last.query.get('snapshot')).toBe('false')
  })
})

// That no selection hides such a loss, or one on the way, is in test/simulation/client-streams.test.ts.
describe('a tape that has lost its end', () => {
  /** A stream has e.3, which only came to it, when the relay starts again and goes on at e.100. */
  const resumeAfterLoss = async (options: StreamOptions, ...replay: readonly Sent[]) => {
    const store = storeOf()
    const { relay, reader } = await readFrom({ store, ...options })
    relay.last.live('e.1').send(nav('e.2', null), heartbeat('e.2', 1), nav('e.3', 'e.2')).end()
    await relay.advance(1_000)
    relay.last.start(relay.last.since, 'full').send(...replay)
    await relay.advance(0)
    return { relay, reader, store }
  }
  const lost = nav('e.100', 'e.2')

  it.each(['yield', 'fill'] as const)('is a gap from the last proven position, and snapshots follow; filled: %s', async (gaps) => {
    const { relay, reader, store } = await resumeAfterLoss({ gaps }, lost, live('e.100', 1))
    expect(relay.connections).toHaveLength(3)
    expect(relay.last.since).toBe('e.100')
    expect(relay.last.query.get('snapshot')).toBe('always')
    // A program that starts again now resumes from what the tape has lost, and gets a gap of the relay.
    expect(store.saved.at(-1)).toBe('e.3')
    relay.last.start('e.100', 'full').send(snapshot('A', 'e.100'), live('e.100', 0))
    await relay.advance(0)
    expect(reader.received).toEqual(['e.2', 'e.3', 'e.100', 'gap expired (e.2, e.100]', 'snapshot A e.100'])
    expect(store.saved.at(-1)).toBe('e.100')
    relay.last.end()
    await relay.advance(1_000)
    relay.last.live('e.100', 'full').send(nav('e.101', 'e.100'), heartbeat('e.101', 1))
    await relay.advance(0)
    expect(reader.received.slice(5)).toEqual(['e.101'])
  })

  it('is found only once the relay has passed the position: another relay may be behind', async () => {
    const { relay, reader, store } = await resumeAfterLoss({}, live('e.2', 0))
    relay.last.send(nav('e.3', 'e.2'), heartbeat('e.3', 1))
    await relay.advance(0)
    expect(reader.received).toEqual(['e.2', 'e.3'])
    expect(store.saved.at(-1)).toBe('e.3')
    await reader.stream.close()
    const late = await resumeAfterLoss({}, live('e.2', 0), lost)
    expect(late.reader.received).toEqual(['e.2', 'e.3', 'e.100'])
    expect(late.store.saved.at(-1)).toBe('e.3')
    late.relay.last.send(heartbeat('e.100', 1))
    await late.relay.advance(0)
    expect(late.reader.received.at(-1)).toBe('gap expired (e.2, e.100]')
    await late.reader.stream.close()
  })

  it('hides no new message, although its position is before the lost ones of its chain', async () => {
    const { relay, reader } = await readFrom({})
    relay.last.live('e.1').send(nav('e.2', null), heartbeat('e.2', 1), nav('e.100', 'e.2')).end()
    await relay.advance(1_000)
    relay.last.start('e.2', 'full').send(nav('e.50', 'e.2'), live('e.50', 1), nav('e.51', 'e.50'), heartbeat('e.51', 2))
    await relay.advance(0)
    expect(reader.received).toEqual(['e.2', 'e.100', 'e.50', 'e.51'])
    relay.last.send(nav('e.101', 'e.51'), heartbeat('e.101', 3))
    await relay.advance(0)
    expect(reader.received.slice(4)).toEqual(['e.101', 'gap expired (e.51, e.101]'])
    await reader.stream.close()
  })

  it.each([
    ['is a gap where the relay fills one without it', [], ['gap long (e.2, e.100]']],
    ['is none where the history still has it', [nav('e.3', 'e.2')], []],
  ])('%s', async (_, stored, gaps) => {
    const backfill = '/v1/events?symbols=*&after=e.2&through=e.100'
    const { relay, reader } = await resumeAfterLoss({ gaps: 'fill' })
    relay.answer = (path) => (path === 'v1/status' ? statusOf('e.1') : exportOf([...stored, lost]))
    relay.last.send(gap('e.100', 'e.2', 'long', backfill), live('e.100', 0))
    await relay.advance(0)
    expect(reader.received).toEqual(['e.2', 'e.3', 'e.100', ...gaps])
  })

  it('ends a stream that throws at a gap, which does not connect again', async () => {
    const { relay, reader } = await resumeAfterLoss({ gaps: 'throw' }, lost, live('e.100', 1))
    expect(String(reader.failure)).toContain('messages are missing after e.2 through e.100: expired')
    expect(relay.connections).toHaveLength(2)
    expect(relay.timerCount).toBe(0)
  })
})

describe('a slow consumer', () => {
  it.each([1, 2, 5])('disconnects at a bound of %i and loses nothing, snapshots neither', async (highWaterMark) => {
    const { relay, reader } = await readFrom({ highWaterMark })
    const tape = Array.from({ length: 20 }, (_, index) => nav(`e.${index + 1}`, index ? `e.${index}` : null))
    await relay.advance(0)
    let served = 0
    for (let turn = 0; turn < 100 && reader.items.length < 22; turn += 1) {
      if (served < relay.connections.length) {
        served = relay.connections.length
        const { since } = relay.last
        const isFull = since !== null && relay.last.query.get('snapshot') !== 'always'
        relay.last.start(since ?? 'e.0', isFull ? 'full' : 'none')
        if (!isFull) relay.last.send(snapshot('A', 'e.0'), snapshot('B', 'e.0'))
        relay.last.send(...tape.slice(Number((since ?? 'e.0').slice(2))))
      }
      await relay.advance(10)
    }
    expect(reader.received).toEqual(['snapshot A e.0', 'snapshot B e.0', ...tape.map(({ id }) => id)])
    expect(reader.states.some(({ phase }) => phase === 'paused')).toBe(true)
    await reader.stream.close()
    expect(relay.timerCount).toBe(0)
  })

  it('keeps no more than the newest of many heartbeats', async () => {
    const { relay, reader } = await readFrom()
    reader.pause()
    relay.last.live('e.1').send(nav('e.2', null))
    await relay.advance(0)
    for (let seq = 3; seq < 100; seq += 1) relay.last.send(heartbeat(`e.${seq}`, 1))
    expect(reader.stream.state.queued).toBe(1)
  })
})

describe('a stored position', () => {
  it('is never ahead of what the consumer has finished with', async () => {
    const store = storeOf()
    const { relay, reader } = await readFrom({ store })
    reader.pause()
    relay.last.start('e.1').send(snapshot('A', 'e.1'), snapshot('B', 'e.1'))
    relay.last.send({ type: 'live', id: 'e.1', replayed: 0 }, nav('e.2', null), heartbeat('e.9', 1))
    const expected: [string[], string[]][] = [
      [['snapshot A e.1'], []],
      [['snapshot B e.1'], []],
      [['e.2'], ['e.1']],
    ]
    for (const [received, saved] of expected) {
      await relay.advance(0)
      expect([reader.received.slice(-1), store.saved]).toEqual([received, saved])
      reader.resume()
      reader.pause()
    }
    await relay.advance(0)
    expect(store.saved).toEqual(['e.1', 'e.2', 'e.9'])
  })

  it('stays before a gap until the snapshots after it are finished', async () => {
    const store = storeOf('e.1')
    const { relay, reader } = await readFrom({ store })
    expect(relay.last.since).toBe('e.1')
    relay.last.start(null, 'gap').send(gap('e.5', 'e.1'), snapshot('A', 'e.5'))
    await relay.advance(0)
    expect([reader.received, store.saved]).toEqual([['gap expired (e.1, e.5]', 'snapshot A e.5'], []])
    relay.last.send({ type: 'live', id: 'e.5', replayed: 0 })
    await relay.advance(0)
    expect(store.saved).toEqual(['e.5'])
  })

  it('of another tape is given up where the new one begins', async () => {
    const store = storeOf('d.900')
    const { relay, reader } = await readFrom({ store })
    relay.last.start(null, 'gap').send(gap('e.5', 'd.900', 'epoch'), { type: 'live', id: 'e.5', replayed: 0 })
    relay.last.send(nav('e.6', 'e.4'), heartbeat('e.6', 1))
    await relay.advance(0)
    expect(reader.received).toEqual(['gap epoch (d.900, e.5]', 'e.6'])
    expect(store.saved.at(-1)).toBe('e.6')
  })

  it('is the newest one when a slow store is done, and closing waits for it', async () => {
    const relay = new FakeRelay()
    const saved: string[] = []
    let finish: (() => void) | undefined
    const save = (position: string) => {
      saved.push(position)
      return new Promise<void>((resolve) => (finish = resolve))
    }
    const reader = relay.read({ store: { load: async () => null, save } })
    await relay.advance(0)
    relay.last.live('e.1').send(nav('e.2', null), nav('e.3', 'e.2'), nav('e.4', 'e.3'))
    await relay.advance(0)
    let isClosed = false
    const closed = reader.stream.close().then(() => (isClosed = true))
    await relay.advance(0)
    expect([saved, isClosed]).toEqual([['e.1'], false])
    finish?.()
    await relay.advance(0)
    finish?.()
    await closed
    expect(saved).toEqual(['e.1', 'e.4'])
  })

  it.each(['load', 'save'] as const)('that cannot %s ends the stream with the failure', async (method) => {
    const relay = new FakeRelay()
    const fail = () => {
      throw new Error('the disk is full')
    }
    const reader = relay.read({ store: { ...storeOf(), [method]: fail } })
    await relay.advance(0)
    relay.connections.at(-1)?.live('e.1').send(nav('e.2', null))
    await relay.advance(0)
    expect(reader.failure).toEqual(new Error('the disk is full'))
    expect([reader.stream.state.phase, relay.timerCount]).toEqual(['closed', 0])
  })
})

describe('a stream that throws at a gap', () => {
  it('ends at a loss: nothing after it is yielded or stored', async () => {
    const store = storeOf()
    const { relay, reader } = await readFrom({ store, gaps: 'throw' })
    relay.last.live('e.1').send(nav('e.2', null), nav('e.4', 'e.3'), nav('e.5', 'e.4'))
    await relay.advance(0)
    expect(reader.failure).toMatchObject({ name: 'GapError', gap: { reason: 'missed', after: 'e.2', through: 'e.3' } })
    expect([reader.received, store.saved.at(-1)]).toEqual([['e.2'], 'e.2'])
  })

  it('does not come back after a loss at its bound', async () => {
    const { relay, reader } = await readFrom({ gaps: 'throw', highWaterMark: 1 })
    relay.last.live('e.1').send(nav('e.4', 'e.3'))
    await relay.advance(60_000)
    expect([reader.isDone, relay.connections.length, relay.timerCount]).toEqual([true, 1, 0])
  })
})

describe('the receipt of a replay', () => {
  const replay = [nav('e.2', null), nav('e.3', 'e.2')]

  it('is verified before any later message is yielded', async () => {
    const { relay, reader } = await readFrom({ since: 'start' })
    expect(reader.stream.state.verified).toBeNull()
    relay.last.start('e.1').send(...replay, live('e.3', 2), nav('e.4', 'e.3'))
    await relay.advance(0)
    expect([reader.received, reader.stream.state.verified]).toEqual([['e.2', 'e.3', 'e.4'], true])
  })

  it.each<[StreamOptions, readonly string[]]>([
    [{}, ['e.2', 'e.3', 'gap missed (e.1, e.3]', 'e.4']],
    // The history has another message than the replay.
    [{ gaps: 'fill' }, ['e.2', 'e.3', 'e.2.1', 'e.4']],
    [{ gaps: 'throw' }, ['e.2', 'e.3']],
  ])('that differs is a gap: %j', async (options, expected) => {
    const store = storeOf()
    const { relay, reader } = await readFrom({ since: 'start', store, ...options })
    relay.answer = (path) => (path === 'v1/status' ? statusOf('e.1') : exportOf([nav('e.2.1', null), ...replay]))
    relay.last.start('e.1').send(...replay, { ...live('e.3', 2), digest: 'another' }, nav('e.4', 'e.3'))
    await relay.advance(0)
    expect([reader.received, reader.stream.state.verified]).toEqual([expected, false])
    if (options.gaps !== 'throw') return
    expect(reader.failure).toMatchObject({ name: 'GapError', gap: { after: 'e.1', through: 'e.3' } })
    expect([store.saved.at(-1), reader.stream.state.error?.code, relay.timerCount]).toEqual(['e.3', 'gap', 0])
  })

  it('is not verified where the platform cannot, and the state says so', async () => {
    const relay = new FakeRelay()
    Object.assign(relay.http, { digestOf: async () => null })
    const reader = relay.read({ since: 'start' })
    await relay.advance(0)
    relay.last.start('e.1').send(...replay, { ...live('e.3', 2), digest: 'another' })
    await relay.advance(0)
    expect([reader.received, reader.stream.state.verified]).toEqual([['e.2', 'e.3'], false])
    await reader.stream.close()
  })

  // A loss there is counted by the next heartbeat, and is no second gap.
  it('is not verified after a gap between live messages', async () => {
    const { relay, reader } = await readFrom({ since: 'start' })
    relay.last.live('e.1').send(nav('e.2', null), gap('e.3', 'e.2', 'long'), { ...live('e.4', 1), digest: 'another' })
    await relay.advance(0)
    expect([reader.received, reader.stream.state.verified]).toEqual([['e.2', 'gap long (e.2, e.3]'], false])
    await reader.stream.close()
  })

  it('begins again after a gap, and after a reconnect has what the relay repeats', async () => {
    const { relay, reader } = await readFrom({ since: 'start' })
    relay.last
      .start(null, 'gap')
      .send(nav('e.1', null), gap('e.2', null), ...[nav('e.3', null), live('e.3', 1)], nav('e.4', 'e.3'))
      .end()
    await relay.advance(1_000)
    relay.last.start('e.3', 'full').send(nav('e.4', 'e.3'), nav('e.5', 'e.4'), live('e.5', 2))
    await relay.advance(0)
    expect(reader.received).toEqual(['e.1', 'gap expired (null, e.2]', 'e.3', 'e.4', 'e.5'])
    expect(reader.states.filter(({ verified }) => verified === false)).toEqual([])
    expect(reader.stream.state.verified).toBe(true)
  })
})

describe('a gap that is filled', () => {
  const lossy = async (options: StreamOptions, newest = 5) => {
    const store = storeOf()
    const { relay, reader } = await readFrom({ gaps: 'fill', store, ...options })
    const after = nav(`e.${newest}`, `e.${newest - 1}`)
    relay.last.live('e.1').send(nav('e.2', null), after, heartbeat(after.id, newest - 1))
    return { relay, store, reader }
  }

  it.each<[string, StreamOptions]>([
    ['found by its chain', {}],
    ['found by its number', { minValue: 1 }],
  ])('yields each missing message once, page by page: %s', async (_, options) => {
    const { relay, reader, store } = await lossy(options, 1_005)
    const stored = Array.from({ length: 1_004 }, (_, at) => nav(`e.${at + 2}`, `e.${at + 1}`))
    relay.answer = (path, query) => {
      if (path === 'v1/status') return statusOf('e.1')
      const from = stored.findIndex(({ prev }) => prev === query.get('after'))
      return exportOf(stored.slice(from, from + Number(query.get('limit'))))
    }
    await relay.advance(0)
    expect(reader.received.map((id) => Number(id.slice(2))).sort((a, b) => a - b)).toEqual(stored.map((_, at) => at + 2))
    expect(relay.requests.filter((path) => path.startsWith('v1/events')).length).toBeGreaterThan(1)
    expect(store.saved.at(-1)).toBe('e.1005')
  })

  it.each<[string, FakeRelay['answer']]>([
    ['the history fails', () => Promise.reject(new Error('no answer'))],
    [
      'a page fails',
      (_, query) =>
        query.get('after') === 'e.3' ? Promise.reject(new Error('no')) : exportOf(Array(1_000).fill(nav('e.3', 'e.2'))),
    ],
    ['a part is deleted', (path) => (path === 'v1/status' ? statusOf('e.3') : exportOf([]))],
    [
      'a receipt differs',
      (path) => (path === 'v1/status' ? statusOf('e.1') : `${JSON.stringify(nav('e.4', 'e.3'))}\n${exportOf([])}`),
    ],
    ['a receipt is missing', (path) => (path === 'v1/status' ? statusOf('e.1') : JSON.stringify(nav('e.4', 'e.3')))],
  ])('comes as a gap where %s', async (_, answer) => {
    const onError = vi.fn()
    const { relay, reader } = await lossy({ onError })
    relay.answer = answer
    await relay.advance(0)
    expect(reader.received).toContain('gap missed (e.2, e.4]')
    expect(onError).toHaveBeenCalledWith(expect.objectContaining({ name: 'GapError', cause: expect.any(Error) }))
  })

  it('of the sealed view comes as a gap too where the history gives less than is missing', async () => {
    const { relay, reader } = await lossy({ stage: 'sealed' })
    relay.answer = (path) =>
      path === 'v1/status' ? statusOf('e.1') : exportOf([nav('e.2', null), nav('e.3', 'e.2'), nav('e.5', 'e.4')])
    await relay.advance(0)
    expect(reader.received).toEqual(['e.2', 'e.5', 'e.3', 'gap missed (e.1, e.5]'])
  })

  it('is not finished when the stream is closed meanwhile', async () => {
    const { relay, reader, store } = await lossy({})
    relay.answer = (_, __, signal) => new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
    await relay.advance(0)
    await reader.stream.close()
    await relay.advance(0)
    expect([reader.isDone, reader.failure, store.saved.at(-1)]).toEqual([true, null, 'e.2'])
    expect(await reader.stream.next()).toMatchObject({ done: true })
  })
})

describe('a stream that ends', () => {
  it.each<[string, (stream: UpdateStream, abort: AbortController) => unknown]>([
    ['close()', (stream) => stream.close()],
    ['return()', (stream) => stream.return()],
    ['its signal', (_, abort) => abort.abort()],
    ['disposal', (stream) => stream[Symbol.asyncDispose]()],
  ])('by %s leaves nothing behind', async (_, end) => {
    const relay = new FakeRelay()
    const abort = new AbortController()
    const reader = relay.read({ signal: abort.signal })
    await relay.advance(0)
    relay.last.live('e.1').send(nav('e.2', null))
    await relay.advance(0)
    await end(reader.stream, abort)
    await reader.done
    await relay.advance(60_000)
    expect(reader.failure).toBeNull()
    expect([relay.last.isOpen, relay.connections.length, relay.timerCount]).toEqual([false, 1, 0])
    expect(reader.stream.state).toMatchObject({ phase: 'closed', error: null })
  })

  it('leaves no listener at a signal that lives on', async () => {
    const relay = new FakeRelay()
    const { signal } = new AbortController()
    let listeners = 0
    const add = signal.addEventListener.bind(signal)
    signal.addEventListener = (...[type, listener, options]: Parameters<typeof add>) => {
      listeners += 1
      if (typeof options === 'object') options.signal?.addEventListener('abort', () => (listeners -= 1))
      add(type, listener, options)
    }
    const reader = relay.read({ signal })
    await relay.advance(0)
    expect(listeners).toBe(1)
    await reader.stream.close()
    expect(listeners).toBe(0)
  })

  it.each(['before it is read', 'while it loads its position'])('%s never connects', async (moment) => {
    const relay = new FakeRelay()
    const abort = new AbortController()
    if (moment === 'before it is read') abort.abort()
    const store = { ...storeOf(), load: () => loadAndAbort(abort) }
    const reader = relay.read({ signal: abort.signal, store })
    await relay.advance(60_000)
    expect([reader.isDone, reader.failure, relay.connections.length]).toEqual([true, null, 0])
  })

  it('ends every call that waits, and a second loop at once', async () => {
    const relay = new FakeRelay()
    const stream = new UpdateStream(relay.source(), '*', {})
    const calls = [stream.next(), stream.next(), stream.next()]
    await relay.advance(0)
    relay.last.live('e.1').send(nav('e.2', null))
    expect(await calls[0]).toMatchObject({ value: { id: 'e.2' } })
    await stream.close()
    expect(await Promise.all(calls.slice(1))).toEqual([
      { done: true, value: undefined },
      { done: true, value: undefined },
    ])
    for await (const item of stream) expect.unreachable(`${item.id}`)
  })
})

it('ignores types and fields that it does not know, and proves by them too', async () => {
  const { relay, reader } = await readFrom()
  relay.last.live('e.1').send({ type: 'weather', id: 'e.9' }, { ...nav('e.2', null), mood: 1 })
  relay.last.send({ ...nav('e.3', null), type: 'weather' }, heartbeat('e.3', 2))
  await relay.advance(0)
  expect(reader.received).toEqual(['e.2'])
  expect(reader.stream.position).toBe('e.3')
  await reader.stream.close()
})
