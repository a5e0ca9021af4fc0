import { exhaustMap, type Observable, type SchedulerLike, timer } from 'rxjs'
import { observe } from '../../../lib/async-loop.ts'
import { isSealed, type SealedHeader } from '../rpc/block-header.ts'
import type { ChainReader } from '../rpc/chain-reader.ts'

export type FinalityEvent = { readonly type: 'finality'; readonly stage: 'safe' | 'finalized'; readonly block: SealedHeader }

type Options = {
  readonly node: ChainReader
  readonly pollIntervalMs: number
  readonly published: { readonly safe: number | null; readonly finalized: number | null }
  readonly clock: SchedulerLike
  readonly warn: (kind: string, detail: unknown) => void
}

/** Polls both stages and emits each newer block. A node that lags behind or lacks the tags causes no event. */
export function pollFinality({ node, pollIntervalMs, published, clock, warn }: Options): Observable<FinalityEvent> {
  const highest = { safe: published.safe ?? -1, finalized: published.finalized ?? -1 }
  const poll = async (stage: FinalityEvent['stage'], emit: (event: FinalityEvent) => void, signal: AbortSignal) => {
    try {
      const block = await node.header(stage, signal)
      if (!isSealed(block) || block.number <= highest[stage]) return
      highest[stage] = block.number
      emit({ type: 'finality', stage, block })
    } catch (failure) {
      signal.throwIfAborted()
      warn(`no ${stage} block`, { reason: String(failure) })
    }
  }
  const pollBoth = observe<FinalityEvent>(async (emit, signal) => {
    await poll('safe', emit, signal)
    await poll('finalized', emit, signal)
  })
  return timer(0, pollIntervalMs, clock).pipe(exhaustMap(() => pollBoth))
}

/** Events that wait. The oldest are dropped beyond this number, since later events include them. */
const WAITING_EVENTS_BOUND = 64

/** Holds a finality event until all blocks below it are settled, so that clients have received all that it covers. */
export class FinalityGate {
  #waiting: readonly FinalityEvent[] = []

  add(event: FinalityEvent): void {
    this.#waiting = [...this.#waiting, event].slice(-WAITING_EVENTS_BOUND)
  }

  /** Returns the newest event of each stage whose block is settled and on our chain. */
  release(settled: number, isOurs: (block: SealedHeader) => boolean): readonly FinalityEvent[] {
    const isReached = ({ block }: FinalityEvent) => block.number <= settled && isOurs(block)
    const reached = this.#waiting.filter(isReached)
    this.#waiting = this.#waiting.filter((event) => !isReached(event))
    return [...new Map(reached.map((event) => [event.stage, event])).values()]
  }
}
