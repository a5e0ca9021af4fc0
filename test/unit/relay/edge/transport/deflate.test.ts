import { constants, inflateRawSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFLATE_WINDOW_BITS, deflateAlone, deflateFrames } from '../../../../../src/relay/edge/transport/deflate.ts'

const FLUSH_END = Buffer.of(0, 0, 0xff, 0xff)

/** The payloads of compressed text frames with headers of two, four or ten bytes. */
const payloadsOf = (frames: readonly Buffer[]): readonly Buffer[] =>
  frames.map((frame) => {
    const [first, length] = frame
    expect(first).toBe(0xc1)
    const payload = frame.subarray(length === 126 ? 4 : length === 127 ? 10 : 2)
    const longLength = length === 127 ? Number(frame.readBigUInt64BE(2)) : length
    expect(length === 126 ? frame.readUInt16BE(2) : longLength).toBe(payload.length)
    return payload
  })

/** Inflates as a client that keeps the smallest window that may be negotiated; short chunks make it use that window. */
const inflate = (frames: readonly Buffer[]): string =>
  inflateRawSync(Buffer.concat(payloadsOf(frames).flatMap((payload) => [payload, FLUSH_END])), {
    windowBits: DEFLATE_WINDOW_BITS,
    chunkSize: 64,
    finishFlush: constants.Z_SYNC_FLUSH,
  }).toString()

/** Texts that repeat each other, some of them empty or longer than the window. */
const texts = fc.array(
  fc
    .tuple(fc.constantFrom('', 'a', '株', '{"type":"transfer","symbol":"AAPLc"}'), fc.string(), fc.nat(400))
    .map(([repeated, own, times]) => repeated.repeat(times) + own),
  { minLength: 1, maxLength: 8 },
)

describe('compressed messages', () => {
  it('of one call need nothing from before it, and are read by a client that has received other messages before', () => {
    fc.assert(
      fc.property(texts, texts, (before, after) => {
        expect(inflate(deflateFrames(after))).toBe(after.join(''))
        expect(inflate([...deflateFrames(before), ...deflateFrames(after)])).toBe([...before, ...after].join(''))
      }),
      { numRuns: 100 },
    )
  })

  it.each([1, 65_536, 65_537, 200_000])('of %i bytes are compressed alone, in a step for each 64 KiB', (length) => {
    const text = Array.from({ length }, (_, index) => ((index * 7_919) % 9_973).toString(36))
      .join('')
      .slice(0, length)
    const steps = deflateAlone(text)
    let count = 1
    let step = steps.next()
    for (; !step.done; count += 1) step = steps.next()
    expect(count).toBe(Math.ceil(length / 65_536))
    expect(inflate([step.value])).toBe(text)
  })

  it('are shorter after a similar message of the same call', () => {
    const [first, second] = deflateFrames(
      ['0x11aa', '0x22bb'].map((hash) => JSON.stringify({ type: 'transfer', symbol: 'AAPLc', hash })),
    )
    expect(second?.length).toBeLessThan((first?.length ?? 0) / 2)
  })
})
