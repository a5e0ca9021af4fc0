import type { Cursor } from '../chain/lately.ts'
import type { Log } from '../chain/log.ts'
import type { Owed, SealedBlock } from '../chain/settling.ts'
import type { Heard } from '../chain/source.ts'
import { readTogether, type Saying } from '../chain/together.ts'
import type { Head, Hex } from '../protocol/parts.ts'
import { formatPosition } from '../protocol/position.ts'
import type { Draft, DraftOf, Update } from '../protocol/updates.ts'
import type { TokenAnswer } from '../stocks/answer.ts'
import type { Board } from '../stocks/board.ts'
import type { FeedAnswer, FeedSetting } from '../stocks/feeds.ts'
import type { Listed } from '../stocks/list.ts'
import { noteNames, type Tape } from '../tape/tape.ts'
import { contentOf, detailOf, type FactDraft, isFact, placeOf } from './content.ts'
import { corrected, type Hearing, join } from './join.ts'
import { Keeper } from './keeper.ts'
import type { Facts, Ledger, Told } from './ledger.ts'
import { type HeardLog, Overheard } from './overheard.ts'
import { cursorOf, type Mark, markOf, type OpenNote, restoreLedger } from './restore.ts'
import { amendOf, placeOfBlock, retractOf, sealOf } from './settle.ts'
import { Sheet, type Telling } from './sheet.ts'

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

type Options = {
  readonly tape: Tape
  readonly staleMs: number
  readonly feeds: readonly FeedSetting[]
  readonly now: () => number
  readonly count: {
    readonly repeated: () => void
    readonly foreign: () => void
    readonly unreadable: (n: number) => void
  }
}

/** Above the settled block is one that is sealed, and above that one the one being built. */
const NEXT_BLOCKS = 2

const unknownHead: Head = { pending: null, sealed: null, safe: null, finalized: null }

/** Turns what arrives into what is told. Holds the ledger, the head and, with its keeper, the board; all of it outlives a restart. */
export class Teller {
  readonly #options: Options
  readonly #sheet: Sheet
  readonly #ledger: Ledger
  readonly #keeper: Keeper
  readonly #overheard = new Overheard()
  #head: Head
  #status: Status | null

  private constructor(options: Options, ledger: Ledger) {
    const { tape } = options
    this.#options = options
    this.#sheet = new Sheet(tape)
    this.#ledger = ledger
    // The notes are what this class kept: they are read back, not checked again.
    this.#head = (tape.note(noteNames.head) as Head | undefined) ?? unknownHead
    this.#status = (tape.note(noteNames.status) as Status | undefined) ?? null
    this.#keeper = new Keeper({ ...options, sheet: this.#sheet, head: this.#head.sealed })
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
    return this.#keeper.board
  }

  get ledger(): Ledger {
    return this.#ledger
  }

