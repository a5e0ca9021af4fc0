import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Currency, Price } from '@uniswap/sdk-core'
import type { Abi } from 'viem'
import {
  concat,
  decodeFunctionResult,
  encodeAbiParameters,
  encodeFunctionData,
  getCreate2Address,
  keccak256,
  numberToHex,
  parseAbi,
} from 'viem/utils'
import { type Pool, SQRT_PRICE_BOUNDS } from '../../../src/relay/chain/pools/pool.ts'
import type { SeededRandom } from '../../simulation/seeded-random.ts'
import { ACCOUNTS, type Anvil } from '../../support/anvil-node.ts'
import { compileContract } from '../../support/compile-solidity.ts'
import type { ExactFraction } from '../../support/exact-fraction.ts'

type Hex = `0x${string}`
type Artifact = { readonly abi: Abi; readonly bytecode: Hex | { readonly object: Hex } }

const require = createRequire(import.meta.url)
const v3Factory: Artifact = require('@uniswap/v3-core/artifacts/contracts/UniswapV3Factory.sol/UniswapV3Factory.json')
const v3Pool: Artifact = require('@uniswap/v3-core/artifacts/contracts/UniswapV3Pool.sol/UniswapV3Pool.json')
const v4Manager: Artifact = require('@uniswap/v4-core/out/PoolManager.sol/PoolManager.json')
const poolUser = {
  abi: parseAbi([
    'struct PoolKey { address currency0; address currency1; uint24 fee; int24 tickSpacing; address hooks; }',
    'function mintV3(address pool, int24 lower, int24 upper, uint128 liquidity)',
    'function burnV3(address pool, int24 lower, int24 upper, uint128 liquidity)',
    'function swapV3(address pool, bool zeroForOne, int256 amount, uint160 limit)',
    'function changeV4(PoolKey key, int24 lower, int24 upper, int256 liquidity)',
    'function swapV4(PoolKey key, bool zeroForOne, int256 amount, uint160 limit)',
    'function routeV4(PoolKey sold, PoolKey bought, address token, int256 amount)',
    'function stateV4(bytes32 id) view returns (uint160 sqrtPriceX96, int24 tick, uint24 fee, uint128 liquidity)',
  ]),
  bytecode: () => compileContract(join(import.meta.dirname, 'PoolUser.sol')),
}
const tokenAbi = parseAbi(['function mint(address to, uint256 amount)'])

/** Enough to move a price from one bound to the other. */
const GAS = numberToHex(200_000_000)
const ALL_TOKENS = 2n ** 254n
const ZERO_ADDRESS: Hex = `0x${'0'.repeat(40)}`
/** A contract of every anvil, which deploys others to addresses that a salt changes. */
const DEPLOYER: Hex = '0x4e59b44847b379578588920ca78fbf26c0b4956c'
/** The address of a contract of hooks says in its last bits which calls it gets. */
const [HOOK_BITS, AFTER_SWAP, AFTER_SWAP_RETURNS_DELTA] = [0x3fffn, 1n << 6n, 1n << 2n]

/** A pool as Uniswap's own code shows it. */
export type ContractState = {
  readonly sqrtPriceX96: bigint
  readonly tick: number
  readonly liquidity: bigint
  /** In hundredths of a basis point. */
  readonly fee: number
}

type PoolCall = { readonly to: Hex; readonly data: Hex }

/** A pool of Uniswap's contracts. What changes it tells whether the contract accepted it. */
export type UniswapPool = Pick<Pool, 'kind' | 'id' | 'manager'> & {
  readonly tickSpacing: number
  mint(lower: number, upper: number, liquidity: bigint): Promise<boolean>
  burn(lower: number, upper: number, liquidity: bigint): Promise<boolean>
  /** A negative amount is an exact output. */
  swap(zeroForOne: boolean, amount: bigint, limit: bigint): Promise<boolean>
  /** The transaction of such a swap, not sent. */
  swapCall(zeroForOne: boolean, amount: bigint, limit: bigint): PoolCall
  /** The transaction of a route: sells an amount of a token here, and buys as much in another pool of the same manager. */
  routeCall(bought: UniswapPool, token: Hex, amount: bigint): PoolCall
  /** How the trader names the pool. */
  readonly name: unknown
  state(): Promise<ContractState>
}

