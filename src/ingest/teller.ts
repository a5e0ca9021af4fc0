import { read } from '../chain/abi.ts'
import type { Cursor } from '../chain/lately.ts'
import type { SealedBlock } from '../chain/settling.ts'
import type { Heard } from '../chain/source.ts'
import type { Head, Hex } from '../protocol/parts.ts'
import { formatPosition } from '../protocol/position.ts'
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
import { contentOf, type FactDraft, isFact, placeOf } from './content.ts'
import { type Hearing, join } from './join.ts'
import type { Fact, Ledger, Told } from './ledger.ts'
import { cursorOf, type Mark, markOf, type OpenNote, restoreLedger } from './restore.ts'
import { amendOf, placeOfBlock, retractOf, sealOf } from './settle.ts'

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

const unknownHead: Head = { pending: null, sealed: null, safe: null, finalized: null }

/** Turns what arrives into what is told. Holds the board, the ledger and the head; all of it outlives a restart. */
export class Teller {
  readonly #options: Options
  readonly #ledger: Ledger
  readonly #board: Map<Hex, Token>
  #head: Head
  #status: Status | null
  #drafts: Draft[] = []
  #notes = new Map<string, unknown>()

  private constructor(options: Options, ledger: Ledger) {
    const { tape } = options
    this.#options = options
    this.#ledger = ledger
    // The notes are what this class kept: they are read back, not checked again.
    const tokens = [...tape.notes(noteNames.token).values()] as Token[]
    this.#board = new Map(tokens.map((token) => [token.address, token]))
    this.#head = (tape.note(noteNames.head) as Head | undefined) ?? unknownHead
    this.#status = (tape.note(noteNames.status) as Status | undefined) ?? null
  }

  /** Picks up where the tape ends: what was told is known again, and every promise that is open. */
  static async restore(options: Options): Promise<Teller> {
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
    return this.#board
  }

