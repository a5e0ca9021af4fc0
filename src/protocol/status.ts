import { z } from 'zod'
import { Head, PositionText, registerSchema, SourceName, SourceReason, Time } from './fields.ts'

/** What the service says of itself over plain HTTP. */

const Count = z.int().nonnegative()
const Seconds = z.number().nonnegative()

export const HourScore = registerSchema(
  'HourScore',
  'One hour of what was told before it was sealed, and what became of it.',
  z.object({
    hour: Time.describe('When this UTC hour begins. Every message counts in the hour of its own time.'),
    told: Count.describe('Messages that told a key as preconfirmed.'),
    sealed: Count.describe('Keys told as preconfirmed that a seal listed, each once.'),
    late: Count.describe('Messages with late true: first told when they were sealed.'),
    retracted: Count.describe('retract messages.'),
    amended: Count.describe('amend messages.'),
    lead_ms: z
      .object({
        p50: Count.nullable().describe('Half of them had no longer lead than this.'),
        p95: Count.nullable().describe('Of 100 of them 95 had no longer lead than this.'),
      })
      .describe(
        'By how many milliseconds the telling of a sealed key was ahead of its seal; null where none was sealed.',
      ),
    seconds: z
      .object({
        pendingLogs: Seconds.describe('Pre-confirmed logs were pushed.'),
        poll: Seconds.describe('They were asked for.'),
        sealed: Seconds.describe('Nothing was pre-confirmed.'),
        down: Seconds.describe('The chain could not be heard.'),
      })
      .describe('Seconds of the hour in each source. While the service does not run, none of them grows.'),
  }),
)
export type HourScore = z.infer<typeof HourScore>

export const ServiceStatus = registerSchema(
  'ServiceStatus',
  'How the service is: the answer of /v1/status.',
  z.object({
    chain_id: Count.nullable().describe('Which chain is listened to; null until it is known.'),
    source: SourceName.describe('Where pre-confirmations come from now.'),
    reason: SourceReason.describe('Why it is this source.'),
    since: Time.nullable().describe('Since when this source and this reason hold; null before the first is told.'),
    head: Head.describe('How far the chain is, as far as is known.'),
    lag_ms: Count.nullable().describe(
      'By how many milliseconds the time of the newest sealed block heard of is behind the clock; null before the first.',
    ),
    stocks: z
      .object({
        read_at: Time.nullable().describe('When the list was last read; null before the first.'),
        age_s: Count.nullable().describe('How many whole seconds ago that was.'),
        count: Count.nullable().describe('How many tokens it names.'),
      })
      .describe('The list of tokenized stocks.'),
    tape: z
      .object({
        epoch: z
          .string()
          .regex(/^[0-9a-z]+$/)
          .describe('Names this tape: what stands before the dot of its positions.'),
        oldest: PositionText.describe('The position after which nothing has been evicted.'),
        end: PositionText.describe('The end of the tape.'),
      })
      .describe('What is kept.'),
    clients: z
      .object({
        ws: Count.describe('WebSockets at /v1/ws.'),
        sse: Count.describe('Server-sent events.'),
        ndjson: Count.describe('NDJSON.'),
        text: Count.describe('Lines of plain text.'),
        rpc: Count.describe('WebSockets at /rpc.'),
      })
      .describe('Who is connected now, by carrier.'),
    score: z
      .array(HourScore)
      .max(25)
      .nullable()
      .describe('The hours that the tape holds, oldest first, this one last; null while they are still being read.'),
  }),
)
export type ServiceStatus = z.infer<typeof ServiceStatus>

export const Health = registerSchema(
  'Health',
  'The answer of /healthz.',
  z.object({ status: z.literal('ok').describe('The process answers.') }),
)

export const Readiness = registerSchema(
  'Readiness',
  'The answer of /readyz: 200 when it is ready, else 503.',
  z.object({
    status: z.enum(['ready', 'unready']).describe('Whether this service is of use now.'),
    reasons: z.array(z.string()).describe('What keeps it from that; empty when it is ready.'),
  }),
)
