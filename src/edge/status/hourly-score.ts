import type { HourScore } from '../../protocol/status.ts'
import type { Update } from '../../protocol/updates.ts'
import type { Entry } from '../../tape/tape.ts'
import { LeadHistogram, percentile } from './lead-histogram.ts'

export const HOUR_MS = 3_600_000
/**
 * Hours that are shown at most, the current one included. One more is looked back at: that something of it is held shows
 * that the next is whole.
 */
export const SHOWN_HOURS_BOUND = 25
/** Hours that are kept: those, and some of a clock that went astray. */
const KEPT_HOURS_BOUND = 32
/** Keys that are open at most: the ingest has no more of them. */
const OPEN_KEYS_BOUND = 131_072

/** What was counted in one hour. */
export type HourCounts = Omit<HourScore, 'seconds'>

/** The start of the hour that holds a time. */
export const hourOf = (ms: number): number => Math.floor(ms / HOUR_MS) * HOUR_MS

/**
 * How well it was told before it was sealed, hour by hour: a function of the tape alone, so that whoever reads the tape
 * again, from the hour before the first that is shown, comes to the same numbers.
 */
export class HourlyScore {
  readonly #hours = new Map<number, HourCounter>()
  /** When each open key was told. */
  readonly #openSince = new Map<string, number>()
  #cached: { readonly first: number; readonly current: number; readonly hours: readonly HourCounts[] } | null = null

  /** Takes in the next message of the tape. */
  add({ seq, update }: Entry): void {
    const time = Date.parse(update.time)
    const hour = this.#hourAt(hourOf(time))
    hour.lastSeq = seq
    if (!this.#count(hour, update, time)) return
    hour.cached = null
    this.#cached = null
  }

  /**
   * The hours that the tape holds as a whole, oldest first, and the current one. `oldest` is the number after which
   * nothing has been evicted; the hour in which that is has lost something, unless it is 0.
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
    const heldHours = [...this.#hours.values()].filter(
      ({ start, lastSeq }) => start >= lookbackStart && lastSeq > oldest,
    )
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

  /** Whether it counts. */
  #count(hour: HourCounter, update: Update, time: number): boolean {
    switch (update.type) {
      case 'retract':
        this.#openSince.delete(update.key)
        hour.retracted += 1
        return true
      case 'amend':
        hour.amended += 1
        return true
      case 'seal':
        for (const key of update.keys) this.#countSealed(hour, key, time)
        return update.keys.length > 0
      default:
        return 'late' in update && this.#countPublished(hour, update, time)
    }
  }

  #countPublished(hour: HourCounter, { key, stage, late }: PublishedFields, time: number): boolean {
    if (late) hour.late += 1
    if (stage === 'preconfirmed' && key !== undefined) {
      hour.told += 1
      this.#openSince.set(key, time)
      for (const [oldest] of this.#openSince) {
        if (this.#openSince.size <= OPEN_KEYS_BOUND) break
        this.#openSince.delete(oldest)
      }
      return true
    }
    return late === true
  }

  #countSealed(hour: HourCounter, key: string, time: number): void {
    const publishedAt = this.#openSince.get(key)
    if (publishedAt === undefined) return
    this.#openSince.delete(key)
    // What is no longer kept of the hour in which it was told, nobody could count again.
    if (this.#hours.has(hourOf(publishedAt))) hour.leadsOf(hourOf(publishedAt)).add(time - publishedAt)
  }
}

type PublishedFields = {
  readonly key?: string | undefined
  readonly stage?: string | undefined
  readonly late?: boolean | undefined
}

/** One hour as it is counted. */
class HourCounter {
  readonly start: number
  /** The number of its last message. */
  lastSeq = 0
  told = 0
  late = 0
  retracted = 0
  amended = 0
  cached: { readonly first: number; readonly row: HourCounts } | null = null
  /** Of what was sealed in it: the leads, by the hour in which it was told. */
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

  /** The hour as it is shown where `first` is the first. What was told before that is not counted as sealed. */
  row(first: number): HourCounts {
    if (this.cached?.first !== first) {
      const { told, late, retracted, amended } = this
      const leads = [...this.#leadsByHour].flatMap(([publishedHour, one]) => (publishedHour >= first ? [one] : []))
      const sealed = leads.reduce((sum, { total }) => sum + total, 0)
      const lead_ms = { p50: percentile(50, leads), p95: percentile(95, leads) }
      const row = { hour: new Date(this.start).toISOString(), told, sealed, late, retracted, amended, lead_ms }
      this.cached = { first, row }
    }
    return this.cached.row
  }
}
