import type { Hex } from '../../lib/hex.ts'
import { type ReadState, type StateWrite, valueAfter, writeValue } from '../chain/account-state.ts'
import type { DeferredTransaction, EmittedLog, ExecutionContext } from '../chain/chain-types.ts'
import { tokenInput, tokenLog } from './contract-abis.ts'
import * as storage from './token-storage.ts'
import { gasByKind } from './token-transfers.ts'

type CallParties = { token: Hex; sender: Hex }
type CallEffects = { logs: readonly EmittedLog[]; writes: readonly StateWrite[] }

/** Returns the calldata, the logs and the writes of a call of a token in a given state. */
export type TokenCall = (parties: CallParties, context: ExecutionContext) => CallEffects & { input: Hex }

/** Effects of a call that a token refuses: no logs and no writes. */
const refused: CallEffects = { logs: [], writes: [] }

/** Builds a transaction that makes these calls, in order. */
export const buildTokenCall = (parties: CallParties, ...calls: readonly TokenCall[]): DeferredTransaction => {
  const [first, ...others] = calls
  if (!first) throw new Error('there is nothing to do')
  const call = others.length === 0 ? first : multicall(calls)
  return (context) => ({ from: parties.sender, to: parties.token, gasUsed: gasByKind.other, ...call(parties, context) })
}

const multicall =
  (calls: readonly TokenCall[]): TokenCall =>
  (parties, context) => {
    const { inputs, ...effects } = executeInOrder(calls, parties, context)
    return { input: tokenInput('multicall', [inputs]), ...effects }
  }

/** Announces calls and executes them in the same transaction. Without calls it only publishes a notice. */
export const announce =
  ({ id, description = '', uri = '' }: { id: string; description?: string; uri?: string }, ...calls: TokenCall[]): TokenCall =>
  (parties, context) => {
    const { inputs, logs, writes } = executeInOrder(calls, parties, context)
    return {
      input: tokenInput('announce', [inputs, id, description, uri]),
      logs: [
        tokenLog(parties.token, 'Announcement', { caller: parties.sender, id, description, uri }),
        ...logs,
        tokenLog(parties.token, 'EndAnnouncement', { id }),
      ],
      writes,
    }
  }

/** Executes the calls. Each call sees the writes of the calls before it. */
export const executeInOrder = (calls: readonly TokenCall[], parties: CallParties, { readState, timestamp }: ExecutionContext) => {
  const written = new Map<string, bigint>()
  const readWritten = (key: string) => written.get(key) ?? readState(key)
  const results = calls.map((call) => {
    const result = call(parties, { readState: readWritten, timestamp })
    for (const write of result.writes) written.set(write.key, valueAfter(write, readWritten))
    return result
  })
  return {
    inputs: results.map(({ input }) => input),
    logs: results.flatMap(({ logs }) => logs),
    writes: results.flatMap(({ writes }) => writes),
  }
}

/** Changes the multiplier now, and cancels a pending schedule. */
export const changeMultiplier = (to: string): TokenCall => {
  const newMultiplier = storage.parseMultiplier(to)
  return ({ token }, { readState, timestamp }) => {
    const oldMultiplier = storage.multiplierAt(readState, token, timestamp)
    const change = { oldMultiplier, newMultiplier, effectiveAtTimestamp: BigInt(timestamp) }
    return {
      input: tokenInput('updateMultiplier', [newMultiplier]),
      logs: [
        ...(storage.isScheduled(readState, token, timestamp) ? [cancelledLog(token, readState)] : []),
        tokenLog(token, 'MultiplierUpdated', { multiplier: newMultiplier }),
        tokenLog(token, 'UIMultiplierUpdated', change),
      ],
      writes: multiplierWrites(token, { current: newMultiplier, scheduled: 0n, effectiveAt: 0n }),
    }
  }
}

/** Schedules a multiplier, which takes effect without a log. The token refuses a past time, and a second schedule. */
export const scheduleMultiplier = (to: string, effectiveAtS: number): TokenCall => {
  const [newMultiplier, effectiveAt] = [storage.parseMultiplier(to), BigInt(effectiveAtS)]
  return ({ token }, { readState, timestamp }) => {
    const input = tokenInput('updateUIMultiplier', [newMultiplier, effectiveAt])
    if (effectiveAtS <= timestamp || storage.isScheduled(readState, token, timestamp)) return { input, ...refused }
    const current = storage.multiplierAt(readState, token, timestamp)
    const change = { oldMultiplier: current, newMultiplier, effectiveAtTimestamp: effectiveAt }
    return {
      input,
      logs: [tokenLog(token, 'UIMultiplierUpdated', change)],
      // Writes `current` too: an earlier schedule that has taken effect is in the slots that this schedule overwrites.
      writes: multiplierWrites(token, { current, scheduled: newMultiplier, effectiveAt }),
    }
  }
}

