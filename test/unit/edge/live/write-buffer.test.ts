import { expect, it } from 'vitest'
import { WriteBuffer } from '../../../../src/edge/live/write-buffer.ts'

const piecesOf = (text: string, bytes = 100_000) => [Buffer.alloc(bytes, text), Buffer.alloc(bytes, text)]
const listenerWith = (backlog: number) => ({ outlet: { backlog } })

it('kept bytes stay as they are until every socket has sent them', () => {
  const buffer = new WriteBuffer()
  const [slow, slower] = [listenerWith(10), listenerWith(20)]
  const kept = buffer.join(piecesOf('a', 50_000))
  buffer.keep([slow, listenerWith(0), slower])
  for (const backlogs of [[10, 20] as const, [0, 20] as const]) {
    ;[slow.outlet.backlog, slower.outlet.backlog] = backlogs
    expect(buffer.join(piecesOf('b', 50_000))).toEqual(Buffer.alloc(100_000, 'b'))
    expect(kept).toEqual(Buffer.alloc(100_000, 'a'))
  }
  slower.outlet.backlog = 0
  expect(buffer.join(piecesOf('c', 50_000)).byteOffset).toBe(kept.byteOffset)
})

it('bytes that do not fit behind the kept ones get a buffer of their own', () => {
  const buffer = new WriteBuffer()
  const kept = buffer.join(piecesOf('a'))
  buffer.keep([listenerWith(1)])
  const joined = buffer.join(piecesOf('b'))
  expect([kept, joined]).toEqual([Buffer.alloc(200_000, 'a'), Buffer.alloc(200_000, 'b')])
  expect(buffer.join(piecesOf('c')).buffer).toBe(joined.buffer)
})

it('sockets that wait for other bytes are not remembered', () => {
  const buffer = new WriteBuffer()
  const alone = Buffer.alloc(10, 'a')
  expect(buffer.join([alone])).toBe(alone)
  let isAsked = false
  const outlet = {
    get backlog() {
      isAsked = true
      return 1
    },
  }
  buffer.keep([{ outlet }])
  expect(isAsked).toBe(false)
})

it('a larger buffer stays', () => {
  const buffer = new WriteBuffer()
  const large = buffer.join(piecesOf('a', 1_000_000))
  expect(buffer.join(piecesOf('b')).buffer).toBe(large.buffer)
})
