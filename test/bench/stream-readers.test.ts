import { constants, deflateRawSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { LatencyTally } from './latency-tally.ts'
import { MessageInflater } from './message-inflater.ts'
import { stampAt, stampNumber, stampTime, timeAsAddress } from './message-stamp.ts'
import { encodeMessages, type Sample, sealMessage, transferMessage } from './sample-messages.ts'
import { ChunkReader, EventReader } from './sse-reader.ts'
import { type BufferReader, LentFrameReader, type OnMessage } from './websocket-frame-reader.ts'

const sample: Sample = {
  transfer: `{"type":"transfer","id":"e.1","from":"0xab","to":"${timeAsAddress(1)}","raw":"1000000000","amount":"10"}`,
  seal: '{"type":"seal","id":"e.2","keys":["1-0xab-0","1-0xab-1"],"types":["transfer","transfer"],"count":2}',
  id: 'e.1',
  isChunked: true,
}
const long = `{"type":"long","text":"${'x'.repeat(70_000)}"}`
const messages = [sample.transfer, '{}', sealMessage(sample, 20), long, sample.transfer]

/** The messages found when the bytes come in two pieces, or one by one. */
function readMessages(bytes: Buffer, cuts: readonly number[], readerOf: (onMessage: OnMessage) => BufferReader): readonly string[] {
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
  Array.from({ length: bytes.length + 1 }, (_, at) => at).filter((at) => at < 1_500 || at > bytes.length - 200 || at % 997 === 0)
const everyPosition = (bytes: Buffer): readonly number[] => Array.from({ length: bytes.length }, (_, at) => at)

const asEvents = (events: readonly string[]) => events.map((message) => `id: ${sample.id}\ndata: ${message}\n\n`)
/** A frame whose payload refers to what was sent before. */
function deflatedFrame(message: string, before: string): Buffer {
  const dictionary = Buffer.from(before).subarray(-32_768)
  const options = { finishFlush: constants.Z_SYNC_FLUSH, ...(dictionary.length > 0 && { dictionary }) }
  const payload = deflateRawSync(message, options).subarray(0, -4)
  const { length } = payload
  const size = length < 126 ? [length] : [126, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([0xc1, ...size]), payload])
}

const frameReader = (onMessage: OnMessage) => new LentFrameReader(onMessage, () => {})

test('a benchmark listener reads each frame once, wherever the bytes are cut', () => {
  const bytes = encodeMessages(messages, 'ws', sample)
  for (const at of cutPositions(bytes)) expect(readMessages(bytes, [at], frameReader)).toEqual(messages)
  expect(readMessages(bytes, everyPosition(bytes), frameReader)).toEqual(messages)
})

test('a benchmark listener reads each event once, wherever the bytes are cut, chunked or not', () => {
  for (const isChunked of [true, false]) {
    const readerOf = (onMessage: OnMessage) =>
      isChunked ? new ChunkReader(new EventReader(onMessage)) : new EventReader(onMessage)
    const bytes = Buffer.concat([
      encodeMessages(messages, 'sse', { ...sample, isChunked }),
      encodeMessages([sample.seal], 'sse', { ...sample, isChunked }),
    ])
    const events = asEvents([...messages, sample.seal])
    for (const at of cutPositions(bytes)) expect(readMessages(bytes, [at], readerOf)).toEqual(events)
    expect(readMessages(bytes, everyPosition(bytes), readerOf)).toEqual(events)
  }
})

test('a benchmark listener answers a ping, which contains no message', () => {
  let pings = 0
  const ping = Buffer.concat([Buffer.from([0x89, 2, 1, 2]), encodeMessages(['{}'], 'ws', sample)])
  const reader = (onMessage: OnMessage) => new LentFrameReader(onMessage, () => (pings += 1))
  expect(readMessages(ping, [1], reader)).toEqual(['{}'])
  expect(pings).toBe(1)
})

test('a benchmark listener inflates messages, which may refer to earlier ones', () => {
  const bytes = Buffer.concat(messages.map((message, index) => deflatedFrame(message, messages.slice(0, index).join(''))))
  const readerOf = (onMessage: OnMessage) => {
    const inflater = new MessageInflater()
    const onDeflated: OnMessage = (lent, from, to) => {
      const message = inflater.inflate(lent, from, to)
      onMessage(message, 0, message.length)
    }
    return new LentFrameReader(onMessage, () => {}, onDeflated)
  }
  expect(readMessages(bytes, [], readerOf)).toEqual(messages)
  expect(() => readMessages(bytes, [], frameReader)).toThrow('no frame begins with 193')
})

test('bytes that are no frame end the benchmark instead of being counted', () => {
  expect(() => readMessages(Buffer.from('HTTP/1.1 200 OK'), [], frameReader)).toThrow('no frame begins with 72')
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
  for (const share of [0.01, 0.5, 0.99]) {
    expect(tally.microsAt(share) / (share * 100_000)).toBeGreaterThan(0.96)
    expect(tally.microsAt(share) / (share * 100_000)).toBeLessThan(1.04)
  }
  expect(tally.maxMicros).toBe(100_000)
  expect(tally.count).toBe(100_000)
})
