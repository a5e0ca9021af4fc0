import type { EmittedLog } from '../../src/devnet/chain/chain-types.ts'
import { type Hex, ZERO_WORD } from '../../src/lib/hex.ts'
import { randomActions } from './issuer-actions.ts'
import { randomManagerSwaps, randomSwaps } from './random-swaps.ts'
import type { SeededRandom } from './seeded-random.ts'
import { laterToken, listedTokens, unlistedAddresses } from './simulated-tokens.ts'
import { emit, hex, type SimulatedTx, type Step, simulatedTx } from './simulated-transactions.ts'

/** Random transactions of holders and contracts. */

export const TRANSFER: Hex = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
export const APPROVAL: Hex = '0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925'
const MAX_LOGS_PER_TX = 4

const addresses = [...listedTokens, laterToken].map(({ address }) => address) as [Hex, ...Hex[]]
export const randomHolder = (random: SeededRandom): Hex => hex(64, 0xa000 + random.int(0, 9))
const randomAmount = (random: SeededRandom): Hex =>
  hex(64, random.chance(5) ? 2n ** 128n + 7n : random.chance(5) ? 0n : BigInt(random.int(1, 2_000_000_000)))

/** Shares, in %, of the transactions with swaps that have nothing else, and of all transactions that have swaps where there are pools. */
const SWAPS_ALONE_PERCENT = 50
const SWAPS_PERCENT = 35

/** How often, in %, a transaction contains issuer actions, and the chain's time in seconds. */
export type TransactionMix = {
  readonly issuerPercent: number
  readonly second: number
  readonly hasPools: boolean
  /** Whether there is a manager with pools too. */
  readonly hasManager: boolean
}

/** A transfer, a mint or a burn. */
export function randomMovement(random: SeededRandom, address: Hex): EmittedLog {
  const ends = random.pick([
    [randomHolder(random), randomHolder(random)],
    [randomHolder(random), randomHolder(random)],
    [ZERO_WORD, randomHolder(random)],
    [randomHolder(random), ZERO_WORD],
  ] as const)
  return { address, topics: [TRANSFER, ...ends], data: randomAmount(random) }
}

/** One log of a token: a movement, an approval, or a log that the relay cannot decode. */
export function randomLog(random: SeededRandom, address: Hex = random.pick(addresses)): EmittedLog {
  const kind = random.int(0, 99)
  if (kind < 55) return { address, topics: [TRANSFER, randomHolder(random), randomHolder(random)], data: randomAmount(random) }
  if (kind < 65) return { address, topics: [TRANSFER, ZERO_WORD, randomHolder(random)], data: randomAmount(random) }
  if (kind < 75) return { address, topics: [TRANSFER, randomHolder(random), ZERO_WORD], data: randomAmount(random) }
  if (kind < 87) return { address, topics: [APPROVAL, randomHolder(random), randomHolder(random)], data: randomAmount(random) }
  // A known event with another layout is not a movement.
  if (kind < 90) return { address, topics: [TRANSFER, randomHolder(random), randomHolder(random), ZERO_WORD], data: '0x' }
  if (kind < 92) return { address, topics: [], data: randomAmount(random) }
  return { address, topics: [hex(64, 0xe000 + random.int(0, 3)), randomHolder(random)], data: random.chance(50) ? '0x' : '0xab' }
}

/** A transaction with logs of listed and unlisted tokens. Sometimes the same log occurs twice. */
export function randomTx(random: SeededRandom, hash: Hex, mix: TransactionMix): SimulatedTx {
  const actionRandom = random.fork('deeds')
  const swapRandom = random.fork('swaps')
  const managerRandom = random.fork('manager swaps')
  const swaps = [
    ...(mix.hasPools && swapRandom.chance(SWAPS_PERCENT) ? randomSwaps(swapRandom) : []),
    ...(mix.hasManager && managerRandom.chance(SWAPS_PERCENT) ? randomManagerSwaps(managerRandom) : []),
  ]
  const steps: Step[] = Array.from({ length: random.int(1, MAX_LOGS_PER_TX) }, () =>
    emit(random.chance(15) ? randomLog(random, random.pick(unlistedAddresses)) : randomLog(random)),
  )
  const [first] = steps
  if (first && random.chance(15)) steps.splice(random.int(0, steps.length), 0, first)
  if (swaps.length > 0) return simulatedTx(hash, swapRandom.chance(SWAPS_ALONE_PERCENT) ? swaps : [...steps, ...swaps])
  if (!actionRandom.chance(mix.issuerPercent)) return simulatedTx(hash, steps)
  const actions = randomActions({ random: actionRandom, address: actionRandom.pick(addresses), second: mix.second, name: hash })
  return simulatedTx(hash, actionRandom.chance(80) ? actions : [...steps, ...actions])
}

/** The same transaction with another outcome: one log less, one more, or a different one. */
export function alterTx(random: SeededRandom, { hash, steps }: SimulatedTx): SimulatedTx {
  const changed = [...steps]
  const at = random.int(0, steps.length - 1)
  const change = random.int(0, 2)
  if (change === 0) changed.splice(at, 1)
  else if (change === 1) changed.splice(at, 0, emit(randomLog(random)))
  else changed[at] = emit(randomLog(random, steps[at]?.address))
  return simulatedTx(hash, changed)
}
