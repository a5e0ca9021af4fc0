import { BEHIND_BLOCKS } from '../../relay/chain/source/pending-status.ts'
import { counted, type Outcome, ok, warn } from './finding.ts'

/** Newest block that an upstream showed at a time. */
export type SeenHead = { readonly number: number; readonly at: number }

/** Compares a node with the newest block that another upstream had shown before the node was asked. Null if none had. */
export function lagOutcome(heads: readonly SeenHead[], others: readonly SeenHead[]): Outcome | null {
  const lags = heads.flatMap(({ number, at }) => {
    const earlier = others.filter((other) => other.at <= at)
    return earlier.length === 0 ? [] : [Math.max(0, ...earlier.map((other) => other.number)) - number]
  })
  if (lags.length === 0) return null
  // Uses the smallest lag, since a node is not behind if only one of its answers was late.
  const lag = Math.max(0, Math.min(...lags))
  if (lag <= BEHIND_BLOCKS)
    return ok(lag === 0 ? 'as new as the other upstreams' : `${counted(lag, 'block')} behind another upstream`, lag)
  const advice = 'the relay publishes sealed updates that much later: use a node in UPSTREAM_RPC_URL that is as fast as the others'
  return warn(`${counted(lag, 'block')} behind another upstream`, advice, lag)
}
