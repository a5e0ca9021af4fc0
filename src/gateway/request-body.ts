import type { IncomingMessage } from 'node:http'
import type { Budget } from '../edge/limits/byte-budget.ts'

/** What is read and thrown away of a body that is too large, so that its sender gets to read why. */
const DISCARDED_BOUND_BYTES = 32 * 2 ** 20

/** A body; or that it is larger than it may be, that there is no room for it now, or that its sender is gone. */
export type Body = Buffer | 'too_large' | 'no_room' | 'gone'

/** Reads the body of a request up to a bound. While it is being read, it is held against the budget. */
export function readBody(incoming: IncomingMessage, boundBytes: number, budget: Budget): Promise<Body> {
  return new Promise((resolve) => {
    let chunks: Buffer[] = []
    let length = 0
    let held = 0
    let trouble: 'too_large' | 'no_room' | null = null
    const drop = (why: 'too_large' | 'no_room') => {
      trouble ??= why
      chunks = []
      budget.give(held)
      held = 0
    }
    incoming.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length > DISCARDED_BOUND_BYTES) incoming.destroy()
      else if (length > boundBytes) drop('too_large')
      else if (trouble === null && !budget.take(chunk.length)) drop('no_room')
      else if (trouble === null) {
        held += chunk.length
        chunks.push(chunk)
      }
    })
    const end = (body: Body) => {
      budget.give(held)
      held = 0
      resolve(body)
    }
    incoming.on('end', () => end(trouble ?? (chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks))))
    incoming.on('close', () => end('gone'))
  })
}
