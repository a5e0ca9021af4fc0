import type { Hex } from '../../src/protocol/fields.ts'
import type { Call } from './contract-state.ts'
import { drawDeeds } from './issuer-actions.ts'
import type { Dice } from './seeded-random.ts'
import { type Content, hex, type Tx } from './simulated-block.ts'
import { foreigners, newcomer, stocks } from './simulated-tokens.ts'

/** What people and contracts do on this chain. */

export const TRANSFER: Hex = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
export const APPROVAL: Hex = '0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925'
const MOST_LOGS_PER_TX = 4

const addresses = [...stocks, newcomer].map(({ address }) => address) as [Hex, ...Hex[]]
export const zero = hex(64, 0)
export const holder = (dice: Dice): Hex => hex(64, 0xa000 + dice.int(0, 9))
const amount = (dice: Dice): Hex =>
  hex(64, dice.chance(5) ? 2n ** 128n + 7n : dice.chance(5) ? 0n : BigInt(dice.int(1, 2_000_000_000)))

/** How often, in %, a transaction does more than move tokens, and the chain's time (in seconds). */
export type Market = { readonly deeds: number; readonly second: number }

/** A movement, a mint or a burn. */
export function drawMovement(dice: Dice, address: Hex): Content {
  const ends = dice.pick([
    [holder(dice), holder(dice)],
    [holder(dice), holder(dice)],
    [zero, holder(dice)],
    [holder(dice), zero],
  ] as const)
  return { address, topics: [TRANSFER, ...ends], data: amount(dice) }
}

/** One log of a token: a movement, a mint, a burn, an approval, or something that is in no book. */
export function drawLog(dice: Dice, address: Hex = dice.pick(addresses)): Content {
  const kind = dice.int(0, 99)
  if (kind < 55) return { address, topics: [TRANSFER, holder(dice), holder(dice)], data: amount(dice) }
  if (kind < 65) return { address, topics: [TRANSFER, zero, holder(dice)], data: amount(dice) }
  if (kind < 75) return { address, topics: [TRANSFER, holder(dice), zero], data: amount(dice) }
  if (kind < 87) return { address, topics: [APPROVAL, holder(dice), holder(dice)], data: amount(dice) }
  // A known name with another layout is no movement.
  if (kind < 90) return { address, topics: [TRANSFER, holder(dice), holder(dice), zero], data: '0x' }
  if (kind < 92) return { address, topics: [], data: amount(dice) }
  return { address, topics: [hex(64, 0xe000 + dice.int(0, 3)), holder(dice)], data: dice.chance(50) ? '0x' : '0xab' }
}

/** A transaction with logs of listed tokens and others, now and then the same thing said twice. */
export function drawTx(dice: Dice, hash: Hex, market: Market): Tx {
  const besides = dice.beside('deeds')
  const logs: (Content | Call)[] = Array.from({ length: dice.int(1, MOST_LOGS_PER_TX) }, () =>
    dice.chance(15) ? drawLog(dice, dice.pick(foreigners)) : drawLog(dice),
  )
  const [first] = logs
  if (first && dice.chance(15)) logs.splice(dice.int(0, logs.length), 0, first)
  if (!besides.chance(market.deeds)) return { hash, logs }
  const deeds = drawDeeds({ dice: besides, address: besides.pick(addresses), second: market.second, name: hash })
  return { hash, logs: besides.chance(80) ? deeds : [...logs, ...deeds] }
}

/** The same transaction with another outcome: a log less, one more, or one that says something else. */
export function changedTx(dice: Dice, { hash, logs }: Tx): Tx {
  const changed: (Content | Call)[] = [...logs]
  const at = dice.int(0, logs.length - 1)
  const how = dice.int(0, 2)
  if (how === 0) changed.splice(at, 1)
  else if (how === 1) changed.splice(at, 0, drawLog(dice))
  else changed[at] = drawLog(dice, logs[at]?.address)
  return { hash, logs: changed }
}
