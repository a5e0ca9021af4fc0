/** How far into an answer, and how far before its end, everything stands that is not its result. */
const MARGIN_BYTES = 256

const prefixPattern = /^\s*\{\s*(?:(?:"jsonrpc"\s*:\s*"2\.0"|"id"\s*:\s*\d{1,15})\s*,\s*)*"result"\s*:\s*/
const suffixPattern = /\s*(?:,\s*(?:"jsonrpc"\s*:\s*"2\.0"|"id"\s*:\s*\d{1,15})\s*)*\}\s*$/

/**
 * The bytes of an answer's result as they came, without reading what stands in them: an answer may be long, and whoever
 * listens live would wait for it. Null where the answer does not look as nodes write it, or is not the one to `id`.
 */
export function sliceResult(answer: Buffer, id: number): Buffer | null {
  const [prefix] = prefixPattern.exec(answer.toString('latin1', 0, MARGIN_BYTES)) ?? []
  const [suffix] = suffixPattern.exec(answer.toString('latin1', Math.max(0, answer.length - MARGIN_BYTES))) ?? []
  if (prefix === undefined || suffix === undefined) return null
  const [, answerId] = /"id"\s*:\s*(\d+)/.exec(prefix + suffix) ?? []
  const text = answer.subarray(prefix.length, answer.length - suffix.length)
  return Number(answerId) === id && isSingleValue(text) ? text : null
}

const stringPattern = /^"[^"\\]*(?:\\.[^"\\]*)*"$/

/** Whether nothing else of the answer can stand behind the value that a text begins with. */
function isSingleValue(text: Buffer): boolean {
  const last = String.fromCharCode(text.at(-1) ?? 0)
  switch (String.fromCharCode(text.at(0) ?? 0)) {
    case '{':
      return last === '}'
    case '[':
      return last === ']'
    case '"':
      return stringPattern.test(text.toString('latin1'))
    default:
      return !text.includes(',')
  }
}