/** Cancels the pending schedule. The token refuses this if there is none. */
export const cancelSchedule: TokenCall = ({ token }, { readState, timestamp }) => {
  const input = tokenInput('cancelUIMultiplierUpdate')
  if (!storage.isScheduled(readState, token, timestamp)) return { input, ...refused }
  return {
    input,
    logs: [cancelledLog(token, readState)],
    writes: [writeValue(storage.scheduledMultiplierKey(token), 0n), writeValue(storage.effectiveAtKey(token), 0n)],
  }
}

const cancelledLog = (token: Hex, readState: ReadState): EmittedLog =>
  tokenLog(token, 'UIMultiplierUpdateCancelled', {
    cancelledMultiplier: readState(storage.scheduledMultiplierKey(token)),
    cancelledEffectiveAt: readState(storage.effectiveAtKey(token)),
  })

const multiplierWrites = (token: Hex, values: { current: bigint; scheduled: bigint; effectiveAt: bigint }) => [
  writeValue(storage.multiplierKey(token), values.current),
  writeValue(storage.scheduledMultiplierKey(token), values.scheduled),
  writeValue(storage.effectiveAtKey(token), values.effectiveAt),
]

/** Pauses features in addition to those already paused. */
export const pause =
  (features: readonly number[]): TokenCall =>
  ({ token, sender }) => ({
    input: tokenInput('pause', [features]),
    logs: [tokenLog(token, 'Paused', { updater: sender, features })],
    writes: [{ key: storage.pausedFeaturesKey(token), change: (bits) => bits | storage.packFeatures(features) }],
  })

export const unpause =
  (features: readonly number[]): TokenCall =>
  ({ token, sender }) => ({
    input: tokenInput('unpause', [features]),
    logs: [tokenLog(token, 'Unpaused', { updater: sender, features })],
    writes: [{ key: storage.pausedFeaturesKey(token), change: (bits) => bits & ~storage.packFeatures(features) }],
  })

export const changeName = (newName: string): TokenCall => {
  const packedName = storage.packText(newName)
  return ({ token, sender }) => ({
    input: tokenInput('updateName', [newName]),
    logs: [tokenLog(token, 'NameUpdated', { updater: sender, newName }), tokenLog(token, 'EIP712DomainChanged')],
    writes: [writeValue(storage.nameKey(token), packedName)],
  })
}

export const changeSymbol = (newSymbol: string): TokenCall => {
  const packedSymbol = storage.packText(newSymbol)
  return ({ token, sender }) => ({
    input: tokenInput('updateSymbol', [newSymbol]),
    logs: [tokenLog(token, 'SymbolUpdated', { updater: sender, newSymbol })],
    writes: [writeValue(storage.symbolKey(token), packedSymbol)],
  })
}

/** Changes the URI of the contract's document. The event does not contain the URI. */
export const changeContractUri =
  (uri: string): TokenCall =>
  ({ token }) => ({ input: tokenInput('updateContractURI', [uri]), logs: [tokenLog(token, 'ContractURIUpdated')], writes: [] })

/** Sets a field of the token's metadata. An empty value removes the field. */
export const changeMetadata =
  (key: string, value: string): TokenCall =>
  ({ token }) => ({
    input: tokenInput('updateExtraMetadata', [key, value]),
    logs: [tokenLog(token, 'ExtraMetadataUpdated', { key, value })],
    writes: [],
  })

export const changeSupplyCap =
  (newSupplyCap: bigint): TokenCall =>
  ({ token, sender }, { readState }) => {
    const oldSupplyCap = readState(storage.supplyCapKey(token))
    return {
      input: tokenInput('updateSupplyCap', [newSupplyCap]),
      logs: [tokenLog(token, 'SupplyCapUpdated', { updater: sender, oldSupplyCap, newSupplyCap })],
      writes: [writeValue(storage.supplyCapKey(token), newSupplyCap)],
    }
  }
