import { isDeepStrictEqual } from 'node:util'
import type { Log } from '../chain/logs/log-schema.ts'
import type { Owing, SealedBlock } from '../chain/sealed/block-logs.ts'
import type { Hex } from '../protocol/fields.ts'
import { txOf } from '../protocol/key.ts'
import type { UpdateType } from '../protocol/updates.ts'
import { type ListNote, noteNames, type Tape } from '../tape/tape.ts'
import { type TokenAnswer, withAnswer } from '../tokens/apply-call.ts'
import { type Word, withBlock, withWordOf } from '../tokens/apply-log.ts'
import { isBefore, type Place } from '../tokens/chain-position.ts'
import { Directory } from '../tokens/directory.ts'
import {
  type Board,
  type Change,
  compare,
  compareListed,
  heard,
  listedAddresses,
  type Moment,
  restate,
  valued,
} from '../tokens/list-diff.ts'
import type { Listed } from '../tokens/list-parser.ts'
import { multiplierDraft } from '../tokens/messages.ts'
import { type FactorChange, waiting, withGap, withMatured } from '../tokens/multiplier.ts'
import type { NavRule } from '../tokens/nav.ts'
import { blockSays, roundSaid } from '../tokens/nav-history.ts'
import {
  type Feed,
  type FeedAnswer,
  type FeedSetting,
  feedOf,
  feedsAfter,
  openFeeds,
  roundAnswered,
  roundSaidBy,
} from '../tokens/price-feeds.ts'
import { held, type Token } from '../tokens/token.ts'
import type { Sheet } from './outbox.ts'

type Options = {
  readonly tape: Tape
  readonly sheet: Sheet
  readonly staleMs: number
  readonly now: () => number
  /** The newest block of which a former life may have told something. */
  readonly head: number
  readonly feeds: readonly FeedSetting[]
}

/** Keeps the board: takes in what the list, the chain and the clock say of tokens, and tells what is not an on-chain fact. */
export class Keeper {
  readonly #options: Options
  readonly #board: Map<Hex, Token>
  /** Whose multiplier is to change at a time that no block has reached yet. */
  readonly #armed = new Set<Hex>()
  /** The time of the newest block that was heard of, in seconds: the only clock that schedules know. */
  #time: number | null = null
  /** The last log that was heard of: what the list says now comes after it. */
  #at: Place
  #feeds: readonly Feed[]
  /** Of which token each feed is, once that is known: a symbol may become another's. */
  readonly #quoted = new Map<Hex, Hex>()

  constructor(options: Options) {
    this.#options = options
    this.#at = { block: options.head, logIndex: Number.MAX_SAFE_INTEGER }
    // The notes are what this class kept: they are read back, not checked again.
    this.#feeds = openFeeds(options.feeds, options.tape.note(noteNames.feeds) as readonly Feed[] | undefined)
    const tokens = ([...options.tape.notes(noteNames.token).values()] as Token[]).filter(({ factor }) => factor)
    this.#board = new Map(tokens.map((token) => [token.address, token]))
    for (const token of tokens) this.#arm(token)
  }

  get board(): Board {
    return this.#board
  }

  get feeds(): readonly Feed[] {
    return this.#feeds
  }

  /** The newest block's time, in seconds. */
  get time(): number | null {
    return this.#time
  }

  /** A list; null where the last good one stays and only time passed. */
  list(tokens: readonly Listed[] | null, partial: boolean): void {
    if (tokens) {
      this.#apply((partial ? compareListed : compare)(this.#board, tokens, this.#moment()))
      this.#noteList(tokens.map(({ address }) => address))
    }
    // What the list says nothing of grows older all the same.
    this.#apply(restate(this.#board, this.#rule()))
  }

