import { z } from 'zod'
import { Key, PositionText } from './parts.ts'
import { parsePosition } from './position.ts'
import { oneOf, readParameters, Selecting } from './selection.ts'
import { Update } from './updates.ts'

/** What is asked of the tape's history over plain HTTP, and what is answered. */

/** Messages that one page may hold, and how many it holds where nothing is said. */
const LIMIT_BOUND = 1_000
const LIMIT_DEFAULT = 100

const limitWords = `must be a number of messages, 1 to ${LIMIT_BOUND}`

const PositionParameter = z.string().transform((text, context) => {
  const position = parsePosition(text)
  if (position) return position
  context.addIssue('must be a position such as k3f9a1.18422')
  return z.NEVER
})

/** The query string of `/v1/events`. */
const EventsQuery = Selecting.extend({
  after: PositionParameter.optional(),
  before: PositionParameter.optional(),
  limit: z
    .string()
    .regex(/^\d{1,4}$/, limitWords)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= LIMIT_BOUND, limitWords)
    .default(LIMIT_DEFAULT),
  order: oneOf(['asc', 'desc']).default('asc'),
})
export type EventsQuery = z.infer<typeof EventsQuery>

export const readEventsQuery = (query: URLSearchParams): EventsQuery => readParameters(EventsQuery, query)

/** A page of history. `next` goes into `after`, newest first into `before`; null where nothing more is asked for. */
export const EventsPage = z.object({ events: z.array(Update), next: PositionText.nullable() })
export type EventsPage = z.infer<typeof EventsPage>

/** How firm a fact is by now. */
export const FactStage = z.enum(['preconfirmed', 'sealed', 'safe', 'finalized', 'retracted'])
export type FactStage = z.infer<typeof FactStage>

/** Everything that is kept about one on-chain fact. */
export const OneFact = z.object({ key: Key, updates: z.array(Update), stage: FactStage })
export type OneFact = z.infer<typeof OneFact>
