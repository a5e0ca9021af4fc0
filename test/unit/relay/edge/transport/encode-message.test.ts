import { createParser, type EventSourceMessage } from 'eventsource-parser'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Message, NoticeOf } from '../../../../../src/protocol/notices.ts'
import { encode } from '../../../../../src/relay/edge/transport/encode-message.ts'

const pong: NoticeOf<'pong'> = { type: 'pong', time: '2026-11-20T14:05:12.441Z' }
const heartbeat: NoticeOf<'heartbeat'> = {
  ...{ type: 'heartbeat', id: 'k3f9a1.18502', end: 'k3f9a1.18502', time: '2026-11-20T14:05:57.204Z' },
  ...{ head: { pending: null, sealed: null, safe: null, finalized: null }, source: 'down', sent: 0, backlog: 0 },
}
const error = (message: string): NoticeOf<'error'> => ({ type: 'error', code: 400, reason: 'bad_parameter', message })
const sse = (message: Message, transport: 'sse' | 'sse-named' = 'sse'): Buffer =>
  encode(transport, message, JSON.stringify(message))

/** Any JavaScript string: all code units, with line breaks, NUL, separators and lone surrogates. */
const anyText = fc
  .array(
    fc.oneof(
      fc.constantFrom('\r', '\n', '\r\n', '\0', '\u2028', '\u2029', '\ufeff', '\ud83c', '🍏', 'data: ', 'id:', ':', ' '),
      fc.nat(0xffff).map((unit) => String.fromCharCode(unit)),
    ),
    { maxLength: 40 },
  )
  .map((pieces) => pieces.join(''))

/** Parses bytes with an independent SSE parser, in chunks that end anywhere. */
function eventsOf(bytes: Buffer, chunkBytes: number): EventSourceMessage[] {
  const events: EventSourceMessage[] = []
  const parser = createParser({ onEvent: (event) => events.push(event) })
  const decoder = new TextDecoder()
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    parser.feed(decoder.decode(bytes.subarray(at, at + chunkBytes), { stream: true }))
  }
  return events
}

/** The header of one final unmasked text frame, by RFC 6455. */
function headerOf(bytes: number): Buffer {
  if (bytes < 126) return Buffer.of(0x81, bytes)
  const length = Buffer.alloc(bytes < 65_536 ? 2 : 8)
  length.writeUIntBE(bytes, Math.max(0, length.length - 6), Math.min(6, length.length))
  return Buffer.concat([Buffer.of(0x81, bytes < 65_536 ? 126 : 127), length])
}

it.each([
  ...['', 'x', 'x'.repeat(125), 'x'.repeat(126), 'x'.repeat(127), 'x'.repeat(65_535), 'x'.repeat(65_536), 'x'.repeat(1_000_000)],
  // Bytes are counted, not characters.
  ...['é'.repeat(63), '株'.repeat(42), '🍏'.repeat(16_384)],
])('a WebSocket frame has the shortest length field of its text (%#)', (text) => {
  const bytes = Buffer.from(text)
  expect(encode('ws', pong, text).equals(Buffer.concat([headerOf(bytes.length), bytes]))).toBe(true)
})

describe('an SSE event', () => {
  it('parses back to its message, with any characters in its texts', () => {
    fc.assert(
      fc.property(fc.array(anyText, { minLength: 1, maxLength: 4 }), fc.integer({ min: 1, max: 64 }), (texts, chunk) => {
        const messages = texts.map(error)
        const events = eventsOf(Buffer.concat(messages.map((message) => sse(message))), chunk)
        expect(events.map(({ data }) => data)).toEqual(messages.map((message) => JSON.stringify(message)))
        expect(events.map(({ data }) => JSON.parse(data))).toEqual(messages)
      }),
      { numRuns: 150 },
    )
  })

  const bye: Message = { type: 'bye', id: null, reason: 'full', retry_ms: 0 }
  it.each([
    ['has the id of its message, and is named as a heartbeat', 'sse', heartbeat, heartbeat.id, 'heartbeat'],
    ['has no id where that of its message is null', 'sse', bye, undefined, undefined],
    ['is named after its type with events=named', 'sse-named', pong, undefined, 'pong'],
    ['is named after its type with events=named, as a heartbeat too', 'sse-named', heartbeat, heartbeat.id, 'heartbeat'],
  ] as const)('%s', (_, transport, message, id, event) => {
    expect(eventsOf(sse(message, transport), 1_024)).toEqual([{ data: JSON.stringify(message), id, event }])
  })
})
