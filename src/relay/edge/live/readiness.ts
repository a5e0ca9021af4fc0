import type { Host } from '../../host.ts'
import type { SharedTapeLink, Tape } from '../../tape/tape.ts'
import type { CurrentState } from '../select/current-state.ts'

/** The relay is unready if settling has been behind for this long, and the newest settled block is older than this. */
const SETTLING_LAG_BOUND_MS = 10_000

type ReadinessInputs = Pick<Host, 'now'> & {
  readonly tape: Pick<Tape, 'follow'>
  readonly shared: Pick<SharedTapeLink, 'refusal'> | null
  readonly current: CurrentState
  readonly isWrongChain: () => boolean
  readonly isStopping: () => boolean
}

export function openReadiness({ tape, shared, current, now, isWrongChain, isStopping }: ReadinessInputs) {
  /** The steady time of the last change of the source or its reason. */
  let statusAt = now()
  const unfollow = tape.follow((batch) => {
    if (batch.some(({ update }) => update.type === 'status')) statusAt = now()
  })
  /** Returns false if only the pushes of the node are late: polls then replace the pushes, and new blocks are settled in time. */
  const isSettlingBehind = (): boolean => {
    const { reason, newestSettled } = current
    if (reason !== 'behind' || now() - statusAt <= SETTLING_LAG_BOUND_MS) return false
    return now() - 1_000 * (newestSettled?.timestamp ?? 0) > SETTLING_LAG_BOUND_MS
  }
  return {
    reasons: (): readonly string[] => [
      ...(isWrongChain() ? ['wrong_chain: every upstream URL is of another chain'] : []),
      ...(!current.hasTokens ? ['no_list: no list has been read yet'] : []),
      ...(shared?.refusal ? [`NATS does not store the tape: ${shared.refusal}`] : []),
      ...(!shared?.refusal && current.isCut ? ['no updates from NATS: it cannot be reached, or no ingester writes'] : []),
      ...(current.source === 'down' && !current.isCut ? ['the upstream is down'] : []),
      ...(current.reason === 'stale_head' ? ["the chain's head does not move"] : []),
      ...(isSettlingBehind() ? ['the logs of the newest sealed blocks cannot be read'] : []),
      ...(isStopping() ? ['stopping'] : []),
    ],
    close: unfollow,
  }
}
