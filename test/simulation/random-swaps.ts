import type { EmittedLog } from '../../src/devnet/chain/chain-types.ts'
import type { Hex } from '../../src/lib/hex.ts'
import { randomHolder, TRANSFER } from './random-transactions.ts'
import type { SeededRandom } from './seeded-random.ts'
import {
  contractOf,
  isTokenFirst,
  LIQUIDITY,
  MANAGER,
  MANAGER_SWAP,
  managerPools,
  poolOf,
  Q96,
  ROOT_BOUNDS,
  rootWrite,
  type SimulatedPool,
  SWAP,
  simulatedPools,
  words,
} from './simulated-pools.ts'
import { unlistedAddresses } from './simulated-tokens.ts'
import { emit, hex, type Step } from './simulated-transactions.ts'

/** Random swaps of pools, and other events of their contracts. Amounts that go into a pool are positive until they are encoded. */

/** Swaps of pools, most with the transfer of the token, some in an unknown layout, and other events of pools. */
export function randomSwaps(random: SeededRandom): readonly Step[] {
  const swaps = Array.from({ length: random.int(1, 3) }, () => randomSwap(random))
  const [first] = swaps
  return [...swaps, ...(first && random.chance(10) ? [first] : [])].flat()
}

function randomSwap(random: SeededRandom): readonly Step[] {
  const pool = random.pick<SimulatedPool>(simulatedPools)
  const [sender, recipient] = [randomHolder(random), randomHolder(random)]
  const raw = random.chance(5) ? 0n : BigInt(random.int(1, 2_000_000_000))
  const paid = randomPaid(random, pool)
  const isSale = random.chance(50)
  const [token, currency] = isSale ? [raw, -paid] : [-raw, paid]
  const root = randomRoot(random)
  const data = words([...(isTokenFirst(pool) ? [token, currency] : [currency, token]), root, LIQUIDITY, BigInt(random.int(-9, 9))])
  const topics: [Hex, Hex, Hex] = [SWAP, sender, recipient]
  const swap = (log: Omit<EmittedLog, 'address'>): Step => swapStep(pool, root, { address: pool.id, ...log })
  const kind = random.int(0, 99)
  if (kind < 5) return [swap({ topics: [SWAP, sender], data })]
  if (kind < 8) return [swap({ topics, data: `0x${data.slice(66)}` })]
  if (kind < 12) return [swap({ topics: [hex(64, 0xe000), sender], data })]
  if (kind < 40) return [swap({ topics, data })]
  return [transferOf(pool, { raw, isSale, sender, recipient }), swap({ topics, data })]
}

const randomPaid = (random: SeededRandom, { currency }: SimulatedPool): bigint =>
  random.chance(5) ? 0n : BigInt(random.int(1, 2_000_000_000)) * 10n ** BigInt(random.int(0, currency.decimals))

const randomRoot = (random: SeededRandom): bigint =>
  random.chance(6) ? random.pick(ROOT_BOUNDS) : (Q96 * BigInt(random.int(1, 1_000_000))) / 1_000n

const swapStep = (pool: SimulatedPool, root: bigint, log: EmittedLog): Step => ({
  address: log.address,
  call: () => ({ input: '0x', logs: [log], writes: poolOf(log) === pool ? [rootWrite(pool, root)] : [] }),
})

type Traded = { readonly raw: bigint; readonly isSale: boolean; readonly sender: Hex; readonly recipient: Hex }

/** The movement of the token that a swap causes. */
function transferOf(pool: SimulatedPool, { raw, isSale, sender, recipient }: Traded): Step {
  const account = hex(64, BigInt(contractOf(pool)))
  const ends: [Hex, Hex] = isSale ? [sender, account] : [account, recipient]
  return emit({ address: pool.token, topics: [TRANSFER, ...ends], data: hex(64, raw) })
}

/** Share, in %, of the swaps of a manager that are a route through two pools of one token that moves none of it. */
const ROUTE_PERCENT = 35

/** Swaps of pools of a manager, some of them a route, and other events of the manager. */
export function randomManagerSwaps(random: SeededRandom): readonly Step[] {
  if (random.chance(ROUTE_PERCENT)) return randomRoute(random)
  return Array.from({ length: random.int(1, 2) }, () => randomManagerSwap(random)).flat()
}

/** Buys a token in one pool and sells as much of it in another one, in one transaction: the manager moves none of it. */
function randomRoute(random: SeededRandom): readonly Step[] {
  const [one, other] = managerPools
  const [bought, sold] = random.chance(50) ? [one, other] : [other, one]
  const [raw, sender] = [BigInt(random.int(1, 2_000_000_000)), randomHolder(random)]
  return [
    managerSwapStep(random, bought, { token: -raw, currency: randomPaid(random, bought), sender }),
    managerSwapStep(random, sold, { token: raw, currency: -randomPaid(random, sold), sender }),
  ]
}

function randomManagerSwap(random: SeededRandom): readonly Step[] {
  const pool = random.pick<SimulatedPool>(managerPools)
  const [sender, recipient] = [randomHolder(random), randomHolder(random)]
  const raw = random.chance(5) ? 0n : BigInt(random.int(1, 2_000_000_000))
  const paid = randomPaid(random, pool)
  const isSale = random.chance(50)
  const swapped = { ...(isSale ? { token: raw, currency: -paid } : { token: -raw, currency: paid }), sender }
  const swap = (change: (log: EmittedLog) => EmittedLog = (log) => log) => [managerSwapStep(random, pool, swapped, change)]
  const kind = random.int(0, 99)
  // Another layout, a pool that no settings name, another event of the pool, and contracts that are no manager.
  if (kind < 4) return swap((log) => ({ ...log, topics: log.topics.slice(0, 2) }))
  if (kind < 7) return swap((log) => ({ ...log, data: `0x${log.data.slice(66)}` }))
  if (kind < 12) return swap((log) => ({ ...log, topics: log.topics.with(1, hex(64, 0xb5n * 2n ** 248n)) }))
  if (kind < 15) return swap((log) => ({ ...log, topics: log.topics.with(0, hex(64, 0xe001)) }))
  if (kind < 17) return swap((log) => ({ ...log, topics: log.topics.with(0, SWAP) }))
  if (kind < 19) return swap((log) => ({ ...log, address: simulatedPools[1].id }))
  if (kind < 21) return swap((log) => ({ ...log, address: unlistedAddresses[0] }))
  if (kind < 45) return swap()
  return [transferOf(pool, { raw, isSale, sender, recipient }), ...swap()]
}

type ManagerSwap = { readonly token: bigint; readonly currency: bigint; readonly sender: Hex }

/** A swap as the manager tells it: its amounts are those of the swapper, so what went into the pool is negative. */
function managerSwapStep(
  random: SeededRandom,
  pool: SimulatedPool,
  { token, currency, sender }: ManagerSwap,
  change: (log: EmittedLog) => EmittedLog = (log) => log,
): Step {
  const root = randomRoot(random)
  const amounts = isTokenFirst(pool) ? [-token, -currency] : [-currency, -token]
  const data = words([...amounts, root, LIQUIDITY, BigInt(random.int(-9, 9)), BigInt(random.pick([pool.fee, 12_345]))])
  return swapStep(pool, root, change({ address: MANAGER, topics: [MANAGER_SWAP, pool.id, sender], data }))
}
