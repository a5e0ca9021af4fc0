import { expect, it } from 'vitest'
import type { StreamState } from '../../../../src/sdk/client/stream-types.ts'
import { type FakeRelay, gap, heartbeat, hello, nav, type Reader, readFrom } from './fake-relay.ts'

type Phase = StreamState['phase']
type Stream = { readonly relay: FakeRelay; readonly reader: Reader }

/** The consumer does not take what follows its first message, and only a few messages wait for it. */
const QUEUE_BOUND = 8

/** Sends messages until the queue is full. A closed connection receives none. */
const fill = ({ relay }: Stream) =>
  relay.last.send(...[2, 3, 4, 5, 6, 7, 8, 9, 10].map((seq) => nav(`e.${seq}`, seq === 2 ? null : `e.${seq - 1}`)))

const inputs = {
  hello: ({ relay }) => relay.last.send(hello('e.1')),
  live: ({ relay }) => relay.last.send({ type: 'live', id: 'e.1', replayed: 0 }),
  update: ({ relay }) => relay.last.send(nav('e.2', null)),
  heartbeat: ({ relay }) => relay.last.send(heartbeat('e.1', 0)),
  gap: ({ relay }) => relay.last.send(gap('e.2', 'e.1')),
  bye: ({ relay }) => relay.last.send({ type: 'bye', id: 'e.1', retry_ms: 0 }),
  end: ({ relay }) => relay.last.end(),
  refusal: ({ relay }) => relay.last.end(4_003),
  'a minute': ({ relay }) => relay.advance(60_000),
  full: fill,
  taken: ({ reader }) => reader.resume(),
  close: ({ reader }) => reader.stream.close(),
} satisfies Record<string, (stream: Stream) => unknown>

/** Brings a stream that connects into each phase. */
const reach: Readonly<Record<Phase, (stream: Stream) => unknown>> = {
  connecting: () => {},
  replaying: ({ relay }) => relay.last.start('e.1'),
  live: ({ relay }) => relay.last.live('e.1', 'full'),
  waiting: ({ relay }) => relay.last.live('e.1', 'full').end(),
  paused: (stream) => {
    stream.relay.last.live('e.1', 'full')
    fill(stream)
  },
  closed: ({ reader }) => reader.stream.close(),
}

const stays: Readonly<Record<Phase, Phase>> = {
  connecting: 'connecting',
  replaying: 'replaying',
  live: 'live',
  waiting: 'waiting',
  paused: 'paused',
  closed: 'closed',
}
/** Only these phases have an open connection: in the others, the stream hears nothing. */
const ifOpen = (to: Phase) => ({ ...stays, connecting: to, replaying: to, live: to })

/** The phase after each input. A new phase or input does not compile without its cells. */
const table: Readonly<Record<keyof typeof inputs, Readonly<Record<Phase, Phase>>>> = {
  hello: ifOpen('replaying'),
  live: ifOpen('live'),
  update: stays,
  heartbeat: stays,
  gap: stays,
  bye: stays,
  end: ifOpen('waiting'),
  refusal: ifOpen('closed'),
  // Before the hello, silence is left after ten seconds. The next attempt is silent too.
  'a minute': { ...ifOpen('connecting'), connecting: 'waiting', waiting: 'connecting' },
  full: ifOpen('paused'),
  taken: { ...stays, paused: 'connecting' },
  close: { connecting: 'closed', replaying: 'closed', live: 'closed', waiting: 'closed', paused: 'closed', closed: 'closed' },
}

const cells = (Object.keys(reach) as Phase[]).flatMap((phase) =>
  (Object.keys(inputs) as (keyof typeof inputs)[]).map((input) => [phase, input, table[input][phase]] as const),
)

it.each(cells)('a stream that is %s is, after %s: %s', async (phase, input, expected) => {
  const stream = await readFrom({ highWaterMark: QUEUE_BOUND }, 'websocket')
  stream.reader.pause()
  await reach[phase](stream)
  await stream.relay.advance(0)
  expect(stream.reader.stream.state.phase).toBe(phase)
  await inputs[input](stream)
  await stream.relay.advance(0)
  expect(stream.reader.stream.state.phase).toBe(expected)
})
