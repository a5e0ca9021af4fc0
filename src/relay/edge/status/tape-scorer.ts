import { nextTurn } from '../../../lib/turns.ts'
import type { Update } from '../../../protocol/updates.ts'
import { HOUR_MS, hourOf, SHOWN_HOURS_BOUND } from '../../notes/time-per-source.ts'
import type { Entry, Tape } from '../../tape/tape.ts'
import { parseUpdate } from '../../tape/tape-row.ts'
import { type HourCounts, HourlyScore, type PublishedLog, type ScoredEntry } from './hourly-score.ts'

const PAGE_MESSAGES = 100
/** Number of pages for which `open` waits, so that a short tape is read completely. */
const OPENING_PAGES = 10

type ScoreTape = Pick<Tape, 'follow' | 'oldest' | 'readTexts' | 'seqBefore'>

/** Scores a tape: reads its updates, then follows it, and counts each update once. */
export class TapeScorer {
  readonly #tape: ScoreTape
  readonly #score = new HourlyScore()
  readonly #unfollow: () => void
  #countedUpTo = 0
  #isCaughtUp = false
  #isClosed = false

  private constructor(tape: ScoreTape) {
    this.#tape = tape
    this.#unfollow = tape.follow((batch) => this.#receive(batch))
  }

  /** Begins to read the tape one hour before the first hour shown: if any of that hour is kept, the shown ones are complete. */
  static async open(tape: ScoreTape, now: number): Promise<TapeScorer> {
    const tracker = new TapeScorer(tape)
    tracker.#countedUpTo = tape.seqBefore(hourOf(now) - SHOWN_HOURS_BOUND * HOUR_MS)
    await tracker.read(OPENING_PAGES)
    return tracker
  }

  /** Reads this many pages, or to the end of the tape. */
  async read(pages = Number.POSITIVE_INFINITY): Promise<void> {
    for (let pagesRead = 0; pagesRead < pages && !this.#isCaughtUp && !this.#isClosed; pagesRead += 1) {
      const page = this.#tape.readTexts(this.#countedUpTo, PAGE_MESSAGES)
      this.#add(page.map(({ seq, text }) => ({ seq, update: scoredUpdateOf(text) })))
      // No batch can be published between the read and the next `await`, so none is missed.
      this.#isCaughtUp = page.length < PAGE_MESSAGES
      if (!this.#isCaughtUp) await nextTurn()
    }
  }

  hours(now: number): readonly HourCounts[] | null {
    return this.#isCaughtUp ? this.#score.hours(now, this.#tape.oldest()) : null
  }

  close(): void {
    this.#isClosed = true
    this.#unfollow()
  }

  #receive(batch: readonly Entry[]): void {
    if (this.#isCaughtUp) this.#add(batch)
  }

  #add(entries: readonly ScoredEntry[]): void {
    for (const entry of entries) {
      if (entry.seq <= this.#countedUpTo) continue
      this.#score.add(entry)
      this.#countedUpTo = entry.seq
    }
  }
}

const publishedLogPattern =
  /^\{"type":"(?:transfer|mint|burn|seize|approval|log)","id":"[^"]*","prev":[^,]*,"symbol":"[^"\\]*","address":"\w*","time":"([^"]*)","key":"([^"]*)","stage":"(\w+)","late":(true|false)[,}]/

const blockTimestampPattern = /"block":\{"number":\d+,"hash":[^,]*,"timestamp":"([^"]*)"\}/

/** Reads only the fields that the score needs. A million completely parsed updates would leave as many short strings in memory. */
function scoredUpdateOf(text: string): Update | PublishedLog {
  const found = publishedLogPattern.exec(text)
  if (!found) return parseUpdate(text)
  const [, time = '', key = '', stage, late] = found
  const common = { type: 'published', time, key: copyOf(key), stage } as const
  if (late === 'false') return { ...common, late: false }
  const [, timestamp] = blockTimestampPattern.exec(text) ?? []
  return { ...common, late: true, block: { timestamp: timestamp === undefined ? null : copyOf(timestamp) } }
}

/** A substring keeps the whole text in memory, so it is copied to a text of its own. */
const copyOf = (part: string): string => ` ${part}`.slice(1)
