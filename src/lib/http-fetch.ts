import { nextTurn } from './turns.ts'

/** First size of the buffer for an answer of unknown length. */
const FIRST_BYTES = 4_096
/** Number of bytes of a long answer after which other work gets a turn of the event loop. */
const TURN_BYTES = 262_144

/**
 * Returns null if the decompressed answer is longer than the limit. Copies each chunk into one buffer: V8 marks its whole heap
 * after each 64 MB of buffers that survive a collection of young objects, and the kept chunks of a long answer would survive it.
 */
export async function readResponseBody(response: Response, boundBytes: number): Promise<Buffer | null> {
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

/** Moves credentials from a URL to a header. `fetch` refuses them in a URL, and its error repeats the whole URL. */
export function splitCredentials(text: string): {
  readonly address: string
  readonly authHeaders: Readonly<Record<string, string>>
} {
  const url = new URL(text)
  const { username, password } = url
  if (username === '' && password === '') return { address: text, authHeaders: {} }
  url.username = ''
  url.password = ''
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { address: url.href, authHeaders: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` } }
}

/** Returns the name of an upstream for the log: the host of its URL. Path and query may contain an API key. */
export const hostOf = (url: string): string => new URL(url).host

/** Returns the message of a failure. */
export const messageOf = (failure: unknown): string => (failure instanceof Error ? failure.message : String(failure))

/** Returns the text of a failure: that of its cause, if it has one, because `fetch` names the specific reason only there. */
export function failureReason(failure: unknown): string {
  if (!(failure instanceof Error)) return String(failure)
  return failure.cause instanceof Error && failure.cause.message ? failure.cause.message : failure.message
}
