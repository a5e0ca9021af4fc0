import type { Update } from '../../../src/protocol/updates.ts'
import type { ChainEvent } from '../../../src/relay/chain/source/source.ts'
import { type MinuteBar, minuteBarOf } from '../../../src/relay/tape/bars/bar-row.ts'
import type { Entry } from '../../../src/relay/tape/tape.ts'
import { barFieldsOfMinute, barFieldsOfMinutes } from '../../../src/relay/tokens/minute-bars.ts'
import type { PlacedLog } from '../placed-logs.ts'
import { isOfSecond, poolAt, poolOf } from '../simulated-pools.ts'
import { laterToken, listedTokens } from '../simulated-tokens.ts'
import { BarFaults } from './bar-faults.ts'
import { type Bar, differencesOf, expectedBar, type FoldedTrade, noNav, tradeOfLog } from './expected-bars.ts'
import type { Law, LawContext } from './law.ts'
import type { ListedTokens } from './listed-tokens.ts'

type Trade = Extract<Update, { type: 'trade' }>
type TradeContent = Omit<Trade, 'type' | 'id' | 'prev' | 'symbol' | 'address' | 'time'>

/** A published trade that is not retracted. */
type TapeTrade = FoldedTrade & {
  readonly key: string
  readonly address: string
  readonly isSealed: boolean
  /** The time of its block, in seconds; null until it is known. */
  readonly second: number | null
}

/** Blocks of a pool whose swaps the tape has: from `from` on, before `to`. */
type Span = { readonly from: number; readonly to: number }

const MINUTE_S = 60
const PUBLISH_TIMEOUT_MS = 5_000
const tokens = [...listedTokens, laterToken].map(({ address }) => address)
/** All minutes of a token. */
const whole = { since: 0, until: Number.MAX_SAFE_INTEGER }

const minuteOf = (second: number): number => second - (second % MINUTE_S)
const secondsOf = (time: string | null): number | null => (time === null ? null : Date.parse(time) / 1_000)

/**
 * I25: a bar is what the sealed trades of a minute make of it. Each `bar` message is a fold of the messages before it, and in the
 * end also of the logs of the sealed chain. The stored minutes equal the last messages, whatever happened to the relay.
 */
export class PublishedBars implements Law {
  readonly #context: LawContext
  readonly #tokens: ListedTokens
  readonly #faults: BarFaults
  /** By token and key: of a transaction with fewer or more logs, a key may be that of another token's trade. */
  readonly #trades = new Map<string, TapeTrade>()
  /** When a trade of each minute was told last. */
  readonly #changedAt = new Map<string, number>()
  /** The last bar of each token and minute. */
  readonly #bars = new Map<string, Bar>()
  readonly #spans = new Map<string, readonly Span[]>()
  /** All blocks up to one with this time were settled at some moment. */
  #settledUntil = Number.NEGATIVE_INFINITY

  constructor(context: LawContext, listed: ListedTokens) {
    this.#context = context
    this.#tokens = listed
    this.#faults = new BarFaults(context)
  }

  receive(event: ChainEvent): void {
    if (event.type !== 'sealed' && event.type !== 'cursor') return
    const { number, hash } = event.cursor
    const blocks = this.#context.chain.blocksByNumber.get(number) ?? []
    for (const block of blocks)
      if (hash === null || block.hash === hash) this.#settledUntil = Math.max(this.#settledUntil, block.timestamp)
  }

  onBatch(entries: readonly Entry[]): void {
    for (const { update } of entries) this.#apply(update)
  }

