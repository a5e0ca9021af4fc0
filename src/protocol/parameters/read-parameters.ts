import type { z } from 'zod'
import { nearestName } from '../../lib/nearest-name.ts'
import { Refusal } from '../refusal.ts'

/** A refusal must stay one line, and JSON does not escape these two line breaks. */
export const quoted = (text: string): string => JSON.stringify(text).replace(/[\u2028\u2029]/g, '\ufffd')

/** Ignored: the API key, parameters that EventSource polyfills add, and marks of other programs. */
const ignoredParameter = /^(key|lastEventId|_|utm_.*)$/
/** A longer name, or one with more edits than this or than a third of its letters, gets no suggestion. */
const NAME_BOUND_CHARS = 40
const EDITS_BOUND = 3
const LETTERS_PER_EDIT = 3

/** Names in earlier versions, which no search by edits relates to the present ones. */
export const formerNames: ReadonlyMap<string, string> = new Map([['party', 'account']])

/** Refuses an unknown name: with a misspelt filter, a client would receive everything. */
export function refuseUnknown(what: 'parameter' | 'field', names: Iterable<string>, known: readonly string[]): void {
  for (const name of names) {
    if (known.includes(name) || (what === 'parameter' && ignoredParameter.test(name))) continue
    const shown = name.slice(0, NAME_BOUND_CHARS)
    const successor = formerNames.get(name) ?? ''
    const nearest = known.includes(successor)
      ? successor
      : nearestName(shown, known, Math.min(EDITS_BOUND, Math.ceil(shown.length / LETTERS_PER_EDIT)))
    const hint = nearest === undefined ? (known.length > 0 ? ` Known are ${known.join(', ')}.` : '') : ` Did you mean ${nearest}?`
    const suggest = nearest === undefined ? [] : [nearest]
    throw new Refusal(400, 'unknown_parameter', `Unknown ${what} ${quoted(shown)}.${hint}`, { parameter: shown, suggest })
  }
}

export function readParameters<Shape extends z.ZodRawShape>(schema: z.ZodObject<Shape>, query: URLSearchParams) {
  refuseUnknown('parameter', query.keys(), Object.keys(schema.shape))
  const given: Record<string, string> = {}
  for (const name of Object.keys(schema.shape)) {
    const values = query.getAll(name)
    if (values.length > 1)
      throw new Refusal(400, 'bad_parameter', `${name}: given ${values.length} times; give it once.`, { parameter: name })
    if (values[0] !== undefined) given[name] = values[0]
  }
  return readOr400(schema, given)
}

/** The refusal names the first wrong field. */
export function readOr400<Schema extends z.ZodType>(schema: Schema, given: unknown): z.infer<Schema> {
  const read = schema.safeParse(given)
  if (read.success) return read.data
  const issue = read.error.issues[0]
  const parameter = String(issue?.path[0] ?? '')
  throw new Refusal(400, 'bad_parameter', `${parameter ? `${parameter}: ` : ''}${issue?.message ?? 'not readable'}.`, { parameter })
}
