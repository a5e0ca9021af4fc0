import type { Owed } from '../chain/sealed/block-logs.ts'
import type { Cursor } from '../chain/sealed/recent-blocks.ts'
import type { Heard } from '../chain/source/source.ts'
import type { Head } from '../protocol/fields.ts'
import type { Draft, DraftOf } from '../protocol/updates.ts'
import { type NewestNote, noteNames } from '../tape/tape.ts'
import type { TokenAnswer } from '../tokens/apply-call.ts'
import type { Board } from '../tokens/list-diff.ts'
import type { Listed } from '../tokens/list-parser.ts'
import type { Feed, FeedAnswer } from '../tokens/price-feeds.ts'
import { Desk, type DeskOptions } from './context.ts'
import type { Ledger } from './ledger.ts'
import type { Telling } from './outbox.ts'
import type { HeardLog } from './pending-logs.ts'
import { Preconfirmed } from './preconfirmed.ts'
import { cursorOf, type Mark, markOf, restoreLedger } from './restore.ts'
import { settleBlock } from './sealed-block.ts'
import { placeOfBlock } from './settle.ts'

/** A contract was asked what holds of it: that of a token, or a feed. */
export type Answer = ({ readonly type: 'token' } & TokenAnswer) | ({ readonly type: 'feed' } & FeedAnswer)

/** What one turn brings: from the chain, or a list (null where the last good one stays and only time passed). */
export type Arrival =
  | Exclude<Heard, { type: 'log' }>
  /** Logs of one transaction that were pre-confirmed, as far as they came together. */
  | { readonly type: 'transaction'; readonly logs: readonly HeardLog[] }
  | Answer
  | { readonly type: 'list'; readonly tokens: readonly Listed[] | null; readonly partial?: boolean }

type Status = Pick<DraftOf<'status'>, 'source' | 'reason' | 'since'>

const unknownHead: Head = { pending: null, sealed: null, safe: null, finalized: null }

/** Turns what arrives into what is told. What it knows of keys, of tokens and of the head outlives a restart. */
export class Teller {
  readonly #options: DeskOptions
  readonly #desk: Desk
  readonly #preconfirmed: Preconfirmed
  #head: Head
  #newest: NewestNote | null
  #status: Status | null

  private constructor(options: DeskOptions, ledger: Ledger) {
    const { tape } = options
    this.#options = options
    // The notes are what this class kept: they are read back, not checked again.
    this.#head = (tape.note(noteNames.head) as Head | undefined) ?? unknownHead
    this.#newest = (tape.note(noteNames.newest) as NewestNote | undefined) ?? null
    this.#status = (tape.note(noteNames.status) as Status | undefined) ?? null
    this.#desk = new Desk(options, ledger, this.#head, this.cursor?.number ?? null)
    this.#preconfirmed = new Preconfirmed(this.#desk)
  }

  /** Picks up where the tape ends: what was told is known again, and every promise that is open. */
  static async restore(options: DeskOptions): Promise<Teller> {
    return new Teller(options, await restoreLedger(options.tape))
  }

