import { type GeneratedTape, generateFullTape, type TokenName } from './full-tape-generator.ts'
import type { LoadCommand, LoadReply } from './http-load-process.ts'
import { PAIR_SIZE, type ProbeCommand, type ProbeReply } from './live-probe-process.ts'
import { type MeasuredServer, openRelay } from './measured-servers.ts'
import { PinnedWorker } from './pinned-processes.ts'

/** A relay on a full tape with live traffic, one live listener, and one client that queries history. */

const TOKENS = 50
/** The interval of live transfers, long enough that settling their blocks delays nothing. */
const LIVE_EVERY_MS = 40
/** The first answers run before the code is optimised. */
const WARM_UP_MS = 150
const RESTING_BOUND_MS = 60_000
const POLL_MS = 200
/** The size of a page without a limit. */
const MESSAGES_WANTED = 100
const REQUESTS_BOUND = 40
const HOLDER = `0x${'a'.repeat(36)}0001`

/** A kind of query: paths that are requested in turn, and the parameter that continues with the next page, if any. */
export type HistoryQuery = {
  readonly name: string
  readonly paths: readonly string[]
  readonly cursorParameter: 'after' | 'before' | null
}

/** Latency of live delivery and of a trivial request meanwhile, in milliseconds. */
export type LiveFigures = Extract<ProbeReply, { done: 'summarize' }>

/** Measurements of one kind of query, in milliseconds. */
export type QueryFigures = LiveFigures & {
  readonly what: string
  readonly answers: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
  /** On the first page. */
  readonly messages: number
  /** Until a hundred messages have come, or there are no more. */
  readonly requests: number
  readonly wrong: number
}

type Page = { readonly events?: readonly unknown[]; readonly next?: string | null }
type Opened = {
  readonly server: MeasuredServer
  readonly tape: GeneratedTape
  readonly tokens: readonly TokenName[]
  /** How long generating the tape took, and then starting the relay. */
  readonly generatingMs: number
  readonly startingMs: number
}

export class HistoryUnderLoad {
  readonly opened: Opened
  readonly queries: readonly HistoryQuery[]
  readonly #client = new PinnedWorker<LoadCommand, LoadReply>('http-load-process.ts')
  readonly #probe = new PinnedWorker<ProbeCommand, ProbeReply>('live-probe-process.ts')

  private constructor(opened: Opened) {
    this.opened = opened
    this.queries = historyQueriesFor(opened.tape, opened.tokens)
  }

  /** Generates a tape with this many updates and starts a relay on it. Resolves when the relay is at rest. */
  static async open(updates: number): Promise<HistoryUnderLoad> {
    const began = performance.now()
    let filled: Pick<Opened, 'tape' | 'tokens' | 'generatingMs'> | undefined
    const server = await openRelay({
      ...{ tokens: TOKENS, settings: { TAPE_MAX_MESSAGES: String(updates) } },
      fill: async (dir, { tokens: listed, head }) => {
        const from = performance.now()
        const tokens = listed.slice(0, TOKENS)
        const tape = await generateFullTape({ dir, tokens, updates, head, now: Date.now() })
        filled = { tape, tokens, generatingMs: performance.now() - from }
      },
    })
    if (!filled) throw new Error('the relay was started without a tape')
    const startingMs = performance.now() - began - filled.generatingMs
    const load = new HistoryUnderLoad({ server, ...filled, startingMs })
    await load.#start()
    return load
  }

  /** Repeats one kind of query for this long. */
  async measureQuery({ name, paths, cursorParameter }: HistoryQuery, forMs: number): Promise<QueryFigures> {
    const { port } = this.opened.server
    const query = (ms: number) => this.#client.command({ do: 'repeat', port, connections: 1, requests: paths, forMs: ms })
    await query(Math.min(WARM_UP_MS, forMs))
    await this.#probe.command({ do: 'summarize' })
    const { first, answers, wrong, p50Ms, p99Ms, maxMs } = await query(forMs)
    const live = await this.#probe.command({ do: 'summarize' })
    let page: Page = JSON.parse(first)
    const messages = page.events?.length ?? 1
    let [requests, received] = [1, messages]
    while (cursorParameter && page.next && received < MESSAGES_WANTED && requests < REQUESTS_BOUND) {
      page = (await (await fetch(`http://127.0.0.1:${port}${paths[0]}&${cursorParameter}=${page.next}`)).json()) as Page
      received += page.events?.length ?? 0
      requests += 1
    }
    return { ...live, what: name, answers, wrong, p50Ms, p99Ms, maxMs, messages, requests }
  }

