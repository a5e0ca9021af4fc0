import { encodeFunctionData } from 'viem/utils'
import type { BareLog } from '../chain/block.ts'
import type { Hex } from '../chain/hex.ts'
import { type Held, set } from '../chain/state.ts'
import { tokenAbi, tokenLog } from './abi.ts'
import { type Act, refused } from './call.ts'
import { effectiveAtOf, isScheduled, multiplierAt, multiplierOf, scheduledOf } from './storage.ts'

/** The multiplier is another from now on; a schedule that still lies ahead is given up. */
export const changeMultiplier =
  (to: bigint): Act =>
  ({ token }, { held, timestamp }) => ({
    input: encodeFunctionData({ abi: tokenAbi, functionName: 'updateMultiplier', args: [to] }),
    logs: [
      ...(isScheduled(held, token, timestamp) ? [cancelled(token, held)] : []),
      tokenLog(token, 'MultiplierUpdated', { multiplier: to }),
      tokenLog(token, 'UIMultiplierUpdated', {
        oldMultiplier: multiplierAt(held, token, timestamp),
        newMultiplier: to,
        effectiveAtTimestamp: BigInt(timestamp),
      }),
    ],
    writes: [set(multiplierOf(token), to), set(scheduledOf(token), 0n), set(effectiveAtOf(token), 0n)],
  })

/** The multiplier will be another from a second on, without a word then. Refused while another schedule lies ahead, and for the past. */
export const scheduleMultiplier =
  (to: bigint, effectiveAt: number): Act =>
  ({ token }, { held, timestamp }) => {
    const input = encodeFunctionData({
      abi: tokenAbi,
      functionName: 'updateUIMultiplier',
      args: [to, BigInt(effectiveAt)],
    })
    if (effectiveAt <= timestamp || isScheduled(held, token, timestamp)) return { input, ...refused }
    const from = multiplierAt(held, token, timestamp)
    return {
      input,
      logs: [
        tokenLog(token, 'UIMultiplierUpdated', {
          oldMultiplier: from,
          newMultiplier: to,
          effectiveAtTimestamp: BigInt(effectiveAt),
        }),
      ],
      writes: [
        // What was scheduled before and has matured would be lost otherwise.
        set(multiplierOf(token), from),
        set(scheduledOf(token), to),
        set(effectiveAtOf(token), BigInt(effectiveAt)),
      ],
    }
  }

/** The schedule that lies ahead is given up; refused where none does. */
export const cancelSchedule: Act = ({ token }, { held, timestamp }) => {
  const input = encodeFunctionData({ abi: tokenAbi, functionName: 'cancelUIMultiplierUpdate' })
  if (!isScheduled(held, token, timestamp)) return { input, ...refused }
  return {
    input,
    logs: [cancelled(token, held)],
    writes: [set(scheduledOf(token), 0n), set(effectiveAtOf(token), 0n)],
  }
}

const cancelled = (token: Hex, held: Held): BareLog =>
  tokenLog(token, 'UIMultiplierUpdateCancelled', {
    cancelledMultiplier: held(scheduledOf(token)),
    cancelledEffectiveAt: held(effectiveAtOf(token)),
  })
