import { encodeFunctionData } from 'viem/utils'
import type { BareLog } from '../chain/block.ts'
import { after, type Moment, type Plan } from '../chain/deferred-tx.ts'
import type { Hex } from '../chain/hex.ts'
import type { Write } from '../chain/state.ts'
import { gasOf } from '../chain/transactions.ts'
import { tokenAbi, tokenLog } from './abi.ts'

/** Who calls which token. */
export type Party = { token: Hex; sender: Hex }

/** What a token does when it is called, as it meets the moment: the call, what it says and what it changes. */
export type Act = (party: Party, moment: Moment) => { input: Hex; logs: readonly BareLog[]; writes: readonly Write[] }

/** A transaction in which a token is called. */
export const calling =
  (party: Party, act: Act): Plan =>
  (moment) => ({ from: party.sender, to: party.token, gasUsed: gasOf.other, ...act(party, moment) })

/** What is said of an announcement. */
export type Notice = { id: string; description: string; uri: string }

/** Announces, and does what it announces in the same transaction; nothing for a notice alone. */
export const announce =
  ({ id, description, uri }: Notice, acts: readonly Act[]): Act =>
  (party, moment) => {
    const { inputs, logs, writes } = inTurn(acts, party, moment)
    return {
      input: encodeFunctionData({ abi: tokenAbi, functionName: 'announce', args: [inputs, id, description, uri] }),
      logs: [
        tokenLog(party.token, 'Announcement', { caller: party.sender, id, description, uri }),
        ...logs,
        tokenLog(party.token, 'EndAnnouncement', { id }),
      ],
      writes,
    }
  }

/** Several acts in one transaction. */
export const together =
  (acts: readonly Act[]): Act =>
  (party, moment) => {
    const { inputs, logs, writes } = inTurn(acts, party, moment)
    return {
      input: encodeFunctionData({ abi: tokenAbi, functionName: 'multicall', args: [inputs] }),
      logs,
      writes,
    }
  }

/** Each act meets what the one before it left. */
const inTurn = (acts: readonly Act[], party: Party, moment: Moment) => {
  const inputs: Hex[] = []
  const logs: BareLog[] = []
  const writes: Write[] = []
  for (const act of acts) {
    const done = act(party, after(moment, writes))
    inputs.push(done.input)
    logs.push(...done.logs)
    writes.push(...done.writes)
  }
  return { inputs, logs, writes }
}

/** What comes of a call that a token refuses. */
export const refused = { logs: [], writes: [] }
