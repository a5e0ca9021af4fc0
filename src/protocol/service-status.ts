import { z } from 'zod'
import { Head, PositionText, SourceName, SourceReason, Time } from './fields.ts'
import { registerObject } from './schema-registry.ts'
import { mapFormats } from './transports.ts'

const Count = z.int().nonnegative()
const Seconds = z.number().nonnegative()

export const HourScore = registerObject('HourScore', 'One hour of pre-confirmations and their outcome.', {
  hour: Time.describe('When this UTC hour begins. A message counts in the hour of its own time.'),
  published: Count.describe('Messages that published a key as preconfirmed.'),
  sealed: Count.describe('Open keys that a seal listed, each counted once.'),
  late: Count.describe('Messages with late: true whose block is at most a minute older than their time.'),
  backfilled: Count.describe('The other messages with late: true: read later, for example after an interruption.'),
  retracted: Count.describe('retract messages.'),
  amended: Count.describe('amend messages.'),
  lead_ms: z
    .object({
      p50: Count.nullable().describe('Half of them had at most this lead.'),
      p95: Count.nullable().describe('95 of 100 had at most this lead.'),
    })
    .describe('Milliseconds from the publication of a sealed key to its seal; null if none was sealed.'),
  seconds: z
    .object({
      pendingLogs: Seconds.describe('Pre-confirmed logs were pushed.'),
      poll: Seconds.describe('Pre-confirmed logs were polled.'),
      sealed: Seconds.describe('Nothing was pre-confirmed.'),
      down: Seconds.describe('The chain could not be read.'),
    })
    .describe('Seconds of the hour in each source. Time during which the service did not run is not counted.'),
})
export type HourScore = z.infer<typeof HourScore>

export const ServiceStatus = registerObject('ServiceStatus', 'The state of the service: the answer of /v1/status.', {
  chain_id: Count.nullable().describe('The id of the chain; null until it is known.'),
  demo: z.boolean().describe('Whether the upstream is the built-in chain: nothing on it is real.'),
  source: SourceName.describe('How the relay receives events now.'),
  reason: z
    .enum([...SourceReason.options, 'no_list', 'wrong_chain'])
    .describe(
      'Why this is the source. no_list: no list has been read. wrong_chain: every upstream URL is of another chain than the one set or on the tape.',
    ),
  started_at: Time.nullable().describe('When this source began, for this reason; null before the first status message.'),
  head: Head.describe('The newest known block numbers.'),
  lag_ms: Count.nullable().describe('Age of the newest block whose logs were read, in milliseconds; null before the first.'),
  stocks: z
    .object({
      read_at: Time.nullable().describe('When the list was last read; null before the first read.'),
      age_s: Count.nullable().describe('Whole seconds since read_at.'),
      count: Count.nullable().describe('The number of tokens in the list.'),
    })
    .describe('The list of tokenized stocks.'),
  tape: z
    .object({
      epoch: z
        .string()
        .regex(/^[0-9a-z]+$/)
        .describe('The name of this tape: the part of a position before the dot.'),
      oldest: PositionText.describe('The position after which no message has been deleted.'),
      oldest_time: Time.nullable().describe('The time of the first message after oldest; null if there is none.'),
      end: PositionText.describe('The end of the tape.'),
      messages: Count.describe('The number of messages.'),
      bytes: Count.describe('The size of the tape: of its file, or in memory.'),
      durable: z.boolean().describe('Whether positions survive a restart: false while the disk or NATS does not store the tape.'),
    })
    .describe('The tape: its ends and its size.'),
  clients: z
    .object({
      ws: Count.describe('WebSockets at /v1/ws.'),
      ...mapFormats(({ title }) => Count.describe(`${title}.`)),
      rpc: Count.describe('WebSockets at /rpc.'),
    })
    .describe('Clients connected now, by transport.'),
  score: z
    .array(HourScore)
    .max(25)
    .nullable()
    .describe('The hours on the tape, oldest first, the current one last; null while they are being counted.'),
})
export type ServiceStatus = z.infer<typeof ServiceStatus>

export const Health = registerObject('Health', 'The answer of /healthz.', {
  status: z.literal('ok').describe('The process answers.'),
})

export const Readiness = registerObject('Readiness', 'The answer of /readyz: 200 when ready, else 503.', {
  status: z.enum(['ready', 'unready']).describe('Whether the service can serve clients now.'),
  reasons: z.array(z.string()).describe('Why it is not ready; empty when it is.'),
  demo: z.boolean().describe('Whether the upstream is the built-in chain: nothing on it is real.'),
})

export const AccessToken = registerObject('AccessToken', 'An access token, valid for about a minute in place of an API key.', {
  token: z.string().describe('The access token, for key=… in a URL or for the Authorization header.'),
  expires_at: Time.describe('After this time it opens no further connection. Open connections stay.'),
})
