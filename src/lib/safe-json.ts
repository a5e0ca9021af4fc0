/** Limit of nested levels. Answers of nodes have fewer than ten. Deeper JSON takes seconds to parse, or exhausts the stack. */
export const NESTING_BOUND = 1_024

const [QUOTE, BACKSLASH] = [0x22, 0x5c]
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d]

/** Changes each parsed value. `source` is the text of a number, a string, a boolean or null. */
export type Reviver = (name: string, value: unknown, context?: { readonly source?: string }) => unknown

/** Parses JSON. Returns undefined if the text is not JSON. */
export function parseJson(text: string, revive?: Reviver): unknown {
  try {
    return JSON.parse(text, revive)
  } catch {
    return undefined
  }
}

/** Parses JSON. Returns undefined if the bytes are not JSON, or have more than NESTING_BOUND nested levels. */
export const parseShallowJson = (json: Buffer): unknown =>
  isNestedDeeper(json, NESTING_BOUND) ? undefined : parseJson(json.toString('utf8'))

/** Whether lists and objects have more nested levels. Each level needs two bytes, so a shorter text is not searched. */
export function isNestedDeeper(json: Buffer, levels: number): boolean {
  const isTooShort = json.length <= 2 * levels
  if (isTooShort || !hasMoreBrackets(json, levels)) return false
  let depth = 0
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at]
    if (byte === QUOTE) at = endOfString(json, at + 1)
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth += 1
      if (depth > levels) return true
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth -= 1
  }
  return false
}

/** Counts opening brackets. Most texts have few, and this count takes a tenth of the time of reading every byte. */
function hasMoreBrackets(json: Buffer, count: number): boolean {
  let found = 0
  for (const bracket of [OPEN_BRACE, OPEN_BRACKET]) {
    for (let at = json.indexOf(bracket); at >= 0; at = json.indexOf(bracket, at + 1)) {
      found += 1
      if (found > count) return true
    }
  }
  return false
}

function endOfString(json: Buffer, from: number): number {
  let at = from
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1
  return at
}
