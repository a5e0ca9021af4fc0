import { UpstreamError } from '../../src/relay/chain/rpc/upstream-error.ts'
import { type ContractState, multiplierAt } from './contract-state.ts'
import { encodeAbi } from './token-event-logs.ts'

/** The first four bytes of the hash of a function's signature. */
const selectors = {
  uiMultiplier: '0xa60bf13d',
  newUIMultiplier: '0xdc767007',
  effectiveAt: '0x97a4064f',
  pausedFeatures: '0xde9997e3',
} as const

/** What a token's contract returns in a block of this time. */
export function answerCall(state: ContractState, second: number, data: string): string {
  switch (data) {
    case selectors.uiMultiplier:
      return encodeAbi(multiplierAt(state, second))
    // A schedule is still returned after it took effect.
    case selectors.newUIMultiplier:
      return encodeAbi(state.schedule?.to ?? state.multiplier)
    case selectors.effectiveAt:
      return encodeAbi(state.schedule?.at ?? 0)
    case selectors.pausedFeatures:
      return encodeAbi(state.paused)
    default:
      throw new UpstreamError('reverted', '3 execution reverted')
  }
}
