import { constants, inflateRawSync } from 'node:zlib'
import { expect, it } from 'vitest'
import type { Update } from '../../../../../src/protocol/updates.ts'
import { encodeBatch } from '../../../../../src/relay/edge/live/batch-encoder.ts'
import { Frame } from '../../../../../src/relay/edge/select/frame.ts'
import { KeyLookup } from '../../../../../src/relay/edge/select/key-history.ts'
import { deflateFrames } from '../../../../../src/relay/edge/transport/deflate.ts'
import type { Compression } from '../../../../../src/relay/edge/transport/deflate-offer.ts'
import { encode } from '../../../../../src/relay/edge/transport/encode-message.ts'

const noHistory = new KeyLookup({ find: () => [] })
const frameAt = (at: number, symbol = 'AAPLc'): Frame => {
  const update = { type: 'nav', id: `k.${at}`, symbol } as Update
  return new Frame({ seq: at, update, text: JSON.stringify(update) }, noHistory)
}
const framesOf = (count: number): readonly Frame[] => Array.from({ length: count }, (_, at) => frameAt(at))

/** The same frames in each form. */
const plain = (frames: readonly Frame[]) => Buffer.concat(frames.map(({ entry }) => encode('ws', entry.update, entry.text)))
const together = (frames: readonly Frame[]) => Buffer.concat(deflateFrames(frames.map(({ entry }) => entry.text)))
const alone = (frames: readonly Frame[]) => Buffer.concat(frames.map((frame) => frame.deflatedBytes))

const recipients = (compression: Compression, size: number) => ({ transport: 'ws', compression, listeners: { size } }) as const

it.each([
  ['uncompressed', 'none', 1_000, plain],
  ['compressed together', 'batch', 128, together],
  ['uncompressed', 'batch', 127, plain],
  ['compressed alone', 'message', 1_000, alone],
  ['compressed alone', 'message', 1, alone],
] as const)('the messages of a batch are %s for compression %s and %i listeners', (_, compression, size, expected) => {
  const frames = framesOf(20)
  expect(Buffer.concat(encodeBatch(frames, recipients(compression, size)))).toEqual(expected(frames))
})

it('equal batches are compressed once for all audiences', () => {
  const frames = framesOf(20)
  const bytes = encodeBatch(frames, recipients('batch', 128))
  expect(encodeBatch([...frames], recipients('batch', 1_000))).toBe(bytes)
  const fewer = frames.slice(0, 19)
  expect(Buffer.concat(encodeBatch(fewer, recipients('batch', 1_000)))).toEqual(together(fewer))
})

it('a long message of a batch is compressed alone, once for all audiences', () => {
  const long = frameAt(1, 'A'.repeat(65_536))
  const frames = [frameAt(0), long, frameAt(2), frameAt(3)]
  const expected = Buffer.concat([together(frames.slice(0, 1)), long.deflatedBytes, together(frames.slice(2))])
  expect(encodeBatch(frames, recipients('batch', 128))[1]).toBe(long.deflatedBytes)
  expect(Buffer.concat(encodeBatch(frames, recipients('batch', 128)))).toEqual(expected)
})

it('a lone message is compressed once for all audiences, the small ones too', () => {
  const frames = framesOf(1)
  const [bytes = Buffer.alloc(0)] = encodeBatch(frames, recipients('message', 1))
  for (const size of [1, 1_000]) expect(encodeBatch(frames, recipients('batch', size))[0]).toBe(bytes)
  const payload = Buffer.concat([bytes.subarray(2), Buffer.of(0, 0, 0xff, 0xff)])
  expect(inflateRawSync(payload, { finishFlush: constants.Z_SYNC_FLUSH }).toString()).toBe(frames[0]?.entry.text)
})
