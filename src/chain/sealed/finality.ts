import { catchError, concat, EMPTY, exhaustMap, mergeMap, type Observable, of, type SchedulerLike, timer } from 'rxjs'
import { isSealed, type SealedHeader } from '../logs/log-schema.ts'
import type { Reader } from '../rpc/block-reader.ts'

/** The newest block of which the chain says that it stays. */
export type Watermark = {
  readonly type: 'finality'
  readonly stage: 'safe' | 'finalized'
  readonly block: SealedHeader
}

type Options = {
  readonly node: Reader
  readonly everyMs: number
  /** The watermarks that were told last. */
  readonly known: { readonly safe: number | null; readonly finalized: number | null }
  readonly clock: SchedulerLike
  readonly say: (kind: string, detail: unknown) => void
}

/** Both watermarks as they rise. A node that is behind, or that knows no such thing, tells nothing new. */
export function finality({ node, everyMs, known, clock, say }: Options): Observable<Watermark> {
  const told = { safe: known.safe ?? -1, finalized: known.finalized ?? -1 }
  const look = (stage: Watermark['stage']): Observable<Watermark> =>
    node.header(stage).pipe(
      mergeMap((block) => {
        if (!isSealed(block) || block.number <= told[stage]) return EMPTY
        told[stage] = block.number
        return of<Watermark>({ type: 'finality', stage, block })
      }),
      catchError((failure: unknown) => {
        say(`no ${stage} block`, { reason: String(failure) })
        return EMPTY
      }),
    )
  return timer(0, everyMs, clock).pipe(exhaustMap(() => concat(look('safe'), look('finalized'))))
}

/** Watermarks that wait at most; of more, the older ones are passed over. */
const WAITING_BOUND = 64

/** Holds a watermark back until all below it is settled: whoever hears it may take what it heard for safe. */
export class Tide {
  #waiting: readonly Watermark[] = []

  rose(mark: Watermark): void {
    this.#waiting = [...this.#waiting, mark].slice(-WAITING_BOUND)
  }

  /** What is reached now that all is settled up to a block: of each stage the newest. `ours`: whether it is of our chain. */
  reached(settled: number, ours: (block: SealedHeader) => boolean): readonly Watermark[] {
    const isReached = ({ block }: Watermark) => block.number <= settled && ours(block)
    const reached = this.#waiting.filter(isReached)
    this.#waiting = this.#waiting.filter((mark) => !isReached(mark))
    return [...new Map(reached.map((mark) => [mark.stage, mark])).values()]
  }
}
