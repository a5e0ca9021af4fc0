import { parseArgs } from 'node:util'
import { type Message, Notice } from '../protocol/notices.ts'
import { formatTextLine } from '../protocol/readable-line.ts'
import { Update } from '../protocol/updates.ts'
import { type Command, EXIT_FAILED, EXIT_OK, EXIT_USAGE, UsageError } from './command.ts'

/** Prints the messages of some symbols to the terminal, from a running relay. It reconnects and loses nothing. */

const usage = `stocktape tail SYMBOL [SYMBOL ...] [--url http://127.0.0.1:8080] [--since 5m] [--types transfer,nav] [--key KEY] [--json]

  SYMBOL   a symbol in upper or lower case, an address, isin:..., or * for all
  --url    the relay (http://127.0.0.1:8080, or STOCKTAPE_URL)
  --since  a position, start, a duration (90s, 5m, 2h) or an RFC 3339 time (default: now)
  --types  message types separated by commas, or *
  --key    an API key, for a relay that requires one (or STOCKTAPE_KEY)
  --json   NDJSON messages as on the wire, instead of readable lines

Messages go to standard output, all else to standard error.
Exit codes: 0 after Ctrl-C or when the reader of the pipe leaves, 1 when the stream ended for good, 2 for a mistake.
`

export const tailFlags = {
  url: { type: 'string' },
  since: { type: 'string' },
  types: { type: 'string' },
  key: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

/** A relay sends a heartbeat this often. One that is silent for three of them is gone. */
const HEARTBEAT_S = 15
const SILENCE_MS = 3 * HEARTBEAT_S * 1_000
/** The wait before the first attempt to reconnect, and the longest one. Each failure doubles it. */
const RETRY_MS = 1_000
const RETRY_BOUND_MS = 30_000

/** The relay does not serve this stream any more. */
class EndedError extends Error {}

type Tail = {
  readonly url: URL
  readonly headers: Record<string, string>
  readonly isJson: boolean
  /** Where the next connection continues. */
  since: string
  /** How long to wait before it. */
  retryMs: number
  hasConnected: boolean
}

function readArguments(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: tailFlags, allowPositionals: true })
  } catch (mistake) {
    throw new UsageError(mistake instanceof Error ? (mistake.message.split(/\.\s/)[0] ?? '') : String(mistake))
  }
}

function openTail({ values, positionals }: ReturnType<typeof readArguments>): Tail {
  if (positionals.length === 0) throw new UsageError('name at least one symbol, or * for all')
  const base = values.url ?? process.env.STOCKTAPE_URL ?? 'http://127.0.0.1:8080'
  if (!URL.canParse(base)) throw new UsageError(`--url ${base} is not a URL`)
  const url = new URL('/v1/stream', base)
  url.searchParams.set('symbols', positionals.join(','))
  url.searchParams.set('format', 'ndjson')
  url.searchParams.set('heartbeat', String(HEARTBEAT_S))
  if (values.types) url.searchParams.set('types', values.types)
  const key = values.key ?? process.env.STOCKTAPE_KEY
  return {
    url,
    headers: key ? { authorization: `Bearer ${key}` } : {},
    isJson: values.json === true,
    since: values.since ?? 'now',
    retryMs: RETRY_MS,
    hasConnected: false,
  }
}

/** Goes on until the process ends or the relay refuses the stream. */
async function run(tail: Tail): Promise<never> {
  for (;;) {
    const reason = await connect(tail).catch((failure: unknown) => {
      if (failure instanceof UsageError || failure instanceof EndedError) throw failure
      if (failure instanceof SyntaxError) return 'the answer is no stream of messages'
      return failure instanceof Error && failure.name === 'TimeoutError' ? 'the relay is silent' : 'the connection was lost'
    })
    // Many clients lose their connections at the same time: they must not come back at the same time.
    const waitMs = Math.round(tail.retryMs * (1 + Math.random() / 2))
    warn(`${reason}; continuing at ${tail.since} in ${waitMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, waitMs))
    tail.retryMs = Math.min(2 * tail.retryMs, RETRY_BOUND_MS)
  }
}

/** One connection, until it ends. Returns why. */
async function connect(tail: Tail): Promise<string> {
  const abort = new AbortController()
  const onSilence = () => abort.abort(new DOMException('', 'TimeoutError'))
  let silence = setTimeout(onSilence, SILENCE_MS)
  try {
    tail.url.searchParams.set('since', tail.since)
    const response = await fetch(tail.url, { headers: tail.headers, signal: abort.signal }).catch((failure: unknown) => {
      if (tail.hasConnected) throw failure
      const cause = failure instanceof Error && failure.cause instanceof Error ? `: ${failure.cause.message}` : ''
      throw new UsageError(`no answer from ${tail.url.origin}${cause}; is the relay running? (npm start)`)
    })
    if (response.status !== 200 || !response.body) return await refusal(tail, response)
    let rest = ''
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      // A reader of the pipe that takes its time is no silence of the relay.
      clearTimeout(silence)
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) await receive(tail, line)
      silence = setTimeout(onSilence, SILENCE_MS)
    }
    return 'the stream ended'
  } finally {
    clearTimeout(silence)
  }
}

/** A refusal that passes is a reason to wait. Any other ends the program. */
async function refusal(tail: Tail, response: Response): Promise<string> {
  const { message } = (await response.json().catch(() => ({}))) as { message?: string }
  const isKeyless = response.status === 401
  const text = isKeyless ? 'the relay requires an API key: use --key or STOCKTAPE_KEY' : (message ?? `HTTP ${response.status}`)
  if (response.status !== 429 && response.status < 500) throw tail.hasConnected ? new EndedError(text) : new UsageError(text)
  tail.retryMs = Math.max(tail.retryMs, 1_000 * Number(response.headers.get('retry-after') ?? 0) || 0)
  return text
}

async function receive(tail: Tail, line: string): Promise<void> {
  const message: Message = JSON.parse(line)
  if ('id' in message && message.id !== null) tail.since = message.id
  const isRepeated = tail.hasConnected && ['hello', 'subscribed', 'live'].includes(message.type)
  if (message.type === 'live') Object.assign(tail, { hasConnected: true, retryMs: RETRY_MS })
  if (message.type === 'bye') tail.retryMs = message.retry_ms
  if (message.type === 'heartbeat') return
  if (tail.isJson) await print(line)
  else if (!isRepeated && readableTypes.has(message.type)) await print(formatTextLine(message))
}

/** A newer relay may send types that this program does not know. */
const readableTypes: ReadonlySet<string> = new Set([...Update.options, ...Notice.options].map(({ shape }) => shape.type.value))

/** Resolves when the reader of the pipe keeps up. */
const print = (line: string): Promise<void> =>
  new Promise((resolve) => {
    if (process.stdout.write(`${line}\n`)) resolve()
    else process.stdout.once('drain', resolve)
  })

const warn = (text: string): void => void process.stderr.write(`tail: ${text}\n`)

export const tail: Command = async (args) => {
  process.stdout.on('error', () => process.exit(EXIT_OK))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(EXIT_OK))
  try {
    const parsed = readArguments(args)
    if (!parsed.values.help) return await run(openTail(parsed))
    process.stdout.write(usage)
    return EXIT_OK
  } catch (failure) {
    if (!(failure instanceof UsageError || failure instanceof EndedError)) throw failure
    warn(failure.message)
    return failure instanceof UsageError ? EXIT_USAGE : EXIT_FAILED
  }
}
