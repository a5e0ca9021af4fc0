import type { IncomingMessage } from 'node:http'
import type { ByteBudget } from '../edge/limits/byte-budget.ts'

/** What is read and thrown away of a body that is too large, so that its sender gets to read why. */
const DISCARDED_BOUND_BYTES = 32 * 2 ** 20

/** A body; or that it is larger than it may be, that there is no room for it now, or that its sender is gone. */
export type Body = Buffer | 'too_large' | 'no_room' | 'gone'

/** Reads the body of a request up to a bound. While it is being read, it is held against the budget. */
export function readBody(incoming: IncomingMessage, boundBytes: number, budget: ByteBudget): Promise<Body> {
  return new Promise((resolve) => {
    let chunks: Buffer[] = []
    let length = 0
    let reservedBytes = 0
    let failure: 'too_large' | 'no_room' | null = null
    const discard = (reason: 'too_large' | 'no_room') => {
      failure ??= reason
      chunks = []
      budget.release(reservedBytes)
      reservedBytes = 0
    }
    incoming.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length > DISCARDED_BOUND_BYTES) incoming.destroy()
      else if (length > boundBytes) discard('too_large')
      else if (failure === null && !budget.reserve(chunk.length)) discard('no_room')
      else if (failure === null) {
        reservedBytes += chunk.length
        chunks.push(chunk)
      }
    })
    const finish = (body: Body) => {
      budget.release(reservedBytes)
      reservedBytes = 0
      resolve(body)
    }
    incoming.on('end', () => finish(failure ?? (chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks))))
    incoming.on('close', () => finish('gone'))
  })
}
