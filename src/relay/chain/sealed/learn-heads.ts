import type { Hex } from '../../../lib/hex.ts'
import type { SealedHeader } from '../rpc/block-header.ts'
import { cursorOf, hashOf, judgeHead, type SealedState } from './sealed-state.ts'
import type { FinalityEvent } from './settlement-types.ts'

/** Limit of kept headers of blocks that are not settled. */
const ANNOUNCED_BOUND = 256
/** Limit of finality events that wait. Beyond it, the oldest is dropped, since a later event covers its block too. */
const WAITING_EVENTS_BOUND = 64

export function learnHead(state: SealedState, header: SealedHeader, isPushed: boolean): SealedState {
  const { number, hash } = header
  if (judgeHead(state, header, isPushed) !== 'taken') return state
  const { outage, target } = state
  // The first head after an outage and all blocks below it were sealed during the outage.
  const ended = { ...outage, isDisconnected: false, isUnbounded: true, lastBlock: Math.max(outage.lastBlock, number) }
  return suspectBlock(
    {
      ...announce(state, header, isPushed),
      polledHead: isPushed ? state.polledHead : number,
      lastHead: header,
      target: target && number <= target.number ? target : header,
      outage: outage.isDisconnected ? ended : outage,
    },
    number,
    hash,
  )
}

function announce(state: SealedState, header: SealedHeader, isPushed: boolean): SealedState {
  const { number, hash, timestamp } = header
  // The header that the node returns may have a time although this one has none, so settling has to read it.
  if (timestamp === null) return forget(state, number)
  const isConfirmed = isPushed && state.announced.get(number)?.header.hash === hash
  if (isConfirmed || hashOf(state, number) === hash) return state
  const announced = new Map(state.announced).set(number, { header, isPushed })
  const [oldest] = announced.keys()
  if (announced.size > ANNOUNCED_BOUND && oldest !== undefined) announced.delete(oldest)
  return { ...state, announced }
}

/** Called when the block is settled, or when its received header may not be part of the chain. */
export function forget(state: SealedState, number: number): SealedState {
  if (!state.announced.has(number)) return state
  const announced = new Map(state.announced)
  announced.delete(number)
  return { ...state, announced }
}

/** Marks a settled block as disputed if a node gave another hash for it, so that its header is read again. */
export function suspectBlock(state: SealedState, number: number, hash: Hex): SealedState {
  const ourHash = hashOf(state, number)
  return ourHash && ourHash !== hash ? dispute(state, number) : state
}

export const learnRemoved = (state: SealedState, number: number, hash: Hex | null): SealedState =>
  hash !== null && hashOf(state, number) === hash ? dispute(state, number) : state

const dispute = (state: SealedState, number: number): SealedState => ({
  ...state,
  disputed: Math.min(number, state.disputed ?? number),
})

/** Keeps the node's `safe` or `finalized` block. If its hash differs from that of the settled block, it is evidence of a reorg. */
export function learnSafe(state: SealedState, event: FinalityEvent): SealedState {
  const { number, hash } = event.block
  // A `safe` block of another branch proves nothing about the settled block.
  const safe = hashOf(state, number) === hash ? Math.max(state.safe, number) : state.safe
  return suspectBlock({ ...state, safe, finality: [...state.finality, event].slice(-WAITING_EVENTS_BOUND) }, number, hash)
}

/** Releases the events whose block is settled and in the relay's chain, but only the newest one of each stage. */
export function releaseFinality(state: SealedState): readonly [SealedState, readonly FinalityEvent[]] {
  const { outage, finality } = state
  // From an outage until the blocks are compared with the chain, any settled block may be replaced.
  if (finality.length === 0 || outage.isDisconnected || outage.isUnbounded) return [state, []]
  const settled = cursorOf(state)?.number ?? -1
  const isReached = ({ block: { number, hash } }: FinalityEvent) => number <= settled && (hashOf(state, number) ?? hash) === hash
  const reached = Map.groupBy(finality.filter(isReached), ({ stage }) => stage)
  if (reached.size === 0) return [state, []]
  const released = [...reached.values()].flatMap((events) => events.slice(-1))
  return [{ ...state, finality: finality.filter((event) => !isReached(event)) }, released]
}
