import { z } from 'zod'
import { Digest, Key, PositionText } from './fields.ts'
import { readParameters } from './parameters/read-parameters.ts'
import { oneOf, QueryBoolean, queryNumber, SelectionPatch, SelectionQuery } from './parameters/selection.ts'
import { parsePosition } from './position.ts'
import { Refusal } from './refusal.ts'
import { registerObject } from './schema-registry.ts'
import { Update } from './updates.ts'

const LIMIT_BOUND = 1_000
export const LIMIT_DEFAULT = 100

const PositionParameter = z.string().transform((text, context) => {
  const position = parsePosition(text)
  if (position) return position
  context.addIssue('must be a position such as k3f9a1.18422')
  return z.NEVER
})

const { since: SinceParameter } = SelectionPatch.shape

export const EventsQuery = SelectionQuery.extend({
  since: SinceParameter.describe(
    'Where to begin: start, a position (exclusive), a duration back from now (90s, 5m, 2h), or an RFC 3339 time: the first message written at that time or later. Default: start.',
  ),
  until: SinceParameter.describe(
    'Where to end, written like since, or now. The end is not included: with a time or a duration, messages written at that time or later are left out. Default: now.',
  ),
  after: PositionParameter.optional().describe('Begin after this position; since is then ignored.'),
  before: PositionParameter.optional().describe('End before this position; until is then ignored.'),
  through: PositionParameter.optional().describe('End after this position, and include its message. Not together with before.'),
  limit: queryNumber(1, LIMIT_BOUND, `must be a number of messages, 1 to ${LIMIT_BOUND}`)
    .optional()
    .describe(`The most messages to return, 1 to ${LIMIT_BOUND}. Default: ${LIMIT_DEFAULT}, with NDJSON no limit.`),
  order: oneOf(['asc', 'desc']).default('asc').describe('desc returns the newest first.'),
  format: oneOf(['json', 'ndjson'])
    .optional()
    .describe('json is one page; ndjson is the whole range, one message a line. Default: the format that Accept names, else json.'),
  receipt: QueryBoolean.default(false).describe(
    'true: the last line of an NDJSON export is a receipt, with the range, the number of messages and a digest of their ids. Not for the newest messages of a range (order=desc with limit).',
  ),
})
export type EventsQuery = z.infer<typeof EventsQuery>

export const Receipt = registerObject('Receipt', 'The last line of an export with receipt=true: what the export contains.', {
  type: z.literal('receipt'),
  after: PositionText.describe('The export begins after this position.'),
  through: PositionText.describe('The export ends with this position.'),
  messages: z.int().nonnegative().describe('The number of messages.'),
  digest: Digest.describe('The first 16 bytes, in hex, of SHA-256 over the ids of the messages, joined by line feeds.'),
})
export type Receipt = z.infer<typeof Receipt>

const mistakeIn = (parameter: string, advice: string): Refusal =>
  new Refusal(400, 'bad_parameter', `${parameter}: ${advice}`, { parameter })

export function readEventsQuery(parameters: URLSearchParams): EventsQuery {
  const query = readParameters(EventsQuery, parameters)
  if (query.before !== undefined && query.through !== undefined)
    throw mistakeIn('through', 'give either before or through, not both.')
  if (query.receipt && query.order === 'desc' && query.limit !== undefined)
    throw mistakeIn('receipt', 'give since or after instead of limit with order=desc.')
  return query
}

export const EventsPage = registerObject('EventsPage', 'A page of history. A short or empty page is not necessarily the last.', {
  events: z.array(Update),
  next: PositionText.nullable().describe(
    'Give it as after, or with order=desc as before, for the next page; null if there is none.',
  ),
})
export type EventsPage = z.infer<typeof EventsPage>

export const FactStage = z.enum(['preconfirmed', 'sealed', 'safe', 'finalized', 'retracted'])
export type FactStage = z.infer<typeof FactStage>

export const OneFact = registerObject('OneFact', 'Every stored message about one on-chain fact.', {
  key: Key,
  events: z.array(Update).describe('Oldest first, including the seals that list the key.'),
  stage: FactStage.describe('The current stage of the fact.'),
})
export type OneFact = z.infer<typeof OneFact>
