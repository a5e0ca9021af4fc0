import { encodeFunctionData } from 'viem/utils'
import type { StateWrite } from '../chain/account-state.ts'
import type { EmittedLog } from '../chain/block.ts'
import { afterWrites, type DeferredTransaction, type ExecutionContext } from '../chain/deferred-tx.ts'
import type { HexString } from '../chain/hex.ts'
import { gasByKind } from '../chain/transactions.ts'
import { tokenAbi, tokenLog } from './abi.ts'

/** Who calls which token. */
export type CallParties = { token: HexString; sender: HexString }

/** What a token does when it is called, as it meets the moment: the call, what it says and what it changes. */
export type TokenCall = (
  parties: CallParties,
  context: ExecutionContext,
) => { input: HexString; logs: readonly EmittedLog[]; writes: readonly StateWrite[] }

/** A transaction in which a token is called. */
export const buildTokenCall =
  (parties: CallParties, call: TokenCall): DeferredTransaction =>
  (context) => ({ from: parties.sender, to: parties.token, gasUsed: gasByKind.other, ...call(parties, context) })

/** What is said of an announcement. */
export type AnnouncementText = { id: string; description: string; uri: string }

/** Announces, and does what it announces in the same transaction; nothing for a notice alone. */
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

/** Several acts in one transaction. */
export const multicall =
  (calls: readonly TokenCall[]): TokenCall =>
  (parties, context) => {
    const { inputs, logs, writes } = executeInOrder(calls, parties, context)
    return {
      input: encodeFunctionData({ abi: tokenAbi, functionName: 'multicall', args: [inputs] }),
      logs,
      writes,
    }
  }

/** Each act meets what the one before it left. */
const executeInOrder = (calls: readonly TokenCall[], parties: CallParties, context: ExecutionContext) => {
  const inputs: HexString[] = []
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

/** What comes of a call that a token refuses. */
export const refusedEffects = { logs: [], writes: [] }
