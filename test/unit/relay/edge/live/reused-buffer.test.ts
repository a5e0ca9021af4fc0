import { expect, it } from 'vitest'
import { ReusedBuffer } from '../../../../../src/relay/edge/live/reused-buffer.ts'

const piecesOf = (text: string, bytes = 100_000) => [Buffer.alloc(bytes, text), Buffer.alloc(bytes, text)]

/** A buffer, and the memory that backlogs refer to. */
function openBuffer() {
  const held = new Set<ArrayBufferLike>()
  return { held, buffer: new ReusedBuffer((memory) => held.has(memory)) }
}

it('kept bytes stay as they are until no backlog refers to their memory', () => {
  const { buffer, held } = openBuffer()
  const kept = buffer.join(piecesOf('a', 50_000))
  held.add(kept.buffer)
  buffer.keep()
  for (let join = 0; join < 2; join += 1) {
    expect(buffer.join(piecesOf('b', 50_000))).toEqual(Buffer.alloc(100_000, 'b'))
    expect(kept).toEqual(Buffer.alloc(100_000, 'a'))
  }
  held.clear()
  expect(buffer.join(piecesOf('c', 50_000)).byteOffset).toBe(kept.byteOffset)
})

it('bytes that do not fit behind the kept ones get a buffer of their own', () => {
  const { buffer, held } = openBuffer()
  const kept = buffer.join(piecesOf('a'))
  held.add(kept.buffer)
  buffer.keep()
  const joined = buffer.join(piecesOf('b'))
  expect([kept, joined]).toEqual([Buffer.alloc(200_000, 'a'), Buffer.alloc(200_000, 'b')])
  expect(buffer.join(piecesOf('c')).buffer).toBe(joined.buffer)
})

it('a single piece is not copied', () => {
  const alone = Buffer.alloc(10, 'a')
  expect(openBuffer().buffer.join([alone])).toBe(alone)
})

it('a larger buffer stays', () => {
  const { buffer } = openBuffer()
  const large = buffer.join(piecesOf('a', 1_000_000))
  expect(buffer.join(piecesOf('b')).buffer).toBe(large.buffer)
})
