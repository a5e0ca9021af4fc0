import { read } from '../chain/abi.ts'
import type { Heard } from '../chain/source.ts'
import type { Head, Hex } from '../protocol/parts.ts'
import type { Draft, DraftOf } from '../protocol/updates.ts'
import {
  type Board,
  type Change,
  compare,
  compareListed,
  heard,
  type NavRule,
  restate,
  type Token,
} from '../stocks/board.ts'
import type { Listed } from '../stocks/list.ts'
import { type Notes, noteNames, type Tape } from '../tape/tape.ts'
import { join } from './join.ts'
import { Ledger, type Mark } from './ledger.ts'

/** What one turn brings: from the chain, or a list (null where the last good one stays and only time passed). */
export type Arrival =
  | Heard
  | { readonly type: 'list'; readonly tokens: readonly Listed[] | null; readonly partial?: boolean }

/** What a turn amounts to: what is told, and what is kept beside it. */
export type Telling = { readonly drafts: readonly Draft[]; readonly notes: Notes }

type Status = Pick<DraftOf<'status'>, 'source' | 'reason' | 'since'>

type Options = {
  readonly tape: Tape
  readonly staleMs: number
  readonly now: () => number
  readonly count: {
    readonly repeated: () => void
    readonly foreign: () => void
    readonly unreadable: (n: number) => void
  }
}

/** How many updates of the tape are read at once when the ledger is filled again. */
const RESTORE_PAGE = 1_000

/** Turns what arrives into what is told. Holds the board, the ledger and the head; all of it outlives a restart. */
export class Teller {
  readonly #options: Options
  readonly #ledger = new Ledger()
  readonly #board: Map<Hex, Token>
  #head: Head
  #status: Status | null
  #drafts: Draft[] = []
  #notes = new Map<string, unknown>()

  private constructor(options: Options) {
    const { tape } = options
    this.#options = options
    // The notes are what this class kept: they are read back, not checked again.
    const tokens = [...tape.notes(noteNames.token).values()] as Token[]
    this.#board = new Map(tokens.map((token) => [token.address, token]))
    this.#head = (tape.note(noteNames.head) as Head | undefined) ?? {
      pending: null,
      sealed: null,
      safe: null,
      finalized: null,
    }
    this.#status = (tape.note(noteNames.status) as Status | undefined) ?? null
  }

  /** Picks up where the tape ends: what was told since the mark is known again. */
  static async restore(options: Options): Promise<Teller> {
    const teller = new Teller(options)
    const { tape } = options
    let seq = (tape.note(noteNames.mark) as Mark | undefined)?.seq ?? tape.oldest()
    for (;;) {
      const page = await tape.since(seq, RESTORE_PAGE)
      for (const { update, seq: at } of page) {
        if ('key' in update && 'tx' in update && update.key && update.block) {
          teller.#ledger.admit({ key: update.key, blockNumber: update.block.number }, at - 1)
        }
      }
      const last = page.at(-1)
      if (!last) return teller
      seq = last.seq
    }
  }

  /** The sealed block up to which everything had been heard when the tape was last written. */
  get cursor(): number | null {
    return (this.#options.tape.note(noteNames.mark) as Mark | undefined)?.block ?? null
  }

  get board(): Board {
    return this.#board
  }

  tell(turn: readonly Arrival[]): Telling {
    for (const arrival of turn) this.#take(arrival)
    const told = { drafts: this.#drafts, notes: this.#notes }
    this.#drafts = []
    this.#notes = new Map()
    return told
  }

  #take(arrival: Arrival): void {
    switch (arrival.type) {
      case 'log':
        return this.#log(arrival)
      case 'list':
        return this.#list(arrival)
      case 'hearing':
        return this.#apply(heard(this.#board, arrival.addresses, this.#rule()))
      case 'head':
        return this.#raise(arrival)
      case 'cursor':
        return this.#settle(arrival.sealed)
      case 'status':
        return this.#say(arrival)
      case 'hole':
        return this.#all({ type: 'hole', blocks: arrival.blocks, reason: arrival.reason })
      case 'unreadable':
        return this.#options.count.unreadable(arrival.count)
    }
  }

  #log({ log, via, sealed, receivedAt }: Extract<Arrival, { type: 'log' }>): void {
    const { count, now, staleMs, tape } = this.#options
    const token = this.#board.get(log.address)
    // A node that takes logs back says so with `removed`; what it took back is never news.
    if (!token || token.state === 'delisted' || log.removed) return count.foreign()
    if (!this.#ledger.admit(log, tape.end())) return count.repeated()
    this.#raise({ sealed: null, pending: sealed ? null : log.blockNumber })
    const late =
      sealed && (via === 'backfill' || this.#status?.source === 'pendingLogs' || this.#status?.source === 'poll')
    this.#drafts.push(join(log, read(log), token, { via, sealed, late, receivedAt, now: now(), staleMs }))
  }

  #list({ tokens, partial }: Extract<Arrival, { type: 'list' }>): void {
    if (tokens) this.#apply((partial ? compareListed : compare)(this.#board, tokens, this.#rule()))
    // What the list says nothing of grows older all the same.
    this.#apply(restate(this.#board, this.#rule()))
  }

  #apply({ drafts, tokens }: Change): void {
    for (const draft of drafts) this.#drafts.push(draft)
    for (const token of tokens) {
      if (this.#board.get(token.address) === token) continue
      this.#board.set(token.address, token)
      this.#notes.set(noteNames.token + token.address, token)
    }
  }

  #raise({ sealed, pending }: Pick<Head, 'sealed' | 'pending'>): void {
    const head = {
      ...this.#head,
      sealed: higher(this.#head.sealed, sealed),
      pending: higher(this.#head.pending, pending),
    }
    if (head.sealed === this.#head.sealed && head.pending === this.#head.pending) return
    this.#head = head
    this.#notes.set(noteNames.head, head)
  }

  #settle(sealed: number): void {
    this.#ledger.settle(sealed)
    this.#notes.set(noteNames.mark, this.#ledger.mark(sealed, this.#options.tape.end()))
  }

  #say({ source, reason }: Pick<Status, 'source' | 'reason'>): void {
    if (this.#status?.source === source && this.#status.reason === reason) return
    const since = new Date(this.#options.now()).toISOString()
    this.#status = { source, reason, since }
    this.#notes.set(noteNames.status, this.#status)
    this.#all({ type: 'status', source, since, reason, head: this.#head })
  }

  /** Tells what concerns every listener. */
  #all(told: AboutAll): void {
    const { type, ...rest } = told
    const time = new Date(this.#options.now()).toISOString()
    this.#drafts.push({ type, symbol: '*', address: null, time, ...rest } as Draft)
  }

  #rule(): NavRule {
    return { now: this.#options.now(), staleMs: this.#options.staleMs }
  }
}

type AboutAll = {
  [Type in 'status' | 'hole']: Omit<DraftOf<Type>, 'symbol' | 'address' | 'time'>
}['status' | 'hole']

const higher = (before: number | null, now: number | null): number | null =>
  before === null || (now !== null && now > before) ? now : before
