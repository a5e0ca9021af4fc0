import { nextTurn } from '../../../lib/turns.ts'

/** The first buffer for an answer of unknown length. */
const FIRST_BYTES = 4_096
/** After so much of a long answer, others have their turn of the event loop. */
const TURN_BYTES = 262_144

/**
 * Reads an answer, or returns null where it is longer than the bound, after decompression. It reads into one buffer: V8 marks
 * its whole heap after each 64 MB of buffers that outlive a collection of young objects, and the chunks of a long answer
 * would be among them.
 */
export async function readBody(response: Response, boundBytes: number): Promise<Buffer | null> {
  const announced = Number(response.headers.get('content-length') ?? 0)
  if (announced > boundBytes) {
    await response.body?.cancel()
    return null
  }
  let body = Buffer.allocUnsafe(announced > 0 ? announced : FIRST_BYTES)
  let length = 0
  let turnEnd = TURN_BYTES
  for await (const chunk of response.body ?? []) {
    const end = length + chunk.length
    if (end > boundBytes) return null
    if (end > body.length) body = Buffer.concat([body], Math.max(end, 2 * body.length))
    body.set(chunk, length)
    length = end
    if (length < turnEnd) continue
    turnEnd = length + TURN_BYTES
    await nextTurn()
  }
  return body.subarray(0, length)
}
