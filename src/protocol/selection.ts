import { z } from 'zod'
import { nearestName } from '../lib/nearest-name.ts'
import { durationMs } from '../lib/units.ts'
import { Stage } from './fields.ts'
import { POSITION_BOUND_BYTES, type Position, parsePosition } from './position.ts'
import { Refusal } from './refusal.ts'
import { DEFAULT_FORMAT, formatNames, formatOf, negotiableFormats } from './transports.ts'
import { defaultTypes, namedTypes, type UpdateType, updateTypes } from './updates.ts'
import { commaList, type FilterValues, filterNames, filterOptions, filterParameters, noFilters } from './value-filters.ts'

export const SYMBOLS_BOUND = 200
const SYMBOL_BOUND_CHARS = 128
/** Limit of a duration. A longer duration counts as this one, because no tape keeps messages longer. */
const DURATION_BOUND_MS = 366 * 86_400_000

export type StartPoint =
  | { readonly from: 'now' }
  | { readonly from: 'start' }
  | { readonly from: 'time'; readonly time: number }
  | { readonly from: 'duration'; readonly ms: number }
  | { readonly from: 'position'; readonly text: string; readonly position: Position | null }

const rfc3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/

function parseStartPoint(text: string): StartPoint | null {
  if (text === 'now' || text === 'start') return { from: text }
  const ms = /^\d{1,12}[a-z]+$/.test(text) ? durationMs(text) : Number.NaN
  if (!Number.isNaN(ms)) return { from: 'duration', ms: Math.min(ms, DURATION_BOUND_MS) }
  // A query string decodes the plus of an offset as a space.
  const timestamp = text.replace(/ (\d\d:\d\d)$/, '+$1')
  if (rfc3339.test(timestamp)) {
    const time = parseTimestamp(timestamp)
    return time === null ? null : { from: 'time', time }
  }
  const position = parsePosition(text)
  return position && { from: 'position', text, position }
}

/** Returns whole milliseconds, the unit of times on the tape. Rounds up; null if the time does not exist. */
function parseTimestamp(timestamp: string): number | null {
  // `Date` cannot read the leap second 60, which counts as the second after the 59th.
  const leapSecond = /^(.{17})60/.exec(timestamp)
  const time = Date.parse(leapSecond ? `${leapSecond[1]}59${timestamp.slice(19)}` : timestamp)
  if (Number.isNaN(time) || !isInCalendar(timestamp)) return null
  return time + (leapSecond ? 1_000 : 0) + (/\.\d{3}0*[1-9]/.test(timestamp) ? 1 : 0)
}

/** Returns false for days such as February 30, which `Date` reads as March 2. */
function isInCalendar(timestamp: string): boolean {
  const day = timestamp.slice(0, 10)
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)
}

/** Reads `Last-Event-ID`, which a browser sends when it reconnects. If it is unreadable, the client receives a `gap`. */
export const startPointFromLastEventId = (header: string): StartPoint => ({
  from: 'position',
  text: header.slice(0, POSITION_BOUND_BYTES),
  position: new TextEncoder().encode(header).length > POSITION_BOUND_BYTES ? null : parsePosition(header),
})

export function oneOf<const Names extends readonly string[]>(names: Names) {
  return z.enum(names, { error: `must be ${names.join(' or ')}` })
}

/** Quotes a text for a refusal, which must stay one line. JSON does not escape these two line breaks. */
const quoted = (text: string): string => JSON.stringify(text).replace(/[\u2028\u2029]/g, '\ufffd')

const Types = z
  .array(z.string().meta({ enum: [...updateTypes, '*'] }))
  .min(1, 'names no type')
  .transform((names, context): readonly UpdateType[] => {
    if (names.includes('*')) return updateTypes
    const unknown = names.find((name) => !updateTypes.some((type) => type === name))
    if (unknown !== undefined) {
      context.addIssue(`unknown type ${quoted(unknown.slice(0, 40))}; known are ${updateTypes.join(', ')}, *`)
      return z.NEVER
    }
    return updateTypes.filter((type) => names.includes(type))
  })

const descriptions = {
  symbols: 'Symbols in upper or lower case, with or without the trailing c, former symbols, addresses, isin:…, or * for all.',
  types: `Message types, or * for all. Default: all except ${namedTypes.join(' and ')}.`,
  stage: 'sealed: each fact is sent only when its block is sealed. Default: preconfirmed.',
  since: 'Where to begin: now, start, a position (exclusive), a duration back (90s, 5m, 2h), or an RFC 3339 time. Default: now.',
  snapshot:
    'true: a snapshot of each token is sent first, but not after a position from which the relay can continue; always: after such a position too; false: never. Default: true.',
  on_gap:
    'The position at which the stream continues after a gap expired or epoch. replay: the oldest message; skip: the end, and backfill links to the skipped messages. Default: replay.',
} as const

const SymbolName = z.string().min(1, 'is empty').max(SYMBOL_BOUND_CHARS, `is longer than ${SYMBOL_BOUND_CHARS} characters`)

export const Symbols = z
  .array(SymbolName)
  .max(SYMBOLS_BOUND, `at most ${SYMBOLS_BOUND} symbols for one connection`)
  .describe(descriptions.symbols)

const StartPointText = z.string().transform((text, context): StartPoint => {
  const startPoint = parseStartPoint(text)
  if (startPoint) return startPoint
  context.addIssue('must be now, start, a position, a duration such as 90s, 5m or 2h, or an RFC 3339 time')
  return z.NEVER
})

