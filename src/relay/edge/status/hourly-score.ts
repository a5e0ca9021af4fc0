import { followedKeys } from '../../../protocol/key-life.ts'
import { keyEventOf } from '../../../protocol/key-messages.ts'
import type { HourScore } from '../../../protocol/service-status.ts'
import type { Update } from '../../../protocol/updates.ts'
import { HOUR_MS, hourOf, SHOWN_HOURS_BOUND } from '../../notes/time-per-source.ts'
import { LeadHistogram, percentile } from './lead-histogram.ts'

/** Limit of the hours in memory: those shown, and some more, because the clock may have been set wrong. */
const KEPT_HOURS_BOUND = 32
/** Limit of the open keys that the score follows. It is higher than the limit of the ingest. */
const OPEN_KEYS_BOUND = 131_072
/**
 * Least number of insertions after which the map of open keys is copied. In V8, a table that a map outgrows refers to the next
 * one: an old table would keep all later tables and their keys in memory, 100 MB after a million updates.
 */
const REBUILD_AFTER_KEYS = 1_024

/** Fields of a publication that the score needs. */
export type PublishedLog = {
  readonly type: 'published'
  readonly time: string
  readonly key: string
  readonly stage: string | undefined
  readonly late: boolean
  readonly block?: { readonly timestamp: string | null } | undefined
}

export type ScoredEntry = { readonly seq: number; readonly update: Update | PublishedLog }

export type HourCounts = Omit<HourScore, 'seconds'>

/** Scores pre-confirmations by hour. The score depends only on the tape, so reading the tape again gives equal numbers. */
export class HourlyScore {
  readonly #hours = new Map<number, HourCounter>()
  #openSince = new Map<string, number>()
  #openedSinceRebuild = 0
  #cached: { readonly first: number; readonly current: number; readonly hours: readonly HourCounts[] } | null = null

  add({ seq, update }: ScoredEntry): void {
    const time = Date.parse(update.time)
    const hour = this.#hourAt(hourOf(time))
    hour.lastSeq = seq
    if (!this.#count(hour, update, time)) return
    hour.cached = null
    this.#cached = null
  }

  /** Returns the hours that the tape holds completely, oldest first, and the current one. It keeps all updates after `oldest`. */
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
    if (this.#openedSinceRebuild >= Math.max(REBUILD_AFTER_KEYS, this.#openSince.size)) {
      this.#openSince = new Map(this.#openSince)
      this.#openedSinceRebuild = 0
    }
    if (this.#openSince.size <= OPEN_KEYS_BOUND) return
    // The first entry is read only beyond the limit: after many deletions, a map takes long to find it.
    const [oldest] = this.#openSince.keys()
    if (oldest !== undefined) this.#openSince.delete(oldest)
  }

  #countSealed(hour: HourCounter, key: string, time: number): void {
    const publishedAt = this.#openSince.get(key)
    if (publishedAt === undefined) return
    this.#openSince.delete(key)
    // The hour of the publication may no longer be in memory.
    if (this.#hours.has(hourOf(publishedAt))) hour.leadsOf(hourOf(publishedAt)).add(time - publishedAt)
  }
}

class HourCounter {
  readonly start: number
  lastSeq = 0
  preconfirmed = 0
  late = 0
  backfilled = 0
  retracted = 0
  amended = 0
  cached: { readonly first: number; readonly row: HourCounts } | null = null
  /** Times from publication to seal of the facts that were sealed in this hour, by the hour of publication. */
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

  /** Returns the counts as shown if `first` is the first hour shown: seals of earlier publications are not counted. */
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