/** Deploys Uniswap's contracts, tokens in the order of their addresses, and a trader. By default a pool has the first two tokens. */
export async function deployUniswap(anvil: Anvil, tokenCount = 2) {
  const chain = new Chain(anvil)
  await anvil.rpc('evm_setBlockGasLimit', GAS)
  const token = () => chain.deploy(compileContract(join(import.meta.dirname, '../../support/Stock.sol')))
  const tokens: Hex[] = []
  while (tokens.length < tokenCount) tokens.push(await token())
  tokens.sort()
  const factory = await chain.deploy(bytecodeOf(v3Factory))
  const owner = encodeAbiParameters([{ type: 'address' }], [ACCOUNTS[0]])
  const manager = await chain.deploy(concat([bytecodeOf(v4Manager), owner]))
  const user = await chain.deploy(concat([poolUser.bytecode(), encodeAbiParameters([{ type: 'address' }], [manager])]))
  for (const address of tokens)
    if (!(await chain.transact(mintCall(address, user, ALL_TOKENS)))) throw new Error('the token is not minted')
  const contracts = { factory, manager, user }
  const open =
    (openPool: OpenPool) =>
    (fee: number, tickSpacing: number, root: bigint, others: OtherTerms = {}) =>
      openPool(chain, contracts, { ...{ fee, tickSpacing, root, pair: tokens.slice(0, 2) }, ...others })
  return { ...{ tokens, manager }, openV3: open(openV3), openV4: open(openV4), deployHooks: () => deployHooks(chain) }
}

/** Deploys the hooks to an address that says that they are called after a swap, and may keep a part of it. */
async function deployHooks(chain: Chain): Promise<Hex> {
  const bytecode = compileContract(join(import.meta.dirname, 'CuttingHooks.sol'))
  const bytecodeHash = keccak256(bytecode)
  for (let tried = 0; ; tried += 1) {
    const salt = numberToHex(tried, { size: 32 })
    const address = getCreate2Address({ from: DEPLOYER, salt, bytecodeHash })
    if ((BigInt(address) & HOOK_BITS) !== (AFTER_SWAP | AFTER_SWAP_RETURNS_DELTA)) continue
    if (!(await chain.transact({ to: DEPLOYER, data: concat([salt, bytecode]) }))) throw new Error('the hooks are not deployed')
    return address.toLowerCase() as Hex
  }
}

export const mintCall = (token: Hex, to: Hex, amount: bigint) => ({
  to: token,
  data: encodeFunctionData({ abi: tokenAbi, functionName: 'mint', args: [to, amount] }),
})

type Contracts = { readonly factory: Hex; readonly manager: Hex; readonly user: Hex }
/** `pair` is in the order of the addresses. */
type OtherTerms = {
  readonly pair?: readonly Hex[]
  readonly hooks?: Hex
  /** The protocol fee of a Uniswap v4 pool, on top of its own: one for each direction, in hundredths of a basis point. */
  readonly protocolFees?: readonly [zeroForOne: number, oneForZero: number]
}
type PoolTerms = OtherTerms & {
  readonly fee: number
  readonly tickSpacing: number
  readonly root: bigint
  readonly pair: readonly Hex[]
}
type OpenPool = (chain: Chain, contracts: Contracts, terms: PoolTerms) => Promise<UniswapPool>

/** A pool by what differs between the versions: how the user names it, and how its state is read. */
function poolOf(
  chain: Chain,
  user: Hex,
  pool: Pick<UniswapPool, 'kind' | 'id' | 'manager' | 'tickSpacing' | 'state'>,
  name: unknown,
): UniswapPool {
  const version = pool.kind === 'uniswap_v3' ? 'V3' : 'V4'
  const callOf = (functionName: string, args: readonly unknown[]): PoolCall => ({
    to: user,
    data: encodeFunctionData({ abi: poolUser.abi as Abi, functionName, args }),
  })
  const send = (action: string, ...args: readonly unknown[]) => chain.send(poolUser.abi, user, action, [name, ...args])
  const change = (sign: bigint) => (lower: number, upper: number, liquidity: bigint) =>
    version === 'V3'
      ? send(sign > 0n ? 'mintV3' : 'burnV3', lower, upper, liquidity)
      : send('changeV4', lower, upper, sign * liquidity)
  return {
    ...{ ...pool, name },
    mint: change(1n),
    burn: change(-1n),
    swap: (...swap) => send(`swap${version}`, ...swap),
    swapCall: (...swap) => callOf(`swap${version}`, [name, ...swap]),
    routeCall: (bought, token, amount) => callOf('routeV4', [name, bought.name, token, amount]),
  }
}

async function openV3(
  chain: Chain,
  { factory, user }: Contracts,
  { fee, tickSpacing, root, pair }: PoolTerms,
): Promise<UniswapPool> {
  await chain.send(v3Factory.abi, factory, 'enableFeeAmount', [fee, tickSpacing])
  await chain.send(v3Factory.abi, factory, 'createPool', [...pair, fee])
  const id = String(await chain.call(v3Factory.abi, factory, 'getPool', [...pair, fee])).toLowerCase() as Hex
  if (!(await chain.send(v3Pool.abi, id, 'initialize', [root]))) throw new Error('the pool is not initialized')
  const state = async () => {
    const [sqrtPriceX96, tick] = (await chain.call(v3Pool.abi, id, 'slot0')) as [bigint, number]
    return { sqrtPriceX96, tick, liquidity: (await chain.call(v3Pool.abi, id, 'liquidity')) as bigint, fee }
  }
  return poolOf(chain, user, { kind: 'uniswap_v3', id, manager: null, tickSpacing, state }, id)
}