  /** What waits for its block: promises, and rounds of the feeds. */
  get owed(): Owed {
    const ledger = this.#ledger
    return {
      at: (block) => [...ledger.at(block), ...this.#keeper.quotedAt(block)],
      toldBetween: (from, to) => ledger.toldBetween(from, to),
      sealedBefore: ledger.sealedBefore,
    }
  }

  tell(turn: readonly Arrival[]): Telling {
    for (const arrival of turn) this.#take(arrival)
    return this.#sheet.take()
  }

  #take(arrival: Arrival): void {
    switch (arrival.type) {
      case 'transaction':
        return this.#transaction(arrival.logs)
      case 'list':
        return this.#keeper.list(arrival.tokens, arrival.partial ?? false)
      case 'token':
        if (this.#keeper.answered(arrival)) this.#correct(arrival.address, () => true)
        return
      case 'feed':
        return this.#keeper.feedAnswered(arrival)
      case 'hearing':
        return this.#keeper.hears(arrival.addresses)
      case 'head':
        if (this.#isNext(arrival.pending ?? arrival.sealed)) this.#keeper.passes(arrival.timestamp)
        return this.#raise(arrival)
      case 'cursor':
        this.#ledger.reach(arrival.cursor.number)
        return this.#mark(arrival.cursor)
      case 'sealed':
        return this.#sealed(arrival)
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

  /** Whether no other block is waited for before this one: each has a time of its own, and what moved in it comes first. */
  #isNext(block: number | null): boolean {
    const { settled } = this.#ledger
    return settled === null || block === null || block <= settled + NEXT_BLOCKS
  }

  /** Logs that are pre-confirmed: told at once, with what was heard of their transaction before, and owed an end. */
  #transaction(logs: readonly HeardLog[]): void {
    for (const { log } of logs) this.#quote(log)
    const news = logs.filter((heard) => !this.#keeper.quotes(heard.log.address) && this.#isNews(heard))
    const [first] = news
    if (!first) return
    for (const { log } of news) this.#keeper.passes(log.blockTimestamp)
    const before = new Set(this.#overheard.of(first.log).keys())
    for (const heard of news) this.#overheard.add(heard)
    const heard = this.#overheard.of(first.log)
    const { sayings } = readTogether([...heard.values()].map(({ log }) => log))
    for (const saying of sayings) {
      const { log, via, receivedAt } = heard.get(saying.log.key) ?? first
      if (this.#waits(saying, heard)) continue
      const moved = this.#keeper.says(saying)
      const hearing = this.#hearing({ via, sealed: false, late: false, receivedAt })
      this.#preconfirmed(saying, hearing, before.has(log.key))
      this.#keeper.passes(log.blockTimestamp)
      if (moved) this.#correct(log.address, () => true)
      this.#keeper.reaches({ block: log.blockNumber, logIndex: log.logIndex })
    }
  }

  /** A round that is pre-confirmed: what is settled by now has been told with its block, or is not so. */
  #quote(log: Log): void {
    const { settled } = this.#ledger
    if (settled === null || log.blockNumber > settled) this.#keeper.quote(log)
  }

  /** Whether a log is of a listed token, and says something that was not heard before. */
  #isNews({ log, via }: HeardLog): boolean {
    const { count } = this.#options
    const token = this.board.get(log.address)
    if (!token || token.state === 'delisted') {
      count.foreign()
      return false
    }
    const before = this.#overheard.of(log).get(log.key)
    // Of polls the first wins: behind one name may stand several nodes, and each would take back what the other said.
    const repeats = before !== undefined && (via !== 'pendingLogs' || sameLog(before.log, log))
    const told = this.#ledger.find(log.blockNumber, log.key)
    const isOpen = told ? told.state === 'open' : before !== undefined || this.#ledger.admits(log.blockNumber, log.key)
    if (!repeats && isOpen) return true
    count.repeated()
    return false
  }

  /**
   * Whether a saying is told only when more is heard, or when its block is settled: an announcement whose end did not come
   * yet, and what is part of something else that a former life told.
   */
  #waits({ log, said, closed }: Saying, heard: ReadonlyMap<string, unknown>): boolean {
    if (said.event === 'Announcement') return !closed
    const isPart = said.event === 'Memo' || said.event === 'Seized' || said.event === 'EndAnnouncement'
    return isPart && this.#ledger.tellsMore(log.transactionHash, heard)
  }

  /** `known`: the log itself was heard before, and what is new is what was heard with it. */
  #preconfirmed(saying: Saying, hearing: Hearing, known: boolean): void {
    const { log } = saying
    const token = this.board.get(log.address)
    if (!token) return
    const draft = join(saying, token, hearing)
    const [content, detail] = [contentOf(draft), detailOf(draft)]
    const before = this.#ledger.find(log.blockNumber, log.key)
    if (before) {
      const same = content === before.content && detail === before.detail
      const mayAmend = known || hearing.via === 'pendingLogs'
      if (same && known) return
      if (same || !mayAmend || draft.address !== before.address) return this.#options.count.repeated()
      this.#amend(before, before.type, draft)
      this.#ledger.amend(before, draft.type, content, detail)
      return this.#owe(before, log.blockNumber)
    }
    this.#raise({ pending: log.blockNumber })
    const { symbol, type } = draft
    const told: Told = { ...placeOf(draft), symbol, type, content, detail, state: 'open', seq: this.#sheet.next }
    this.#sheet.tell(draft)
    this.#ledger.tell(log.blockNumber, told, this.#options.tape.end())
    this.#owe(told, log.blockNumber)
  }

  #amend(told: Told, of: Told['type'], fact: FactDraft): void {
    const before = this.#messageAt(told.seq, told.key)
    const late = before !== null && 'late' in before && before.late === true
    const draft = amendOf({ told, of, before, fact: { ...fact, late } }, this.#setting())
    told.seq = this.#sheet.next
    this.#sheet.tell(draft)
  }

  /** Another multiplier was in force somewhere than was thought: what was told with the wrong one is amended. */
  #correct(address: Hex, reaches: (block: number, told: Told) => boolean): void {
    const token = this.board.get(address)
    if (!token) return
    for (const { told, number, sealed } of this.#ledger.from(0, address)) {
      const before = told.detail === null || !reaches(number, told) ? null : this.#messageAt(told.seq, told.key)
      if (!before || !isFact(before)) continue
      const block = sealed ?? { ...before.block, hash: null }
      const stage = sealed ? 'sealed' : 'preconfirmed'
      const fact = corrected({ ...before, stage, block, time: this.#time() }, token, this.#keeper.time)
      if (!fact) continue
      this.#amend(told, told.type, fact)
      this.#ledger.amend(told, fact.type, contentOf(fact), detailOf(fact))
      if (!sealed) this.#owe(told, number)
    }
  }

  /** Keeps beside the tape that a promise is open: it outlives the message that made it. */
  #owe(told: Told, block: number): void {
    this.#sheet.note(noteNames.open + told.key, { told: { ...told }, block } satisfies OpenNote)
  }

  #sealed({ blocks, newest, cursor }: Extract<Arrival, { type: 'sealed' }>): void {
    this.#ledger.reach(newest, Math.min(cursor.number, blocks[0]?.number ?? newest))
    for (const block of blocks) {
      this.#keeper.passes(block.timestamp)
      const moved = this.#settle(block)
      this.#keeper.passes(block.timestamp)
      // What a reorganisation goes on to settle is put right there; beside the newest blocks nothing else comes by.
      const reaches = (number: number, { state }: Told) =>
        state === 'open' || number < block.number || newest > block.number
      for (const address of moved) this.#correct(address, reaches)
    }
    this.#overheard.settled(newest)
    this.#keeper.reaches({ block: newest, logIndex: Number.MAX_SAFE_INTEGER })
    this.#mark(cursor)
  }

  /**
   * A block is sealed: what it holds ends what was told of it, in the order that the contract names. The tokens of which
   * it shows another multiplier than was thought.
   */
  #settle(block: SealedBlock): readonly Hex[] {
    this.#quotes(block)
    const logs = this.#logsOf(block)
    const { sayings, parts } = readTogether(logs)
    const words = Map.groupBy(sayings, ({ log }) => log.address)
    const moved = block.asked.filter((address) =>
      this.#keeper.blockSays(block.number, address, words.get(address) ?? []),
    )
    const setting = { ...this.#setting(), block: placeOfBlock(block) }
    const facts = { told: this.#factsOf(block, sayings), parts: parts.map(partOf) }
    const sealed = { ...setting.block, hash: block.hash }
    const settling = this.#ledger.settle(sealed, facts, new Set(block.asked), this.#options.tape.end())
    for (const one of settling.retractions) {
      this.#sheet.tell(retractOf(one, setting))
      this.#sheet.note(noteNames.open + one.told.key, null)
    }
    for (const { told, of, fact } of settling.amendments) this.#amend(told, of, fact.draft)
    const late = new Set<string>()
    for (const { told, fact, moved } of settling.tellings) {
      told.seq = this.#sheet.next
      const draft = moved ? { ...fact.draft, late: false } : fact.draft
      if (draft.late) late.add(told.key)
      this.#sheet.tell(draft)
    }
    for (const seal of settling.seals) {
      this.#sheet.tell(sealOf(seal, late, setting))
      for (const { key } of seal.logs) this.#sheet.note(noteNames.open + key, null)
    }
    return moved
  }

  #quotes({ number, logs, asked }: SealedBlock): void {
    const quoting = asked.filter((address) => this.#keeper.quotes(address))
    for (const address of quoting) {
      const its = logs.filter((log) => log.address === address)
      this.#keeper.blockQuotes(number, address, its)
    }
  }

  /** The logs of a sealed block, each once, of the tokens that are listed or of which something was told of it before. */
  #logsOf({ number, hash, logs, timestamp }: SealedBlock): readonly Log[] {
    const told = new Set(this.#ledger.at(number).map(({ address }) => address))
    // A node may say the same log twice.
    const once = new Map(logs.map((log) => [log.key, log]))
    return [...once.values()].flatMap((log) => {
      if (this.#keeper.quotes(log.address)) return []
      const token = this.board.get(log.address)
      if (!token || (token.state === 'delisted' && !told.has(log.address))) {
        this.#options.count.foreign()
        return []
      }
      return [{ ...log, blockHash: hash, blockTimestamp: log.blockTimestamp ?? timestamp }]
    })
  }

  #factsOf({ via }: SealedBlock, sayings: readonly Saying[]): Facts['told'] {
    const late = via === 'backfill' || this.#status?.source === 'pendingLogs' || this.#status?.source === 'poll'
    const hearing = this.#hearing({ via, sealed: true, late, receivedAt: this.#options.now() })
    return sayings.flatMap((saying) => {
      const token = this.board.get(saying.log.address)
      if (!token) return []
      const draft = join(saying, token, hearing)
      return [{ ...placeOf(draft), content: contentOf(draft), detail: detailOf(draft), draft }]
    })
  }

  #hearing(how: Pick<Hearing, 'via' | 'sealed' | 'late' | 'receivedAt'>): Hearing {
    const { now, staleMs } = this.#options
    return { ...how, now: now(), staleMs, chainTime: this.#keeper.time }
  }

  /** What a key was told as before, if that is still kept. */
  #messageAt(seq: number, key: string): Draft | null {
    const { tape } = this.#options
    const message = this.#sheet.at(seq) ?? tape.about(key).find((entry) => entry.seq === seq)?.update
    if (message?.type === 'amend') return { ...message.update, time: message.time }
    return message ? untaped(message) : null
  }

  #setting() {
    const { epoch } = this.#options.tape
    return {
      time: this.#time(),
      symbolOf: (address: Hex, before: string) => this.board.get(address)?.symbol ?? before,
      position: (seq: number) => formatPosition(epoch, seq),
      now: ({ address, type }: Told) => this.#keeper.holds(address, type),
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
    this.#sheet.note(noteNames.head, head)
  }

  #final({ stage, block }: Extract<Arrival, { type: 'finality' }>): void {
    if (stage === 'safe') this.#ledger.safe(block.number)
    this.#raise({ [stage]: block.number, sealed: block.number })
    this.#all({ type: 'finality', stage, block: placeOfBlock(block) })
  }

