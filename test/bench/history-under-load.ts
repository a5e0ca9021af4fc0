import { type GeneratedTape, generateFullTape, type TokenName } from './full-tape-generator.ts'
import type { LoadCommand, LoadReply } from './http-load-process.ts'
import type { LiveFigures, ProbeCommand, ProbeReply } from './live-probe-process.ts'
import { type MeasuredServer, openRelay } from './measured-servers.ts'
import { PAIR_SIZE } from './message-stamp.ts'
import type { Percentiles } from './percentiles.ts'
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
type HistoryQuery = { readonly what: string; readonly paths: readonly string[]; readonly cursor: 'after' | 'before' | null }

/** Measurements of one kind of query. */
export type QueryFigures = LiveFigures &
  Percentiles & {
    readonly what: string
    /** Until a hundred messages have come, or there are no more. */
    readonly requests: number
    readonly wrong: number
  }

type Page = { readonly events?: readonly unknown[]; readonly next?: string | null }

export class HistoryUnderLoad {
  readonly queries: readonly HistoryQuery[]
  readonly #server: MeasuredServer
  readonly #client = new PinnedWorker<LoadCommand, LoadReply>('http-load-process.ts')
  readonly #probe = new PinnedWorker<ProbeCommand, ProbeReply>('live-probe-process.ts')

  private constructor(server: MeasuredServer, queries: readonly HistoryQuery[]) {
    this.#server = server
    this.queries = queries
  }

  /** Generates a tape with this many updates and starts the relay of a source folder on it. Resolves when the relay is at rest. */
  static async open(updates: number, sourceDir?: string): Promise<HistoryUnderLoad> {
    let queries: readonly HistoryQuery[] = []
    const server = await openRelay({
      ...{ tokens: TOKENS, settings: { TAPE_MAX_MESSAGES: String(updates) }, ...(sourceDir && { dir: sourceDir }) },
      fill: async (dir, { tokens, head }) => {
        queries = historyQueriesFor(await generateFullTape({ dir, tokens, updates, head, now: Date.now() }), tokens)
      },
    })
    const load = new HistoryUnderLoad(server, queries)
    await load.#start()
    return load
  }

  /** Repeats one kind of query for this long. */
  async measureQuery({ what, paths, cursor }: HistoryQuery, forMs: number): Promise<QueryFigures> {
    const { port } = this.#server
    const query = (ms: number) => this.#client.command({ do: 'repeat', port, connections: 1, requests: paths, forMs: ms })
    await query(Math.min(WARM_UP_MS, forMs))
    await this.#summarize()
    const { first, wrong, p50Ms, p99Ms, maxMs } = await query(forMs)
    const live = await this.#summarize()
    let page: Page = JSON.parse(first)
    let [requests, received] = [1, page.events?.length ?? 1]
    while (cursor && page.next && received < MESSAGES_WANTED && requests < REQUESTS_BOUND) {
      page = (await (await fetch(`http://127.0.0.1:${port}${paths[0]}&${cursor}=${page.next}`)).json()) as Page
      received += page.events?.length ?? 0
      requests += 1
    }
    return { what, p50Ms, p99Ms, maxMs, requests, wrong, ...live }
  }

  /** Latency of live delivery while nothing is asked. */
  async measureIdle(ms: number): Promise<LiveFigures> {
    await this.#summarize()
    await new Promise((resolve) => setTimeout(resolve, ms))
    return this.#summarize()
  }

  /** Measures the delivery to live listeners while a long answer is read to its end. */
  async measureExport(path: string): Promise<LiveFigures & { readonly seconds: number }> {
    await this.#summarize()
    const from = performance.now()
    for await (const _ of (await fetch(`http://127.0.0.1:${this.#server.port}${path}`)).body ?? []);
    return { seconds: (performance.now() - from) / 1_000, ...(await this.#summarize()) }
  }

  async close(): Promise<void> {
    await Promise.all([this.#client.end(), this.#probe.end(), this.#server.end()])
  }

  async #summarize(): Promise<LiveFigures> {
    return (await this.#probe.command({ do: 'summarize' })).figures
  }

  async #start(): Promise<void> {
    const { port, traffic } = this.#server
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
  const pages = (['asc', 'desc'] as const).flatMap((order) =>
    (['preconfirmed', 'sealed'] as const).flatMap((stage) =>
      selections.map(([what, query]): HistoryQuery => {
        const from = order === 'asc' ? 'after' : 'before'
        const parameters = query.replace('MIDDLE', `${from}=${epoch}.${Math.floor(end / 2)}`)
        return {
          what: `${what}, ${order}${stage === 'sealed' ? ', sealed' : ''}`,
          paths: [`/v1/events?${parameters}&order=${order}&stage=${stage}`],
          // The relay refuses a second `after`, so a query from the middle is not continued.
          cursor: query.includes('MIDDLE') ? null : from,
        }
      }),
    ),
  )
  return [
    ...pages,
    { what: 'since a time', paths: times.map((time) => `/v1/events?since=${time}`), cursor: 'after' },
    { what: 'a key', paths: keys.map((key) => `/v1/events/${key}`), cursor: null },
    { what: 'a token', paths: tokens.map(({ symbol }) => `/v1/tokenized-stocks/${symbol}`), cursor: null },
    { what: 'one account', paths: [`/v1/events?types=transfer&account=${HOLDER}`], cursor: 'after' },
    { what: 'a value that no update has', paths: ['/v1/events?types=transfer&min_value=1000000000'], cursor: 'after' },
  ]
}
