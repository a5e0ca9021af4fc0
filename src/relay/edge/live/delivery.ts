import { performance } from 'node:perf_hooks'
import { runAtOnce, runForTurn, type Steps, TURN_MS } from '../../../lib/turns.ts'
import type { TapePosition } from '../../../protocol/position.ts'
import type { Entry, Tape } from '../../tape/tape.ts'
import { type Frame, framesOf } from '../select/frame.ts'
import type { Audiences } from './audiences.ts'
import { BatchDelay } from './batch-delay.ts'
import { RecentUpdates } from './recent-updates.ts'

/** Limit of the updates that wait to share one write. At this number they are delivered at once. */
const DELAYED_BOUND = 2_048
/** Limit of the updates that wait while a large batch is delivered in turns. At this number all of them are delivered at once. */
const UNDELIVERED_BOUND = 16_384
/** Measured cost of a write to one socket, and of each character in it. */
const WRITE_MICROS = 7
const WRITTEN_CHAR_MICROS = 0.000_075
/** Limit of the time of the writes of a slice, in rounds of one empty write to each listener; at least one turn. */
const ROUNDS_PER_SLICE = 2
/**
 * Measured cost of framing an update, of matching it with one set of options, and of compressing each character once. The sum of
 * these costs in one slice is limited to the cost of one empty write to each listener, or to one turn if that is longer.
 */
const FRAME_MICROS = 2
const MATCH_MICROS = 0.2
const COMPRESSED_CHAR_MICROS = 0.024
const TURN_MICROS = TURN_MS * 1_000
/** Limit of the updates that the sealed view emits for all seals in one write, if each is compressed at most once. */
const SEALED_PART_UPDATES = 250

type Options = {
  readonly tape: Tape
  readonly audiences: Audiences
  /** Limit of the time for which an update waits to share one write with later updates. */
  readonly delayBoundMs: number
  readonly write: (plain: readonly Frame[], sealed: readonly Frame[]) => void
}

/**
 * Delivers updates of the tape: at once, or after a short delay together with later ones. A large batch is delivered in slices.
 * Each slice reaches all live listeners in one step, so that all are at one position whenever another listener joins.
 */
export class Delivery {
  readonly #options: Options
  readonly #delay: BatchDelay
  /** The newest delivered updates. */
  readonly recent: RecentUpdates
  #undelivered: Entry[] = []
  #timer: NodeJS.Timeout | null = null
  /** The delivery that runs now, in one or several turns of the event loop; null if none does. */
  #steps: Steps<void> | null = null
  #nextTurn: NodeJS.Immediate | null = null
  /** Every live listener has received, or did not match, all updates up to this sequence number. */
  deliveredSeq: number
  /** Position up to which the sealed view of the next update, a large seal, was delivered; null if it was not begun. */
  part: TapePosition | null = null

  constructor(options: Options) {
    this.#options = options
    this.#delay = new BatchDelay(options.delayBoundMs)
    this.deliveredSeq = options.tape.end()
    this.recent = new RecentUpdates(this.deliveredSeq)
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

  /** Delivers the waiting updates without a delay. If they are too many for one turn, the delivery continues in the next ones. */
  flush(): void {
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = null
    if (this.#steps || this.#undelivered.length === 0) return
    this.#steps = this.#deliverAll()
    this.#continue(this.#steps)
  }

  finishPart(): void {
    while (this.part && this.#steps) this.#steps.next()
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
      yield* this.#options.audiences.prepare(frames)
      for (const { plain, sealed } of writesOf(frames, this.#sealedPartUpdates)) {
        this.#write(plain, sealed)
        yield
      }
    }
  }

  get #sealedPartUpdates(): number {
    return Math.ceil(SEALED_PART_UPDATES / Math.max(1, this.#options.audiences.compressedForms))
  }

  #takeSlice(): readonly Entry[] {
    const { audiences } = this.#options
    const roundMicros = audiences.listenerCount * WRITE_MICROS
    const compressedCharMicros = COMPRESSED_CHAR_MICROS * Math.max(1, audiences.compressedForms)
    const frameMicros = FRAME_MICROS + audiences.groupCount * MATCH_MICROS
    let writeMicros = Math.max(ROUNDS_PER_SLICE * roundMicros, TURN_MICROS) - roundMicros
    let encodeMicros = Math.max(roundMicros, TURN_MICROS)
    let count = 0
    for (const { text, update } of this.#undelivered) {
      writeMicros -= text.length * WRITTEN_CHAR_MICROS * audiences.listenersOf(update.address)
      encodeMicros -= text.length * compressedCharMicros + frameMicros
      if (count > 0 && (writeMicros < 0 || encodeMicros < 0)) break
      count += 1
    }
    return this.#undelivered.splice(0, count)
  }

  #write(plain: readonly Frame[], sealed: readonly Frame[]): void {
    const startedAt = performance.now()
    this.recent.add(plain.map(({ entry }) => entry))
    this.#options.write(plain, sealed)
    const [last, lastPart] = [plain.at(-1), sealed.at(-1)]
    if (last) this.deliveredSeq = last.seq
    this.part = last || !lastPart ? null : { seq: lastPart.seq, n: lastPart.n }
    this.#delay.recordRound(startedAt, performance.now())
  }
}

/** Yields the frames of each write. In the sealed view a seal may emit thousands of updates, which are written in parts. */
function* writesOf(frames: readonly Frame[], partUpdates: number) {
  let [together, added] = [[] as Frame[], 0]
  for (const frame of frames) {
    const viewSize = frame.sealedViewSize
    const isOwnWrite = frame.isLong || viewSize > partUpdates
    if (together.length > 0 && (isOwnWrite || (viewSize > 1 && added + viewSize > partUpdates))) {
      yield { plain: together, sealed: together }
      ;[together, added] = [[], 0]
    }
    if (!isOwnWrite) {
      together.push(frame)
      if (viewSize > 1) added += viewSize
      continue
    }
    for (const part of frame.takeSealedViewParts(partUpdates)) yield { plain: [], sealed: [part] }
    // A seal of many keys is a long message, so each view gets it in a step of its own.
    yield { plain: [frame], sealed: [] }
  }
  if (together.length > 0) yield { plain: together, sealed: together }
}
