import { type GeneratedTape, generateFullTape, type TokenName } from './full-tape-generator.ts'
import { type HistoryQuery, historyQueriesFor } from './history-queries.ts'
import type { HistoryCommand, HistoryReply, QueryResult, ReadResult } from './history-query-process.ts'
import { PAIR_SIZE, type ProbeCommand, type ProbeReply } from './live-probe-process.ts'
import { type FillTape, type MeasuredServer, openRelay } from './measured-servers.ts'
import { PinnedWorker } from './pinned-processes.ts'

/** A relay on a full tape with live traffic, one live listener, and one client that queries history. */

const TOKENS = 50
/** The interval of live transfers, long enough that settling their blocks delays nothing. */
const LIVE_EVERY_MS = 40
/** The first answers run before the code is optimised. */
const WARM_UP_MS = 150
const RESTING_BOUND_MS = 60_000
const POLL_MS = 200

/** Latency of live delivery and of a trivial request meanwhile, in milliseconds. */
export type LiveFigures = Pick<
  Extract<ProbeReply, { done: 'summarize' }>,
  'liveP99Ms' | 'liveWorstMs' | 'stallP99Ms' | 'maxStallMs'
>

/** Measurements of one kind of query, in milliseconds. */
export type QueryFigures = LiveFigures & {
  readonly what: string
  readonly answers: number
  readonly medianMs: number
  readonly p99Ms: number
  readonly worstMs: number
  readonly messages: number
  readonly requests: number
  readonly wrong: number
}

export class HistoryUnderLoad {
  readonly tape: GeneratedTape
  /** How long generating the tape took, and then starting the relay. */
  readonly generatingMs: number
  readonly startingMs: number
  readonly queries: readonly HistoryQuery[]
  readonly #server: MeasuredServer
  readonly #queryProcess = new PinnedWorker<HistoryCommand, HistoryReply>('history-query-process.ts')
  readonly #probe = new PinnedWorker<ProbeCommand, ProbeReply>('live-probe-process.ts')

  private constructor(
    server: MeasuredServer,
    generated: GeneratedTape,
    tokens: readonly TokenName[],
    [makingMs, startingMs]: [number, number],
  ) {
    this.#server = server
    this.tape = generated
    this.generatingMs = makingMs
    this.startingMs = startingMs
    this.queries = historyQueriesFor(generated, tokens)
  }

  /** Generates a tape with this many updates and starts a relay on it. Resolves when the relay is at rest. */
  static async open(updates: number): Promise<HistoryUnderLoad> {
    const began = performance.now()
    let generated: { readonly tape: GeneratedTape; readonly tokens: readonly TokenName[]; readonly ms: number } | null = null
    const fill: FillTape = async (dir, { tokens: listed, head }) => {
      const from = performance.now()
      const tokens = listed.slice(0, TOKENS)
      const tape = await generateFullTape({ dir, tokens, updates, head, now: Date.now() })
      generated = { tape, tokens, ms: performance.now() - from }
    }
    const server = await openRelay(TOKENS, { TAPE_MAX_MESSAGES: String(updates) }, { fill })
    const { tape, tokens, ms } = generated ?? { tape: emptyTape, tokens: [], ms: 0 }
    const load = new HistoryUnderLoad(server, tape, tokens, [ms, performance.now() - began - ms])
    await load.#start()
    return load
  }

  /** Repeats one kind of query for this long. */
  async measureQuery({ name, ...of }: HistoryQuery, forMs: number): Promise<QueryFigures> {
    const query = (ms: number) => this.#queryProcess.command({ do: 'query', port: this.#server.port, forMs: ms, ...of })
    await query(Math.min(WARM_UP_MS, forMs))
    await this.#probe.command({ do: 'summarize' })
    const figures = figuresOf(await query(forMs))
    return { what: name, ...figures, ...(await this.#probe.command({ do: 'summarize' })) }
  }

  /** Latency of live delivery without queries. */
  async measureIdle(ms: number): Promise<LiveFigures> {
    await this.#probe.command({ do: 'summarize' })
    await new Promise((resolve) => setTimeout(resolve, ms))
    return this.#probe.command({ do: 'summarize' })
  }

  /** Reads a long answer to its end. */
  async measureRead(path: string): Promise<ReadResult & LiveFigures> {
    await this.#probe.command({ do: 'summarize' })
    const read = await this.#queryProcess.command({ do: 'read', port: this.#server.port, path })
    return { ...(await this.#probe.command({ do: 'summarize' })), ...read }
  }

  async close(): Promise<void> {
    await Promise.all([this.#queryProcess.end(), this.#probe.end(), this.#server.end()])
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

const emptyTape: GeneratedTape = { epoch: '', end: 0, counts: {}, keys: [], times: [] }

async function isAtRest(port: number): Promise<boolean> {
  const { score } = (await (await fetch(`http://127.0.0.1:${port}/v1/status`)).json()) as { score?: unknown }
  return score !== null
}

function figuresOf({ tookMs, messages, requests, wrong }: QueryResult) {
  const sorted = tookMs.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { answers: tookMs.length, medianMs: at(0.5), p99Ms: at(0.99), worstMs: at(1), messages, requests, wrong }
}
