import { Writable } from 'node:stream'
import { parseArgs } from 'node:util'

/** Prints the messages of some symbols to the terminal, from a running relay. */

const usage = `npm run tail -- SYMBOL [SYMBOL ...] [--url http://127.0.0.1:8080] [--since 5m] [--types transfer,nav] [--json]

  SYMBOL   a symbol in upper or lower case, an address, isin:..., or * for all
  --url    the relay (http://127.0.0.1:8080, or STOCKTAPE_URL)
  --since  a position, start, a duration (90s, 5m, 2h) or an RFC 3339 time (default: now)
  --types  message types separated by commas, or *
  --json   NDJSON messages as on the wire, instead of readable lines
`

const options = {
  url: { type: 'string' },
  since: { type: 'string' },
  types: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

class UsageError extends Error {}

function readArguments(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (mistake) {
    throw new UsageError(mistake instanceof Error ? (mistake.message.split(/\.\s/)[0] ?? '') : String(mistake))
  }
}

async function tail(args: readonly string[]): Promise<void> {
  const { values, positionals } = readArguments(args)
  if (values.help) return void process.stdout.write(usage)
  if (positionals.length === 0) throw new UsageError('name at least one symbol, or * for all')
  const base = values.url ?? process.env.STOCKTAPE_URL ?? 'http://127.0.0.1:8080'
  if (!URL.canParse(base)) throw new UsageError(`--url ${base} is not a URL`)
  const url = new URL('/v1/stream', base)
  url.searchParams.set('symbols', positionals.join(','))
  url.searchParams.set('format', values.json ? 'ndjson' : 'text')
  if (values.since) url.searchParams.set('since', values.since)
  if (values.types) url.searchParams.set('types', values.types)
  const response = await fetch(url).catch((failure: unknown) => {
    const cause = failure instanceof Error && failure.cause instanceof Error ? `: ${failure.cause.message}` : ''
    throw new UsageError(`no answer from ${url.origin}${cause}; is the relay running? (npm start)`)
  })
  if (response.status !== 200 || !response.body) {
    const { message } = (await response.json().catch(() => ({}))) as { message?: string }
    throw new UsageError(message ?? `the relay answered HTTP ${response.status}`)
  }
  await response.body.pipeTo(Writable.toWeb(process.stdout))
}

process.stdout.on('error', () => process.exit(0))
process.on('SIGINT', () => process.exit(0))
try {
  await tail(process.argv.slice(2))
} catch (failure) {
  if (failure instanceof UsageError) process.stderr.write(`tail: ${failure.message}\n`)
  else process.stderr.write('tail: the stream was interrupted\n')
  process.exitCode = 2
}
