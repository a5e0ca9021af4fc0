import { encodeFunctionData } from 'viem/utils'
import { writeValue } from '../chain/account-state.ts'
import { tokenAbi, tokenLog } from './contract-abis.ts'
import type { TokenCall } from './issuer-call.ts'
import { nameKey, packFeatures, packText, pausedFeaturesKey, supplyCapKey, symbolKey } from './token-storage.ts'

/** Pauses features in addition to those already paused. */
export const pause =
  (features: readonly number[]): TokenCall =>
  ({ token, sender }) => ({
    input: encodeFunctionData({ abi: tokenAbi, functionName: 'pause', args: [features] }),
    logs: [tokenLog(token, 'Paused', { updater: sender, features })],
    writes: [{ key: pausedFeaturesKey(token), change: (bits) => bits | packFeatures(features) }],
  })

export const unpause =
  (features: readonly number[]): TokenCall =>
  ({ token, sender }) => ({
    input: encodeFunctionData({ abi: tokenAbi, functionName: 'unpause', args: [features] }),
    logs: [tokenLog(token, 'Unpaused', { updater: sender, features })],
    writes: [{ key: pausedFeaturesKey(token), change: (bits) => bits & ~packFeatures(features) }],
  })

export const changeName = (newName: string): TokenCall => {
  const packedName = packText(newName)
  return ({ token, sender }) => ({
    input: encodeFunctionData({ abi: tokenAbi, functionName: 'updateName', args: [newName] }),
    logs: [tokenLog(token, 'NameUpdated', { updater: sender, newName }), tokenLog(token, 'EIP712DomainChanged')],
    writes: [writeValue(nameKey(token), packedName)],
  })
}

export const changeSymbol = (newSymbol: string): TokenCall => {
  const packedSymbol = packText(newSymbol)
  return ({ token, sender }) => ({
    input: encodeFunctionData({ abi: tokenAbi, functionName: 'updateSymbol', args: [newSymbol] }),
    logs: [tokenLog(token, 'SymbolUpdated', { updater: sender, newSymbol })],
    writes: [writeValue(symbolKey(token), packedSymbol)],
  })
}

/** Changes the URI of the contract's document; the event does not contain it. */
export const changeContractUri =
  (uri: string): TokenCall =>
  ({ token }) => ({
    input: encodeFunctionData({ abi: tokenAbi, functionName: 'updateContractURI', args: [uri] }),
    logs: [tokenLog(token, 'ContractURIUpdated')],
    writes: [],
  })

/** Sets an extra field of the record; an empty value removes it. */
export const changeMetadata =
  (key: string, value: string): TokenCall =>
  ({ token }) => ({
    input: encodeFunctionData({ abi: tokenAbi, functionName: 'updateExtraMetadata', args: [key, value] }),
    logs: [tokenLog(token, 'ExtraMetadataUpdated', { key, value })],
    writes: [],
  })

export const changeSupplyCap =
  (to: bigint): TokenCall =>
  ({ token, sender }, { readState }) => ({
    input: encodeFunctionData({ abi: tokenAbi, functionName: 'updateSupplyCap', args: [to] }),
    logs: [
      tokenLog(token, 'SupplyCapUpdated', { updater: sender, oldSupplyCap: readState(supplyCapKey(token)), newSupplyCap: to }),
    ],
    writes: [writeValue(supplyCapKey(token), to)],
  })
