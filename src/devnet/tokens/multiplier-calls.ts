import { encodeFunctionData } from 'viem/utils'
import { type ReadState, writeValue } from '../chain/account-state.ts'
import type { EmittedLog } from '../chain/block.ts'
import type { HexString } from '../chain/hex.ts'
import { tokenAbi, tokenLog } from './abi.ts'
import { refusedEffects, type TokenCall } from './issuer-call.ts'
import { effectiveAtKey, isScheduled, multiplierAt, multiplierKey, scheduledMultiplierKey } from './storage.ts'

/** The multiplier is another from now on; a schedule that still lies ahead is given up. */
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

/** The multiplier will be another from a second on, without a word then. Refused while another schedule lies ahead, and for the past. */
export const scheduleMultiplier =
  (to: bigint, effectiveAt: number): TokenCall =>
  ({ token }, { readState, timestamp }) => {
    const input = encodeFunctionData({
      abi: tokenAbi,
      functionName: 'updateUIMultiplier',
      args: [to, BigInt(effectiveAt)],
    })
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
        // What was scheduled before and has matured would be lost otherwise.
        writeValue(multiplierKey(token), current),
        writeValue(scheduledMultiplierKey(token), to),
        writeValue(effectiveAtKey(token), BigInt(effectiveAt)),
      ],
    }
  }

/** The schedule that lies ahead is given up; refused where none does. */
export const cancelSchedule: TokenCall = ({ token }, { readState, timestamp }) => {
  const input = encodeFunctionData({ abi: tokenAbi, functionName: 'cancelUIMultiplierUpdate' })
  if (!isScheduled(readState, token, timestamp)) return { input, ...refusedEffects }
  return {
    input,
    logs: [cancelledLog(token, readState)],
    writes: [writeValue(scheduledMultiplierKey(token), 0n), writeValue(effectiveAtKey(token), 0n)],
  }
}

const cancelledLog = (token: HexString, readState: ReadState): EmittedLog =>
  tokenLog(token, 'UIMultiplierUpdateCancelled', {
    cancelledMultiplier: readState(scheduledMultiplierKey(token)),
    cancelledEffectiveAt: readState(effectiveAtKey(token)),
  })
