import { exhaustMap, type Observable, timer } from 'rxjs'
import { observe } from '../../../lib/async-loop.ts'
import type { Host } from '../../host.ts'
import { isSealed } from '../rpc/block-header.ts'
import type { ChainReader } from '../rpc/chain-reader.ts'
import type { FinalityEvent } from '../sealed/settlement-types.ts'

type Options = Pick<Host, 'clock' | 'log'> & {
  readonly node: ChainReader
  readonly pollIntervalMs: number
  readonly published: { readonly safe: number | null; readonly finalized: number | null }
}

/** Polls the `safe` and the `finalized` block, and emits each newer one. A node that lags or lacks the tags causes no event. */
export function pollFinality({ node, pollIntervalMs, published, clock, log }: Options): Observable<FinalityEvent> {
  const highest = { safe: published.safe ?? -1, finalized: published.finalized ?? -1 }
  const poll = async (stage: FinalityEvent['stage'], emit: (event: FinalityEvent) => void, signal: AbortSignal) => {
    try {
      const block = await node.header(stage, signal)
      if (!isSealed(block) || block.number <= highest[stage]) return
      highest[stage] = block.number
      emit({ type: 'finality', stage, block })
    } catch (failure) {
      signal.throwIfAborted()
      log('no_finality', { stage, reason: String(failure) })
    }
  }
  const pollBoth = observe<FinalityEvent>(async (emit, signal) => {
    await poll('safe', emit, signal)
    await poll('finalized', emit, signal)
  })
  return timer(0, pollIntervalMs, clock).pipe(exhaustMap(() => pollBoth))
}
