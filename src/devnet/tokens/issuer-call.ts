import { encodeFunctionData } from 'viem/utils'
import type { Hex } from '../../lib/hex.ts'
import type { StateWrite } from '../chain/account-state.ts'
import type { EmittedLog } from '../chain/block-types.ts'
import { afterWrites, type DeferredTransaction, type ExecutionContext } from '../chain/state-dependent-transaction.ts'
import { gasByKind } from '../chain/transactions.ts'
import { tokenAbi, tokenLog } from './contract-abis.ts'

/** The called token and its caller. */
export type CallParties = { token: Hex; sender: Hex }

/** A call of a token: its calldata, logs and writes in a given state. */
export type TokenCall = (
  parties: CallParties,
  context: ExecutionContext,
) => { input: Hex; logs: readonly EmittedLog[]; writes: readonly StateWrite[] }

/** A transaction that calls a token. */
export const buildTokenCall =
  (parties: CallParties, call: TokenCall): DeferredTransaction =>
  (context) => ({ from: parties.sender, to: parties.token, gasUsed: gasByKind.other, ...call(parties, context) })

export type AnnouncementText = { id: string; description: string; uri: string }

/** Announces calls and executes them in the same transaction; without calls it is only a notice. */
export const announce =
  ({ id, description, uri }: AnnouncementText, calls: readonly TokenCall[]): TokenCall =>
  (parties, context) => {
    const { inputs, logs, writes } = executeInOrder(calls, parties, context)
    return {
      input: encodeFunctionData({ abi: tokenAbi, functionName: 'announce', args: [inputs, id, description, uri] }),
      logs: [
        tokenLog(parties.token, 'Announcement', { caller: parties.sender, id, description, uri }),
        ...logs,
        tokenLog(parties.token, 'EndAnnouncement', { id }),
      ],
      writes,
    }
  }

/** Several calls in one transaction. */
export const multicall =
  (calls: readonly TokenCall[]): TokenCall =>
  (parties, context) => {
    const { inputs, logs, writes } = executeInOrder(calls, parties, context)
    return { input: encodeFunctionData({ abi: tokenAbi, functionName: 'multicall', args: [inputs] }), logs, writes }
  }

/** Each call sees the writes of those before it. */
const executeInOrder = (calls: readonly TokenCall[], parties: CallParties, context: ExecutionContext) => {
  const inputs: Hex[] = []
  const logs: EmittedLog[] = []
  const writes: StateWrite[] = []
  for (const call of calls) {
    const result = call(parties, afterWrites(context, writes))
    inputs.push(result.input)
    logs.push(...result.logs)
    writes.push(...result.writes)
  }
  return { inputs, logs, writes }
}

/** The effects of a call that a token refuses. */
export const refusedEffects = { logs: [], writes: [] }
