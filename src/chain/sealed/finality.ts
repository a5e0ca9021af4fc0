import { catchError, concat, EMPTY, exhaustMap, mergeMap, type Observable, of, type SchedulerLike, timer } from 'rxjs'
import { isSealed, type SealedHeader } from '../logs/log-schema.ts'
import type { BlockReader } from '../rpc/block-reader.ts'

/** The newest block of which the chain says that it stays. */
export type FinalityEvent = {
  readonly type: 'finality'
  readonly stage: 'safe' | 'finalized'
  readonly block: SealedHeader
}

type Options = {
  readonly node: BlockReader
  readonly pollIntervalMs: number
  /** The watermarks that were told last. */
  readonly published: { readonly safe: number | null; readonly finalized: number | null }
  readonly clock: SchedulerLike
  readonly warn: (kind: string, detail: unknown) => void
}

/** Both watermarks as they rise. A node that is behind, or that knows no such thing, tells nothing new. */
export function pollFinality({ node, pollIntervalMs, published, clock, warn }: Options): Observable<FinalityEvent> {
  const highest = { safe: published.safe ?? -1, finalized: published.finalized ?? -1 }
  const poll = (stage: FinalityEvent['stage']): Observable<FinalityEvent> =>
    node.header(stage).pipe(
      mergeMap((block) => {
        if (!isSealed(block) || block.number <= highest[stage]) return EMPTY
        highest[stage] = block.number
        return of<FinalityEvent>({ type: 'finality', stage, block })
      }),
      catchError((failure: unknown) => {
        warn(`no ${stage} block`, { reason: String(failure) })
        return EMPTY
      }),
    )
  return timer(0, pollIntervalMs, clock).pipe(exhaustMap(() => concat(poll('safe'), poll('finalized'))))
}

/** Watermarks that wait at most; of more, the older ones are passed over. */
const WAITING_EVENTS_BOUND = 64

/** Holds a watermark back until all below it is settled: whoever hears it may take what it heard for safe. */
export class FinalityGate {
  #waiting: readonly FinalityEvent[] = []

  add(event: FinalityEvent): void {
    this.#waiting = [...this.#waiting, event].slice(-WAITING_EVENTS_BOUND)
  }

  /** What is reached now that all is settled up to a block: of each stage the newest. `ours`: whether it is of our chain. */
  release(settled: number, isOurs: (block: SealedHeader) => boolean): readonly FinalityEvent[] {
    const isReached = ({ block }: FinalityEvent) => block.number <= settled && isOurs(block)
    const reached = this.#waiting.filter(isReached)
    this.#waiting = this.#waiting.filter((event) => !isReached(event))
    return [...new Map(reached.map((event) => [event.stage, event])).values()]
  }
}
