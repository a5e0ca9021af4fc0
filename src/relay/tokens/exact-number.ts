/** A number with its original text, so that no digit is lost. */
export class ExactNumber {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  get value(): number {
    return Number(this.text)
  }
}

/** A number beyond the doubles is infinite for every other reader of the list, so it does not count. */
export const isFiniteNumber = (value: unknown): value is ExactNumber => value instanceof ExactNumber && Number.isFinite(value.value)

const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}:]|-?\d[\d.eE+-]*|[tfn]/g

/**
 * The numbers among the fields of an object, which `JSON.parse` has accepted before. Numbers inside of arrays and other objects are
 * passed over, so that a list of nothing but numbers costs no more than any other. Of two fields with one name the last counts.
 */
export function exactNumbersIn(text: string): ReadonlyMap<string, ExactNumber> {
  const numbers = new Map<string, ExactNumber>()
  let depth = 0
  let string = ''
  let name: string | null = null
  for (const [token] of text.matchAll(TOKENS)) {
    if (token === '}' || token === ']') depth -= 1
    else if (depth === 1 && name !== null) {
      if (/^[-\d]/.test(token)) numbers.set(name, new ExactNumber(token))
      else numbers.delete(name)
      name = null
    } else if (depth === 1 && token === ':') name = JSON.parse(string)
    else if (depth === 1) string = token
    if (token === '{' || token === '[') depth += 1
  }
  return numbers
}