  #apply(update: Update): void {
    this.#faults.apply(update)
    switch (update.type) {
      case 'trade':
        return this.#put(update.address, update)
      case 'amend':
        return update.update.type === 'trade'
          ? this.#put(update.address, update.update as TradeContent)
          : void this.#trades.delete(tradeName(update.address, update.key))
      case 'retract':
        return void this.#trades.delete(tradeName(update.address, update.key))
      case 'seal':
        return this.#seal(update)
      case 'venue':
        return this.#follow(update)
      case 'bar':
        this.#check(update)
        this.#bars.set(nameOf(update.address, Date.parse(update.start) / 1_000), update)
    }
  }

  #put(address: string, trade: TradeContent): void {
    const { key, block, tx, venue, side, amount, shares, currency_amount, price, basis_bps, basis, nav, stage } = trade
    // A token with unknown decimals has no bars.
    if (amount === null) return void this.#trades.delete(tradeName(address, key))
    const place = { key, address, block: block.number, logIndex: tx.log_index, pool: venue.pool }
    const second = secondsOf(block.timestamp)
    const content = { side, amount, shares, currency_amount, price, basis_bps, basis, nav }
    if (second !== null) this.#changedAt.set(nameOf(address, minuteOf(second)), this.#context.clock.elapsedMs)
    this.#trades.set(tradeName(address, key), { ...place, ...content, second, isSealed: stage === 'sealed' })
  }

  #seal({ address, keys, block }: Extract<Update, { type: 'seal' }>): void {
    for (const key of keys) {
      const name = tradeName(address, key)
      const trade = this.#trades.get(name)
      if (trade) this.#trades.set(name, { ...trade, isSealed: true, second: secondsOf(block.timestamp) })
    }
  }

  #follow({ change, venue: { pool }, from_block }: Extract<Update, { type: 'venue' }>): void {
    const spans = this.#spans.get(pool) ?? []
    if (change === 'followed') this.#spans.set(pool, [...spans, { from: from_block, to: Number.POSITIVE_INFINITY }])
    else
      this.#spans.set(
        pool,
        spans.map(({ from, to }) => ({ from, to: Math.min(to, from_block) })),
      )
  }

  #check(bar: Bar): void {
    const { violation } = this.#context
    const { id, address, start, end, revision, partial, trades } = bar
    const minute = Date.parse(start) / 1_000
    if (minute % MINUTE_S !== 0 || Date.parse(end) / 1_000 !== minute + MINUTE_S)
      violation('I25', `${id} is from ${start} to ${end}`)
    if (this.#settledUntil < minute + MINUTE_S)
      violation('I25', `${id} is published when blocks are settled up to second ${this.#settledUntil}`)
    const before = this.#bars.get(nameOf(address, minute))
    if (revision !== (before?.revision ?? 0) + 1) violation('I25', `${id} has revision ${revision} after ${before?.revision}`)
    if (!before && trades === 0) violation('I25', `${id} has no trades`)
    if (before?.partial && partial !== before.partial) violation('I25', `${id} is partial by ${partial} after ${before.partial}`)
    const differences = differencesOf(
      bar,
      this.#expected(address, minute, (pool) => this.#isMain(pool)),
    )
    if (differences !== '') violation('I25', `${id} of ${address} at ${start} has ${differences}`)
    if (before && differencesOf({ ...before, revision: 0, ...noPlace }, { ...bar, revision: 0, ...noPlace }) === '')
      violation('I25', `${id} repeats ${before.id}`)
  }

  #isMain(id: string): boolean {
    const pool = poolAt(id)
    return pool !== undefined && !(this.#context.settings.hasSecondary && isOfSecond(pool))
  }

  #expected(address: string, minute: number, isIncluded: (pool: string) => boolean) {
    const trades = this.#sealedIn(address, minute).filter(({ pool }) => isIncluded(pool))
    return expectedBar(trades, this.#staleAfterS)
  }

  get #staleAfterS(): number {
    return this.#context.settings.staleMs / 1_000
  }

  #sealedIn(address: string, minute: number): readonly TapeTrade[] {
    const isWithin = ({ second }: TapeTrade) => second !== null && minuteOf(second) === minute
    return [...this.#trades.values()].filter((trade) => trade.isSealed && trade.address === address && isWithin(trade))
  }

  onRelayStart(): void {
    this.#faults.onRelayStart()
    this.#checkRows()
  }

  /** The stored minutes are those of the last messages, and so are their sums. */
  #checkRows(): void {
    const { violation } = this.#context
    const stored = new Set<string>()
    for (const address of tokens) {
      const rows = this.#rowsOf(address)
      this.#checkSums(address, rows)
      for (const row of rows) {
        const name = nameOf(address, row.start)
        const bar = this.#bars.get(name)
        if (row.revision > 0) stored.add(name)
        if (!bar && row.revision > 0) violation('I25', `${name} is stored with revision ${row.revision} and was not published`)
        const differences = bar ? differencesOf(bar, barFieldsOfMinute(row, this.#staleAfterS)) : ''
        if (differences !== '') violation('I25', `${bar?.id} has ${differences} as stored`)
      }
    }
    for (const [name, { id }] of this.#bars) if (!stored.has(name)) violation('I25', `${id} of ${name} is not stored`)
  }

  /** The stored hours and days are what their minutes make of them. */
  #checkSums(address: (typeof tokens)[number], minutes: readonly MinuteBar[]): void {
    for (const seconds of [3_600, 86_400]) {
      const told = ({ start, revision, partial, pools }: Pick<MinuteBar, 'start' | 'revision' | 'partial' | 'pools'>) => {
        const fields = barFieldsOfMinutes({ start, seconds, revision, partial, pools }, this.#staleAfterS)
        return JSON.stringify({ ...fields, venues: [...new Set(fields.venues)].sort() })
      }
      const made = [...Map.groupBy(minutes, ({ start }) => start - (start % seconds))].map(([start, within]) => ({
        start,
        revision: within.reduce((sum, { revision }) => sum + revision, 0),
        partial: within.find(({ partial }) => partial !== null)?.partial ?? null,
        pools: within.flatMap(({ pools }) => pools),
      }))
      const stored = this.#context
        .tape()
        .readBars(address, { ...whole, seconds })
        .map(minuteBarOf)
      const differences = differencesOf(stored.map(told), made.map(told))
      if (differences !== '' || stored.length !== made.length)
        this.#context.violation('I25', `${stored.length} of ${made.length} sums of ${seconds} s of ${address} have ${differences}`)
    }
  }

  #rowsOf(address: (typeof tokens)[number]): readonly MinuteBar[] {
    return this.#context.tape().readBars(address, whole).map(minuteBarOf)
  }

  onEnd(recovered: boolean): void {
    // At another end the relay may be down.
    if (!recovered) return
    this.#checkRows()
    for (const address of tokens) {
      const rows = new Map(this.#rowsOf(address).map((row) => [row.start, row]))
      const seconds = [...this.#trades.values()].flatMap(({ address: of, second }) => (of === address ? (second ?? []) : []))
      for (const minute of new Set([...rows.keys(), ...seconds.map(minuteOf), ...this.#chainMinutes()]))
        if (this.#isOver(minute) && !this.#isChanging(address, minute)) this.#checkMinute(address, minute, rows.get(minute) ?? null)
    }
  }

  #chainMinutes(): readonly number[] {
    return [...this.#context.chain.blocksByNumber.values()].map((blocks) => minuteOf(blocks.at(-1)?.timestamp ?? 0))
  }

  /** Whether a trade of the minute was told just now: its bar is published again once the next block is settled. */
  #isChanging(address: string, minute: number): boolean {
    const changedAt = this.#changedAt.get(nameOf(address, minute)) ?? Number.NEGATIVE_INFINITY
    return changedAt > this.#context.clock.elapsedMs - PUBLISH_TIMEOUT_MS
  }

  /** Whether the relay must have closed the minute. */
  #isOver(minute: number): boolean {
    const { chain, clock } = this.#context
    for (let number = chain.head; ; number -= 1) {
      const block = chain.block(number)
      if (!block || block.timestamp < minute + MINUTE_S) return false
      if (block.canonicalFrom <= clock.elapsedMs - PUBLISH_TIMEOUT_MS) return true
    }
  }

  #checkMinute(address: (typeof tokens)[number], minute: number, row: MinuteBar | null): void {
    const { violation } = this.#context
    const trades = this.#sealedIn(address, minute)
    const name = nameOf(address, minute)
    for (const pool of new Set([...trades, ...(row?.pools ?? [])].map(({ pool }) => pool))) {
      const stretch = { start: minute, seconds: MINUTE_S, revision: 0, partial: null, pools: row?.pools ?? [] }
      const stored = barFieldsOfMinutes(stretch, this.#staleAfterS, [pool as `0x${string}`])
      const differences = differencesOf(
        stored,
        this.#expected(address, minute, (other) => other === pool),
      )
      if (differences !== '') violation('I25', `${name} in ${pool} has at the end ${differences}`)
    }
    this.#checkChain(address, minute, row)
    if (row) this.#faults.check(row)
  }

  /** The swaps of followed pools on the chain are those in the bar, with the same numbers. */
  #checkChain(address: string, minute: number, row: MinuteBar | null): void {
    const { violation, chain } = this.#context
    if (row?.partial || this.#faults.isTouched(address, minute)) return
    const trades = this.#sealedIn(address, minute).filter(({ pool }) => this.#isMain(pool))
    const known = new Set(trades.map(({ key }) => key))
    const logs: PlacedLog[] = []
    for (let number = chain.head; number > chain.first; number -= 1) {
      const block = chain.block(number)
      if (!block || block.timestamp < minute) break
      if (block.timestamp >= minute + MINUTE_S) continue
      for (const log of block.logs) {
        // After a reorganisation the key of a trade may be that of another token's log, or of one that is no trade.
        if (known.has(log.key) && poolOf(log.content)?.token === address && tradeOfLog(log)) logs.push(log)
        else if (this.#isExpected(address, log)) violation('I25', `${log.key} is in no bar of ${nameOf(address, minute)}`)
      }
    }
    const onBoth = new Set(logs.map(({ key }) => key))
    const gone = trades.filter(({ key }) => !onBoth.has(key))
    // After a restart the relay does not know a trade that the tape had evicted, so no retract takes it back.
    const isOnTape = ({ key }: TapeTrade) =>
      this.#context
        .tape()
        .find({ key })
        .some(({ update }) => update.address === address)
    if (!gone.every(isOnTape)) return
    if (gone.length > 0) violation('I25', `${nameOf(address, minute)} has trades that the chain does not have`)
    const unknown = { shares: null, nav: noNav(this.#staleAfterS), basis: null, basis_bps: null }
    const onChain = logs.flatMap((log) => {
      const trade = tradeOfLog(log)
      return trade ? [{ ...trade, ...unknown }] : []
    })
    const { shares, nav, basis, basis_bps, ...expected } = expectedBar(onChain, this.#staleAfterS)
    const bar = row ? barFieldsOfMinute(row, this.#staleAfterS) : null
    if (!bar && expected.trades === 0) return
    const differences = bar ? differencesOf<object>(bar, expected) : 'no row'
    if (differences !== '') violation('I25', `${nameOf(address, minute)} has ${differences} on the chain`)
  }

  #isExpected(address: string, log: PlacedLog): boolean {
    const pool = poolOf(log.content)
    const listedSince = this.#tokens.listedSince.get(address)
    if (pool?.token !== address || !this.#isMain(pool.id) || listedSince === undefined || log.block <= listedSince) return false
    const isFollowed = (this.#spans.get(pool.id) ?? []).some(({ from, to }) => from <= log.block && log.block < to)
    return isFollowed && tradeOfLog(log) !== null
  }
}

/** Where and when a message stands differs in every one of them. */
const noPlace = { id: '', prev: null, time: '' } as const

const tradeName = (address: string, key: string): string => `${address} ${key}`
const nameOf = (address: string, minute: number): string => `${address} ${new Date(minute * 1_000).toISOString()}`
