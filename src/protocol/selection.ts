import { z } from 'zod'
import { nearestName } from '../lib/nearest-name.ts'
import { Stage } from './fields.ts'
import { POSITION_BOUND_BYTES, type Position, parsePosition } from './position.ts'
import { Refusal } from './refusal.ts'
import { DEFAULT_FORMAT, formatNames, formatOf, negotiableFormats } from './transports.ts'
import { defaultTypes, namedTypes, type UpdateType, updateTypes } from './updates.ts'
import { commaList, type FilterValues, filterNames, filterOptions, filterParameters, noFilters } from './value-filters.ts'

/**
 * The selection of a client. The same parameters come as a query string (SSE, NDJSON, text, a WebSocket's URL) or in a
 * `subscribe` message, and one schema reads both.
 */

/** The most symbols in one connection, and the most characters in one symbol. */
export const SYMBOLS_BOUND = 200
const SYMBOL_BOUND_CHARS = 128
/** Longer durations count as this one; no tape is kept longer. */
const DURATION_BOUND_MS = 366 * 86_400_000

/** Where a stream begins. */
export type StartPoint =
  | { readonly from: 'now' }
  | { readonly from: 'start' }
  | { readonly from: 'time'; readonly time: number }
  | { readonly from: 'duration'; readonly ms: number }
  | { readonly from: 'position'; readonly text: string; readonly position: Position | null }

const durationUnits: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const rfc3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/

function parseStartPoint(text: string): StartPoint | null {
  if (text === 'now' || text === 'start') return { from: text }
  const duration = /^(\d{1,12})(ms|s|m|h|d)$/.exec(text)
  if (duration) {
    const durationMs = Number(duration[1]) * (durationUnits[duration[2] ?? ''] ?? 0)
    return { from: 'duration', ms: Math.min(durationMs, DURATION_BOUND_MS) }
  }
  // A query string turns the plus of an offset into a space.
  const timestamp = text.replace(/ (\d\d:\d\d)$/, '+$1')
  if (rfc3339.test(timestamp)) {
    const time = parseTimestamp(timestamp)
    return time === null ? null : { from: 'time', time }
  }
  const position = parsePosition(text)
  return position && { from: 'position', text, position }
}

/** Rounds up to whole milliseconds, as times on the tape have no finer parts. */
function parseTimestamp(timestamp: string): number | null {
  // `Date` has no leap second 60: it counts as the second after the 59th.
  const leapSecond = /^(.{17})60/.exec(timestamp)
  const time = Date.parse(leapSecond ? `${leapSecond[1]}59${timestamp.slice(19)}` : timestamp)
  if (Number.isNaN(time) || !isInCalendar(timestamp)) return null
  return time + (leapSecond ? 1_000 : 0) + (/\.\d{3}0*[1-9]/.test(timestamp) ? 1 : 0)
}

/** Refuses days such as February 30, which `Date` reads as March 2. */
function isInCalendar(timestamp: string): boolean {
  const day = timestamp.slice(0, 10)
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)
}

/** A browser sends `Last-Event-ID` when it reconnects. An unreadable one becomes a `gap`. */
export const startPointFromLastEventId = (header: string): StartPoint => ({
  from: 'position',
  text: header.slice(0, POSITION_BOUND_BYTES),
  position: new TextEncoder().encode(header).length > POSITION_BOUND_BYTES ? null : parsePosition(header),
})

export function oneOf<const Names extends readonly string[]>(names: Names) {
  return z.enum(names, { error: `must be ${names.join(' or ')}` })
}

/** JSON escapes every line break but these two, and a refusal must stay one line. */
const quoted = (text: string): string => JSON.stringify(text).replace(/[\u2028\u2029]/g, '\ufffd')

const knownTypes = new Set<string>(updateTypes)

const Types = z
  .array(z.string().meta({ enum: [...updateTypes, '*'] }))
  .min(1, 'names no type')
  .transform((names, context): readonly UpdateType[] => {
    if (names.includes('*')) return updateTypes
    for (const name of names) {
      if (!knownTypes.has(name)) {
        context.addIssue(`unknown type ${quoted(name.slice(0, 40))}; known are ${updateTypes.join(', ')}, *`)
        return z.NEVER
      }
    }
    return updateTypes.filter((type) => names.includes(type))
  })

const SymbolName = z.string().min(1, 'is empty').max(SYMBOL_BOUND_CHARS, `is longer than ${SYMBOL_BOUND_CHARS} characters`)

export const Symbols = z
  .array(SymbolName)
  .max(SYMBOLS_BOUND, `at most ${SYMBOLS_BOUND} symbols for one connection`)
  .describe('Symbols in upper or lower case, with or without the trailing c, former symbols, addresses, isin:…, or * for all.')

