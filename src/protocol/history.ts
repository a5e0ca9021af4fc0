import { z } from 'zod'
import { Key, PositionText, registerSchema } from './fields.ts'
import { parsePosition } from './position.ts'
import { oneOf, readParameters, SelectionPatch, SelectionQuery } from './selection.ts'
import { Update } from './updates.ts'

/** What is asked of the tape's history over plain HTTP, and what is answered. */

/** Messages that one page may hold, and how many it holds where nothing is said. */
const LIMIT_BOUND = 1_000
export const LIMIT_DEFAULT = 100

const limitMessage = `must be a number of messages, 1 to ${LIMIT_BOUND}`

const PositionParameter = z.string().transform((text, context) => {
  const position = parsePosition(text)
  if (position) return position
  context.addIssue('must be a position such as k3f9a1.18422')
  return z.NEVER
})

const { since: SinceParameter } = SelectionPatch.shape

/** The query string of `/v1/events`. */
export const EventsQuery = SelectionQuery.extend({
  since: SinceParameter.describe(
    'Where to begin: start, a position (exclusive), a duration back from now (90s, 5m, 2h), or an RFC 3339 time: the first message written at it or later. Without it start.',
  ),
  until: SinceParameter.describe(
    'Where to end, in the same forms, exclusive: with a time or a duration nothing that was written at it or later comes. Without it now.',
  ),
  after: PositionParameter.optional().describe('A position to begin after. It wins over since.'),
  before: PositionParameter.optional().describe('A position to end before. It wins over until.'),
  limit: z
    .string()
    .meta({ type: 'integer', minimum: 1, maximum: LIMIT_BOUND })
    .regex(/^\d{1,4}$/, limitMessage)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= LIMIT_BOUND, limitMessage)
    .optional()
    .describe(
      `How many messages at most, 1 to ${LIMIT_BOUND}. Without it ${LIMIT_DEFAULT}, as NDJSON all that there are.`,
    ),
  order: oneOf(['asc', 'desc']).default('asc').describe('desc gives the newest first.'),
  format: oneOf(['json', 'ndjson'])
    .optional()
    .describe(
      'json is a page, ndjson all that was asked for, line by line. Without it what Accept asks for, else json.',
    ),
})
export type EventsQuery = z.infer<typeof EventsQuery>

export const readEventsQuery = (query: URLSearchParams): EventsQuery => readParameters(EventsQuery, query)

/** A page of history. */
export const EventsPage = registerSchema(
  'EventsPage',
  'A page of history: it may be short or empty and still not be the last.',
  z.object({
    events: z.array(Update),
    next: PositionText.nullable().describe('Goes into after, newest first into before; null once there is no more.'),
  }),
)
export type EventsPage = z.infer<typeof EventsPage>

/** How firm a fact is by now. */
export const FactStage = z.enum(['preconfirmed', 'sealed', 'safe', 'finalized', 'retracted'])
export type FactStage = z.infer<typeof FactStage>

/** Everything that is kept about one on-chain fact. */
export const OneFact = registerSchema(
  'OneFact',
  'Everything that is kept about one on-chain fact.',
  z.object({
    key: Key,
    updates: z.array(Update).describe('Oldest first, with the seals that list it.'),
    stage: FactStage.describe('How firm it is by now.'),
  }),
)
export type OneFact = z.infer<typeof OneFact>
