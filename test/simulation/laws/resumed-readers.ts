import { noFilters } from '../../../src/protocol/parameters/value-filters.ts'
import { formatPosition, parsePosition } from '../../../src/protocol/position.ts'
import { updateTypes } from '../../../src/protocol/updates.ts'
import { findResumePoint, type ResumePoint } from '../../../src/relay/edge/live/resume-point.ts'
import { lostAfter } from '../../../src/relay/tape/runs.ts'
import type { Entry } from '../../../src/relay/tape/tape.ts'
import { entryOf } from '../../../src/relay/tape/tape-row.ts'
import { SeededRandom } from '../seeded-random.ts'
import type { Law, LawContext } from './law.ts'

/** A reader resumes from a position that it was given some time ago: so often (ms). */
const CHECK_INTERVAL_MS = 5_000
/** No replay is refused for its length. */
const REPLAY_BOUND = Number.MAX_SAFE_INTEGER
/** More than a simulation writes. */
const READ_BOUND = 1_000_000

/** All tokens and types, no filters. */
const everything = { tokens: null, options: { types: updateTypes, stage: 'preconfirmed', ...noFilters } } as const

/** The store's end when a run began, and the first number that the run gave. */
type TapeRun = { readonly storedEnd: number; first: number | null }

/**
 * I20: a position is never given twice. Who resumes from one goes on without a gap if all that follows is kept, and else receives a
 * gap that says from where on it is complete again. Nothing goes missing unannounced, although the tape may lose its end.
 */
export class ResumedReaders implements Law {
  readonly #context: LawContext
  readonly #random: SeededRandom
  /** Every number that anybody was ever given, and those of them that the tape holds or has evicted, in order. */
  readonly #given: number[] = []
  readonly #givenSet = new Set<number>()
  #held: number[] = []
  readonly #runs: TapeRun[] = []
  /** A reader that is there all the time: the last position of each token and type, and of all. */
  #heads = new Map<string, string>()
  #knowsAll = true
  #last = 0
  #isLive = true
  #checkedAt = 0

  constructor(context: LawContext) {
    this.#context = context
    this.#random = new SeededRandom(context.settings.seed, 'readers')
  }

  onBatch(entries: readonly Entry[]): void {
    const { violation } = this.#context
    for (const { seq } of entries) {
      if (this.#givenSet.has(seq) && !this.#isClockUntrue) violation('I20', `position ${seq} is given twice`)
      this.#givenSet.add(seq)
      this.#given.push(seq)
      this.#held.push(seq)
      const run = this.#runs.at(-1)
      if (run) run.first ??= seq
    }
    if (this.#isLive) this.#receive(entries)
  }

  /** The tape holds nothing after this number: the disk lost it, or a backup is older. */
  onTapeLost(storedEnd: number): void {
    this.#held = this.#held.filter((seq) => seq <= storedEnd)
  }

  onRelayStart(): void {
    this.#runs.push({ storedEnd: this.#held.at(-1) ?? 0, first: null })
    if (this.#runs.length === 1) return
    this.#isLive = false
    void this.#resumeReader(this.#runs.length)
  }

  onTick(): void {
    const { elapsedMs } = this.#context.clock
    if (elapsedMs - this.#checkedAt < CHECK_INTERVAL_MS) return
    this.#checkedAt = elapsedMs
    const seq = this.#given[this.#random.int(0, Math.max(0, this.#given.length - 1))]
    if (seq !== undefined) void this.#checkResume(seq)
    const run = this.#runs[this.#random.int(0, this.#runs.length - 1)]
    // A number between two runs that nobody was given.
    if (run?.first && run.first > run.storedEnd + 1 && this.#held.includes(run.first)) void this.#checkResume(run.first - 1)
  }

  /** With a clock that went back, numbers cannot go on where a lost end was. */
  get #isClockUntrue(): boolean {
    const { activeFaults } = this.#context
    return activeFaults.occurs('clockStepped') && (activeFaults.occurs('powerLost') || activeFaults.occurs('backupRestored'))
  }

  async #resumeReader(nthRun: number): Promise<void> {
    const { tape } = this.#context
    const point = await this.#checkResume(this.#last)
    if (nthRun !== this.#runs.length || !point) return
    if (point.resume === 'gap') {
      this.#heads = new Map()
      this.#knowsAll = false
    }
    this.#last = point.after.seq
    this.#isLive = true
    this.#receive(
      tape()
        .readTexts(this.#last, READ_BOUND)
        .map(({ seq, text }) => entryOf([seq, text])),
    )
  }

  /** Resumes from a number, and compares the answer with what the tape has lost and evicted. */
  async #checkResume(seq: number): Promise<ResumePoint | null> {
    const { violation, tape, clock } = this.#context
    if (this.#isClockUntrue) return null
    const text = formatPosition(tape().epoch, seq)
    const oldest = tape().oldest()
    const storedEnd = this.#held.findLast((held) => held <= seq) ?? 0
    const onGap = 'replay' as const
    const since = { from: 'position', text, position: parsePosition(text) } as const
    const context = { tape: tape(), now: clock.now(), clockStepsMs: 0, onGap, maxReplay: REPLAY_BOUND, isGone: () => false }
    const point = await findResumePoint(since, everything, context)
    const found =
      point.gaps.map(({ reason, to }) => `${reason} to ${to.seq}`).join(', ') || `${point.resume} after ${point.after.seq}`
    const from = Math.max(oldest, storedEnd)
    const evicted = storedEnd < oldest && lostAfter(tape().runs, seq) !== null ? `, expired to ${oldest}` : ''
    const expected = seq === from ? `full after ${seq}` : `expired to ${evicted ? storedEnd : from}${evicted}`
    if (found !== expected) violation('I20', `a resume from ${seq} is ${found}, not ${expected}`)
    return point
  }

  #receive(entries: readonly Entry[]): void {
    const { violation } = this.#context
    for (const { seq, update } of entries) {
      const { id, prev, address, type } = update
      const channel = `${address} ${type}`
      const head = this.#heads.get(channel) ?? null
      if (prev !== head && (this.#knowsAll || head !== null)) violation('I20', `${id} follows ${prev}, and the reader has ${head}`)
      this.#heads.set(channel, id)
      this.#last = seq
    }
  }
}
