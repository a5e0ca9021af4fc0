import type { HourScore } from '../../protocol/status.ts'
import type { Update } from '../../protocol/updates.ts'
import type { Entry } from '../../tape/tape.ts'
import { Leads, percentile } from './lead-histogram.ts'

export const HOUR_MS = 3_600_000
/**
 * Hours that are shown at most, the current one included. One more is looked back at: that something of it is held shows
 * that the next is whole.
 */
export const HOURS_BOUND = 25
/** Hours that are kept: those, and some of a clock that went astray. */
const KEPT_BOUND = 32
/** Keys that are open at most: the ingest has no more of them. */
const OPEN_BOUND = 131_072

/** What was counted in one hour. */
export type Counted = Omit<HourScore, 'seconds'>

/** The start of the hour that holds a time. */
export const hourOf = (ms: number): number => Math.floor(ms / HOUR_MS) * HOUR_MS

/**
 * How well it was told before it was sealed, hour by hour: a function of the tape alone, so that whoever reads the tape
 * again, from the hour before the first that is shown, comes to the same numbers.
 */
export class Score {
  readonly #hours = new Map<number, Hour>()
  /** When each open key was told. */
  readonly #open = new Map<string, number>()
  #made: { readonly first: number; readonly current: number; readonly hours: readonly Counted[] } | null = null

  /** Takes in the next message of the tape. */
  fold({ seq, update }: Entry): void {
    const time = Date.parse(update.time)
    const hour = this.#hourAt(hourOf(time))
    hour.last = seq
    if (!this.#count(hour, update, time)) return
    hour.made = null
    this.#made = null
  }

  /**
   * The hours that the tape holds as a whole, oldest first, and the current one. `oldest` is the number after which
   * nothing has been evicted; the hour in which that is has lost something, unless it is 0.
   */
  hours(now: number, oldest: number): readonly Counted[] {
    const current = hourOf(now)
    const first = this.#firstOf(current, oldest)
    if (this.#made?.first !== first || this.#made.current !== current) {
      const hours: Counted[] = []
      for (let hour = first; hour <= current; hour += HOUR_MS)
        hours.push((this.#hours.get(hour) ?? new Hour(hour)).row(first))
      this.#made = { first, current, hours }
    }
    return this.#made.hours
  }

  #firstOf(current: number, oldest: number): number {
    const lookedBackAt = current - HOURS_BOUND * HOUR_MS
    const held = [...this.#hours.values()].filter(({ start, last }) => start >= lookedBackAt && last > oldest)
    const earliest = Math.min(current, ...held.map(({ start }) => start))
    const whole = oldest === 0 ? earliest : earliest + HOUR_MS
    return Math.min(current, Math.max(whole, lookedBackAt + HOUR_MS))
  }

  #hourAt(start: number): Hour {
    let hour = this.#hours.get(start)
    if (!hour) {
      hour = new Hour(start)
      this.#hours.set(start, hour)
      this.#made = null
      if (this.#hours.size > KEPT_BOUND) this.#hours.delete(Math.min(...this.#hours.keys()))
    }
    return hour
  }

  /** Whether it counts. */
  #count(hour: Hour, update: Update, time: number): boolean {
    switch (update.type) {
      case 'retract':
        this.#open.delete(update.key)
        hour.retracted += 1
        return true
      case 'amend':
        hour.amended += 1
        return true
      case 'seal':
        for (const key of update.keys) this.#seal(hour, key, time)
        return update.keys.length > 0
      default:
        return 'late' in update && this.#tell(hour, update, time)
    }
  }

  #tell(hour: Hour, { key, stage, late }: Told, time: number): boolean {
    if (late) hour.late += 1
    if (stage === 'preconfirmed' && key !== undefined) {
      hour.told += 1
      this.#open.set(key, time)
      for (const [oldest] of this.#open) {
        if (this.#open.size <= OPEN_BOUND) break
        this.#open.delete(oldest)
      }
      return true
    }
    return late === true
  }

  #seal(hour: Hour, key: string, time: number): void {
    const told = this.#open.get(key)
    if (told === undefined) return
    this.#open.delete(key)
    // What is no longer kept of the hour in which it was told, nobody could count again.
    if (this.#hours.has(hourOf(told))) hour.leadsOf(hourOf(told)).add(time - told)
  }
}

type Told = {
  readonly key?: string | undefined
  readonly stage?: string | undefined
  readonly late?: boolean | undefined
}

/** One hour as it is counted. */
class Hour {
  readonly start: number
  /** The number of its last message. */
  last = 0
  told = 0
  late = 0
  retracted = 0
  amended = 0
  made: { readonly first: number; readonly row: Counted } | null = null
  /** Of what was sealed in it: the leads, by the hour in which it was told. */
  readonly #leads = new Map<number, Leads>()

  constructor(start: number) {
    this.start = start
  }

  leadsOf(toldIn: number): Leads {
    let leads = this.#leads.get(toldIn)
    if (!leads) {
      leads = new Leads()
      this.#leads.set(toldIn, leads)
    }
    return leads
  }

  /** The hour as it is shown where `first` is the first. What was told before that is not counted as sealed. */
  row(first: number): Counted {
    if (this.made?.first !== first) {
      const { told, late, retracted, amended } = this
      const leads = [...this.#leads].flatMap(([toldIn, one]) => (toldIn >= first ? [one] : []))
      const sealed = leads.reduce((sum, { total }) => sum + total, 0)
      const lead_ms = { p50: percentile(50, leads), p95: percentile(95, leads) }
      const row = { hour: new Date(this.start).toISOString(), told, sealed, late, retracted, amended, lead_ms }
      this.made = { first, row }
    }
    return this.made.row
  }
}
