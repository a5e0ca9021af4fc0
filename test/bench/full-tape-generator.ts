import { createHash } from 'node:crypto'
import { seededRandom } from '../../src/devnet/life/seeded-random.ts'
import type { Hex } from '../../src/lib/hex.ts'
import { formatKey } from '../../src/protocol/fields.ts'
import type { Draft, DraftOf, UpdateType } from '../../src/protocol/updates.ts'
import { restartPointNote } from '../../src/relay/ingest/restore-state.ts'
import { openEmbeddedTape } from '../../src/relay/tape/embedded-tape.ts'
import { Notes } from '../../src/relay/tape/notes.ts'

/** A token's symbol and contract. */
export type TokenName = { readonly symbol: string; readonly address: Hex }

/** What to generate: how many updates of which tokens, ending now. */
export type TapeSettings = {
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
  readonly counts: Readonly<Partial<Record<UpdateType, number>>>
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
/** Rare messages: one in this many blocks. */
const ONE_IN = { pause: 150, multiplier: 300, token: 500, action: 400, amend: 40, retract: 25 } as const
/** Of a hundred logs, those that are not transfers. */
const PERCENT = { approval: 3, log: 1, mint: 1, burn: 1 } as const
/** Tokens whose NAV changes from one list to the next. */
const NAV_TOKENS = 5
const SAMPLE_COUNT = 200
const ZERO: Hex = `0x${'0'.repeat(40)}`

type MovementDraft = DraftOf<'transfer' | 'mint' | 'burn'>
type FactDraft = MovementDraft | DraftOf<'approval' | 'log' | 'pause' | 'multiplier' | 'action'>

/** Writes a tape as after a busy day, batch by batch as the ingest does. Returns what is on it. */
export async function generateFullTape(settings: TapeSettings): Promise<GeneratedTape> {
  const { dir, updates, now, head } = settings
  const tape = openEmbeddedTape({
    dataDir: dir,
    tapeRetentionMs: DAY_MS,
    tapeMaxMessages: updates + 10_000,
    now: () => now,
    random: Math.random,
  })
  try {
    const counts: Partial<Record<UpdateType, number>> = {}
    const [keys, times]: [string[], string[]] = [[], []]
    let made = 0
    for (const batch of batchesOfDay(settings)) {
      await tape.append(batch)
      for (const draft of batch) {
        counts[draft.type] = (counts[draft.type] ?? 0) + 1
        made += 1
        if (made < updates / 4 || made % Math.ceil(updates / SAMPLE_COUNT) > 1 || !('ingest' in draft)) continue
        keys.push(draft.key)
        times.push(draft.time)
      }
    }
    await tape.append([], new Notes().set(restartPointNote, { block: head, hash: null, settled: head, seq: tape.end() }))
    return { epoch: tape.epoch, end: tape.end(), counts, keys, times }
  } finally {
    await tape.close()
  }
}

/** The batches of a day, with this many updates in all. */
export function* batchesOfDay({ tokens, updates, now, head }: Omit<TapeSettings, 'dir'>): Generator<readonly Draft[]> {
  const market = new GeneratedMarket(tokens)
  const blocks = SPAN_MS / BLOCK_MS
  let publishedCount = 0
  for (let nth = 0; publishedCount < updates; nth += 1) {
    const at = now - SPAN_MS + nth * BLOCK_MS
    const share = (updates * (nth + 1)) / blocks
    for (const batch of market.batchesOfBlock(head - blocks + nth, at, Math.max(1, Math.round(share - publishedCount)))) {
      const kept = batch.slice(0, updates - publishedCount)
      if (kept.length === 0) return
      publishedCount += kept.length
      yield kept
    }
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
    const sealed = this.#seal(at)
    if (sealed.length > 0) yield sealed
    if (at % NAV_EVERY_MS < BLOCK_MS) yield Array.from({ length: NAV_TOKENS }, () => navOf(this.#token(), at, this.#below(900)))
    if (at % FINALITY_EVERY_MS < BLOCK_MS) yield [finalityOf('safe', block - 30, at), finalityOf('finalized', block - 400, at)]
    if (this.#oneIn(ONE_IN.token)) yield [changeOf(this.#token(), at)]
    for (let publishedCount = sealed.length; publishedCount < updates; ) {
      const size = Math.min(1 + this.#below(BATCH_BOUND), updates - publishedCount)
      const batch = Array.from({ length: size }, () => this.#randomFact(block, this.#open.length, at))
      yield batch
      publishedCount += size
    }
  }

  #randomFact(block: number, index: number, at: number): FactDraft {
    const input = { ...this.#token(), block, index, at, raw: 1 + this.#below(1_000_000_000) }
    const rare = (['pause', 'multiplier', 'action'] as const).find((type) => this.#oneIn(ONE_IN[type] * 12))
    const fact = factOf(rare ?? this.#commonType(), input)
    this.#open.push(fact)
    return fact
  }

  #commonType(): FactDraft['type'] {
    let drawn = this.#below(100)
    for (const type of ['approval', 'log', 'mint', 'burn'] as const) {
      drawn -= PERCENT[type]
      if (drawn < 0) return type
    }
    return 'transfer'
  }

  /** Seals the open facts. A few are retracted or amended. */
  #seal(at: number): readonly Draft[] {
    const ends: Draft[] = []
    const facts = this.#open
    this.#open = []
    if (facts.length > 1 && this.#oneIn(ONE_IN.retract)) {
      const [gone] = facts.splice(this.#below(facts.length), 1)
      if (gone) ends.push(retractOf(gone, at))
    }
    const amended = facts[this.#below(Math.max(1, facts.length))]
    if (amended && 'memo' in amended && this.#oneIn(ONE_IN.amend)) ends.push(amendOf(amended, at))
    for (const [, input] of Map.groupBy(facts, ({ address }) => address)) ends.push(sealOf(input, at))
    return ends
  }

  /** A few tokens trade often, the others rarely. */
  #token(): TokenName {
    return this.#tokens[Math.floor(this.#tokens.length * this.#random() ** 2)] ?? { symbol: '?', address: ZERO }
  }

  #below(bound: number): number {
    return Math.floor(this.#random() * bound)
  }

  #oneIn(count: number): boolean {
    return this.#random() * count < 1
  }
}

type FactInput = TokenName & { readonly block: number; readonly index: number; readonly at: number; readonly raw: number }

const hash = (text: string): Hex => `0x${createHash('sha256').update(text).digest('hex')}`
const holder = (nth: number): Hex => `0x${(nth % 5_000).toString(16).padStart(40, 'a')}`
const blockHash = (block: number): Hex => hash(`block ${block}`)
const iso = (at: number): string => new Date(at).toISOString()
const commonFields = ({ symbol, address }: TokenName, at: number) => ({ symbol, address, time: iso(at) })

const navValue = (at: number, price: number) => ({
  price: `${100 + price}.25`,
  updated_at: iso(at - 60_000),
  age_s: 60,
  state: 'fresh' as const,
  stale_after_s: 93_600,
  frozen: null,
})

function movementContent({ raw, at }: FactInput, from: Hex, to: Hex) {
  const amount = `${raw / 100_000_000}`
  return {
    ...{ from, to, raw: String(raw), amount, multiplier: '1', shares: amount },
    ...{ reference_value: (raw / 1_000_000).toFixed(2), nav: navValue(at, 100), memo: null },
  }
}

/** What the facts of each type say. */
const contents: Readonly<Record<FactDraft['type'], (input: FactInput, tx: Hex) => object>> = {
  transfer: (input) => movementContent(input, holder(input.raw), holder(input.raw + input.index + 1)),
  mint: (input) => movementContent(input, ZERO, holder(input.raw + input.index + 1)),
  burn: (input) => movementContent(input, holder(input.raw), ZERO),
  approval: ({ raw, index }) => ({
    ...{ owner: holder(raw), spender: holder(index), raw: String(raw), amount: `${raw / 100_000_000}` },
  }),
  log: (_, tx) => ({ topics: [tx], data: tx }),
  pause: ({ raw }) => ({
    change: raw % 2 === 0 ? 'paused' : 'unpaused',
    ...{ features: ['TRANSFER'], feature_ids: [0], paused: ['TRANSFER'], source: 'log' },
  }),
  multiplier: ({ at }) => ({ phase: 'scheduled', previous: '1', multiplier: '2', effective_at: iso(at), source: 'log' }),
  action: ({ raw }) => ({ ...{ action_id: `a-${raw}`, description: 'Dividend', uri: 'https://example.org/dividend', keys: [] } }),
}
const ingestedTypes = new Set(['transfer', 'mint', 'burn', 'approval'])

function factOf(type: FactDraft['type'], input: FactInput): FactDraft {
  const { block, index, at } = input
  const tx = hash(`${block} ${index}`)
  return {
    ...{ type, ...commonFields(input, at), key: formatKey(block, tx, index), stage: 'preconfirmed', late: false },
    ...contents[type](input, tx),
    block: { number: block, hash: null, timestamp: iso(at) },
    tx: { hash: tx, index, log_index: index },
    ...(ingestedTypes.has(type) && { ingest: { source: 'pendingLogs', received_at: iso(at - 3), published_at: iso(at) } }),
  } as FactDraft
}

const navOf = (token: TokenName, at: number, price: number): DraftOf<'nav'> => ({
  type: 'nav',
  ...commonFields(token, at),
  nav: navValue(at, price),
  before: navValue(at - NAV_EVERY_MS, 100),
  source: 'list',
})

const changeOf = (token: TokenName, at: number): DraftOf<'token'> => ({
  type: 'token',
  ...commonFields(token, at),
  change: 'changed',
  changed: ['name'],
  source: 'list',
  token: { symbol: token.symbol, name: `Example ${token.symbol}` },
  before: { name: token.symbol },
})

const finalityOf = (stage: 'safe' | 'finalized', number: number, at: number): DraftOf<'finality'> => ({
  type: 'finality',
  symbol: '*',
  address: null,
  time: iso(at),
  stage,
  block: { number, hash: blockHash(number), timestamp: iso(at) },
})

const numberOf = (fact: FactDraft): number => fact.block?.number ?? 0
const sealedBlock = (fact: FactDraft) => ({
  number: numberOf(fact),
  hash: blockHash(numberOf(fact)),
  timestamp: fact.block?.timestamp ?? null,
})

const retractOf = (fact: FactDraft, at: number): DraftOf<'retract'> => ({
  type: 'retract',
  ...commonFields(fact, at),
  key: fact.key ?? '',
  fact_type: fact.type,
  fact_id: 'k.1',
  reason: 'not_sealed',
  replaced_by: null,
  restored: null,
  block: sealedBlock(fact),
})

function amendOf(fact: MovementDraft, at: number): DraftOf<'amend'> {
  const { time: _time, ...content } = fact
  const update = { ...content, memo: hash(fact.key), stage: 'sealed' as const, block: sealedBlock(fact) }
  return {
    type: 'amend',
    ...commonFields(fact, at),
    key: fact.key,
    fact_type: fact.type,
    fact_id: 'k.1',
    changed: ['memo'],
    update,
  }
}

function sealOf([first, ...more]: readonly FactDraft[], at: number): DraftOf<'seal'> {
  const facts = first ? [first, ...more] : []
  const keys = facts.map(({ key = '' }) => key)
  const digest = createHash('sha256').update(keys.join('\n')).digest('hex').slice(0, 32)
  const input = first ?? { symbol: '?', address: ZERO }
  return {
    type: 'seal',
    ...commonFields(input, at),
    block: first ? sealedBlock(first) : { number: 0, hash: null, timestamp: null },
    keys,
    types: facts.map(({ type }) => type),
    late_keys: [],
    count: keys.length,
    digest,
  }
}
