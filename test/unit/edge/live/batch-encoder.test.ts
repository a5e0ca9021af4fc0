import { constants, inflateRawSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { BatchEncoder } from '../../../../src/edge/live/batch-encoder.ts'
import { Frame } from '../../../../src/edge/select/frame.ts'
import { deflateFrames } from '../../../../src/edge/transport/deflate.ts'
import type { Compression } from '../../../../src/edge/transport/deflate-offer.ts'
import { encode } from '../../../../src/edge/transport/encode.ts'
import type { Update } from '../../../../src/protocol/updates.ts'

const noHistory = { readKey: () => [], sealsOfToken: () => [] }
const framesOf = (count: number): readonly Frame[] =>
  Array.from({ length: count }, (_, at) => {
    const update = { type: 'nav', id: `k.${at}`, symbol: 'AAPLc' } as Update
    return new Frame({ seq: at, update, text: JSON.stringify(update) }, noHistory)
  })

/** The same frames in each form. */
const plain = (frames: readonly Frame[]) => Buffer.concat(frames.map(({ entry }) => encode('ws', entry.update, entry.text)))
const together = (frames: readonly Frame[]) => Buffer.concat(deflateFrames(frames.map(({ entry }) => entry.text)))
const alone = (frames: readonly Frame[]) => Buffer.concat(frames.map((frame) => frame.deflatedBytes))

function openEncoder() {
  const encoder = new BatchEncoder()
  encoder.startDelivery()
  return (frames: readonly Frame[], compression: Compression, size: number) =>
    Buffer.from(encoder.encode(frames, { transport: 'ws', compression, listeners: { size } }))
}

it.each([
  ['plain', 'none', 1_000, plain],
  ['compressed together', 'batch', 128, together],
  ['compressed together', 'batch', 1, together],
  ['compressed alone', 'message', 1_000, alone],
] as const)('a batch is %s for compression %s and %i listeners', (_, compression, size, expected) => {
  const frames = framesOf(20)
  expect(openEncoder()(frames, compression, size)).toEqual(expected(frames))
})

it('the messages of one delivery are compressed together for few small audiences, and for every large one', () => {
  const [frames, encodeBatch] = [framesOf(20), openEncoder()]
  for (let audience = 0; audience < 10; audience += 1) expect(encodeBatch(frames, 'batch', 127)).toEqual(together(frames))
  expect(encodeBatch(frames, 'batch', 127)).toEqual(alone(frames))
  expect(encodeBatch(frames, 'batch', 128)).toEqual(together(frames))
})

it('a lone message is compressed once for all audiences', () => {
  const [frames, encoder] = [framesOf(1), new BatchEncoder()]
  const recipients = (size: number, compression: Compression) => ({ transport: 'ws', compression, listeners: { size } }) as const
  const bytes = encoder.encode(frames, recipients(1, 'message'))
  expect(encoder.encode(frames, recipients(1_000, 'batch'))).toBe(bytes)
  const payload = Buffer.concat([bytes.subarray(2), Buffer.of(0, 0, 0xff, 0xff)])
  expect(inflateRawSync(payload, { finishFlush: constants.Z_SYNC_FLUSH }).toString()).toBe(frames[0]?.entry.text)
})
