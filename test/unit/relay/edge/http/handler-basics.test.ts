import { setImmediate } from 'node:timers/promises'
import type { Context } from 'hono'
import { expect, it } from 'vitest'
import { type Env, sendBytes } from '../../../../../src/relay/edge/http/handler-basics.ts'

const PART_BYTES = 32 * 2 ** 10

it('gives the system few parts in each turn of the event loop, one of each answer after the other', async () => {
  const written: number[] = []
  const outgoing = {
    writeHead: () => {},
    flushHeaders: () => {},
    write: (bytes: Uint8Array, then: () => void) => {
      written.push(bytes.length)
      queueMicrotask(then)
    },
    end: (bytes: Uint8Array) => written.push(bytes.length),
  }
  const context = { req: { method: 'GET' }, env: { outgoing } } as unknown as Context<Env>
  for (let client = 0; client < 5; client += 1) sendBytes(context, new Uint8Array(PART_BYTES + 1), {})
  const counts: number[] = []
  for (let turn = 0; turn < 4; turn += 1) {
    counts.push(written.length)
    await setImmediate()
  }
  expect(counts).toEqual([4, 8, 10, 10])
  expect(written.slice(0, 6)).toEqual([...Array(5).fill(PART_BYTES), 1])
})
