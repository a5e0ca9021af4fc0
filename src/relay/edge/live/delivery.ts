import { performance } from 'node:perf_hooks'
import { runAtOnce, runForTurn, type Steps, TURN_MS } from '../../../lib/turns.ts'
import type { TapePosition } from '../../../protocol/position.ts'
import type { Entry, SearchableTape } from '../../tape/tape.ts'
import { type Frame, framesOf } from '../select/frame.ts'
import type { Audiences } from './audiences.ts'
import { BatchDelay } from './batch-delay.ts'
import { RecentUpdates } from './recent-updates.ts'

/** Updates that may wait to share one write; at this count they are delivered at once. */
const DELAYED_BOUND = 2_048
/** Updates that may wait while a large batch is delivered in turns; at this count the rest of it is delivered at once. */
const UNDELIVERED_BOUND = 16_384
/** A write to one socket costs this, whatever it holds, and this for each of its characters. All costs here are measured. */
const WRITE_MICROS = 7
const WRITTEN_CHAR_MICROS = 0.000_075
/** The writes of a slice may hold the event loop for as long as two rounds of empty writes, or for one turn. */
const ROUNDS_PER_SLICE = 2
/**
 * The cost of framing an update, of asking one set of options about it, and of compressing each of its characters. Together
 * they may hold the event loop for as long as the round of writes that another slice would need, or for one turn.
 */
const FRAME_MICROS = 2
const MATCH_MICROS = 0.2
const COMPRESSED_CHAR_MICROS = 0.024
const TURN_MICROS = TURN_MS * 1_000
/** The sealed view emits no more updates for the seals of one write. */
const SEALED_PART_UPDATES = 250

type Options = {
  readonly tape: SearchableTape
  readonly audiences: Audiences
  /** The longest that an update waits for others to share its write. */
  readonly delayBoundMs: number
  readonly write: (plain: readonly Frame[], sealed: readonly Frame[]) => void
}

/**
 * Delivers what is written to the tape: at once, or with a short delay together with what follows. A large batch goes out in
 * slices, over several turns of the event loop. Each slice reaches all live listeners in one step, so that all of them are at
 * the same position whenever another one joins.
 */
export class Delivery {
  readonly #options: Options
  readonly #delay: BatchDelay
  readonly #recent: RecentUpdates
  #undelivered: Entry[] = []
  #timer: NodeJS.Timeout | null = null
  /** A delivery that takes several turns, and its next turn. */
  #steps: Steps<void> | null = null
  #nextTurn: NodeJS.Immediate | null = null
  #deliveredSeq: number
  #part: TapePosition | null = null

  constructor(options: Options) {
    this.#options = options
    this.#delay = new BatchDelay(options.delayBoundMs)
    this.#deliveredSeq = options.tape.end()
    this.#recent = new RecentUpdates(this.#deliveredSeq)
  }

  /** The last sequence number that every live listener received or did not match. */
  get deliveredSeq(): number {
    return this.#deliveredSeq
  }

  /** Up to where the sealed view of the next update was delivered; null where none of it was. */
  get part(): TapePosition | null {
    return this.#part
  }

  /** The sequence number after which all delivered updates are in memory. */
  get recentSinceSeq(): number {
    return this.#recent.sinceSeq
  }

  /** The delivered updates after a sequence number, or null if some of them are no longer in memory. */
  recentAfter(seq: number): readonly Entry[] | null {
    return this.#recent.after(seq)
  }

