import { z } from 'zod'
import { isNestedDeeper, NESTING_BOUND, parseShallowJson } from '../../../lib/safe-json.ts'
import { sliceResult } from './slice-result.ts'
import { UnparsedLogs } from './unparsed-logs.ts'
import { classify, UpstreamError } from './upstream-error.ts'

/** Limit of an answer that is parsed as a whole. From a longer one the result is cut out. */
const PARSE_BOUND_BYTES = 65_536

const OPEN_BRACKET = '['.charCodeAt(0)

const UNKNOWN_ERROR_CODE = -32_000

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

/** Reads an answer, or throws an `UpstreamError`. `id` is that of the request, or of the first request of a batch. */
export type ParseAnswer<T> = (response: Response, body: Buffer, id: number) => T

export const parseResult: ParseAnswer<unknown> = (response, body, id) => {
  const answer = Answer.safeParse(parseShallowJson(body))
  if (answer.data && 'error' in answer.data) throw classify(response, answer.data.error)
  if (!response.ok) throw classify(response, null)
  if (!answer.success) throw unreadable(body)
  if (answer.data.id !== id) throw new UpstreamError('unreadable', 'the answer has another id')
  return answer.data.result
}

function unreadable(body: Buffer): UpstreamError {
  const isTooDeep = isNestedDeeper(body, NESTING_BOUND)
  return new UpstreamError(
    'unreadable',
    isTooDeep ? `the answer is nested deeper than ${NESTING_BOUND} levels` : 'the answer is not JSON-RPC',
  )
}

export type BatchAnswer = { readonly ok: true; readonly result: unknown } | { readonly ok: false; readonly error: UpstreamError }

/** Returns the answers of a batch in the order of its requests. A node may answer in any order, and omit some. */
export const parseBatch =
  (count: number): ParseAnswer<readonly BatchAnswer[]> =>
  (response, body, firstId) => {
    const items = parseShallowJson(body)
    // A node that refuses a batch sends a single answer instead of a list.
    if (!Array.isArray(items)) {
      parseResult(response, body, firstId)
      throw new UpstreamError('invalid', 'the answer to a batch is not a list')
    }
    if (!response.ok) throw classify(response, null)
    const answers = items.flatMap((item) => Answer.safeParse(item).data ?? [])
    return Array.from({ length: count }, (_, index): BatchAnswer => {
      const answer = answers.find(({ id }) => id === firstId + index)
      if (!answer) return { ok: false, error: new UpstreamError('unreadable', 'a request of the batch has no answer') }
      return 'error' in answer ? { ok: false, error: classify(response, answer.error) } : { ok: true, result: answer.result }
    })
  }

/** Returns a long list of logs as a `LongList`, which the caller parses in parts. */
export const parseLogsResult: ParseAnswer<unknown> = (response, body, id) => {
  const list = longResultOf(response, body, id)
  return list?.at(0) === OPEN_BRACKET
    ? new UnparsedLogs(list, () => parseResult(response, body, id))
    : parseResult(response, body, id)
}

export const parseRawResult: ParseAnswer<Buffer> = (response, body, id) =>
  longResultOf(response, body, id) ?? Buffer.from(JSON.stringify(parseResult(response, body, id) ?? null))

const longResultOf: ParseAnswer<Buffer | null> = (response, body, id) =>
  response.ok && body.length > PARSE_BOUND_BYTES ? sliceResult(body, id) : null
