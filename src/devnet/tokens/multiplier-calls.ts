import { encodeFunctionData } from 'viem/utils'
import type { Hex } from '../../lib/hex.ts'
import { type ReadState, writeValue } from '../chain/account-state.ts'
import type { EmittedLog } from '../chain/block-types.ts'
import { tokenAbi, tokenLog } from './contract-abis.ts'
import { refusedEffects, type TokenCall } from './issuer-call.ts'
import { effectiveAtKey, isScheduled, multiplierAt, multiplierKey, scheduledMultiplierKey } from './token-storage.ts'

/** Changes the multiplier now; a pending schedule is cancelled. */
export const changeMultiplier =
  (to: bigint): TokenCall =>
  ({ token }, { readState, timestamp }) => ({
    input: encodeFunctionData({ abi: tokenAbi, functionName: 'updateMultiplier', args: [to] }),
    logs: [
      ...(isScheduled(readState, token, timestamp) ? [cancelledLog(token, readState)] : []),
      tokenLog(token, 'MultiplierUpdated', { multiplier: to }),
      tokenLog(token, 'UIMultiplierUpdated', {
        oldMultiplier: multiplierAt(readState, token, timestamp),
        newMultiplier: to,
        effectiveAtTimestamp: BigInt(timestamp),
      }),
    ],
    writes: [
      writeValue(multiplierKey(token), to),
      writeValue(scheduledMultiplierKey(token), 0n),
      writeValue(effectiveAtKey(token), 0n),
    ],
  })

/** Schedules a multiplier, which takes effect without a log. Refused for the past, and while another is scheduled. */
export const scheduleMultiplier =
  (to: bigint, effectiveAt: number): TokenCall =>
  ({ token }, { readState, timestamp }) => {
    const input = encodeFunctionData({ abi: tokenAbi, functionName: 'updateUIMultiplier', args: [to, BigInt(effectiveAt)] })
    if (effectiveAt <= timestamp || isScheduled(readState, token, timestamp)) return { input, ...refusedEffects }
    const current = multiplierAt(readState, token, timestamp)
    return {
      input,
      logs: [
        tokenLog(token, 'UIMultiplierUpdated', {
          oldMultiplier: current,
          newMultiplier: to,
          effectiveAtTimestamp: BigInt(effectiveAt),
        }),
      ],
      writes: [
        // Otherwise an earlier schedule that is already effective would be lost.
        writeValue(multiplierKey(token), current),
        writeValue(scheduledMultiplierKey(token), to),
        writeValue(effectiveAtKey(token), BigInt(effectiveAt)),
      ],
    }
  }

/** Cancels the pending schedule; refused without one. */
export const cancelSchedule: TokenCall = ({ token }, { readState, timestamp }) => {
  const input = encodeFunctionData({ abi: tokenAbi, functionName: 'cancelUIMultiplierUpdate' })
  if (!isScheduled(readState, token, timestamp)) return { input, ...refusedEffects }
  return {
    input,
    logs: [cancelledLog(token, readState)],
    writes: [writeValue(scheduledMultiplierKey(token), 0n), writeValue(effectiveAtKey(token), 0n)],
  }
}

const cancelledLog = (token: Hex, readState: ReadState): EmittedLog =>
  tokenLog(token, 'UIMultiplierUpdateCancelled', {
    cancelledMultiplier: readState(scheduledMultiplierKey(token)),
    cancelledEffectiveAt: readState(effectiveAtKey(token)),
  })