  add(batch: readonly Entry[]): void {
    if (batch.length === 0) return
    for (const entry of batch) this.#undelivered.push(entry)
    if (this.#steps && this.#undelivered.length < UNDELIVERED_BOUND) return
    if (this.#steps) return this.#finish(this.#steps)
    const delayMs = this.#delay.delayMs(performance.now())
    if (delayMs === 0 || this.#undelivered.length >= DELAYED_BOUND) return this.flush()
    this.#timer ??= setTimeout(() => this.flush(), delayMs)
  }

  /** Delivers what waits, without a delay. What is too much for one turn goes on in the next ones. */
  flush(): void {
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = null
    if (this.#steps || this.#undelivered.length === 0) return
    this.#steps = this.#deliverAll()
    this.#continue(this.#steps)
  }

  /** Delivers the rest of an update whose sealed view was delivered in part. */
  finishPart(): void {
    while (this.#part && this.#steps) this.#steps.next()
  }

  close(): void {
    if (this.#timer) clearTimeout(this.#timer)
    if (this.#nextTurn) clearImmediate(this.#nextTurn)
    this.#steps = null
  }

  #continue(steps: Steps<void>): void {
    this.#nextTurn = null
    if (runForTurn(steps)) this.#steps = null
    else this.#nextTurn = setImmediate(() => this.#continue(steps))
  }

  #finish(steps: Steps<void>): void {
    if (this.#nextTurn) clearImmediate(this.#nextTurn)
    this.#nextTurn = null
    runAtOnce(steps)
    this.#steps = null
  }

  *#deliverAll(): Steps<void> {
    while (this.#undelivered.length > 0) {
      const frames = framesOf(this.#takeSlice(), this.#options.tape)
      yield* this.#options.audiences.lookUp(frames)
      for (const { plain, sealed } of writesOf(frames)) {
        this.#write(plain, sealed)
        yield
      }
    }
  }

  /** Takes the updates of one write per listener. */
  #takeSlice(): readonly Entry[] {
    const { audiences } = this.#options
    const roundMicros = audiences.listenerCount * WRITE_MICROS
    const frameMicros = FRAME_MICROS + audiences.groupCount * MATCH_MICROS
    let writeMicros = Math.max(ROUNDS_PER_SLICE * roundMicros, TURN_MICROS) - roundMicros
    let encodeMicros = Math.max(roundMicros, TURN_MICROS)
    let count = 0
    for (const { text, update } of this.#undelivered) {
      writeMicros -= text.length * WRITTEN_CHAR_MICROS * audiences.listenersOf(update.address)
      encodeMicros -= text.length * COMPRESSED_CHAR_MICROS + frameMicros
      if (count > 0 && (writeMicros < 0 || encodeMicros < 0)) break
      count += 1
    }
    return this.#undelivered.splice(0, count)
  }

  #write(plain: readonly Frame[], sealed: readonly Frame[]): void {
    const startedAt = performance.now()
    this.#recent.add(plain.map(({ entry }) => entry))
    this.#options.write(plain, sealed)
    const [last, lastPart] = [plain.at(-1), sealed.at(-1)]
    if (last) this.#deliveredSeq = last.seq
    this.#part = last || !lastPart ? null : { seq: lastPart.seq, n: lastPart.n }
    this.#delay.recordRound(startedAt, performance.now())
  }
}

/** The frames of one write to each listener of either view. */
type SliceWrite = { readonly plain: readonly Frame[]; readonly sealed: readonly Frame[] }

/** A seal may emit thousands of updates in the sealed view, whose listeners then receive it in parts. */
function* writesOf(frames: readonly Frame[]): Iterable<SliceWrite> {
  let [together, added] = [[] as Frame[], 0]
  for (const frame of frames) {
    const viewSize = frame.sealedViewSize
    if (together.length > 0 && viewSize > 1 && added + viewSize > SEALED_PART_UPDATES) {
      yield { plain: together, sealed: together }
      ;[together, added] = [[], 0]
    }
    if (viewSize <= SEALED_PART_UPDATES) {
      together.push(frame)
      if (viewSize > 1) added += viewSize
      continue
    }
    const parts = frame.sealedViewParts(SEALED_PART_UPDATES)
    for (const part of parts) yield { plain: part === parts.at(-1) ? [frame] : [], sealed: [part] }
  }
  if (together.length > 0) yield { plain: together, sealed: together }
}
