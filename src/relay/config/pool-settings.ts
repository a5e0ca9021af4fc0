import { addressIn, type Hex, readHex, WORD_CHARS, ZERO_ADDRESS } from '../../lib/hex.ts'
import { addressOf, isSameName, itemsOf, redacted, SettingError, tokenName } from '../../lib/setting-readers.ts'

/** A token that stocks are traded against. The relay counts it as one dollar. */
export type QuoteToken = { readonly symbol: string; readonly address: Hex; readonly decimals: number }

/** The contract that the manager of Uniswap v4 calls at the swaps of a pool. */
export type Hooks = Hex | 'none'

/** With the two tokens, all that the id of a pool of Uniswap v4 follows from. The fee is in hundredths of a basis point. */
export type PoolKey = { readonly fee: number; readonly tickSpacing: number; readonly hooks: Hooks }

/** `token` is a symbol or an address. `currency` is a symbol, or null for the first of QUOTE_TOKENS. */
export type NamedPool = {
  readonly token: string
  readonly currency: string | null
  readonly kind: 'uniswap_v3' | 'uniswap_v4' | 'slipstream'
  /** Address of the pool; in Uniswap v4 the 32 bytes that name it in its manager, or the key from which they follow. */
  readonly id: Hex | PoolKey
  /** The contract that holds all pools of Uniswap v4; null for other kinds of pools. */
  readonly manager: Hex | null
}

export type PoolSetting = Omit<NamedPool, 'currency'> & { readonly currency: QuoteToken }

/** Limit of the decimals of a token, far beyond those of real ones. */
const DECIMALS_BOUND = 36
/** Limit of pool managers, because each has a filter of its own in every read of a block. */
export const MANAGERS_BOUND = 4
/** Limit of pools, because each is read at least once in every STOCKS_REFRESH. */
const POOLS_BOUND = 500
/** Greatest fee of a pool of Uniswap v4, which is the whole amount, and the value that stands for a fee that its hooks change. */
const [FEE_BOUND, DYNAMIC_FEE] = [1_000_000, 0x800000]
const TICK_SPACING_BOUND = 32_767

const POOL_FORM =
  /^(?<token>[^=/]+)(\/(?<currency>[^=/]+))?=(?<kind>uniswap_v3|uniswap_v4|slipstream):(?<id>0x[0-9a-f]+|[^/@]*\/[^/@]*\/[^/@]*)(@(?<manager>0x[0-9a-f]+))?$/i

export function pools(text: string): readonly NamedPool[] {
  const items = itemsOf(text)
  if (items.length > POOLS_BOUND) throw new SettingError(`must name at most ${POOLS_BOUND} pools`)
  const named = items.map(pool)
  const managers = new Set(named.flatMap(({ manager }) => manager ?? []))
  if (managers.size > MANAGERS_BOUND) throw new SettingError(`must name at most ${MANAGERS_BOUND} pool managers`)
  const names = named.map(nameOf)
  const repeated = names.find((name, index) => names.findIndex((other) => isSameName(other, name)) < index)
  if (repeated !== undefined) throw new SettingError(`must name each pool once, and ${redacted(repeated)} appears twice`)
  return named
}

/** A key names a pool only together with its two tokens. */
const nameOf = ({ token, currency, id }: NamedPool): string =>
  typeof id === 'string' ? id : `${token}${currency === null ? '' : `/${currency}`}=${idText(id)}`

/** Writes an id, or the key instead of it, as in POOLS. */
export const idText = (id: NamedPool['id']): string => (typeof id === 'string' ? id : `${id.fee}/${id.tickSpacing}/${id.hooks}`)

function pool(item: string): NamedPool {
  const refuse = (why: string) => new SettingError(`${why}, and ${redacted(item)} does not`)
  const { token = '', currency = null, kind, id = '', manager } = POOL_FORM.exec(item.replaceAll(/\s+/g, ''))?.groups ?? {}
  if (kind !== 'uniswap_v3' && kind !== 'uniswap_v4' && kind !== 'slipstream')
    throw new SettingError(
      `must be pools such as AAPLc/USDC=uniswap_v3:0x…, slipstream:0x…, uniswap_v4:0x<pool id>@0x<pool manager> or uniswap_v4:<fee>/<tick spacing>/<hooks>@0x<pool manager>, and ${redacted(item)} is not one`,
    )
  const isV4 = kind === 'uniswap_v4'
  if (isV4 !== (manager !== undefined)) throw refuse('must name the pool manager behind @ for uniswap_v4, and only there')
  const address = manager === undefined ? null : addressOf(manager)
  const poolId = isV4 ? (keyIn(id, refuse) ?? readHex(id.toLowerCase(), WORD_CHARS)) : addressOf(id)
  if (poolId === null || (isV4 && address === null))
    throw refuse(
      'must name a pool by its address, or for uniswap_v4 by its id of 32 bytes or its key, and the address of its manager',
    )
  return { token: tokenName(token, item), currency, kind, id: poolId, manager: address }
}

