import type { IncomingMessage } from 'node:http'
import type { Budget } from './budget.ts'

/** Limit of the bytes of a too large body that are read and discarded, so that its sender can read the error. */
const DISCARDED_BOUND_BYTES = 32 * 2 ** 20

/** A body, or the reason for its absence. `gone`: the client has left. */
export type Body = Buffer | 'too_large' | 'no_room' | 'gone'

/** Reads the body of a request up to a limit. Until it is complete, its bytes count against the client's budget. */
export function readBody(incoming: IncomingMessage, boundBytes: number, budget: Budget, client: string): Promise<Body> {
  return new Promise((resolve) => {
    let chunks: Buffer[] = []
    let length = 0
    let reservedBytes = 0
    let failure: 'too_large' | 'no_room' | null = null
    const discard = (reason: 'too_large' | 'no_room') => {
      failure ??= reason
      chunks = []
      budget.release(reservedBytes, client)
      reservedBytes = 0
    }
    incoming.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length > DISCARDED_BOUND_BYTES) incoming.destroy()
      else if (length > boundBytes) discard('too_large')
      else if (failure === null && !budget.reserve(chunk.length, client)) discard('no_room')
      else if (failure === null) {
        reservedBytes += chunk.length
        chunks.push(chunk)
      }
    })
    const finish = (body: Body) => {
      budget.release(reservedBytes, client)
      reservedBytes = 0
      resolve(body)
    }
    incoming.on('end', () => finish(failure ?? (chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks))))
    incoming.on('close', () => finish('gone'))
  })
}
