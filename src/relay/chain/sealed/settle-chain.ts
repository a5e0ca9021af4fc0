import type { Observable } from 'rxjs'
import { observe, type WakeUp, wait } from '../../../lib/async-loop.ts'
import { readMissing, readPage } from './backfill-reads.ts'
import { isReadFailure, isRepeated } from './failures.ts'
import { plan } from './plan.ts'
import { readRecent } from './recheck-read.ts'
import type { SealedState } from './sealed-state.ts'
import { readToSettle, type SettleContext } from './settle-reads.ts'
import type { Answer, Lane, Read } from './settlement-types.ts'

type Options = Omit<SettleContext, 'filters' | 'signal'> & {
  readonly state: () => SealedState
  /** Notified of each change of the state. */
  readonly changed: WakeUp
}

const lanes: readonly Lane[] = ['settle', 'backfill', 'recheck']

/** Performs the reads of the plan, each lane one at a time. Expects that each emitted answer is learned before it continues. */
export const settleChain = (options: Options): Observable<Answer> =>
  observe((emit, signal) => Promise.all(lanes.map((lane) => runLane(lane, options, emit, signal))))

async function runLane(lane: Lane, options: Options, emit: (answer: Answer) => void, signal: AbortSignal): Promise<never> {
  const { state, changed, clock, warn } = options
  const context = { ...options, signal, filters: () => state().filters }
  for (;;) {
    const read = plan(state()).find((planned) => planned.lane === lane)
    if (!read) {
      await changed.wait(signal)
      continue
    }
    for (const [index, answer] of (await answersTo(context, state(), read)).entries()) {
      // Each part gets a turn of the event loop.
      if (index > 0) await wait(0, clock, signal)
      emit(answer)
    }
    const failures = state().failures[lane]
    const delayMs = failures.retryAt - clock.now()
    if (isRepeated(failures)) warn(lane === 'settle' ? 'settling_delayed' : 'backfill_delayed', { reason: String(failures.last) })
    if (failures.last) await wait(delayMs, clock, signal)
  }
}

async function answersTo(context: SettleContext, state: SealedState, read: Read): Promise<readonly Answer[]> {
  const { failures, blocks } = state
  try {
    switch (read.what) {
      case 'page':
        return await readPage(context, failures.backfill, read)
      case 'missing':
        return await readMissing(context, failures.backfill, read)
      case 'recent':
        return [await readRecent(context, blocks, read)]
      default:
        return [{ read, ...(await readToSettle(context, state, read)) }]
    }
  } catch (failure) {
    context.signal.throwIfAborted()
    if (!isReadFailure(failure)) throw failure
    return [{ type: 'failed', read, failure }]
  }
}
