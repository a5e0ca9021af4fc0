import type { Observable } from 'rxjs'
import { observe, repeatStep, type WakeUp, wait } from '../../../lib/async-loop.ts'
import { isReadFailure, isRepeated } from '../blocks/read-failures.ts'
import { readMissing, readPage } from './backfill-reads.ts'
import { plan } from './plan.ts'
import { readRecent } from './recheck-read.ts'
import type { SealedState } from './sealed-state.ts'
import {
  findFirst,
  findNewest,
  findOldest,
  readAgain,
  readDisputed,
  readNext,
  readOutdated,
  type SettleContext,
} from './settle-reads.ts'
import type { Found, Lane, PlannedRead, ReadAnswer } from './settlement-types.ts'

type Options = Omit<SettleContext, 'filters' | 'signal'> & {
  readonly state: () => SealedState
  /** Notified of each change of the state. */
  readonly changed: WakeUp
}

const warnings = {
  settle: 'settling_delayed',
  outdated: 'backfill_delayed',
  backfill: 'backfill_delayed',
  recheck: 'backfill_delayed',
} as const

/** Performs the reads of the plan, each lane one at a time. Each emitted answer must be learned before `next` returns. */
export const settleChain = (options: Options): Observable<ReadAnswer> =>
  observe((next, signal) => {
    const { state, changed: wakeUp, clock, log } = options
    const context = { ...options, signal, filters: () => state().filters }
    const step = async (lane: Lane) => {
      const read = plan(state()).find((planned) => planned.lane === lane)
      if (!read) return null
      const { filters } = state()
      for (const [index, found] of (await perform(context, state(), read)).entries()) {
        // Each part gets a turn of the event loop. A page that lacks the logs of a new filter is read again.
        if (index > 0) await wait(0, clock, signal)
        if (read.what === 'page' && state().filters !== filters) break
        next({ read, ...found })
      }
      const failures = state().failures[lane]
      if (isRepeated(failures)) log(warnings[lane], { reason: String(failures.last) })
      return Math.max(0, failures.retryAt - clock.now())
    }
    return Promise.all(
      (['settle', 'outdated', 'backfill', 'recheck'] as const).map((lane) =>
        repeatStep(() => step(lane), { wakeUp, clock, signal }),
      ),
    )
  })

async function perform(context: SettleContext, state: SealedState, read: PlannedRead): Promise<readonly Found[]> {
  const { failures, blocks } = state
  try {
    switch (read.what) {
      case 'disputed':
        return [await readDisputed(context, state, read)]
      case 'incomplete':
        return [await readAgain(context, state, read)]
      case 'outdated':
        return [await readOutdated(context, state, read)]
      case 'first':
        return [await findFirst(context, read)]
      case 'oldest':
        return [await findOldest(context, state, read)]
      case 'newest':
        return [await findNewest(context, state, read)]
      case 'next':
        return [await readNext(context, state, read)]
      case 'page':
        await wait(Math.max(0, read.range.readableAt - context.clock.now()), context.clock, context.signal)
        return await ofOurChain(context, () => readPage(context, failures.backfill, read))
      case 'missing':
        return await ofOurChain(context, () => readMissing(context, failures.backfill, read))
      case 'recent':
        return [await readRecent(context, blocks, read)]
    }
  } catch (failure) {
    context.signal.throwIfAborted()
    if (!isReadFailure(failure)) throw failure
    return [{ type: 'failed', failure }]
  }
}

/** No parent shows that the past is of our chain, and it is not read again. So each node that answered is asked for its chain. */
async function ofOurChain<T>({ confirmChain, clock, signal }: SettleContext, read: () => Promise<T>): Promise<T> {
  const answeredSince = clock.now()
  const answer = await read()
  await confirmChain({ answeredSince, askedAfter: clock.now() }, signal)
  return answer
}