const keyParameter = [{ type: 'address' }, { type: 'address' }, { type: 'uint24' }, { type: 'int24' }, { type: 'address' }] as const

async function openV4(
  chain: Chain,
  { manager, user }: Contracts,
  { fee, tickSpacing, root, pair: [currency0 = ZERO_ADDRESS, currency1 = ZERO_ADDRESS], ...others }: PoolTerms,
): Promise<UniswapPool> {
  const { hooks = ZERO_ADDRESS, protocolFees } = others
  const key = { currency0, currency1, fee, tickSpacing, hooks }
  const id = keccak256(encodeAbiParameters(keyParameter, [currency0, currency1, fee, tickSpacing, hooks]))
  if (!(await chain.send(v4Manager.abi, manager, 'initialize', [key, root]))) throw new Error('the pool is not initialized')
  if (protocolFees) {
    await chain.send(v4Manager.abi, manager, 'setProtocolFeeController', [ACCOUNTS[0]])
    await chain.send(v4Manager.abi, manager, 'setProtocolFee', [key, (protocolFees[1] << 12) | protocolFees[0]])
  }
  const state = async () => {
    const read = (await chain.call(poolUser.abi, user, 'stateV4', [id])) as [bigint, number, number, bigint]
    return { sqrtPriceX96: read[0], tick: read[1], fee: read[2], liquidity: read[3] }
  }
  return poolOf(chain, user, { kind: 'uniswap_v4', id, manager, tickSpacing, state }, key)
}

const bytecodeOf = ({ bytecode }: Artifact): Hex => (typeof bytecode === 'string' ? bytecode : bytecode.object)

type Transaction = { readonly to?: Hex; readonly data: Hex }
type Receipt = { readonly status: Hex; readonly contractAddress: Hex | null }

/** Transactions and calls, each transaction in a block of its own. */
class Chain {
  readonly #anvil: Anvil

  constructor(anvil: Anvil) {
    this.#anvil = anvil
  }

  async transact(transaction: Transaction): Promise<Receipt | null> {
    const sent = { from: ACCOUNTS[0], gas: GAS, ...transaction }
    const receipt = (await this.#anvil.rpc('eth_sendTransactionSync', sent)) as Receipt
    return receipt.status === '0x1' ? receipt : null
  }

  async deploy(data: Hex): Promise<Hex> {
    const receipt = await this.transact({ data })
    if (!receipt?.contractAddress) throw new Error('the contract is not deployed')
    return receipt.contractAddress.toLowerCase() as Hex
  }

  async send(abi: Abi, to: Hex, functionName: string, args: readonly unknown[]): Promise<boolean> {
    return (await this.transact({ to, data: encodeFunctionData({ abi, functionName, args }) })) !== null
  }

  async call(abi: Abi, to: Hex, functionName: string, args: readonly unknown[] = []): Promise<unknown> {
    const data = (await this.#anvil.rpc('eth_call', { to, data: encodeFunctionData({ abi, functionName, args }) }, 'latest')) as Hex
    return decodeFunctionResult({ abi, functionName, args, data })
  }
}

/** A price as Uniswap's SDK has it, before it rounds. */
export const exactPrice = ({ numerator, denominator, scalar }: Price<Currency, Currency>): ExactFraction => [
  toBigInt(numerator) * toBigInt(scalar.numerator),
  toBigInt(denominator) * toBigInt(scalar.denominator),
]

export const toBigInt = (value: { toString(): string }): bigint => BigInt(value.toString())

const { min, max } = SQRT_PRICE_BOUNDS
const Q96 = 2n ** 96n
/** Enough to buy a pool empty. */
export const EVERYTHING = 2n ** 126n

export const powerOfTen = (random: SeededRandom, least: number, most: number): bigint =>
  BigInt(random.int(100, 999)) * 10n ** BigInt(random.int(least, most))

/** The root of a price from 10^-12 to 10^12. */
export const anyRoot = (random: SeededRandom): bigint =>
  (Q96 * BigInt(Math.round(10 ** (6 + random.int(-600, 600) / 100) * 1e6))) / 10n ** 12n

/** A root up to 30 % from this one, on the side to which a swap goes. */
export function nearbyRoot(random: SeededRandom, root: bigint, zeroForOne: boolean): bigint {
  const nearby = (root * BigInt(1_000 + (zeroForOne ? -1 : 1) * random.int(1, 300))) / 1_000n
  return nearby <= min ? min + 1n : nearby >= max ? max - 1n : nearby
}

export const farthestRoot = (zeroForOne: boolean): bigint => (zeroForOne ? min + 1n : max - 1n)
