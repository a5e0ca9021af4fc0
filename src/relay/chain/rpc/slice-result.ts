/** Number of bytes at the start and at the end of an answer that contain its JSON-RPC envelope. */
const MARGIN_BYTES = 256

const prefixPattern = /^\s*\{\s*(?:(?:"jsonrpc"\s*:\s*"2\.0"|"id"\s*:\s*\d{1,15})\s*,\s*)*"result"\s*:\s*/
const suffixPattern = /\s*(?:,\s*(?:"jsonrpc"\s*:\s*"2\.0"|"id"\s*:\s*\d{1,15})\s*)*\}\s*$/

/** Returns the id of an answer, and the place of its result; null if the envelope has an unexpected form. */
function envelopeOf(answer: Buffer): { readonly id: number; readonly start: number; readonly end: number } | null {
  const [prefix] = prefixPattern.exec(answer.toString('latin1', 0, MARGIN_BYTES)) ?? []
  const [suffix] = suffixPattern.exec(answer.toString('latin1', Math.max(0, answer.length - MARGIN_BYTES))) ?? []
  if (prefix === undefined || suffix === undefined) return null
  const [, id] = /"id"\s*:\s*(\d+)/.exec(prefix + suffix) ?? []
  return id === undefined ? null : { id: Number(id), start: prefix.length, end: answer.length - suffix.length }
}

/** Returns the id of an answer without parsing the result; null if the envelope has an unexpected form. */
export const answerIdOf = (answer: Buffer): number | null => envelopeOf(answer)?.id ?? null

/** Cuts the result out of an answer, to parse nothing of a long one. Returns null for an unexpected envelope or id. */
export function sliceResult(answer: Buffer, id: number): Buffer | null {
  const envelope = envelopeOf(answer)
  if (envelope?.id !== id) return null
  const text = answer.subarray(envelope.start, envelope.end)
  return isSingleValue(text) ? text : null
}

const stringPattern = /^"[^"\\]*(?:\\.[^"\\]*)*"$/

/** Whether the text is one JSON value, without a further member of the envelope. */
function isSingleValue(text: Buffer): boolean {
  const [first, last] = [text.toString('latin1', 0, 1), text.toString('latin1', text.length - 1)]
  if (first === '{') return last === '}'
  if (first === '[') return last === ']'
  return first === '"' ? stringPattern.test(text.toString('latin1')) : !text.includes(',')
}
