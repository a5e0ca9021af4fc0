import type { EmittedLog } from '../../../src/devnet/chain/chain-types.ts'
import type { Update } from '../../../src/protocol/updates.ts'
import { type ExactFraction, fractionOf, isNearest, shifted, unitsOf } from '../../support/exact-fraction.ts'
import type { PlacedLog } from '../placed-logs.ts'
import { isTokenFirst, MANAGER_SWAP, poolOf, ROOT_BOUNDS, type SimulatedPool, SWAP } from '../simulated-pools.ts'
import { tokenAt } from '../simulated-tokens.ts'
import { decimalText } from './exact-decimals.ts'

type Trade = Extract<Update, { type: 'trade' }>

/** A swap of a pool, read independently of the relay. Amounts that went into the pool are positive. */
type Swap = {
  readonly pool: SimulatedPool
  readonly token: bigint
  readonly currency: bigint
  readonly root: bigint
  readonly sender: string
  /** Null where the event does not name it. */
  readonly recipient: string | null
  /** In hundredths of a basis point; null where the event does not tell it. */
  readonly fee: bigint | null
}

const WORD = 64
const SWAP_WORDS = 5
const MANAGER_SWAP_WORDS = 6
const FEE_PLACES = 2
const Q192 = 2n ** 192n
const PRICE_DECIMALS = 8
const BPS_DECIMALS = 2
const PARTS_TO_BPS = 4

const addressOf = (word: string): string => `0x${word.slice(26)}`
const magnitude = (value: bigint): bigint => (value < 0n ? -value : value)
/** Null for another event, and for another layout than that of the pool. */
export function swapOf({ content }: { readonly content: EmittedLog }): Swap | null {
  const { topics, data } = content
  const pool = poolOf(content)
  const isManaged = pool?.kind === 'uniswap_v4'
  const [name, first = '', second = ''] = topics
  const chars = 2 + (isManaged ? MANAGER_SWAP_WORDS : SWAP_WORDS) * WORD
  if (!pool || name !== (isManaged ? MANAGER_SWAP : SWAP) || topics.length !== 3 || data.length !== chars) return null
  const word = (nth: number) => BigInt(`0x${data.slice(2 + nth * WORD, 2 + (nth + 1) * WORD)}`)
  // The amounts of a manager are those of the swapper.
  const amounts = [0, 1].map((nth) => BigInt.asIntN(256, word(nth)) * (isManaged ? -1n : 1n)) as [bigint, bigint]
  const [token, currency] = isTokenFirst(pool) ? amounts : ([amounts[1], amounts[0]] as const)
  const swapped = { pool, token, currency, root: word(2) }
  return isManaged
    ? { ...swapped, sender: addressOf(second), recipient: null, fee: word(MANAGER_SWAP_WORDS - 1) }
    : { ...swapped, sender: addressOf(first), recipient: addressOf(second), fee: null }
}

/** The content of a trade as text. */
export function swapText({ pool, token, currency, sender, recipient }: Swap): string {
  const sold = token === 0n ? -currency : token
  const side = sold === 0n ? null : sold > 0n ? 'sell' : 'buy'
  const paid = decimalText(magnitude(currency), pool.currency.decimals)
  return textOf(pool.token, [side, magnitude(token), paid, sender, recipient, pool.id])
}

export const tradeText = ({ address, side, raw, currency_amount, sender, recipient, venue }: Trade): string =>
  textOf(address, [side, raw, currency_amount, sender, recipient, venue.pool])

const textOf = (token: string, content: readonly unknown[]): string => `${token} trade ${content.join(' ')}`

/** Names the first wrong number of a trade, by its log, its NAV and the decimals; null if all are right. */
export function findTradeError(trade: Trade, log: PlacedLog): string | null {
  const swap = swapOf(log)
  const decimals = tokenAt(trade.address)?.decimals
  if (!swap || decimals === undefined) return 'is of no pool'
  const { venue, price, pool_price, basis, basis_bps, nav } = trade
  const { pool, token, currency, root, fee } = swap
  const places = decimals - pool.currency.decimals
  const paid: ExactFraction | null = token === 0n ? null : shifted([magnitude(currency), magnitude(token)], places)
  if (!isRounded(price, paid)) return `has the price ${price} for ${currency} and ${token}`
  const ratio: ExactFraction = isTokenFirst(pool) ? [root * root, Q192] : [Q192, root * root]
  if (!isRounded(pool_price, ROOT_BOUNDS.includes(root) ? null : shifted(ratio, places)))
    return `has the pool price ${pool_price} at ${root}`
  const expectedBasis = price === null || nav.price === null ? null : nav.state === 'fresh' && !nav.frozen ? 'premium' : 'drift'
  if (basis !== expectedBasis) return `has the basis ${basis}, not ${expectedBasis}`
  if ((basis_bps === null) !== (basis === null)) return `has the basis ${basis} of ${basis_bps}`
  if (price !== null && nav.price !== null && basis_bps !== null) {
    const [[a, b], [c, d]] = [fractionOf(price), fractionOf(nav.price)]
    const difference = shifted([a * d - b * c, b * c], PARTS_TO_BPS + BPS_DECIMALS)
    if (!isNearest(unitsOf(basis_bps, BPS_DECIMALS), difference)) return `is ${basis_bps} from ${nav.price} at ${price}`
  }
  const { symbol, address } = pool.currency
  if (venue.kind !== pool.kind || venue.currency.symbol !== symbol || venue.currency.address !== address)
    return `names ${JSON.stringify(venue)}`
  const isManaged = pool.kind === 'uniswap_v4'
  if (venue.hooks !== (isManaged ? null : 'none')) return `has the hooks ${venue.hooks}`
  // Where the node answers no calls, the fee of a pool is not known.
  const fees = isManaged ? [fee] : pool.kind === 'uniswap_v3' ? [null, BigInt(pool.fee)] : [null]
  if (!fees.some((one) => venue.fee_bps === (one === null ? null : decimalText(one, FEE_PLACES))))
    return `has the fee ${venue.fee_bps}`
  return null
}

/** Whether a published number is the fraction, rounded to eight places, or null where there is none or it rounds to 0. */
function isRounded(text: string | null, exact: ExactFraction | null): boolean {
  if (exact === null) return text === null
  const scaled = shifted(exact, PRICE_DECIMALS)
  const units = text === null ? 0n : unitsOf(text, PRICE_DECIMALS)
  return isNearest(units, scaled) && (text !== null || units === 0n) && text !== '0'
}
