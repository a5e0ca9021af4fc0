import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import type { Message, NoticeOf } from '../../../../../src/protocol/notices.ts'
import { encode } from '../../../../../src/relay/edge/transport/encode-message.ts'

const pong: NoticeOf<'pong'> = { type: 'pong', time: '2026-11-20T14:05:12.441Z' }
const heartbeat: NoticeOf<'heartbeat'> = {
  type: 'heartbeat',
  id: 'k3f9a1.18502',
  end: 'k3f9a1.18502',
  time: '2026-11-20T14:05:57.204Z',
  head: { pending: null, sealed: null, safe: null, finalized: null },
  source: 'down',
  sent: 0,
  backlog: 0,
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

describe('a WebSocket frame', () => {
  /** A real handshake, after which a test writes our bytes unchanged to the socket. */
  let http: Server
  let client: WebSocket
  let write: (bytes: Buffer) => void

  beforeAll(async () => {
    http = createServer()
    const server = new WebSocketServer({ server: http })
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
    const accepted = once(server, 'connection')
    client = new WebSocket(`ws://127.0.0.1:${(http.address() as AddressInfo).port}`)
    await once(client, 'open')
    const [, { socket }] = await accepted
    write = (bytes) => socket.write(bytes)
  })

  afterAll(() => {
    client.terminate()
    http.close()
  })

  const echoed = async (texts: readonly string[]): Promise<string[]> => {
    const received: string[] = []
    const all = new Promise<void>((resolve, reject) => {
      client.on('error', reject)
      client.on('message', (data, isBinary) => {
        received.push(isBinary ? 'binary' : String(data))
        if (received.length === texts.length) resolve()
      })
    })
    write(Buffer.concat(texts.map((text) => encode('ws', pong, text))))
    await all
    client.removeAllListeners('message').removeAllListeners('error')
    return received
  }

  it('of each short length is read by an independent client', async () => {
    const texts = Array.from({ length: 126 }, (_, length) => 'x'.repeat(length))
    expect(await echoed(texts)).toEqual(texts)
  })

  it.each([126, 127, 65_535, 65_536, 1_000_000])('of %s bytes is read by that client, and so is the next frame', async (length) => {
    const texts = ['y'.repeat(length), 'next']
    expect(await echoed(texts)).toEqual(texts)
  })

  it('counts bytes, not characters', async () => {
    const texts = ['é'.repeat(63), '株'.repeat(42), '🍏'.repeat(16_384), 'next']
    expect(await echoed(texts)).toEqual(texts)
  })

  it('is one final unmasked text frame with the shortest length field', () => {
    const header = (length: number, bytes: number) => [...encode('ws', pong, 'x'.repeat(length)).subarray(0, bytes)]
    expect(header(125, 2)).toEqual([0x81, 125])
    expect(header(126, 4)).toEqual([0x81, 126, 0, 126])
    expect(header(65_535, 4)).toEqual([0x81, 126, 0xff, 0xff])
    expect(header(65_536, 10)).toEqual([0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0])
  })
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
    ['has no id where its message has none, and no name, so that it reaches onmessage', 'sse', pong, undefined, undefined],
    ['has no id where that is null', 'sse', bye, undefined, undefined],
    ['is named after its type with events=named', 'sse-named', pong, undefined, 'pong'],
    ['is named after its type with events=named, as a heartbeat too', 'sse-named', heartbeat, heartbeat.id, 'heartbeat'],
  ] as const)('%s', (_, transport, message, id, event) => {
    expect(eventsOf(sse(message, transport), 1_024)).toEqual([{ data: JSON.stringify(message), id, event }])
  })
})

describe('a line', () => {
  it('of NDJSON holds one message, with any characters in its texts', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const message = error(text)
        const written = encode('ndjson', message, JSON.stringify(message)).toString()
        expect(written.indexOf('\n')).toBe(written.length - 1)
        expect(written).not.toContain('\r')
        expect(JSON.parse(written)).toEqual(message)
      }),
    )
  })

  it('of text holds one message, with any characters in its texts', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const written = encode('text', error(text), '').toString()
        expect(written).toMatch(/^# error 400:[^\r\n]*\n$/)
      }),
    )
  })
})