/** Returns null if the text is no key. */
function keyIn(text: string, refuse: (why: string) => SettingError): PoolKey | null {
  const [feeText = '', spacingText, hooksText] = text.split('/')
  if (spacingText === undefined || hooksText === undefined) return null
  const [fee, tickSpacing] = [countIn(feeText), countIn(spacingText)]
  if (!(fee <= FEE_BOUND || fee === DYNAMIC_FEE))
    throw refuse(
      `must have a fee from 0 to ${FEE_BOUND.toLocaleString('en')} hundredths of a basis point, or ${DYNAMIC_FEE} for a dynamic one`,
    )
  if (!(tickSpacing >= 1 && tickSpacing <= TICK_SPACING_BOUND))
    throw refuse(`must have a tick spacing from 1 to ${TICK_SPACING_BOUND.toLocaleString('en')} behind the fee`)
  const hooks = isSameName(hooksText, 'none') ? ZERO_ADDRESS : addressIn(hooksText)
  if (hooks === null) throw refuse('must name the hooks of a pool by their address, or none')
  return { fee, tickSpacing, hooks: hooks === ZERO_ADDRESS ? 'none' : hooks }
}

const countIn = (text: string): number => (/^\d{1,7}$/.test(text) ? Number(text) : Number.NaN)

export function quoteTokens(text: string): readonly QuoteToken[] {
  const tokens = itemsOf(text).map(quoteToken)
  const isRepeated = (token: QuoteToken, index: number) =>
    tokens.slice(0, index).some((other) => isSameName(other.symbol, token.symbol) || other.address === token.address)
  const repeated = tokens.find(isRepeated)
  if (repeated) throw new SettingError(`must name each token once, and ${redacted(repeated.symbol)} appears twice`)
  return tokens
}

function quoteToken(item: string): QuoteToken {
  const [symbol = '', address = '', decimals = '', ...others] = item.split(':').map((part) => part.trim())
  const token = addressOf(address)
  const isCount = /^\d{1,2}$/.test(decimals) && Number(decimals) <= DECIMALS_BOUND
  if (symbol === '' || token === null || !isCount || others.length > 0)
    throw new SettingError(`must be tokens with their decimals such as USDC:0x…:6, and ${redacted(item)} is not one`)
  return { symbol, address: token, decimals: Number(decimals) }
}

export const withCurrencies = (named: readonly NamedPool[], currencies: readonly QuoteToken[]): readonly PoolSetting[] =>
  named.flatMap((one) => {
    const currency = currencyOf(one, currencies)
    return currency ? [{ ...one, currency }] : []
  })

export function poolContradictions(named: readonly NamedPool[], currencies: readonly QuoteToken[]): readonly string[] {
  if (named.length === 0) return []
  if (currencies.length === 0)
    return ['QUOTE_TOKENS is missing: POOLS needs what the tokens are traded against, such as USDC:0x…:6']
  return named.flatMap((one) => {
    const currency = currencyOf(one, currencies)
    if (!currency) return [`POOLS names ${redacted(one.currency ?? '')}, which QUOTE_TOKENS does not`]
    const isItself = isSameName(one.token, currency.symbol) || one.token === currency.address
    if (isItself) return [`POOLS trades ${redacted(one.token)} against itself in ${idText(one.id)}`]
    const isPart = one.id === currency.address || one.manager === currency.address
    return isPart ? [`POOLS names ${currency.address} as a pool, and QUOTE_TOKENS as a token`] : []
  })
}

const currencyOf = ({ currency }: NamedPool, currencies: readonly QuoteToken[]): QuoteToken | undefined =>
  currency === null ? currencies[0] : currencies.find(({ symbol }) => isSameName(symbol, currency))
