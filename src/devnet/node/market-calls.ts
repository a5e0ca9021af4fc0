import { decodeFunctionData, encodeAbiParameters, parseAbi, parseAbiParameters } from 'viem/utils'
import { type Hex, toLowerHex, toWord } from '../../lib/hex.ts'
import { codeKey, storageKey } from '../chain/account-state.ts'
import type { ExecutionContext } from '../chain/state-dependent-transaction.ts'
import { TOKEN_CODE } from '../chain/transactions.ts'
import { isTokenFirst, pools } from '../tokens/devnet-pools.ts'
import { isFeedFrozen } from '../tokens/oracle-registry.ts'
import { poolLiquidityKey, readPoolState } from '../tokens/pool-storage.ts'
import { multiplierAt } from '../tokens/token-storage.ts'
import { createRevertError, decodeOrRevert } from './revert.ts'

const poolViewAbi = parseAbi([
  'function slot0() view',
  'function liquidity() view returns (uint128)',
  'function token0() view returns (address)',
  'function token1() view returns (address)',
  'function fee() view returns (uint24)',
])
const managerViewAbi = parseAbi(['function extsload(bytes32 slot) view returns (bytes32)'])
const registryViewAbi = parseAbi(['function getOracleParams(address token) view returns (uint256, bool)'])

// Slipstream has no protocol fee here.
const v3StateType = parseAbiParameters('uint160, int24, uint16, uint16, uint16, uint8, bool')
const slipstreamStateType = parseAbiParameters('uint160, int24, uint16, uint16, uint16, bool')
const oracleParamsType = parseAbiParameters('uint256, bool')

/** Calls a Uniswap v3 pool or a Slipstream pool. */
export const answerPoolCall = ({ readState }: ExecutionContext, address: Hex, data: Hex): Hex => {
  const pool = pools.find(({ id }) => id === address)
  if (!pool) throw createRevertError()
  const [token0, token1] = isTokenFirst(pool) ? [pool.token, pool.currency.address] : [pool.currency.address, pool.token]
  switch (decodeOrRevert(() => decodeFunctionData({ abi: poolViewAbi, data }).functionName)) {
    case 'slot0': {
      const { sqrtPriceX96, tick } = readPoolState(readState, pool)
      return pool.kind === 'slipstream'
        ? encodeAbiParameters(slipstreamStateType, [sqrtPriceX96, tick, 0, 1, 1, true])
        : encodeAbiParameters(v3StateType, [sqrtPriceX96, tick, 0, 1, 1, 0, true])
    }
    case 'liquidity':
      return toWord(readState(poolLiquidityKey(pool)))
    case 'token0':
      return toWord(token0)
    case 'token1':
      return toWord(token1)
    case 'fee':
      return toWord(BigInt(pool.fee))
  }
}

/** Reads the storage of the manager of Uniswap v4. */
export const answerManagerCall = ({ readState }: ExecutionContext, manager: Hex, data: Hex): Hex => {
  const [slot] = decodeOrRevert(() => decodeFunctionData({ abi: managerViewAbi, data }).args)
  return toWord(readState(storageKey(manager, slot)))
}

/** Asks the registry about the feed of a token. */
export const answerRegistryCall = ({ readState, timestamp }: ExecutionContext, data: Hex): Hex => {
  const [account] = decodeOrRevert(() => decodeFunctionData({ abi: registryViewAbi, data }).args)
  const token = toLowerHex(account)
  if (readState(codeKey(token)) !== TOKEN_CODE) throw createRevertError()
  return encodeAbiParameters(oracleParamsType, [multiplierAt(readState, token, timestamp), isFeedFrozen(readState, token)])
}
