import { UsageError } from '../../src/lib/exit-codes.ts'
import { type CommandFlags, commonFlags, readFlags } from '../../src/lib/flags.ts'
import { flagTerms, helpText } from '../../src/lib/help.ts'

/** What can be measured, and what each part does. */
const partTexts = {
  ingest: 'CPU per pushed log at 100 to 20,000 logs a second, and the greatest rate with nothing lost',
  ws: 'bursts of 20 transfers to WebSocket listeners: the relay, a naive ws server, a minimal server in C (the floor)',
  sse: "the same over SSE: the relay, Hono's streamSSE, the floor",
  lone: 'one transfer at a time to WebSocket listeners',
  growth: 'CPU per delivery from 100 to 20,000 WebSocket listeners: the relay, the floor',
  deflate: 'listeners that offer permessage-deflate, compared with listeners that do not',
  mixed: 'listeners with five random tokens of fifty each, and listeners that all have the same five',
  join: 'all listeners join at once while 100 others keep receiving',
  memory: 'memory per idle listener',
  latency: "latency that the relay adds between the upstream's socket and a listener's",
  held: "as many listeners as the machine's file limit allows",
  rpc: 'JSON-RPC reads from the cache, compared with a bare Hono route that returns a constant',
  workers: 'bursts to WebSocket listeners from one process, and from two workers',
  nats: 'latency and rate over NATS, with one ingester and 1, 2 and 4 edges',
  quotes: 'what quotes ask of the upstream per pre-confirmed swap',
  history: 'latency of each kind of history query on a full tape, and its effect on live listeners',
} as const
export type Part = keyof typeof partTexts
const parts = Object.keys(partTexts) as Part[]
/** The parts that measure a relay and its listeners, so that two commits can be compared. */
const comparedParts: readonly Part[] = ['ingest', 'ws', 'sse', 'lone', 'growth', 'deflate', 'mixed', 'workers']

const flags = {
  against: { type: 'string', description: `a commit whose relay is measured too, in alternation: ${comparedParts.join(', ')}` },
  rounds: { type: 'string', description: 'rounds of all parts but held, quotes and history; the medians are printed (3)' },
  listeners: { type: 'string', description: 'number of listeners (10000)' },
  updates: { type: 'string', description: 'number of updates on the full tape (1000000)' },
  ...commonFlags,
} as const satisfies CommandFlags

const help = helpText(
  'npm run bench [-- PART ...] [--rounds 3] [--listeners 10000]',
  { heading: 'Parts; all if none is named', terms: Object.entries(partTexts) },
  flagTerms(flags),
)

export type BenchRequest = {
  readonly selected: ReadonlySet<Part>
  readonly against: string | null
  readonly rounds: number
  readonly listeners: number
  readonly updates: number
}

export function readBenchFlags(args: readonly string[]): BenchRequest {
  const { values, positionals } = readFlags(flags, args, { help, allowsWords: true })
  const unknown = positionals.find((text) => !parts.some((part) => part === text))
  if (unknown !== undefined) throw new UsageError(`there is no part ${unknown}. Try --help.`)
  const { against = null } = values
  const selected = positionals.length > 0 ? (positionals as Part[]) : against === null ? parts : comparedParts
  if (against !== null && selected.some((part) => !comparedParts.includes(part)))
    throw new UsageError(`with --against only these parts can be measured: ${comparedParts.join(', ')}`)
  return {
    ...{ selected: new Set(selected), against },
    rounds: countFrom('rounds', values.rounds ?? '3'),
    listeners: countFrom('listeners', values.listeners ?? '10000'),
    updates: countFrom('updates', values.updates ?? '1000000'),
  }
}

function countFrom(flag: string, text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new UsageError(`--${flag} must be a whole number from 1, not ${text}`)
}