const StartPointText = z.string().transform((text, context): StartPoint => {
  const startPoint = parseStartPoint(text)
  if (startPoint) return startPoint
  context.addIssue('must be now, start, a position, a duration such as 90s, 5m or 2h, or an RFC 3339 time')
  return z.NEVER
})

const descriptions = {
  types: `Message types, or * for all. Default: all except ${namedTypes.join(' and ')}.`,
  stage: 'sealed: a fact comes only when its block is sealed. Default: preconfirmed.',
  since: 'Where to begin: now, start, a position (exclusive), a duration back (90s, 5m, 2h), or an RFC 3339 time. Default: now.',
  snapshot:
    'true: a snapshot of each token comes first, but not after a position that the relay can continue from; always: also then; false: never. Default: true.',
  on_gap:
    'Where the stream continues after a gap expired or epoch. replay: at the oldest message; skip: at the end, and backfill names what was left out. Default: replay.',
} as const

/** The options of a selection as given: an absent one keeps the current value, null clears it. */
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

/** What a selection asks of an update, apart from symbols. */
export type SelectionOptions = FilterValues & { readonly types: readonly UpdateType[]; readonly stage: Stage }

export const defaultSelectionOptions: SelectionOptions = { types: defaultTypes, stage: 'preconfirmed', ...noFilters }

/** The current options with the given ones applied. */
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

/** A selection as a query string. */
export const SelectionQuery = z.object({
  symbols: z
    .string()
    .transform(commaList)
    .pipe(Symbols)
    .optional()
    .describe(Symbols.description ?? ''),
  types: z.string().transform(commaList).pipe(Types).optional().describe(descriptions.types),
  stage: oneOf(Stage.options).optional().describe(descriptions.stage),
  ...filterParameters,
})

const otherNegotiable = negotiableFormats.filter((name) => name !== DEFAULT_FORMAT).join(' or ')
const titlesWithoutHeartbeats = formatNames
  .map(formatOf)
  .flatMap(({ title, hasHeartbeats }) => (hasHeartbeats ? [] : [title]))
  .join(' or ')

/** The query string of every streaming route. */
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

/** The query string of `/v1/snapshot`. */
export const SnapshotQuery = SelectionQuery.pick({ symbols: true })

/** Reads the query of a stream. A `Last-Event-ID` wins over `since`: a browser that reconnects repeats its first URL. */
export function readStreamQuery(query: URLSearchParams, lastEventIdHeader = ''): StreamQuery {
  const lastEventId = lastEventIdHeader || query.get('lastEventId')
  if (!lastEventId) return readParameters(StreamQuery, query)
  const others = new URLSearchParams([...query].filter(([name]) => name !== 'since'))
  return { ...readParameters(StreamQuery, others), since: startPointFromLastEventId(lastEventId) }
}

/** Parameters that mean nothing to the query: the API key, what some EventSource polyfills add, and marks of other programs. */
const ignoredParameter = /^(key|lastEventId|_|utm_.*)$/
/** A name that is longer, or has more edits, resembles none. Nor does one with more edits than a third of its letters. */
const NAME_BOUND_CHARS = 40
const EDITS_BOUND = 3
const LETTERS_PER_EDIT = 3

/** Names that clients used before: no number of edits leads from one to the other. */
const formerNames: ReadonlyMap<string, string> = new Map([['party', 'account']])

/** Refuses the first name that is not known: a misspelt filter would let everything through. */
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

/** Parses a query string, or throws a refusal that names the wrong parameter. */
export function readParameters<Shape extends z.ZodRawShape>(schema: z.ZodObject<Shape>, query: URLSearchParams) {
  refuseUnknown('parameter', query.keys(), Object.keys(schema.shape))
  const given: Record<string, string> = {}
  for (const name of Object.keys(schema.shape)) {
    const values = query.getAll(name)
    if (values.length > 1) {
      throw new Refusal(400, 'bad_parameter', `${name}: given ${values.length} times; give it once.`, { parameter: name })
    }
    if (values[0] !== undefined) given[name] = values[0]
  }
  return readOr400(schema, given)
}

/** Parses with a schema, or throws a refusal that names the first wrong field. */
export function readOr400<Schema extends z.ZodType>(schema: Schema, given: unknown): z.infer<Schema> {
  const read = schema.safeParse(given)
  if (read.success) return read.data
  const issue = read.error.issues[0]
  const parameter = String(issue?.path[0] ?? '')
  throw new Refusal(400, 'bad_parameter', `${parameter ? `${parameter}: ` : ''}${issue?.message ?? 'not readable'}.`, { parameter })
}
