import { expect, test } from 'vitest'
import { LatencyTally } from './latency-tally.ts'
import { stampAt, stampNumber, stampTime, timeAsAddress } from './message-stamp.ts'
import { encodeMessages, type Sample, sealMessage, transferMessage } from './sample-messages.ts'
import { type ByteReader, DATA_PREFIX, FrameReader, LineReader, type OnMessage, ResponseReader } from './stream-readers.ts'

const sample: Sample = {
  transfer: `{"type":"transfer","id":"e.1","from":"0xab","to":"${timeAsAddress(1)}","raw":"1000000000","amount":"10"}`,
  seal: '{"type":"seal","id":"e.2","keys":["1-0xab-0","1-0xab-1"],"types":["transfer","transfer"],"count":2}',
  id: 'e.1',
  isChunked: true,
}
const long = `{"type":"long","text":"${'x'.repeat(70_000)}"}`
const messages = [sample.transfer, '{}', sealMessage(sample, 5), long, sample.transfer]

const frames = (text: OnMessage) => new FrameReader({ text })
const events = (onMessage: OnMessage) => new LineReader(onMessage, DATA_PREFIX)
const answer = (onMessage: OnMessage) => new ResponseReader((head) => (head === 'HTTP/1.1 200 OK' ? events(onMessage) : null))

/** The messages found when the bytes come in pieces, in a buffer that is reused. */
function readMessages(bytes: Buffer, cuts: readonly number[], readerOf: (onMessage: OnMessage) => ByteReader): readonly string[] {
  const received: string[] = []
  const reader = readerOf((lent, from, to) => received.push(lent.toString('utf8', from, to)))
  const lent = Buffer.alloc(bytes.length + 1)
  let from = 0
  for (const to of [...cuts, bytes.length]) {
    bytes.copy(lent, 1, from, to)
    reader.read(lent, 1, 1 + to - from)
    lent.fill(0)
    from = to
  }
  return received
}

/** Every offset near the beginning and the end, and some between. */
const cutPositions = (bytes: Buffer): readonly number[] =>
  Array.from({ length: bytes.length + 1 }, (_, at) => at).filter((at) => at < 700 || at > bytes.length - 200 || at % 997 === 0)

/** Two groups of events, each of which is a chunk where the body is chunked. */
const eventBytes = (isChunked: boolean, events: readonly string[]) =>
  Buffer.concat([events, [sample.seal]].map((group) => encodeMessages(group, 'sse', { ...sample, isChunked })))
const short = messages.filter((message) => message !== long)

test.each<[string, Buffer, (onMessage: OnMessage) => ByteReader, readonly string[]]>([
  ['frame', encodeMessages(messages, 'ws', sample), frames, messages],
  ['event', eventBytes(false, messages), events, [...messages, sample.seal]],
  ['event in chunks', eventBytes(true, short), events, [...short, sample.seal]],
  [
    'event after a head',
    Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\n\r\n'), eventBytes(false, short)]),
    answer,
    [...short, sample.seal],
  ],
])('each %s is read once, wherever the bytes are cut', (_, bytes, readerOf, expected) => {
  for (const at of cutPositions(bytes)) expect(readMessages(bytes, [at], readerOf)).toEqual(expected)
  const everywhere = Array.from({ length: bytes.length }, (_, at) => at)
  expect(readMessages(bytes, everywhere, readerOf)).toEqual(expected)
})

test('a ping is answered and a close is told, and neither contains a message', () => {
  const seen: string[] = []
  const bytes = Buffer.concat([Buffer.from([0x89, 2, 1, 2]), encodeMessages(['{}'], 'ws', sample), Buffer.from([0x88, 2, 3, 0xe8])])
  const reader = (text: OnMessage) =>
    new FrameReader({ text, ping: () => seen.push('ping'), close: (all, from) => seen.push(`close ${all.readUInt16BE(from)}`) })
  expect(readMessages(bytes, [1, bytes.length - 1], reader)).toEqual(['{}'])
  expect(seen).toEqual(['ping', 'close 1000'])
})

test('bytes that are no frame end the benchmark instead of being counted', () => {
  expect(() => readMessages(Buffer.from('HTTP/1.1 200 OK'), [], frames)).toThrow('no frame begins with 72')
  expect(() => readMessages(Buffer.of(0xc1, 0), [], frames)).toThrow('no frame begins with 193')
  expect(readMessages(Buffer.from('HTTP/1.1 503 full\r\n\r\ndata: {}\n'), [], answer)).toEqual([])
})

test('the number and the time of a message are read as they were written', () => {
  const before = Date.now() * 1_000
  const message = Buffer.from(transferMessage(sample, 1_234_567_890))
  const at = stampAt(message, 0, message.length, 0)
  expect(stampAt(message, 0, message.length, at)).toBe(at)
  expect(stampNumber(message, at)).toBe(1_234_567_890)
  expect(stampTime(message, at)).toBeGreaterThanOrEqual(before - 1_000_000)
  expect(stampTime(message, at)).toBeLessThanOrEqual(Date.now() * 1_000 + 1_000_000)
})

test('a message without a stamp does not get the stamp of the next one', () => {
  const bytes = Buffer.from(`{"type":"heartbeat"}${sample.transfer}`)
  const end = bytes.indexOf('}') + 1
  const nextStamp = stampAt(bytes, end, bytes.length, end)
  expect(nextStamp).toBeGreaterThan(end)
  expect(stampAt(bytes, 0, end, nextStamp)).toBe(-1)
  expect(stampAt(bytes, 0, end, 0)).toBe(-1)
})

test('percentiles of the tally are exact to four percent', () => {
  const tally = new LatencyTally()
  for (let micros = 1; micros <= 100_000; micros += 1) tally.add(micros)
  const { p50Ms, p99Ms, maxMs } = tally.percentiles()
  expect([p50Ms / 50, p99Ms / 99].every((ratio) => ratio > 0.96 && ratio < 1.04)).toBe(true)
  expect([maxMs, tally.count]).toEqual([100, 100_000])
})
