import { z } from 'zod'
import { Stage } from '../fields.ts'
import { DEFAULT_FORMAT, formatNames, negotiableFormats } from '../transports.ts'
import { defaultTypes, namedTypes, type UpdateType, updateTypes } from '../updates.ts'
import { quoted, readParameters } from './read-parameters.ts'
import { StartPointText, startPointFromLastEventId } from './start-point.ts'
import { commaList, type FilterValues, filterNames, filterOptions, filterParameters, noFilters } from './value-filters.ts'

export const SYMBOLS_BOUND = 200
const SYMBOL_BOUND_CHARS = 128

export function oneOf<const Names extends readonly string[]>(names: Names) {
  return z.enum(names, { error: `must be ${names.join(' or ')}` })
}

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

/** Options that a client gives: an absent one keeps the current value, null sets the default. */
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

export const QueryBoolean = z
  .stringbool({ truthy: ['true', '1'], falsy: ['false', '0'], error: 'must be true or false' })
  .meta({ type: 'boolean' })
const Snapshot = z.union([z.literal('always'), QueryBoolean], 'must be true, false or always')

/** Reads a whole number. A mistake is named in the words of `message`. */
export const queryNumber = (min: number, max: number, message: string) =>
  z
    .string()
    .meta({ type: 'integer', minimum: min, maximum: max })
    .regex(new RegExp(`^\\d{1,${String(max).length}}$`), message)
    .transform(Number)
    .refine((number) => number >= min && number <= max, message)

const HEARTBEAT_BOUND_S = 60
const HeartbeatSeconds = queryNumber(0, HEARTBEAT_BOUND_S, `must be seconds, 1 to ${HEARTBEAT_BOUND_S}, or 0 for none`)

export const SelectionQuery = z.object({
  symbols: z.string().transform(commaList).pipe(Symbols).optional().describe(descriptions.symbols),
  types: z.string().transform(commaList).pipe(Types).optional().describe(descriptions.types),
  stage: oneOf(Stage.options).optional().describe(descriptions.stage),
  ...filterParameters,
})

const otherNegotiable = negotiableFormats.filter((name) => name !== DEFAULT_FORMAT).join(' or ')

export const StreamQuery = SelectionQuery.extend({
  since: SelectionPatch.shape.since,
  snapshot: Snapshot.optional().describe(descriptions.snapshot),
  on_gap: SelectionPatch.shape.on_gap,
  heartbeat: HeartbeatSeconds.optional().describe(
    'Seconds between two heartbeats, 1 to 60. 0 turns them off, but not on a WebSocket. Default: 15.',
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
