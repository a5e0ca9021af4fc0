import { encodeAbiParameters, keccak256, parseAbiParameters } from 'viem/utils'
import { expect, it } from 'vitest'
import { type Hex, ZERO_ADDRESS } from '../../../../../src/lib/hex.ts'
import { poolOf } from '../../../../../src/relay/chain/pools/pool.ts'
import type { Hooks, PoolSetting } from '../../../../../src/relay/config/pool-settings.ts'

const USDC = { symbol: 'USDC', address: '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48', decimals: 6 } as const
const [low, high, hooks] = ['12', 'ee', '5a'].map((digits): Hex => `0x${digits.repeat(20)}`) as [Hex, Hex, Hex]
const setting = (fields: Partial<PoolSetting>): PoolSetting => ({
  ...{ token: 'AAPLc', kind: 'uniswap_v4', id: low, manager: high, currency: USDC },
  ...fields,
})

/** As Uniswap's library does it. */
const idBy = (tokens: readonly [Hex, Hex], fee: number, tickSpacing: number, contract: Hex): Hex =>
  keccak256(
    encodeAbiParameters(parseAbiParameters('address, address, uint24, int24, address'), [...tokens, fee, tickSpacing, contract]),
  )

// The first is the pool of the native currency and USDC on Ethereum.
const known = '0x21c67e77068de97969ba93d4aab21826d33ca12bb9f565d8496e8fda8a82ca27'
it.each<[token: Hex, fee: number, tickSpacing: number, Hooks, id: Hex]>([
  [ZERO_ADDRESS, 500, 10, 'none', known],
  [low, 3_000, 60, hooks, idBy([low, USDC.address], 3_000, 60, hooks)],
  [high, 8_388_608, 32_767, hooks, idBy([USDC.address, high], 8_388_608, 32_767, hooks)],
])('the pool of %s with the key %d/%d/%s has the id %s', (token, fee, tickSpacing, contract, id) => {
  const pool = poolOf(setting({ id: { fee, tickSpacing, hooks: contract } }), token)
  expect(pool).toEqual({ ...setting({}), token, id, hooks: contract })
})

it('the hooks of a pool that is named by its id are unknown', () => {
  expect(poolOf(setting({ id: known }), low)).toEqual({ ...setting({ id: known }), token: low })
})