  #mark({ number, hash }: Cursor): void {
    const mark: Mark = { block: number, hash, seq: this.#ledger.since(this.#options.tape.end()) }
    this.#sheet.note(noteNames.mark, mark)
  }

  #say({ source, reason }: Pick<Status, 'source' | 'reason'>): void {
    if (this.#status?.source === source && this.#status.reason === reason) return
    this.#status = { source, reason, since: this.#time() }
    this.#sheet.note(noteNames.status, this.#status)
    this.#all({ type: 'status', source, since: this.#status.since, reason, head: this.#head })
  }

  /** Tells what concerns every listener. */
  #all(told: AboutAll): void {
    const { type, ...rest } = told
    this.#sheet.tell({ type, symbol: '*', address: null, time: this.#time(), ...rest } as Draft)
  }

  #time(): string {
    return new Date(this.#options.now()).toISOString()
  }
}

type AboutAll = {
  [Type in 'status' | 'hole' | 'finality']: Omit<DraftOf<Type>, 'symbol' | 'address' | 'time'>
}['status' | 'hole' | 'finality']

const higher = (before: number | null, now: number | null): number | null =>
  before === null || (now !== null && now > before) ? now : before

/** A message as it was before the tape had numbered it. */
const untaped = (message: Draft | Update): Draft => {
  const { id: _id, prev: _prev, ...draft } = { id: '', prev: null, ...message }
  return draft as Draft
}

const partOf = ({ key, address, transactionHash, logIndex }: Log) => ({ key, address, tx: transactionHash, logIndex })

const sameLog = (one: Log, other: Log): boolean =>
  one.address === other.address && one.data === other.data && one.topics.join() === other.topics.join()
