import { followedKeys, keyEventOf } from '../../../protocol/key-life.ts'
import type { HourScore } from '../../../protocol/status.ts'
import type { Update } from '../../../protocol/updates.ts'
import { LeadHistogram, percentile } from './lead-histogram.ts'
import type { PublishedLog } from './scored-update.ts'

export const HOUR_MS = 3_600_000
/** Hours shown at most, the current one included. One more is read: if the tape holds some of it, it holds all of the next. */
export const SHOWN_HOURS_BOUND = 25
/** Hours kept: those shown, and some more for a clock that was set wrong. */
const KEPT_HOURS_BOUND = 32
/** Open keys at most, as many as the ingest has. */
const OPEN_KEYS_BOUND = 131_072
/**
 * The map of open keys is built anew after at least this many. Each table that a map outgrows refers to the next one. Once
 * one of them is old, all later ones and their keys stay until the next full collection: 100 MB after a million updates.
 */
const REBUILD_AFTER_KEYS = 1_024

/** An update as read from the tape, or as it was delivered. */
export type ScoredEntry = { readonly seq: number; readonly update: Update | PublishedLog }

/** The counts of one hour. */
export type HourCounts = Omit<HourScore, 'seconds'>

/** The start of the hour that contains a time. */
export const hourOf = (ms: number): number => Math.floor(ms / HOUR_MS) * HOUR_MS

/**
 * How well pre-confirmations were kept, hour by hour. It depends on the tape alone: reading the tape again, from the
 * hour before the first shown, gives the same numbers.
 */
export class HourlyScore {
  readonly #hours = new Map<number, HourCounter>()
  /** When each open key was published. */
  #openSince = new Map<string, number>()
  #openedSinceRebuild = 0
  #cached: { readonly first: number; readonly current: number; readonly hours: readonly HourCounts[] } | null = null

  /** Counts the next update of the tape. */
  add({ seq, update }: ScoredEntry): void {
    const time = Date.parse(update.time)
    const hour = this.#hourAt(hourOf(time))
    hour.lastSeq = seq
    if (!this.#count(hour, update, time)) return
    hour.cached = null
    this.#cached = null
  }

  /**
   * The hours that the tape holds completely, oldest first, and the current one. No update after `oldest` has been
   * evicted. Unless it is 0, the hour that contains it is incomplete.
   */
  hours(now: number, oldest: number): readonly HourCounts[] {
    const current = hourOf(now)
    const first = this.#firstShown(current, oldest)
    if (this.#cached?.first !== first || this.#cached.current !== current) {
      const hours: HourCounts[] = []
      for (let hour = first; hour <= current; hour += HOUR_MS)
        hours.push((this.#hours.get(hour) ?? new HourCounter(hour)).row(first))
      this.#cached = { first, current, hours }
    }
    return this.#cached.hours
  }

  #firstShown(current: number, oldest: number): number {
    const lookbackStart = current - SHOWN_HOURS_BOUND * HOUR_MS
    const heldHours = [...this.#hours.values()].filter(({ start, lastSeq }) => start >= lookbackStart && lastSeq > oldest)
    const earliest = Math.min(current, ...heldHours.map(({ start }) => start))
    const firstWhole = oldest === 0 ? earliest : earliest + HOUR_MS
    return Math.min(current, Math.max(firstWhole, lookbackStart + HOUR_MS))
  }

  #hourAt(start: number): HourCounter {
    let hour = this.#hours.get(start)
    if (!hour) {
      hour = new HourCounter(start)
      this.#hours.set(start, hour)
      this.#cached = null
      if (this.#hours.size > KEPT_HOURS_BOUND) this.#hours.delete(Math.min(...this.#hours.keys()))
    }
    return hour
  }

  /** Whether the update changed a count. */
  #count(hour: HourCounter, update: ScoredEntry['update'], time: number): boolean {
    const event = keyEventOf(update)
    if (event === null) return false
    if (event === 'sealed') {
      for (const key of followedKeys(update)) this.#countSealed(hour, key, time)
    } else {
      hour[event] += 1
      if (event === 'retracted') for (const key of followedKeys(update)) this.#openSince.delete(key)
      if (event === 'preconfirmed' && 'key' in update && update.key !== undefined) this.#open(update.key, time)
    }
    return true
  }

  #open(key: string, time: number): void {
    this.#openSince.set(key, time)
    this.#openedSinceRebuild += 1
    if (this.#openedSinceRebuild >= Math.max(REBUILD_AFTER_KEYS, this.#openSince.size)) this.#rebuildOpenSince()
    if (this.#openSince.size > OPEN_KEYS_BOUND) this.#forgetOldest()
  }

  #rebuildOpenSince(): void {
    this.#openSince = new Map(this.#openSince)
    this.#openedSinceRebuild = 0
  }

  /** The first of a map is found slowly once many before it were deleted, so this is not done for every update. */
  #forgetOldest(): void {
    const [oldest] = this.#openSince.keys()
    if (oldest !== undefined) this.#openSince.delete(oldest)
  }

  #countSealed(hour: HourCounter, key: string, time: number): void {
    const publishedAt = this.#openSince.get(key)
    if (publishedAt === undefined) return
    this.#openSince.delete(key)
    // The hour of its publication is no longer kept.
    if (this.#hours.has(hourOf(publishedAt))) hour.leadsOf(hourOf(publishedAt)).add(time - publishedAt)
  }
}

/** The counts of one hour while it is being counted. */
class HourCounter {
  readonly start: number
  /** The sequence number of its last update. */
  lastSeq = 0
  preconfirmed = 0
  late = 0
  backfilled = 0
  retracted = 0
  amended = 0
  cached: { readonly first: number; readonly row: HourCounts } | null = null
  /** The leads of what was sealed in this hour, by the hour of publication. */
  readonly #leadsByHour = new Map<number, LeadHistogram>()

  constructor(start: number) {
    this.start = start
  }

  leadsOf(publishedHour: number): LeadHistogram {
    let leads = this.#leadsByHour.get(publishedHour)
    if (!leads) {
      leads = new LeadHistogram()
      this.#leadsByHour.set(publishedHour, leads)
    }
    return leads
  }

  /** The counts as shown when `first` is the first hour. Seals of earlier publications are not counted. */
  row(first: number): HourCounts {
    if (this.cached?.first !== first) {
      const { preconfirmed: published, late, backfilled, retracted, amended } = this
      const leads = [...this.#leadsByHour].flatMap(([publishedHour, one]) => (publishedHour >= first ? [one] : []))
      const sealed = leads.reduce((sum, { total }) => sum + total, 0)
      const lead_ms = { p50: percentile(50, leads), p95: percentile(95, leads) }
      const row = { hour: new Date(this.start).toISOString(), published, sealed, late, backfilled, retracted, amended, lead_ms }
      this.cached = { first, row }
    }
    return this.cached.row
  }
}
