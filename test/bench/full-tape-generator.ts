import { createHash } from 'node:crypto'
import { diceOf } from '../../src/devnet/life/random.ts'
import type { Hex } from '../../src/protocol/fields.ts'
import { formatKey } from '../../src/protocol/key.ts'
import type { Draft, DraftOf, UpdateType } from '../../src/protocol/updates.ts'
import { openSqliteTape } from '../../src/tape/sqlite.ts'
import { noteNames } from '../../src/tape/tape.ts'

/** A token by its name and its contract. */
export type Named = { readonly symbol: string; readonly address: Hex }

/** What is made: how many updates, of which tokens, the newest of them now. */
export type Making = {
  readonly dir: string
  readonly tokens: readonly Named[]
  readonly updates: number
  readonly now: number
  /** The newest block, up to which the chain is settled. */
  readonly head: number
}

/** What is worth asking about a tape that was made. */
export type Made = {
  readonly epoch: string
  readonly end: number
  readonly counts: Readonly<Partial<Record<UpdateType, number>>>
  /** On-chain facts that it holds, and times at which something was told, spread over all of it. */
  readonly keys: readonly string[]
  readonly times: readonly string[]
}

const DAY_MS = 86_400_000
/** Within retention, however long somebody looks at it. */
const SPAN_MS = 23 * 3_600_000
const BLOCK_MS = 2_000
const NAV_EVERY_MS = 15_000
const FINALITY_EVERY_MS = 10_000
/** Movements told in one turn at most. */
const TURN_BOUND = 20
/** What comes now and then: one in so many blocks. */
const RARELY = { pause: 150, multiplier: 300, token: 500, action: 400, amend: 40, retract: 25 } as const
/** Of a hundred logs so many are no transfers. */
const PERCENT = { approval: 3, log: 1, mint: 1, burn: 1 } as const
/** Tokens whose value moves from one list to the next. */
const NAVS = 5
const KEPT = 200
const ZERO: Hex = `0x${'0'.repeat(40)}`

type Moved = DraftOf<'transfer' | 'mint' | 'burn'>
type Told = Moved | DraftOf<'approval' | 'log' | 'pause' | 'multiplier' | 'action'>

/** Makes a tape as a busy day leaves it, stroke by stroke as the ingest writes it; and says what is on it. */
export async function fullTape(making: Making): Promise<Made> {
  const { dir, updates, now, head } = making
  const tape = openSqliteTape({ dir, retentionMs: DAY_MS, bound: updates + 10_000, now: () => now, dice: Math.random })
  try {
    const counts: Partial<Record<UpdateType, number>> = {}
    const [keys, times]: [string[], string[]] = [[], []]
    let made = 0
    for (const turn of day(making)) {
      await tape.append(turn)
      for (const draft of turn) {
        counts[draft.type] = (counts[draft.type] ?? 0) + 1
        made += 1
        if (made < updates / 4 || made % Math.ceil(updates / KEPT) > 1 || !('ingest' in draft)) continue
        keys.push(draft.key)
        times.push(draft.time)
      }
    }
    await tape.append([], new Map([[noteNames.mark, { block: head, hash: null, seq: tape.end() }]]))
    return { epoch: tape.epoch, end: tape.end(), counts, keys, times }
  } finally {
    await tape.close()
  }
}

/** The turns of a day, of so many updates in all. */
export function* day({ tokens, updates, now, head }: Omit<Making, 'dir'>): Generator<readonly Draft[]> {
  const market = new Market(tokens)
  const blocks = SPAN_MS / BLOCK_MS
  let told = 0
  for (let nth = 0; told < updates; nth += 1) {
    const at = now - SPAN_MS + nth * BLOCK_MS
    const share = (updates * (nth + 1)) / blocks
    for (const turn of market.block(head - blocks + nth, at, Math.max(1, Math.round(share - told)))) {
      const some = turn.slice(0, updates - told)
      if (some.length === 0) return
      told += some.length
      yield some
    }
  }
}

/** Who trades what, block after block. */
class Market {
  readonly #tokens: readonly Named[]
  readonly #dice = diceOf('full tape')
  #open: Told[] = []

  constructor(tokens: readonly Named[]) {
    this.#tokens = tokens
  }