  /** Latency of live delivery without queries. */
  async measureIdle(ms: number): Promise<LiveFigures> {
    await this.#probe.command({ do: 'summarize' })
    await new Promise((resolve) => setTimeout(resolve, ms))
    return this.#probe.command({ do: 'summarize' })
  }

  /** Reads a long answer to its end. */
  async measureRead(path: string) {
    await this.#probe.command({ do: 'summarize' })
    const { lines, bytes, seconds } = await this.#client.command({ do: 'read', port: this.opened.server.port, path })
    return { ...(await this.#probe.command({ do: 'summarize' })), lines, bytes, seconds }
  }

  async close(): Promise<void> {
    await Promise.all([this.#client.end(), this.#probe.end(), this.opened.server.end()])
  }

  async #start(): Promise<void> {
    const { port, traffic } = this.opened.server
    await this.#probe.command({ do: 'listen', port })
    // The traffic goes on until its process ends.
    traffic.command({ do: 'work', burst: PAIR_SIZE, everyMs: LIVE_EVERY_MS, bursts: null }).catch(() => {})
    const from = performance.now()
    // After its start a relay reads the tape for its score, and is busy meanwhile.
    while (!(await isAtRest(port)) && performance.now() - from < RESTING_BOUND_MS)
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

async function isAtRest(port: number): Promise<boolean> {
  const { score } = (await (await fetch(`http://127.0.0.1:${port}/v1/status`)).json()) as { score?: unknown }
  return score !== null
}

/** Every kind of query, from both ends and in both views, and those without pages. */
function historyQueriesFor({ epoch, end, keys, times }: GeneratedTape, tokens: readonly TokenName[]): readonly HistoryQuery[] {
  const [busy, quiet] = [tokens[0]?.symbol ?? '', tokens.at(-1)?.symbol ?? '']
  const selections: readonly (readonly [what: string, query: string])[] = [
    ['everything', ''],
    [`a busy token`, `symbols=${busy}`],
    [`a quiet token`, `symbols=${quiet}`],
    ...['transfer', 'pause', 'nav', 'approval', 'retract'].map((type) => [`types=${type}`, `types=${type}`] as const),
    ['types=pause of one token', `types=pause&symbols=${quiet}`],
    ['types=hole (no update has it)', 'types=hole'],
    ['all types of one token', `types=*&symbols=${quiet}`],
    ['from the middle', `MIDDLE`],
    ['pauses from the middle', `types=pause&MIDDLE`],
  ]
  const orders = [
    ['asc', 'after'],
    ['desc', 'before'],
  ] as const
  const pages = selections.flatMap(([what, query]) =>
    orders.flatMap(([order, from]) =>
      (['preconfirmed', 'sealed'] as const).map((stage): HistoryQuery => {
        const parameters = query.replace('MIDDLE', `${from}=${epoch}.${Math.floor(end / 2)}`)
        return {
          name: `${what}, ${order}${stage === 'sealed' ? ', sealed' : ''}`,
          paths: [`/v1/events?${parameters}&order=${order}&stage=${stage}`],
          // The relay refuses a second `after`, so a query from the middle is not continued.
          cursorParameter: query.includes('MIDDLE') ? null : from,
        }
      }),
    ),
  )
  return [
    ...pages,
    { name: 'since a time', paths: times.map((time) => `/v1/events?since=${time}`), cursorParameter: 'after' },
    { name: 'a key', paths: keys.map((key) => `/v1/events/${key}`), cursorParameter: null },
    { name: 'a token', paths: tokens.map(({ symbol }) => `/v1/tokenized-stocks/${symbol}`), cursorParameter: null },
    { name: 'one account', paths: [`/v1/events?types=transfer&account=${HOLDER}`], cursorParameter: 'after' },
    { name: 'a value that no update has', paths: ['/v1/events?types=transfer&min_value=1000000000'], cursorParameter: 'after' },
  ]
}
