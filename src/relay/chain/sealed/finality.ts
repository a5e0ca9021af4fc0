import { exhaustMap, type Observable, type SchedulerLike, timer } from 'rxjs'
import { observe } from '../../../lib/async-loop.ts'
import type { WriteLine } from '../../log-lines.ts'
import { isSealed, type SealedHeader } from '../rpc/block-header.ts'
import type { ChainReader } from '../rpc/chain-reader.ts'

export type FinalityEvent = { readonly type: 'finality'; readonly stage: 'safe' | 'finalized'; readonly block: SealedHeader }

type Options = {
  readonly node: ChainReader
  readonly pollIntervalMs: number
  readonly published: { readonly safe: number | null; readonly finalized: number | null }
  readonly clock: SchedulerLike
  readonly warn: WriteLine
}

/** Polls the `safe` and the `finalized` block, and emits each newer one. A node that lags or lacks the tags causes no event. */
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
      warn('no_finality', { stage, reason: String(failure) })
    }
  }
  const pollBoth = observe<FinalityEvent>(async (emit, signal) => {
    await poll('safe', emit, signal)
    await poll('finalized', emit, signal)
  })
  return timer(0, pollIntervalMs, clock).pipe(exhaustMap(() => pollBoth))
}

/** Limit of finality events that wait. Beyond it, the oldest is dropped, since a later event covers its block too. */
const WAITING_EVENTS_BOUND = 64

/** Holds a finality event until all blocks up to its block are settled, so that clients have all facts that it covers. */
export class FinalityGate {
  #waiting: readonly FinalityEvent[] = []

  add(event: FinalityEvent): void {
    this.#waiting = [...this.#waiting, event].slice(-WAITING_EVENTS_BOUND)
  }

  /** Releases the events whose block is settled and in the relay's chain. Returns only the newest one of each stage. */
  release(settled: number, isOurs: (block: SealedHeader) => boolean): readonly FinalityEvent[] {
    const isReached = ({ block }: FinalityEvent) => block.number <= settled && isOurs(block)
    const reached = this.#waiting.filter(isReached)
    this.#waiting = this.#waiting.filter((event) => !isReached(event))
    return [...new Map(reached.map((event) => [event.stage, event])).values()]
  }
}