  /** What a list leaves out and is believed to be listed all the same stands behind what it names. */
  #noteList(named: readonly Hex[]): void {
    const readAt = this.#options.now()
    const note: ListNote = { readAt, order: [...new Set([...named, ...listedAddresses(this.#board)])] }
    this.#options.sheet.note(noteNames.list, note)
  }

  /** The logs of these addresses are heard from now on. */
  hears(addresses: readonly Hex[]): void {
    this.#apply(heard(this.#board, addresses, this.#rule()))
  }

  /** A log was heard of, or all of a sealed block. */
  reaches(place: Place): void {
    if (isBefore(this.#at, place)) this.#at = place
  }

  /** A block has this time: what was scheduled until then takes effect, though the chain says nothing. Of which tokens. */
  passes(timestamp: number | null): readonly Hex[] {
    const time = Math.max(timestamp ?? 0, this.#time ?? 0)
    if (time > 0) this.#time = time
    return [...this.#armed].filter((address) => this.#ring(address, time))
  }

  /** A block of this time is about to be told: what it shows to have been scheduled until then is in force in it. */
  ripens(timestamp: number | null): void {
    if (timestamp !== null) for (const address of this.#armed) this.#ring(address, timestamp)
  }

  /** Blocks up to this one could not be read: whatever changed in them was not heard. */
  misses(block: number): void {
    for (const token of this.#board.values()) this.#set({ ...token, factor: withGap(token.factor, block) })
  }

  /** Something pre-confirmed says this of its token. Whether it is another multiplier than before, somewhere. */
  says(word: Word): boolean {
    const token = this.#board.get(word.log.address)
    return token !== undefined && this.#set(withWordOf(token, word, this.#time, this.#rule()))
  }

  /** A sealed block says this of a token, and nothing else. Whether it is another multiplier than before, somewhere. */
  blockSays(block: number, address: Hex, words: readonly Word[]): boolean {
    const token = this.#board.get(address)
    return token !== undefined && this.#set(withBlock(token, block, words, this.#time, this.#rule()))
  }

  /** A contract was asked what holds of it. Whether it is another multiplier than before, somewhere. */
  answered(answer: TokenAnswer): boolean {
    const token = this.#board.get(answer.address)
    if (!token) return false
    const { after, drafts } = withAnswer(token, answer, this.#rule())
    if (token.state === 'listed') for (const draft of drafts) this.#options.sheet.tell(draft)
    return this.#set(after)
  }

  /** A feed was asked for what stands behind it, and for its newest round. */
  feedAnswered(answer: FeedAnswer): void {
    const feeds = feedsAfter(this.#feeds, answer)
    if (!isDeepStrictEqual(feeds, this.#feeds)) this.#options.sheet.note(noteNames.feeds, feeds)
    this.#feeds = feeds
    const round = roundAnswered(answer)
    const feed = this.#feeds.find(({ proxy }) => proxy === answer.proxy)
    const token = feed && this.#tokenOf(feed)
    if (token && round) this.#value({ ...token, rounds: roundSaid(token.rounds, round) })
  }

  /** Whether the logs of an address are rounds of a feed. */
  quotes(address: Hex): boolean {
    return feedOf(this.#feeds, address) !== null
  }

  /** A round that is pre-confirmed, or something else that its aggregator says. */
  quote(log: Log): void {
    const found = feedOf(this.#feeds, log.address)
    const token = found && this.#tokenOf(found.feed)
    const round = found && roundSaidBy(log, found.aggregator, false)
    if (token && round) this.#value({ ...token, rounds: roundSaid(token.rounds, round) })
  }

  /** A sealed block holds these rounds of the feeds that it was asked for, and no others. */
  blockQuotes({ number, logs, asked }: Pick<SealedBlock, 'number' | 'logs' | 'asked'>): void {
    for (const feed of this.#feeds.filter(({ aggregators }) =>
      aggregators.some(({ address }) => asked.includes(address)),
    )) {
      const token = this.#tokenOf(feed)
      if (!token) continue
      const rounds = logs.flatMap((log) => {
        const by = feed.aggregators.find(({ address }) => address === log.address)
        return (by && roundSaidBy(log, by, true)) ?? []
      })
      this.#value({ ...token, rounds: blockSays(token.rounds, number, rounds) })
    }
  }

  /** The rounds of a block that were told and are not sealed: an answer that lacks them may be too early. */
  quotedAt(block: number): readonly Owing[] {
    return this.#feeds.flatMap((feed) => {
      const address = feed.aggregators.at(-1)?.address
      const rounds = this.#tokenOf(feed)?.rounds.feed ?? []
      return rounds.flatMap(({ at, key, sealed }) =>
        address && at?.block === block && key && !sealed ? [{ key, address, tx: txOf(key) }] : [],
      )
    })
  }

  /** What holds of a token now, of what messages of a type tell. */
  holds(address: Hex, type: UpdateType): unknown {
    const token = this.#board.get(address)
    if (!token) return null
    return type === 'multiplier'
      ? token.multiplier
      : type === 'pause'
        ? token.paused
        : type === 'token'
          ? token.record
          : null
  }

  #tokenOf({ token, proxy }: Feed): Token | undefined {
    const known = this.#quoted.get(proxy)
    if (known) return this.#board.get(known)
    const found = new Directory(this.#board.values()).find(token)
    if (found.kind !== 'found') return undefined
    this.#quoted.set(proxy, found.token.address)
    return found.token
  }

  #value(token: Token): void {
    if (token.state === 'listed') this.#apply(valued(token, this.#rule()))
    else this.#set(token)
  }

  #ring(address: Hex, time: number): boolean {
    const token = this.#board.get(address)
    const due = token
      ? waiting(token.factor).filter(({ effectiveAt }) => effectiveAt !== null && effectiveAt <= time)
      : []
    for (const schedule of due) this.#mature(address, schedule)
    return due.length > 0
  }

  #mature(address: Hex, schedule: FactorChange): void {
    const token = this.#board.get(address)
    if (!token) return
    const rule = this.#rule()
    const after = held({ ...token, factor: withMatured(token.factor, schedule) }, rule)
    const { to, effectiveAt } = schedule
    // By now something else may be in force again.
    const from = token.multiplier === after.multiplier ? schedule.from : token.multiplier
    // What a log has scheduled was told, whether the listing is told only later or has ended since.
    if (token.state === 'listed' || schedule.key !== null)
      this.#options.sheet.tell({ ...multiplierDraft(after, rule, { from, effectiveAt, source: 'clock' }), to })
    this.#set(after)
  }

  #apply({ drafts, tokens }: Change): void {
    for (const draft of drafts) this.#options.sheet.tell(draft)
    for (const token of tokens) this.#set(token)
  }

  #set(token: Token): boolean {
    const before = this.#board.get(token.address)
    if (before === token || isDeepStrictEqual(before, token)) return false
    this.#board.set(token.address, token)
    this.#options.sheet.note(noteNames.token + token.address, token)
    this.#arm(token)
    return before?.factor !== token.factor && !isDeepStrictEqual(before?.factor, token.factor)
  }

  #arm({ address, factor }: Token): void {
    if (waiting(factor).length > 0) this.#armed.add(address)
    else this.#armed.delete(address)
  }

  #rule(): NavRule {
    return { now: this.#options.now(), staleMs: this.#options.staleMs }
  }

  #moment(): Moment {
    return { ...this.#rule(), at: this.#at }
  }
}
