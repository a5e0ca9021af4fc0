import type { Receipt } from '../../../protocol/history.ts'
import { formatPosition, type TapePosition } from '../../../protocol/position.ts'
import { LineDigest } from '../../tape/line-digest.ts'
import { type Frame, isAfter } from '../select/frame.ts'
import type { HistoryQuery } from './history-query.ts'

/** Counts and digests the ids of an export. Whoever computes the same from its lines has all of them. */
export class ExportReceipt {
  readonly #epoch: string
  readonly #query: HistoryQuery
  readonly #ids = new LineDigest()
  #newest: TapePosition | null = null

  constructor(epoch: string, query: HistoryQuery) {
    this.#epoch = epoch
    this.#query = query
  }

  add(frames: readonly Frame[]): void {
    this.#ids.add(frames.map((frame) => this.#format(frame)))
    for (const frame of frames) if (this.#newest === null || isAfter(frame, this.#newest)) this.#newest = frame
  }

  line(): string {
    const { after, before, limit } = this.#query
    const isLimited = limit !== null && this.#ids.count >= limit
    const end = lastBefore(before)
    // In the sealed view, the messages of a seal may be in the range without the seal itself.
    const isPastEnd = this.#newest !== null && isAfter(this.#newest, end)
    const receipt: Receipt = {
      type: 'receipt',
      after: this.#format(after),
      through: this.#format(this.#newest !== null && (isLimited || isPastEnd) ? this.#newest : end),
      messages: this.#ids.count,
      digest: this.#ids.finish(),
    }
    return JSON.stringify(receipt)
  }

  #format({ seq, n }: TapePosition): string {
    return formatPosition(this.#epoch, seq, n)
  }
}

/** Returns the last position before an exclusive end. A place inside a seal has the place of the key before it. */
const lastBefore = ({ seq, n }: TapePosition): TapePosition =>
  n !== null && n > 1 ? { seq, n: n - 1 } : { seq: Math.max(0, seq - 1), n: null }
