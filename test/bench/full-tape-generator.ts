import { seededRandom } from '../../src/devnet/life/seeded-random.ts'
import type { Hex } from '../../src/lib/hex.ts'
import type { Draft, DraftOf } from '../../src/protocol/updates.ts'
import { restartPointNote } from '../../src/relay/ingest/restore-state.ts'
import { Notes } from '../../src/relay/tape/notes.ts'
import { openLocalTape } from '../support/local-tape.ts'
import { amendOf, approvalAt, pauseAt, retractOf, sealOf, transferAt } from '../unit/relay/edge/fact-drafts.ts'
import { navChange } from '../unit/relay/tape/update-drafts.ts'

/** A token's symbol and contract. */
export type TokenName = { readonly symbol: string; readonly address: Hex }

/** What to generate: how many updates of which tokens, ending now. */
type TapeSettings = {
  readonly dir: string
  readonly tokens: readonly TokenName[]
  readonly updates: number
  readonly now: number
  /** The newest block, up to which the chain is settled. */
  readonly head: number
}

/** What queries about a generated tape need. */
export type GeneratedTape = {
  readonly epoch: string
  readonly end: number
  /** Keys and times of updates, spread over the whole tape. */
  readonly keys: readonly string[]
  readonly times: readonly string[]
}

const DAY_MS = 86_400_000
/** Within the retention, with an hour to spare for measuring. */
const SPAN_MS = 23 * 3_600_000
const BLOCK_MS = 2_000
const NAV_EVERY_MS = 15_000
const FINALITY_EVERY_MS = 10_000
/** Movements in one batch at most. */
const BATCH_BOUND = 20
/** Rare messages: a pause is one of so many facts; amends and retracts come in one of so many blocks. */
const ONE_IN = { approval: 30, pause: 1_800, amend: 40, retract: 25 } as const
/** Tokens whose NAV changes from one list to the next. */
const NAV_TOKENS = 5
const SAMPLE_COUNT = 200

type FactDraft = DraftOf<'transfer' | 'approval' | 'pause'>

/** Writes a tape as after a busy day, batch by batch as the ingest does. Returns what is on it. */
export async function generateFullTape({ dir, tokens, updates, now, head }: TapeSettings): Promise<GeneratedTape> {
  const bounds = { tapeRetentionMs: DAY_MS, tapeMaxMessages: updates + 10_000 }
  const tape = openLocalTape({ dataDir: dir, ...bounds, now: () => now, random: Math.random })
  const market = new GeneratedMarket(tokens)
  const blocks = SPAN_MS / BLOCK_MS
  const [keys, times]: [string[], string[]] = [[], []]
  try {
    for (let [nth, made] = [0, 0]; made < updates; nth += 1) {
      const at = now - SPAN_MS + nth * BLOCK_MS
      const share = Math.max(1, Math.round((updates * (nth + 1)) / blocks - made))
      for (const batch of market.batchesOfBlock(head - blocks + nth, at, share)) {
        await tape.append(batch.slice(0, updates - made))
        made += batch.length
        const [draft] = batch
        if (made < updates / 4 || made < ((keys.length + 1) * updates) / SAMPLE_COUNT || !draft || !('ingest' in draft)) continue
        keys.push(draft.key)
        times.push(draft.time)
      }
    }
    await tape.append([], new Notes().set(restartPointNote, { block: head, hash: null, settled: head, seq: tape.end() }))
    return { epoch: tape.epoch, end: tape.end(), keys, times }
  } finally {
    await tape.close()
  }
}

/** Random trading, block after block. */
class GeneratedMarket {
  readonly #tokens: readonly TokenName[]
  readonly #random = seededRandom('full tape')
  #open: FactDraft[] = []

  constructor(tokens: readonly TokenName[]) {
    this.#tokens = tokens
  }

  /** About this many updates: the previous block is sealed, then this one is published. */
  *batchesOfBlock(block: number, at: number, updates: number): Generator<readonly Draft[]> {
    const sealed = this.#seal(block - 1, at)
    if (sealed.length > 0) yield sealed
    if (at % NAV_EVERY_MS < BLOCK_MS) yield Array.from({ length: NAV_TOKENS }, () => ({ ...navChange({ at }), ...this.#token() }))
    if (at % FINALITY_EVERY_MS < BLOCK_MS) yield [finalityOf('safe', block - 30, at), finalityOf('finalized', block - 400, at)]
    for (let published = sealed.length; published < updates; ) {
      const size = Math.min(1 + this.#below(BATCH_BOUND), updates - published)
      yield Array.from({ length: size }, () => this.#randomFact(block, at))
      published += size
    }
  }

  #randomFact(block: number, at: number): FactDraft {
    const token = this.#token()
    const position = { ...token, block, index: this.#open.length }
    const [from, to] = [holder(this.#below(5_000)), holder(this.#below(5_000))]
    const rare = this.#oneIn(ONE_IN.pause) ? pauseAt(position) : this.#oneIn(ONE_IN.approval) ? approvalAt(position) : null
    const fact: FactDraft = { ...(rare ?? transferAt(position, { from, to })), symbol: token.symbol, time: iso(at) }
    this.#open.push(fact)
    return fact
  }

  /** Seals the open facts. A few are retracted or amended. */
  #seal(block: number, at: number): readonly Draft[] {
    const ends: Draft[] = []
    const facts = this.#open
    const time = iso(at)
    this.#open = []
    if (facts.length > 1 && this.#oneIn(ONE_IN.retract))
      for (const gone of facts.splice(this.#below(facts.length), 1)) ends.push({ ...retractOf(gone), time })
    const amended = facts[this.#below(Math.max(1, facts.length))]
    if (amended && 'memo' in amended && this.#oneIn(ONE_IN.amend))
      ends.push({ ...amendOf(amended, { ...amended, memo: MEMO, stage: 'sealed' }), time })
    for (const [address, [first, ...more]] of Map.groupBy(facts, (fact) => fact.address)) {
      if (first) ends.push({ ...sealOf([first, ...more], block, 0, address), symbol: first.symbol, time })
    }
    return ends
  }

  /** A few tokens trade often, the others rarely. */
  #token(): TokenName {
    const { symbol, address } = this.#tokens[Math.floor(this.#tokens.length * this.#random() ** 2)] as TokenName
    return { symbol, address }
  }

  #below(bound: number): number {
    return Math.floor(this.#random() * bound)
  }

  #oneIn(count: number): boolean {
    return this.#random() * count < 1
  }
}

const MEMO: Hex = `0x${'ab'.repeat(32)}`
const holder = (nth: number): Hex => `0x${nth.toString(16).padStart(40, 'a')}`
const iso = (at: number): string => new Date(at).toISOString()

const finalityOf = (stage: 'safe' | 'finalized', number: number, at: number): DraftOf<'finality'> => ({
  ...{ type: 'finality', symbol: '*', address: null, time: iso(at), stage },
  block: { number, hash: `0x${String(number).padStart(64, '0')}`, timestamp: iso(at) },
})
