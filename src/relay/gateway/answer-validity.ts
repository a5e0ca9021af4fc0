import { parseShallowJson } from '../../lib/safe-json.ts'
import type { ChainState } from './chain-state.ts'
import type { ValidatedCall } from './validated-call.ts'

/** Distance from the head within which another node behind the load balancer may lack the last blocks of a range. */
const LATEST_BLOCKS = 8
/** Distance from the head within which a reorg may replace a block. It is unnoticed if the hash of the block is unknown. */
const RECENT_BLOCKS = 64
/** An empty answer is trusted only up to the `safe` block or this far below the head: a lagging node also answers empty. */
const FINAL_DEPTH_BLOCKS = 1_024
/** Matches the answer of a node that has no such value, or does not have it yet. */
const emptyResult = /^(null|\[\]|"0x0*")$/
const EMPTY_RESULT_BOUND_BYTES = 68

/** The event that makes an answer invalid: a change of the pending state, a new head, or only a reorg. */
export type Validity = 'pending' | 'head' | 'sealed'

/** Time after its request for which an answer may be reused, even if nothing happens on the chain. */
export const maxAgeMs: Readonly<Record<Validity, number>> = { pending: 200, head: 60_000, sealed: 3_600_000 }

/** Numbers of reorgs, heads and changes of the pending state that the relay knew at the time of a call. */
export type ChainVersion = Pick<ChainState, 'reorgCount' | 'headCount' | 'pendingCount'>

/** Whether an answer that was requested at one version of the chain is valid at the other. */
export const isStillValid = (validity: Validity, one: ChainVersion, other: ChainVersion): boolean =>
  one.reorgCount === other.reorgCount &&
  (validity === 'sealed' || (one.headCount === other.headCount && (validity === 'head' || one.pendingCount === other.pendingCount)))

/** Returns the least validity of any answer to this call. */
export function leastValidityOf({ scope }: ValidatedCall, head: number | null): Validity {
  if (scope.at === 'pending') return 'pending'
  const isOld = scope.at === 'number' && head !== null && scope.number <= head - RECENT_BLOCKS
  return scope.at === 'chain' || isOld ? 'sealed' : 'head'
}

/** Returns the validity of an answer that was requested at this head; null if the answer must not be cached. */
export function validityOf(
  { method, scope }: ValidatedCall,
  result: Buffer,
  head: number | null,
  chainState: ChainState,
): Validity | null {
  switch (scope.at) {
    case 'pending':
      return 'pending'
    case 'head':
      return method === 'eth_blockNumber' && Number(parseShallowJson(result) ?? 0) < (head ?? 0) ? null : 'head'
    case 'chain':
      return 'sealed'
    case 'hash':
      // A node without the block may receive it in a moment.
      return isNull(result) ? null : isEmptyResult(result) ? 'head' : 'sealed'
    case 'number':
      if (head === null || scope.number > head) return null
      if (isEmptyResult(result) && scope.number > head - LATEST_BLOCKS) return isNull(result) ? null : 'pending'
      if (method === 'eth_getBlockByNumber' && isOtherBlock(scope.number, result, chainState)) return null
      return isTrusted(scope, result, head, chainState) ? 'sealed' : 'head'
  }
}

/** Whether an answer is valid until a reorg: the node had the block, and the relay would notice its replacement. */
function isTrusted(
  { number, several }: { readonly number: number; readonly several: boolean },
  result: Buffer,
  head: number,
  chainState: ChainState,
): boolean {
  if (isEmptyResult(result)) return number <= Math.max(chainState.safe ?? 0, head - FINAL_DEPTH_BLOCKS)
  if (several) return number <= head - LATEST_BLOCKS
  return chainState.hashOf(number) !== null || number <= head - RECENT_BLOCKS
}

/** Whether the block has another hash than the known one: the node is on another branch. */
function isOtherBlock(number: number, result: Buffer, chainState: ChainState): boolean {
  const hash = chainState.hashOf(number)
  return hash !== null && !isEmptyResult(result) && !result.includes(hash)
}

const isNull = (result: Buffer): boolean => result.length === 4 && result.toString('latin1') === 'null'

const isEmptyResult = (result: Buffer): boolean =>
  result.length <= EMPTY_RESULT_BOUND_BYTES && emptyResult.test(result.toString('latin1'))