/** Options that a client gives. An omitted option keeps the current value; null sets the default. */
export const SelectionPatch = z.object({
  types: Types.nullish().describe(descriptions.types),
  stage: Stage.nullish().describe(descriptions.stage),
  since: StartPointText.nullish().describe(descriptions.since),
  snapshot: z
    .union([z.boolean(), z.literal('always')], 'must be true, false or always')
    .nullish()
    .describe(descriptions.snapshot),
  on_gap: oneOf(['replay', 'skip']).nullish().describe(descriptions.on_gap),
  ...filterOptions,
})
export type SelectionPatch = z.infer<typeof SelectionPatch>
export type OnGap = NonNullable<SelectionPatch['on_gap']>

/** A selection without its symbols. */
export type SelectionOptions = FilterValues & { readonly types: readonly UpdateType[]; readonly stage: Stage }

export const defaultSelectionOptions: SelectionOptions = { types: defaultTypes, stage: 'preconfirmed', ...noFilters }

export function patchOptions(current: SelectionOptions, patch: SelectionPatch): SelectionOptions {
  const filters = Object.fromEntries(filterNames.map((name) => [name, patch[name] === undefined ? current[name] : patch[name]]))
  return {
    types: patch.types === undefined ? current.types : (patch.types ?? defaultTypes),
    stage: patch.stage === undefined ? current.stage : (patch.stage ?? defaultSelectionOptions.stage),
    ...(filters as FilterValues),
  }
}

const Snapshot = z.union(
  [z.literal('always'), z.stringbool({ truthy: ['true', '1'], falsy: ['false', '0'] }).meta({ type: 'boolean' })],
  'must be true, false or always',
)

const HeartbeatSeconds = z
  .string()
  .meta({ type: 'integer', minimum: 1, maximum: 60 })
  .regex(/^\d{1,2}$/, 'must be seconds, 1 to 60')
  .transform(Number)
  .refine((seconds) => seconds >= 1 && seconds <= 60, 'must be seconds, 1 to 60')

export const SelectionQuery = z.object({
  symbols: z.string().transform(commaList).pipe(Symbols).optional().describe(descriptions.symbols),
  types: z.string().transform(commaList).pipe(Types).optional().describe(descriptions.types),
  stage: oneOf(Stage.options).optional().describe(descriptions.stage),
  ...filterParameters,
})

const otherNegotiable = negotiableFormats.filter((name) => name !== DEFAULT_FORMAT).join(' or ')
const titlesWithoutHeartbeats = formatNames
  .map(formatOf)
  .flatMap(({ title, hasHeartbeats }) => (hasHeartbeats ? [] : [title]))
  .join(' or ')

export const StreamQuery = SelectionQuery.extend({
  since: SelectionPatch.shape.since,
  snapshot: Snapshot.optional().describe(descriptions.snapshot),
  on_gap: SelectionPatch.shape.on_gap,
  heartbeat: HeartbeatSeconds.optional().describe(
    `Seconds between two heartbeats, 1 to 60. Default: 15; ${titlesWithoutHeartbeats} has none unless this is given.`,
  ),
  format: oneOf(formatNames).optional().describe(`Default: ${otherNegotiable} if Accept names it, else ${DEFAULT_FORMAT}.`),
  events: oneOf(['named'])
    .optional()
    .describe('named: every SSE message has its type as event:; otherwise only heartbeats have an event: line.'),
})
export type StreamQuery = z.infer<typeof StreamQuery>

export const SnapshotQuery = SelectionQuery.pick({ symbols: true })

/** `Last-Event-ID` takes precedence over `since`, because a browser reconnects with its first URL. */
export function readStreamQuery(query: URLSearchParams, lastEventIdHeader = ''): StreamQuery {
  const lastEventId = lastEventIdHeader || query.get('lastEventId')
  if (!lastEventId) return readParameters(StreamQuery, query)
  const others = new URLSearchParams([...query].filter(([name]) => name !== 'since'))
  return { ...readParameters(StreamQuery, others), since: startPointFromLastEventId(lastEventId) }
}

/** Parameters that are ignored: the API key, those that EventSource polyfills add, and `utm_` marks. */
const ignoredParameter = /^(key|lastEventId|_|utm_.*)$/
/** Limit of a name that gets a suggestion. EDITS_BOUND is the limit of edits, and each edit needs LETTERS_PER_EDIT letters. */
const NAME_BOUND_CHARS = 40
const EDITS_BOUND = 3
const LETTERS_PER_EDIT = 3

/** Names of earlier versions with the present names, which are too different to be found by the number of edits. */
export const formerNames: ReadonlyMap<string, string> = new Map([['party', 'account']])

/** Refuses an unknown name, because with a misspelt filter a client would receive everything. */
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

/** Reads a value by a schema. A refusal names the first wrong field. */
export function readOr400<Schema extends z.ZodType>(schema: Schema, given: unknown): z.infer<Schema> {
  const read = schema.safeParse(given)
  if (read.success) return read.data
  const issue = read.error.issues[0]
  const parameter = String(issue?.path[0] ?? '')
  throw new Refusal(400, 'bad_parameter', `${parameter ? `${parameter}: ` : ''}${issue?.message ?? 'not readable'}.`, { parameter })
}