  /** The sealed block up to which everything had been settled when the tape was last written. */
  get cursor(): Cursor | null {
    return cursorOf(markOf(this.#options.tape))
  }

  get head(): Head {
    return this.#head
  }

  get board(): Board {
    return this.#desk.keeper.board
  }

  /** The feeds, with what is known to stand behind them. */
  get feeds(): readonly Feed[] {
    return this.#desk.keeper.feeds
  }

  get ledger(): Ledger {
    return this.#desk.ledger
  }

  /** What waits for its block: promises, and rounds of the feeds. */
  get owed(): Owed {
    const { ledger, keeper } = this.#desk
    return {
      at: (block) => [...ledger.at(block), ...keeper.quotedAt(block)],
      toldBetween: (from, to) => ledger.toldBetween(from, to),
      sealedBefore: ledger.sealedBefore,
    }
  }

  tell(turn: readonly Arrival[]): Telling {
    for (const arrival of turn) this.#take(arrival)
    return this.#desk.sheet.take()
  }

  #take(arrival: Arrival): void {
    const { keeper, ledger } = this.#desk
    switch (arrival.type) {
      case 'transaction':
        if (this.#preconfirmed.tell(arrival.logs)) this.#raise({ pending: arrival.logs[0]?.log.blockNumber ?? null })
        return
      case 'list':
        return keeper.list(arrival.tokens, arrival.partial ?? false)
      case 'token':
        if (keeper.answered(arrival)) this.#desk.correct(arrival.address, () => true)
        return
      case 'feed':
        return keeper.feedAnswered(arrival)
      case 'hearing':
        return keeper.hears(arrival.addresses)
      case 'head':
        this.#desk.hears({ ...arrival, number: arrival.pending ?? arrival.sealed ?? 0 })
        this.#date(arrival.sealed, arrival.timestamp)
        return this.#raise(arrival)
      case 'cursor':
        ledger.reach(arrival.cursor.number)
        return this.#mark(arrival.cursor)
      case 'sealed':
        return this.#sealed(arrival)
      case 'finality':
        return this.#final(arrival)
      case 'status':
        return this.#say(arrival)
      case 'hole':
        keeper.misses(arrival.blocks.to)
        this.#all({ type: 'hole', blocks: arrival.blocks, reason: arrival.reason })
        return this.#mark(arrival.cursor)
      case 'doubted':
        // Until a block is settled anew, what was told of it stands.
        return
      case 'unreadable':
        return this.#desk.count.unreadable(arrival.count)
    }
  }

  #sealed({ blocks, newest, cursor }: Extract<Arrival, { type: 'sealed' }>): void {
    const { ledger, keeper } = this.#desk
    const isAnnounced = this.#status?.source === 'pendingLogs' || this.#status?.source === 'poll'
    ledger.reach(newest, Math.min(cursor.number, blocks[0]?.number ?? newest))
    for (const block of blocks) {
      const isNext = block.number <= cursor.number
      settleBlock(this.#desk, block, { late: isAnnounced || block.via === 'backfill', newest, isNext })
    }
    this.#preconfirmed.settled(newest)
    keeper.reaches({ block: newest, logIndex: Number.MAX_SAFE_INTEGER })
    this.#mark(cursor)
  }

  #raise({ sealed = null, pending = null, safe = null, finalized = null }: Partial<Head>): void {
    const newest = higher(this.#head.sealed, sealed)
    const built = higher(this.#head.pending, pending)
    const head = {
      // What is sealed is being built no more; what is built then, nobody has said.
      pending: built !== null && newest !== null && built <= newest ? null : built,
      sealed: newest,
      safe: higher(this.#head.safe, safe),
      finalized: higher(this.#head.finalized, finalized),
    }
    if (Object.entries(head).every(([name, number]) => this.#head[name as keyof Head] === number)) return
    this.#head = head
    this.#desk.sheet.note(noteNames.head, head)
  }

  /** Keeps the time of the newest sealed block: by it is said how far all that is known lags behind. */
  #date(number: number | null, timestamp: number | null): void {
    if (number === null || timestamp === null || number <= (this.#newest?.number ?? -1)) return
    this.#newest = { number, timestamp }
    this.#desk.sheet.note(noteNames.newest, this.#newest)
  }

  #final({ stage, block }: Extract<Arrival, { type: 'finality' }>): void {
    if (stage === 'safe') this.#desk.ledger.safe(block.number)
    this.#date(block.number, block.timestamp)
    this.#raise({ [stage]: block.number, sealed: block.number })
    this.#all({ type: 'finality', stage, block: placeOfBlock(block) })
  }

  #mark({ number, hash }: Cursor): void {
    this.#desk.reaches(number)
    const mark: Mark = { block: number, hash, seq: this.#desk.ledger.since(this.#desk.end) }
    this.#desk.sheet.note(noteNames.mark, mark)
  }

  #say({ source, reason }: Pick<Status, 'source' | 'reason'>): void {
    if (this.#status?.source === source && this.#status.reason === reason) return
    this.#status = { source, reason, since: this.#desk.time }
    this.#desk.sheet.note(noteNames.status, this.#status)
    this.#all({ type: 'status', source, since: this.#status.since, reason, head: this.#head })
  }

  /** Tells what concerns every listener. */
  #all(told: AboutAll): void {
    const { type, ...rest } = told
    this.#desk.sheet.tell({ type, symbol: '*', address: null, time: this.#desk.time, ...rest } as Draft)
  }
}

type AboutAll = {
  [Type in 'status' | 'hole' | 'finality']: Omit<DraftOf<Type>, 'symbol' | 'address' | 'time'>
}['status' | 'hole' | 'finality']

const higher = (before: number | null, now: number | null): number | null =>
  before === null || (now !== null && now > before) ? now : before
