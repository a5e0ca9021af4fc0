import type { Tape } from '../../tape/tape.ts'
import type { View } from '../select/state-view.ts'

/** Settling that is behind for this long, and whose newest block is this old, leaves clients without seals. */
const SETTLING_LAG_BOUND_MS = 10_000

type ReadinessInputs = {
  readonly tape: Pick<Tape, 'follow' | 'refusal'>
  readonly view: View
  readonly now: () => number
  readonly isWrongChain: () => boolean
  readonly isStopping: () => boolean
}

/** Why the relay is of no use now; empty when it is ready. */
export function openReadiness({ tape, view, now, isWrongChain, isStopping }: ReadinessInputs) {
  /** When the source or its reason last changed, in steady time. */
  let statusAt = now()
  const unfollow = tape.follow((batch) => {
    if (batch.some(({ update }) => update.type === 'status')) statusAt = now()
  })
  /** The source may also be behind because the node pushes late. Then polls replace what it pushes. */
  const isSettlingBehind = (): boolean => {
    const { reason, newestSettled } = view
    if (reason !== 'behind' || now() - statusAt <= SETTLING_LAG_BOUND_MS) return false
    return now() - 1_000 * (newestSettled?.timestamp ?? 0) > SETTLING_LAG_BOUND_MS
  }
  const storeReasons = (): readonly string[] => {
    if (tape.refusal) return [`NATS does not store the tape: ${tape.refusal}`]
    return view.isCut ? ['nothing comes from NATS: it cannot be reached, or no ingester writes'] : []
  }
  return {
    reasons: (): readonly string[] => [
      ...(isWrongChain() ? ['wrong_chain: every upstream URL is of another chain'] : []),
      ...(!view.hasTokens ? ['no_list: no list has been read yet'] : []),
      ...storeReasons(),
      ...(view.source === 'down' && !view.isCut ? ['the upstream is down'] : []),
      ...(view.reason === 'stale_head' ? ["the chain's head does not move"] : []),
      ...(isSettlingBehind() ? ['the logs of the newest sealed blocks cannot be read'] : []),
      ...(isStopping() ? ['stopping'] : []),
    ],
    close: unfollow,
  }
}
