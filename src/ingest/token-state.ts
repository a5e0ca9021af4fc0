import { isDeepStrictEqual } from 'node:util'
import type { Log } from '../chain/logs/log-schema.ts'
import type { OpenKey, SealedBlock } from '../chain/sealed/block-logs.ts'
import type { Hex } from '../protocol/fields.ts'
import { txOf } from '../protocol/key.ts'
import type { DraftOf, UpdateType } from '../protocol/updates.ts'
import { defineNote, listNote, type NoteReader, tokenNotes } from '../tape/notes.ts'
import { applyCall, type TokenContractState } from '../tokens/apply-call.ts'
import { applyLog, applySealedBlock, type TokenLog } from '../tokens/apply-log.ts'
import { type ChainPosition, isBefore } from '../tokens/chain-position.ts'
import { Directory } from '../tokens/directory.ts'
import {
  diffFullList,
  diffPartialList,
  type ListTiming,
  listedAddresses,
  markListed,
  refreshNavs,
  type TokenChanges,
  type TokenTable,
  updateNav,
} from '../tokens/list-diff.ts'
import type { ListedToken } from '../tokens/list-parser.ts'
import type { PolledList } from '../tokens/list-poller.ts'
import { addHole, type MultiplierChange, markScheduleApplied, pendingSchedules } from '../tokens/multiplier.ts'
import type { NavTiming } from '../tokens/nav.ts'
import { addRound, applySealedRounds } from '../tokens/nav-history.ts'
import {
  applyFeedCall,
  type FeedContractState,
  type FeedSetting,
  findFeed,
  openFeeds,
  type PriceFeed,
  roundFromCall,
  roundFromLog,
} from '../tokens/price-feeds.ts'
import { type Token, withDerivedState } from '../tokens/token.ts'
import { featureName, multiplierDraft } from '../tokens/token-drafts.ts'
import type { Outbox } from './outbox.ts'

type Options = {
  readonly tape: NoteReader
  readonly outbox: Outbox
  readonly staleMs: number
  readonly now: () => number
  /** The newest block of which the previous run may have published facts. */
  readonly headBlock: number
  readonly feeds: readonly FeedSetting[]
}

/** The tokens of a list or of a part of it; null where the last good list stays and only time passed. */
export type ListEvent = Partial<Omit<PolledList, 'tokens'>> & { readonly tokens: readonly ListedToken[] | null }

/** The aggregators behind the proxy of each feed, as of the last answer. */
const feedsNote = defineNote<readonly PriceFeed[]>('feeds')

/** The token table. Applies the list, the chain and the clock to it, and publishes what is not an on-chain fact. */
export class TokenState {
  readonly #options: Options
  readonly #tokens: Map<Hex, Token>
  /** Tokens with a scheduled multiplier whose time no block has reached. */
  readonly #scheduled = new Set<Hex>()
  /** The newest block time in seconds. Schedules take effect by this clock only. */
  #chainTime: number | null = null
  /** The position of the last received log. A list that is read now comes after it. */
  #position: ChainPosition
  #feeds: readonly PriceFeed[]
  /** The token of each feed, fixed once found: its symbol may pass to another token. */
  readonly #tokenByFeed = new Map<Hex, Hex>()

  constructor(options: Options) {
    this.#options = options
    this.#position = { block: options.headBlock, logIndex: Number.MAX_SAFE_INTEGER }
    this.#feeds = openFeeds(options.feeds, options.tape.note(feedsNote))
    const tokens = [...options.tape.notes(tokenNotes).values()]
    this.#tokens = new Map(tokens.map((token) => [token.address, token]))
    for (const token of tokens) this.#trackSchedules(token)
  }

  get tokens(): TokenTable {
    return this.#tokens
  }

  get feeds(): readonly PriceFeed[] {
    return this.#feeds
  }

  /** The newest block's time, in seconds. */
  get chainTime(): number | null {
    return this.#chainTime
  }

  applyList({ tokens, partial = false, more = false, earlier = [] }: ListEvent): void {
    const read = new Set(earlier)
    if (tokens) {
      const diff = partial ? diffPartialList : diffFullList
      this.#publishChange(diff(this.#tokens, tokens, this.#listTiming(), earlier))
      if (more) return
      for (const { address } of tokens) read.add(address)
      this.#saveListNote(read)
    }
    // The NAVs of tokens that the list omits grow older too.
    this.#publishChange(refreshNavs(this.#tokens, this.#navTiming(), read))
  }

