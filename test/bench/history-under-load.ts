import { fullTape, type Made, type Named } from './full-tape-generator.ts'
import { type Question, questionsOf } from './history-queries.ts'
import type { Answers, Lines, PastOrder, PastReport } from './history-query-process.ts'
import { type EarOrder, type EarReport, PAIR } from './live-probe-process.ts'
import { openRelay, type Served } from './measured-servers.ts'
import { Worker } from './pinned-processes.ts'

/** A relay on a full tape, to which its upstream goes on telling transfers, one who listens to them and one who asks. */

const TOKENS = 50
/** How often transfers are made: so seldom that settling a block of them holds nobody up. */
const LIVE_EVERY_MS = 40
/** The first answers find the code cold. */
const WARM_UP_MS = 150
const RESTING_BOUND_MS = 60_000
const LOOK_MS = 200

/** What live delivery and an idle question took meanwhile, in milliseconds. */
export type Meanwhile = Pick<
  Extract<EarReport, { done: 'look' }>,
  'liveP99Ms' | 'liveWorstMs' | 'heldUpP99Ms' | 'heldUpMs'
>

/** What was measured of one kind of question, in milliseconds. */
export type Asked = Meanwhile & {
  readonly what: string
  readonly answers: number
  readonly medianMs: number
  readonly p99Ms: number
  readonly worstMs: number
  readonly messages: number
  readonly requests: number
  readonly wrong: number
}

export class Past {
  readonly made: Made
  /** How long making the tape took, and from then on until the relay was there. */
  readonly makingMs: number
  readonly startingMs: number
  readonly questions: readonly Question[]
  readonly #served: Served
  readonly #asker = new Worker<PastOrder, PastReport>('history-query-process.ts')
  readonly #ear = new Worker<EarOrder, EarReport>('live-probe-process.ts')

  private constructor(served: Served, made: Made, tokens: readonly Named[], [makingMs, startingMs]: [number, number]) {
    this.#served = served
    this.made = made
    this.makingMs = makingMs
    this.startingMs = startingMs
    this.questions = questionsOf(made, tokens)
  }

  /** Makes a tape of so many updates and starts a relay on it, which is at rest when this resolves. */
  static async open(updates: number): Promise<Past> {
    const began = performance.now()
    let made: { readonly tape: Made; readonly tokens: readonly Named[]; readonly ms: number } | null = null
    const served = await openRelay(TOKENS, { TAPE_BOUND: String(updates) }, async (dir, { tokens: listed, head }) => {
      const from = performance.now()
      const tokens = listed.slice(0, TOKENS)
      const tape = await fullTape({ dir, tokens, updates, head, now: Date.now() })
      made = { tape, tokens, ms: performance.now() - from }
    })
    const { tape, tokens, ms } = made ?? { tape: nothing, tokens: [], ms: 0 }
    const past = new Past(served, tape, tokens, [ms, performance.now() - began - ms])
    await past.#begin()
    return past
  }

  /** Asks one kind of question for so long. */
  async ask({ what, ...of }: Question, forMs: number): Promise<Asked> {
    const ask = (ms: number) => this.#asker.order({ do: 'ask', port: this.#served.port, forMs: ms, ...of })
    await ask(WARM_UP_MS)
    await this.#ear.order({ do: 'look' })
    const figures = figuresOf(await ask(forMs))
    return { what, ...figures, ...(await this.#ear.order({ do: 'look' })) }
  }

  /** How live delivery is while nobody asks. */
  async alone(ms: number): Promise<Meanwhile> {
    await this.#ear.order({ do: 'look' })
    await new Promise((go) => setTimeout(go, ms))
    return this.#ear.order({ do: 'look' })
  }

  /** Reads a long answer to its end. */
  async read(path: string): Promise<Lines & Meanwhile> {
    await this.#ear.order({ do: 'look' })
    const lines = await this.#asker.order({ do: 'read', port: this.#served.port, path })
    return { ...(await this.#ear.order({ do: 'look' })), ...lines }
  }

  async end(): Promise<void> {
    await Promise.all([this.#asker.end(), this.#ear.end(), this.#served.end()])
  }

  async #begin(): Promise<void> {
    const { port, source } = this.#served
    await this.#ear.order({ do: 'listen', port })
    // It goes on until its process ends.
    source.order({ do: 'work', burst: PAIR, everyMs: LIVE_EVERY_MS, bursts: null }).catch(() => {})
    const from = performance.now()
    // After its start a relay reads what it needs to say how it was doing.
    while (!(await isThrough(port)) && performance.now() - from < RESTING_BOUND_MS)
      await new Promise((go) => setTimeout(go, LOOK_MS))
  }
}

const nothing: Made = { epoch: '', end: 0, counts: {}, keys: [], times: [] }

async function isThrough(port: number): Promise<boolean> {
  const { score } = (await (await fetch(`http://127.0.0.1:${port}/v1/status`)).json()) as { score?: unknown }
  return score !== null
}

function figuresOf({ tookMs, messages, requests, wrong }: Answers) {
  const sorted = tookMs.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { answers: tookMs.length, medianMs: at(0.5), p99Ms: at(0.99), worstMs: at(1), messages, requests, wrong }
}
