/** How far into an answer, and how far before its end, everything stands that is not its result. */
const MARGIN_BYTES = 256

const opening = /^\s*\{\s*(?:(?:"jsonrpc"\s*:\s*"2\.0"|"id"\s*:\s*\d{1,15})\s*,\s*)*"result"\s*:\s*/
const closing = /\s*(?:,\s*(?:"jsonrpc"\s*:\s*"2\.0"|"id"\s*:\s*\d{1,15})\s*)*\}\s*$/

/**
 * The bytes of an answer's result as they came, without reading what stands in them: an answer may be long, and whoever
 * listens live would wait for it. Null where the answer does not look as nodes write it, or is not the one to `id`.
 */
export function resultText(answer: Buffer, id: number): Buffer | null {
  const [before] = opening.exec(answer.toString('latin1', 0, MARGIN_BYTES)) ?? []
  const [after] = closing.exec(answer.toString('latin1', Math.max(0, answer.length - MARGIN_BYTES))) ?? []
  if (before === undefined || after === undefined) return null
  const [, said] = /"id"\s*:\s*(\d+)/.exec(before + after) ?? []
  const text = answer.subarray(before.length, answer.length - after.length)
  return Number(said) === id && isAlone(text) ? text : null
}

const string = /^"[^"\\]*(?:\\.[^"\\]*)*"$/

/** Whether nothing else of the answer can stand behind the value that a text begins with. */
function isAlone(text: Buffer): boolean {
  const last = String.fromCharCode(text.at(-1) ?? 0)
  switch (String.fromCharCode(text.at(0) ?? 0)) {
    case '{':
      return last === '}'
    case '[':
      return last === ']'
    case '"':
      return string.test(text.toString('latin1'))
    default:
      return !text.includes(',')
  }
}