  /** Tokens that the list omits but that still count as listed come last in the order. */
  #saveListNote(listed: Iterable<Hex>): void {
    const readAt = this.#options.now()
    const order = [...new Set([...listed, ...listedAddresses(this.#tokens)])]
    this.#options.outbox.setNote(listNote, { readAt, order })
  }

  /** The logs of these addresses arrive from now on. */
  markSubscribed(addresses: readonly Hex[]): void {
    this.#publishChange(markListed(this.#tokens, addresses, this.#navTiming()))
  }

  /** A log arrived, or a sealed block was settled. */
  advancePosition(position: ChainPosition): void {
    if (isBefore(this.#position, position)) this.#position = position
  }

  /** Applies the schedules that are due at this block time; no log reports it. Returns their tokens. */
  advanceTime(timestamp: number | null): readonly Hex[] {
    const time = Math.max(timestamp ?? 0, this.#chainTime ?? 0)
    if (time > 0) this.#chainTime = time
    return [...this.#scheduled].filter((address) => this.#applyDue(address, time))
  }

  /** Applies the schedules that a block added and that are due at its own time, before its facts are published. */
  applyDueSchedules(timestamp: number | null): void {
    if (timestamp !== null) for (const address of this.#scheduled) this.#applyDue(address, timestamp)
  }

  /** Blocks up to this one could not be read, so changes in them are missing. */
  markHole(block: number): void {
    for (const token of this.#tokens.values())
      this.#setToken({ ...token, multiplierHistory: addHole(token.multiplierHistory, block) })
  }

  /** Applies a pre-confirmed log. Returns whether it changes the multiplier history. */
  applyLog(decodedLog: TokenLog): boolean {
    const token = this.#tokens.get(decodedLog.log.address)
    return token !== undefined && this.#setToken(applyLog(token, decodedLog, this.#chainTime, this.#navTiming()))
  }

  /** Applies all logs of a token in a sealed block. Returns whether they change the multiplier history. */
  applySealedBlock(block: number, address: Hex, decodedLogs: readonly TokenLog[]): boolean {
    const token = this.#tokens.get(address)
    return token !== undefined && this.#setToken(applySealedBlock(token, block, decodedLogs, this.#chainTime, this.#navTiming()))
  }

  /** Applies the answer of a token contract. Returns whether it changes the multiplier history. */
  applyTokenAnswer(answer: TokenContractState): boolean {
    const token = this.#tokens.get(answer.address)
    if (!token) return false
    const { after, drafts } = applyCall(token, answer, this.#navTiming())
    if (token.state === 'listed') for (const draft of drafts) this.#options.outbox.publish(draft)
    return this.#setToken(after)
  }

  /** Applies the aggregator and newest round of a feed. */
  applyFeedAnswer(answer: FeedContractState): void {
    const feeds = applyFeedCall(this.#feeds, answer)
    if (!isDeepStrictEqual(feeds, this.#feeds)) this.#options.outbox.setNote(feedsNote, feeds)
    this.#feeds = feeds
    const round = roundFromCall(answer)
    const feed = this.#feeds.find(({ proxy }) => proxy === answer.proxy)
    const token = feed && this.#tokenOfFeed(feed)
    if (token && round) this.#updateRounds({ ...token, navHistory: addRound(token.navHistory, round) })
  }

  isFeedAddress(address: Hex): boolean {
    return findFeed(this.#feeds, address) !== null
  }

  /** Applies a pre-confirmed round. Other logs of an aggregator are ignored. */
  applyRoundLog(log: Log): void {
    const match = findFeed(this.#feeds, log.address)
    const token = match && this.#tokenOfFeed(match.feed)
    const round = match && roundFromLog(log, match.aggregator, false)
    if (token && round) this.#updateRounds({ ...token, navHistory: addRound(token.navHistory, round) })
  }

  /** Applies all rounds of a sealed block, for the feeds whose logs were read. */
  applySealedRounds({ number, logs, addresses }: Pick<SealedBlock, 'number' | 'logs' | 'addresses'>): void {
    for (const feed of this.#feeds.filter(({ aggregators }) => aggregators.some(({ address }) => addresses.includes(address)))) {
      const token = this.#tokenOfFeed(feed)
      if (!token) continue
      const rounds = logs.flatMap((log) => {
        const aggregator = feed.aggregators.find(({ address }) => address === log.address)
        return (aggregator && roundFromLog(log, aggregator, true)) ?? []
      })
      this.#updateRounds({ ...token, navHistory: applySealedRounds(token.navHistory, number, rounds) })
    }
  }

  /** The unsealed rounds of a block. An answer without them may be too early. */
  openRoundsAt(block: number): readonly OpenKey[] {
    return this.#feeds.flatMap((feed) => {
      const address = feed.aggregators.at(-1)?.address
      const rounds = this.#tokenOfFeed(feed)?.navHistory.feed ?? []
      return rounds.flatMap(({ position, key, sealed }) =>
        address && position?.block === block && key && !sealed ? [{ key, address, tx: txOf(key) }] : [],
      )
    })
  }

  /** The current value that updates of this type carry: multiplier, paused features or record. */
  currentValue(address: Hex, type: UpdateType): DraftOf<'retract'>['now'] {
    const token = this.#tokens.get(address)
    if (!token) return null
    if (type === 'multiplier') return { multiplier: token.multiplier }
    if (type === 'pause') return { paused: token.paused.map(featureName) }
    return type === 'token' ? { token: token.record } : null
  }

  #tokenOfFeed({ token, proxy }: PriceFeed): Token | undefined {
    const address = this.#tokenByFeed.get(proxy)
    if (address) return this.#tokens.get(address)
    const found = new Directory(this.#tokens.values()).find(token)
    if (found.kind !== 'found') return undefined
    this.#tokenByFeed.set(proxy, found.token.address)
    return found.token
  }

  #updateRounds(token: Token): void {
    if (token.state === 'listed') this.#publishChange(updateNav(token, this.#navTiming()))
    else this.#setToken(token)
  }

  #applyDue(address: Hex, time: number): boolean {
    const token = this.#tokens.get(address)
    const due = token
      ? pendingSchedules(token.multiplierHistory).filter(({ effectiveAt }) => effectiveAt !== null && effectiveAt <= time)
      : []
    for (const schedule of due) this.#applySchedule(address, schedule)
    return due.length > 0
  }

  #applySchedule(address: Hex, schedule: MultiplierChange): void {
    const token = this.#tokens.get(address)
    if (!token) return
    const timing = this.#navTiming()
    const after = withDerivedState({ ...token, multiplierHistory: markScheduleApplied(token.multiplierHistory, schedule) }, timing)
    const { to, effectiveAt } = schedule
    // Another multiplier may be in force already.
    const from = token.multiplier === after.multiplier ? schedule.from : token.multiplier
    // A schedule from a log was published, so its effect is too, also before listing and after delisting.
    if (token.state === 'listed' || schedule.key !== null)
      this.#options.outbox.publish({ ...multiplierDraft(after, timing, { from, effectiveAt, source: 'clock' }), to })
    this.#setToken(after)
  }

  #publishChange({ drafts, tokens }: TokenChanges): void {
    for (const draft of drafts) this.#options.outbox.publish(draft)
    for (const token of tokens) this.#setToken(token)
  }

  #setToken(token: Token): boolean {
    const before = this.#tokens.get(token.address)
    if (before === token || isDeepStrictEqual(before, token)) return false
    this.#tokens.set(token.address, token)
    this.#options.outbox.setNote(tokenNotes.at(token.address), token)
    this.#trackSchedules(token)
    return (
      before?.multiplierHistory !== token.multiplierHistory &&
      !isDeepStrictEqual(before?.multiplierHistory, token.multiplierHistory)
    )
  }

  #trackSchedules({ address, multiplierHistory }: Token): void {
    if (pendingSchedules(multiplierHistory).length > 0) this.#scheduled.add(address)
    else this.#scheduled.delete(address)
  }

  #navTiming(): NavTiming {
    return { now: this.#options.now(), staleMs: this.#options.staleMs }
  }

  #listTiming(): ListTiming {
    return { ...this.#navTiming(), at: this.#position }
  }
}