  get ledger(): Ledger {
    return this.#ledger
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
        this.#ledger.reach(arrival.cursor.number)
        return this.#mark(arrival.cursor)
      case 'sealed':
        this.#ledger.reach(arrival.newest, Math.min(arrival.cursor.number, arrival.blocks[0]?.number ?? arrival.newest))
        for (const block of arrival.blocks) this.#settle(block)
        return this.#mark(arrival.cursor)
      case 'finality':
        return this.#final(arrival)
      case 'status':
        return this.#say(arrival)
      case 'hole':
        this.#all({ type: 'hole', blocks: arrival.blocks, reason: arrival.reason })
        return this.#mark(arrival.cursor)
      case 'unreadable':
        return this.#options.count.unreadable(arrival.count)
    }
  }

  /** A log that is pre-confirmed: told at once, and owed an end. */
  #log({ log, via, receivedAt }: Extract<Arrival, { type: 'log' }>): void {
    const { count, now, staleMs } = this.#options
    const token = this.#board.get(log.address)
    if (!token || token.state === 'delisted') return count.foreign()
    const before = this.#ledger.find(log.blockNumber, log.key)
    if (!before && !this.#ledger.admits(log.blockNumber, log.key)) return count.repeated()
    const hearing: Hearing = { via, sealed: false, late: false, receivedAt, now: now(), staleMs }
    const draft = join(log, read(log), token, hearing)
    if (!isFact(draft)) return
    if (before) return this.#toldAgain(before, draft, via)
    this.#raise({ pending: log.blockNumber })
    const { symbol, type } = draft
    const told: Told = { ...placeOf(draft), symbol, type, content: contentOf(draft), state: 'open', seq: this.#next() }
    this.#drafts.push(draft)
    this.#ledger.tell(log.blockNumber, told, this.#options.tape.end())
    this.#owe(told, log.blockNumber)
  }

  /** A key that was told is heard of once more: news only where the stream that announces it has changed its mind. */
  #toldAgain(told: Told, fact: FactDraft, via: Hearing['via']): void {
    const content = contentOf(fact)
    const changed = content !== told.content && fact.address === told.address
    // Of polls the first wins: behind one name may stand several nodes, and each would take back what the other said.
    if (!changed || told.state !== 'open' || via !== 'pendingLogs') return this.#options.count.repeated()
    this.#amend(told, told.type, fact)
    this.#ledger.amend(told, fact.type, content)
    this.#owe(told, fact.block.number)
  }

  #amend(told: Told, of: Told['type'], fact: FactDraft): void {
    const before = this.#messageAt(told.seq, told.key)
    const draft = amendOf({ told, of, before, fact }, this.#setting())
    told.seq = this.#next()
    this.#drafts.push(draft)
  }

  /** Keeps beside the tape that a promise is open: it outlives the message that made it. */
  #owe(told: Told, block: number): void {
    this.#notes.set(noteNames.open + told.key, { told: { ...told }, block } satisfies OpenNote)
  }

  /** A block is sealed: what it holds ends what was told of it, in the order that the contract names. */
  #settle(block: SealedBlock): void {
    const setting = { ...this.#setting(), block: placeOfBlock(block) }
    const facts = this.#factsOf(block)
    const settling = this.#ledger.settle(block, facts, new Set(block.asked), this.#options.tape.end())
    for (const one of settling.retractions) {
      this.#drafts.push(retractOf(one, setting))
      this.#notes.set(noteNames.open + one.told.key, null)
    }
    for (const { told, of, fact } of settling.amendments) this.#amend(told, of, fact.draft)
    const late = new Set<string>()
    for (const { told, fact, moved } of settling.tellings) {
      told.seq = this.#next()
      const draft = moved ? { ...fact.draft, late: false } : fact.draft
      if (draft.late) late.add(told.key)
      this.#drafts.push(draft)
    }
    for (const seal of settling.seals) {
      this.#drafts.push(sealOf(seal, late, setting))
      for (const { key } of seal.told) this.#notes.set(noteNames.open + key, null)
    }
  }

  /** What a sealed block says, of the tokens that are listed or of which something was told of it before. */
  #factsOf({ number, hash, logs, timestamp, via }: SealedBlock): readonly Fact[] {
    const { count, now, staleMs } = this.#options
    const told = new Set(this.#ledger.at(number).map(({ address }) => address))
    const late = via === 'backfill' || this.#status?.source === 'pendingLogs' || this.#status?.source === 'poll'
    const hearing: Hearing = { via, sealed: true, late, receivedAt: now(), now: now(), staleMs }
    // A node may say the same log twice.
    const once = new Map(logs.map((log) => [log.key, log]))
    return [...once.values()].flatMap((log) => {
      const token = this.#board.get(log.address)
      if (!token || (token.state === 'delisted' && !told.has(log.address))) {
        count.foreign()
        return []
      }
      const at = { ...log, blockHash: hash, blockTimestamp: log.blockTimestamp ?? timestamp }
      const draft = join(at, read(at), token, hearing)
      return isFact(draft) ? [{ ...placeOf(draft), content: contentOf(draft), draft }] : []
    })
  }

  /** What a key was told as before, if that is still kept. */
  #messageAt(seq: number, key: string): object | null {
    const { tape } = this.#options
    const fresh = this.#drafts[seq - tape.end() - 1]
    const message = fresh ?? tape.about(key).find((entry) => entry.seq === seq)?.update
    return message?.type === 'amend' ? message.update : (message ?? null)
  }

  #setting() {
    const { epoch } = this.#options.tape
    return {
      time: this.#time(),
      symbolOf: (address: Hex, before: string) => this.#board.get(address)?.symbol ?? before,
      position: (seq: number) => formatPosition(epoch, seq),
    }
  }

  /** The number that the next draft will have: one teller writes a tape, and nothing comes between. */
  #next(): number {
    return this.#options.tape.end() + this.#drafts.length + 1
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
    this.#notes.set(noteNames.head, head)
  }

  #final({ stage, block }: Extract<Arrival, { type: 'finality' }>): void {
    if (stage === 'safe') this.#ledger.safe(block.number)
    this.#raise({ [stage]: block.number, sealed: block.number })
    this.#all({ type: 'finality', stage, block: placeOfBlock(block) })
  }

  #mark({ number, hash }: Cursor): void {
    const mark: Mark = { block: number, hash, seq: this.#ledger.since(this.#options.tape.end()) }
    this.#notes.set(noteNames.mark, mark)
  }

  #say({ source, reason }: Pick<Status, 'source' | 'reason'>): void {
    if (this.#status?.source === source && this.#status.reason === reason) return
    this.#status = { source, reason, since: this.#time() }
    this.#notes.set(noteNames.status, this.#status)
    this.#all({ type: 'status', source, since: this.#status.since, reason, head: this.#head })
  }

  /** Tells what concerns every listener. */
  #all(told: AboutAll): void {
    const { type, ...rest } = told
    this.#drafts.push({ type, symbol: '*', address: null, time: this.#time(), ...rest } as Draft)
  }

  #time(): string {
    return new Date(this.#options.now()).toISOString()
  }

  #rule(): NavRule {
    return { now: this.#options.now(), staleMs: this.#options.staleMs }
  }
}

type AboutAll = {
  [Type in 'status' | 'hole' | 'finality']: Omit<DraftOf<Type>, 'symbol' | 'address' | 'time'>
}['status' | 'hole' | 'finality']

const higher = (before: number | null, now: number | null): number | null =>
  before === null || (now !== null && now > before) ? now : before
