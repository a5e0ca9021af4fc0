import { toFunctionSelector } from 'viem/utils'
import { type Hex, toWord } from '../../lib/hex.ts'
import { codeKey, mappingSlot, type ReadState, type StateValues, storageKey, writeValue } from '../chain/account-state.ts'
import type { DeferredTransaction } from '../chain/chain-types.ts'
import { addressFrom } from '../chain/hashes.ts'
import { gasByKind } from './token-transfers.ts'

/** The contract that says whether the feed of a token is frozen. */
export const oracleRegistry: Hex = addressFrom('oracle registry')

export const REGISTRY_CODE = 0x6083n

export const registryValues: StateValues = new Map([[codeKey(oracleRegistry), REGISTRY_CODE]])

const SET_PAUSED = toFunctionSelector('setPaused(address,bool)')

const pausedKey = (token: Hex): string => storageKey(oracleRegistry, mappingSlot(token, toWord(0n)))

export const isFeedFrozen = (readState: ReadState, token: Hex): boolean => readState(pausedKey(token)) !== 0n

/** Freezes or unfreezes the feed of a token. Emits no log. */
export const buildFeedFreeze = (token: Hex, sender: Hex, isFrozen: boolean): DeferredTransaction => {
  const flag = isFrozen ? 1n : 0n
  return () => ({
    from: sender,
    to: oracleRegistry,
    input: `${SET_PAUSED}${toWord(token).slice(2)}${toWord(flag).slice(2)}`,
    gasUsed: gasByKind.other,
    logs: [],
    writes: [writeValue(pausedKey(token), flag)],
  })
}
