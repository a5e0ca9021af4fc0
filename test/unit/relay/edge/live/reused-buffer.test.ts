import { expect, it } from 'vitest'
import { ReusedBuffer } from '../../../../../src/relay/edge/live/reused-buffer.ts'

const piecesOf = (text: string, bytes: number) => [Buffer.alloc(bytes, text), Buffer.alloc(bytes, text)]

// That bytes stay as they are while a backlog refers to them is in audiences.test.ts.
it('the space of kept bytes is used again once no backlog refers to their memory', () => {
  const held = new Set<ArrayBufferLike>()
  const buffer = new ReusedBuffer((memory) => held.has(memory))
  const kept = buffer.join(piecesOf('a', 50_000))
  held.add(kept.buffer)
  buffer.keep()
  expect(buffer.join(piecesOf('b', 50_000)).byteOffset).toBeGreaterThan(kept.byteOffset)
  held.clear()
  expect(buffer.join(piecesOf('c', 50_000)).byteOffset).toBe(kept.byteOffset)
})

it('a larger buffer stays', () => {
  const buffer = new ReusedBuffer(() => false)
  const large = buffer.join(piecesOf('a', 1_000_000))
  expect(buffer.join(piecesOf('b', 100_000)).buffer).toBe(large.buffer)
})
