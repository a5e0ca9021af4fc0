import type { Update } from '../../../src/protocol/updates.ts'
import { type ExactFraction, fractionOf, isNearest, shifted, unitsOf } from '../../support/exact-fraction.ts'
import type { PlacedLog } from '../placed-logs.ts'
import { poolAt, ROOT_BOUNDS, type SimulatedPool, SWAP } from '../simulated-pools.ts'
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
  readonly recipient: string
}

const WORD = 64
const SWAP_WORDS = 5
const Q192 = 2n ** 192n
const PRICE_DECIMALS = 8
const BPS_DECIMALS = 2
const PARTS_TO_BPS = 4

const addressOf = (word: string): string => `0x${word.slice(26)}`
const magnitude = (value: bigint): bigint => (value < 0n ? -value : value)
const isTokenFirst = ({ token, currency }: SimulatedPool): boolean => token < currency.address

/** Null for another event, and for another layout than that of the pool. */
export function swapOf({ content: { address, topics, data } }: PlacedLog): Swap | null {
  const pool = poolAt(address)
  const [name, sender = '', recipient = ''] = topics
  if (!pool || name !== SWAP || topics.length !== 3 || data.length !== 2 + SWAP_WORDS * WORD) return null
  const word = (nth: number) => BigInt(`0x${data.slice(2 + nth * WORD, 2 + (nth + 1) * WORD)}`)
  const amounts = [BigInt.asIntN(256, word(0)), BigInt.asIntN(256, word(1))] as const
  const [token, currency] = isTokenFirst(pool) ? amounts : ([amounts[1], amounts[0]] as const)
  return { pool, token, currency, root: word(2), sender: addressOf(sender), recipient: addressOf(recipient) }
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
  const { pool, token, currency, root } = swap
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
  return null
}

/** Whether a published number is the fraction, rounded to eight places, or null where there is none or it rounds to 0. */
function isRounded(text: string | null, exact: ExactFraction | null): boolean {
  if (exact === null) return text === null
  const scaled = shifted(exact, PRICE_DECIMALS)
  const units = text === null ? 0n : unitsOf(text, PRICE_DECIMALS)
  return isNearest(units, scaled) && (text !== null || units === 0n) && text !== '0'
}