  /** About so many updates: the former block is sealed, then this one is told. */
  *block(block: number, at: number, updates: number): Generator<readonly Draft[]> {
    const sealed = this.#seal(at)
    if (sealed.length > 0) yield sealed
    if (at % NAV_EVERY_MS < BLOCK_MS)
      yield Array.from({ length: NAVS }, () => navOf(this.#token(), at, this.#below(900)))
    if (at % FINALITY_EVERY_MS < BLOCK_MS)
      yield [finalityOf('safe', block - 30, at), finalityOf('finalized', block - 400, at)]
    if (this.#once(RARELY.token)) yield [changeOf(this.#token(), at)]
    for (let told = sealed.length; told < updates; ) {
      const size = Math.min(1 + this.#below(TURN_BOUND), updates - told)
      const turn = Array.from({ length: size }, () => this.#told(block, this.#open.length, at))
      yield turn
      told += size
    }
  }

  #told(block: number, index: number, at: number): Told {
    const of = { ...this.#token(), block, index, at, raw: 1 + this.#below(1_000_000_000) }
    const told = this.#once(RARELY.pause * 12)
      ? pauseOf(of)
      : this.#once(RARELY.multiplier * 12)
        ? multiplierOf(of)
        : this.#once(RARELY.action * 12)
          ? actionOf(of)
          : this.#usual(of)
    this.#open.push(told)
    return told
  }

  #usual(of: Of): Told {
    let drawn = this.#below(100)
    for (const type of ['approval', 'log', 'mint', 'burn'] as const) {
      drawn -= PERCENT[type]
      if (drawn < 0) return type === 'approval' ? approvalOf(of) : type === 'log' ? logOf(of) : moveOf(type, of)
    }
    return moveOf('transfer', of)
  }

  /** How what is open ends: a little of it never was, a little was something else. */
  #seal(at: number): readonly Draft[] {
    const ends: Draft[] = []
    const facts = this.#open
    this.#open = []
    if (facts.length > 1 && this.#once(RARELY.retract)) {
      const [gone] = facts.splice(this.#below(facts.length), 1)
      if (gone) ends.push(retractOf(gone, at))
    }
    const amended = facts[this.#below(Math.max(1, facts.length))]
    if (amended && 'memo' in amended && this.#once(RARELY.amend)) ends.push(amendOf(amended, at))
    for (const [, of] of Map.groupBy(facts, ({ address }) => address)) ends.push(sealOf(of, at))
    return ends
  }

  /** Few tokens are traded much, many a little. */
  #token(): Named {
    return this.#tokens[Math.floor(this.#tokens.length * this.#dice() ** 2)] ?? { symbol: '?', address: ZERO }
  }

  #below(bound: number): number {
    return Math.floor(this.#dice() * bound)
  }

  #once(inSoMany: number): boolean {
    return this.#dice() * inSoMany < 1
  }
}

type Of = Named & { readonly block: number; readonly index: number; readonly at: number; readonly raw: number }

const hash = (text: string): Hex => `0x${createHash('sha256').update(text).digest('hex')}`
const holder = (nth: number): Hex => `0x${(nth % 5_000).toString(16).padStart(40, 'a')}`
const blockHash = (block: number): Hex => hash(`block ${block}`)
const iso = (at: number): string => new Date(at).toISOString()
const common = ({ symbol, address }: Named, at: number) => ({ symbol, address, time: iso(at) })

function place({ block, index, at }: Of) {
  const tx = hash(`${block} ${index}`)
  return {
    key: formatKey(block, tx, index),
    block: { number: block, hash: null, timestamp: iso(at) },
    tx: { hash: tx, index, log_index: index },
  }
}

const fact = { stage: 'preconfirmed' as const, late: false }
const ingestOf = (at: number) => ({ source: 'pendingLogs' as const, received_at: iso(at - 3), published_at: iso(at) })
const navAt = (at: number, price: number) => ({
  price: `${100 + price}.25`,
  updated_at: iso(at - 60_000),
  age_s: 60,
  state: 'fresh' as const,
  bound_s: 93_600,
})

function moveOf(type: Moved['type'], of: Of): Moved {
  const { key, block, tx } = place(of)
  const [from, to] = [type === 'mint' ? ZERO : holder(of.raw), type === 'burn' ? ZERO : holder(of.raw + of.index + 1)]
  const amount = `${of.raw / 100_000_000}`
  return {
    ...{ type, ...common(of, of.at), key, ...fact, from, to, raw: String(of.raw), amount, multiplier: '1' },
    ...{ shares: amount, reference_value: (of.raw / 1_000_000).toFixed(2), nav: navAt(of.at, 100), memo: null },
    ...{ block, tx, ingest: ingestOf(of.at) },
  }
}

function approvalOf(of: Of): DraftOf<'approval'> {
  const { key, block, tx } = place(of)
  const [owner, spender] = [holder(of.raw), holder(of.index)]
  const raw = String(of.raw)
  const said = { owner, spender, raw, amount: `${of.raw / 100_000_000}` }
  return { type: 'approval', ...common(of, of.at), key, ...fact, ...said, block, tx, ingest: ingestOf(of.at) }
}

function logOf(of: Of): DraftOf<'log'> {
  const { key, block, tx } = place(of)
  return { type: 'log', ...common(of, of.at), key, ...fact, topics: [tx.hash], data: tx.hash, block, tx }
}

function pauseOf(of: Of): DraftOf<'pause'> {
  const { key, block, tx } = place(of)
  const said = { paused: of.raw % 2 === 0, features: ['TRANSFER'], raw: [0], now: [0], source: 'log' as const }
  return { type: 'pause', ...common(of, of.at), ...said, key, ...fact, block, tx }
}

function multiplierOf(of: Of): DraftOf<'multiplier'> {
  const { key, block, tx } = place(of)
  const said = { phase: 'scheduled' as const, from: '1', to: '2', effective_at: iso(of.at), source: 'log' as const }
  return { type: 'multiplier', ...common(of, of.at), ...said, key, ...fact, block, tx }
}

function actionOf(of: Of): DraftOf<'action'> {
  const { key, block, tx } = place(of)
  const said = { action_id: `a-${of.raw}`, description: 'Dividend', uri: 'https://example.org/dividend', keys: [] }
  return { type: 'action', ...common(of, of.at), key, ...fact, ...said, block, tx }
}

const navOf = (token: Named, at: number, price: number): DraftOf<'nav'> => ({
  ...{ type: 'nav', ...common(token, at), nav: navAt(at, price), was: navAt(at - NAV_EVERY_MS, 100), source: 'list' },
})

const changeOf = (token: Named, at: number): DraftOf<'token'> => ({
  ...{ type: 'token', ...common(token, at), change: 'changed', changed: ['name'], source: 'list' },
  ...{ token: { symbol: token.symbol, name: `Example ${token.symbol}` }, was: { name: token.symbol } },
})

const finalityOf = (stage: 'safe' | 'finalized', number: number, at: number): DraftOf<'finality'> => ({
  ...{ type: 'finality', symbol: '*', address: null, time: iso(at), stage },
  block: { number, hash: blockHash(number), timestamp: iso(at) },
})

const numberOf = (told: Told): number => told.block?.number ?? 0
const sealedBlock = (told: Told) => ({
  number: numberOf(told),
  hash: blockHash(numberOf(told)),
  timestamp: told.block?.timestamp ?? null,
})

const retractOf = (told: Told, at: number): DraftOf<'retract'> => ({
  ...{ type: 'retract', ...common(told, at), key: told.key ?? '', of: told.type, was: 'k.1', reason: 'not_sealed' },
  ...{ by: null, now: null, block: sealedBlock(told) },
})

function amendOf(told: Moved, at: number): DraftOf<'amend'> {
  const { time: _time, ...content } = told
  const update = { ...content, memo: hash(told.key), stage: 'sealed' as const, block: sealedBlock(told) }
  return { type: 'amend', ...common(told, at), key: told.key, of: told.type, was: 'k.1', changed: ['memo'], update }
}

function sealOf([first, ...more]: readonly Told[], at: number): DraftOf<'seal'> {
  const facts = first ? [first, ...more] : []
  const keys = facts.map(({ key = '' }) => key)
  const digest = createHash('sha256').update(keys.join('\n')).digest('hex').slice(0, 32)
  const of = first ?? { symbol: '?', address: ZERO }
  return {
    ...{
      type: 'seal',
      ...common(of, at),
      block: first ? sealedBlock(first) : { number: 0, hash: null, timestamp: null },
    },
    ...{ keys, types: facts.map(({ type }) => type), late: [], count: keys.length, digest },
  }
}
