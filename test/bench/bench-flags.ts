import { UsageError } from '../../src/lib/exit-codes.ts'
import { type CommandFlags, commonFlags, readFlags } from '../../src/lib/flags.ts'
import { flagTerms, helpText } from '../../src/lib/help.ts'

/** What can be measured, and what each part does. */
const partTexts = {
  ws: 'bursts of 20 transfers to WebSocket listeners: the relay, a naive ws server, a minimal server in C (the floor)',
  sse: 'the same over SSE: the relay, a bare server of Node, the floor',
  lone: 'one transfer at a time to WebSocket listeners',
  latency: 'one transfer at a time to a hundred WebSocket listeners',
  memory: 'memory per idle listener',
  ingest: 'CPU per pushed log, its seal included, at 100 to 20,000 logs a second',
  nats: 'the same for an ingester over NATS at 1,000 and 10,000, with the listeners on an edge',
  rpc: 'JSON-RPC reads from the cache, compared with a bare server of Node that returns a constant',
  history: 'latency of each kind of history query on a full tape, and its effect on live listeners',
} as const
export type Part = keyof typeof partTexts
const parts = Object.keys(partTexts) as Part[]

const flags = {
  against: { type: 'string', description: 'a commit whose relay is measured too, in alternation' },
  rounds: { type: 'string', description: 'rounds of which the medians are printed (3)' },
  listeners: { type: 'string', description: 'number of listeners (10000)' },
  updates: { type: 'string', description: 'number of updates on the full tape (1000000)' },
  ...commonFlags,
} as const satisfies CommandFlags

const help = helpText(
  'npm run bench [-- PART ...] [--rounds 3] [--listeners 10000]',
  { heading: 'Parts; all if none is named', terms: Object.entries(partTexts) },
  flagTerms(flags),
)

export function readBenchFlags(args: readonly string[]) {
  const { values, positionals } = readFlags(flags, args, { help, allowsWords: true })
  const unknown = positionals.find((text) => !parts.some((part) => part === text))
  if (unknown !== undefined) throw new UsageError(`there is no part ${unknown}. Try --help.`)
  return {
    selected: positionals.length > 0 ? (positionals as Part[]) : parts,
    against: values.against ?? null,
    rounds: countFrom('rounds', values.rounds ?? '3'),
    listeners: countFrom('listeners', values.listeners ?? '10000'),
    updates: countFrom('updates', values.updates ?? '1000000'),
  }
}

function countFrom(flag: string, text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new UsageError(`--${flag} must be a whole number from 1, not ${text}`)
}
