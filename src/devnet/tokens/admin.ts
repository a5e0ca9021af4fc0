import { encodeFunctionData } from 'viem/utils'
import { set } from '../chain/state.ts'
import { tokenAbi, tokenLog } from './abi.ts'
import type { Act } from './call.ts'
import { nameOf, pausesOf, supplyCapOf, symbolOf, wordOfFeatures, wordOfText } from './storage.ts'

/** Features are paused, beside those that are. */
export const pause =
  (features: readonly number[]): Act =>
  ({ token, sender }) => ({
    input: encodeFunctionData({ abi: tokenAbi, functionName: 'pause', args: [features] }),
    logs: [tokenLog(token, 'Paused', { updater: sender, features })],
    writes: [{ key: pausesOf(token), change: (bits) => bits | wordOfFeatures(features) }],
  })

export const unpause =
  (features: readonly number[]): Act =>
  ({ token, sender }) => ({
    input: encodeFunctionData({ abi: tokenAbi, functionName: 'unpause', args: [features] }),
    logs: [tokenLog(token, 'Unpaused', { updater: sender, features })],
    writes: [{ key: pausesOf(token), change: (bits) => bits & ~wordOfFeatures(features) }],
  })

export const changeName = (newName: string): Act => {
  const packed = wordOfText(newName)
  return ({ token, sender }) => ({
    input: encodeFunctionData({ abi: tokenAbi, functionName: 'updateName', args: [newName] }),
    logs: [tokenLog(token, 'NameUpdated', { updater: sender, newName }), tokenLog(token, 'EIP712DomainChanged')],
    writes: [set(nameOf(token), packed)],
  })
}

export const changeSymbol = (newSymbol: string): Act => {
  const packed = wordOfText(newSymbol)
  return ({ token, sender }) => ({
    input: encodeFunctionData({ abi: tokenAbi, functionName: 'updateSymbol', args: [newSymbol] }),
    logs: [tokenLog(token, 'SymbolUpdated', { updater: sender, newSymbol })],
    writes: [set(symbolOf(token), packed)],
  })
}

/** The contract's document is at another place; the event does not say where. */
export const changeUri =
  (uri: string): Act =>
  ({ token }) => ({
    input: encodeFunctionData({ abi: tokenAbi, functionName: 'updateContractURI', args: [uri] }),
    logs: [tokenLog(token, 'ContractURIUpdated')],
    writes: [],
  })

/** A further field of the record; an empty value takes it away. */
export const changeMetadata =
  (key: string, value: string): Act =>
  ({ token }) => ({
    input: encodeFunctionData({ abi: tokenAbi, functionName: 'updateExtraMetadata', args: [key, value] }),
    logs: [tokenLog(token, 'ExtraMetadataUpdated', { key, value })],
    writes: [],
  })

export const changeSupplyCap =
  (to: bigint): Act =>
  ({ token, sender }, { held }) => ({
    input: encodeFunctionData({ abi: tokenAbi, functionName: 'updateSupplyCap', args: [to] }),
    logs: [
      tokenLog(token, 'SupplyCapUpdated', {
        updater: sender,
        oldSupplyCap: held(supplyCapOf(token)),
        newSupplyCap: to,
      }),
    ],
    writes: [set(supplyCapOf(token), to)],
  })
