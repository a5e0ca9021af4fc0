import type { Steps } from '../../../lib/turns.ts'

/** The answer is no list: it is an error, HTML or truncated, for example. The last good list stays in use. */
export class ListError extends Error {}

type RecordRange = { readonly from: number; readonly to: number }

/** The places of the records in the answer, and the answer without the records. */
type ListRecords = { readonly envelope: string; readonly ranges: readonly RecordRange[] }

const RECORDS_BOUND = 100_000
/** Limit of the answer without its records. */
const ENVELOPE_BOUND_BYTES = 64 * 1_024
/** Number of bytes in one step, which takes less than a millisecond, or a few of them before V8 has optimised the code. */
const STEP_BYTES = 128 * 1_024
/** Limit of the distance between the name `tokens` and the bracket that opens its list. */
const NAME_BOUND_BYTES = 64
/** Number of levels that enclose a record: the answer and its list. */
const OUTER_DEPTH = 2

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c]
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d]

/** Finds the records in `tokens` without parsing them. Invalid JSON fails when the caller parses records and envelope. */
export function* findRecords(body: Buffer): Steps<ListRecords> {
  let ranges: RecordRange[] = []
  let listFrom = 0
  let listTo = 0
  let recordFrom = -1
  let depth = 0
  let isInString = false
  let stepEnd = STEP_BYTES
  for (let at = 0; at < body.length; at += 1) {
    if (at >= stepEnd) {
      stepEnd += STEP_BYTES
      yield
    }
    const byte = body[at]
    if (isInString) {
      if (byte === BACKSLASH) at += 1
      else if (byte === QUOTE) isInString = false
    } else if (byte === QUOTE) isInString = true
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth += 1
      if (depth !== OUTER_DEPTH || byte !== OPEN_BRACKET || !isListName(body, at)) continue
      ranges = []
      listFrom = at + 1
      recordFrom = listFrom
    } else if (byte === COMMA && depth === OUTER_DEPTH && recordFrom >= 0) {
      ranges.push({ from: recordFrom, to: at })
      recordFrom = at + 1
      if (ranges.length >= RECORDS_BOUND) throw new ListError(`the list has more than ${RECORDS_BOUND} records`)
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      depth -= 1
      if (depth !== 1 || recordFrom < 0) continue
      // An empty list has no records, but a record must follow each comma.
      if (ranges.length > 0 || !isBlank(body, recordFrom, at)) ranges.push({ from: recordFrom, to: at })
      listTo = at
      recordFrom = -1
    }
  }
  if (body.length - (listTo - listFrom) > ENVELOPE_BOUND_BYTES) throw new ListError('the answer is more than its list')
  return { envelope: body.toString('utf8', 0, listFrom) + body.toString('utf8', listTo), ranges }
}

const isListName = (body: Buffer, at: number): boolean =>
  /(?<!\\)"tokens"\s*:\s*$/.test(body.toString('latin1', Math.max(0, at - NAME_BOUND_BYTES), at))

const isBlank = (body: Buffer, from: number, to: number): boolean =>
  to - from <= ENVELOPE_BOUND_BYTES && body.toString('latin1', from, to).trim() === ''
