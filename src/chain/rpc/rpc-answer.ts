import { z } from 'zod'
import { classify, UpstreamError } from './error.ts'
import { sliceResult } from './raw-result.ts'

/** A longer answer is forwarded without parsing. */
const PARSE_BOUND_BYTES = 65_536

/** The code of an error that has none. */
const UNKNOWN_ERROR_CODE = -32_000

/** An error or a result. `result` may be anything, but zod still requires it to be present. */
const Answer = z.union([
  z.object({
    id: z.unknown(),
    error: z.object({
      // Some nodes send text as a code, or no code.
      code: z.number().catch(UNKNOWN_ERROR_CODE),
      message: z.string().catch('the upstream gives no message'),
      data: z.unknown().optional(),
    }),
  }),
  z.object({ id: z.unknown(), result: z.unknown() }),
])

/** Reads an answer; throws an `UpstreamError` if it is unusable. */
export type ParseAnswer<T> = (response: Response, body: Buffer, id: number) => T

export const parseResult: ParseAnswer<unknown> = (response, body, id) => {
  const answer = Answer.safeParse(parseJson(body.toString('utf8')))
  if (answer.data && 'error' in answer.data) throw classify(response, answer.data.error)
  if (!response.ok) throw classify(response, null)
  if (!answer.success) throw new UpstreamError('unreadable', 'the answer is not JSON-RPC')
  if (answer.data.id !== id) throw new UpstreamError('unreadable', 'the answer has another id')
  return answer.data.result
}

export const parseRawResult: ParseAnswer<Buffer> = (response, body, id) => {
  const text = response.ok && body.length > PARSE_BOUND_BYTES ? sliceResult(body, id) : null
  return text ?? Buffer.from(JSON.stringify(parseResult(response, body, id) ?? null))
}

/** Null if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
