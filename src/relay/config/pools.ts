import { type Hex, readHex, WORD_CHARS } from '../../lib/hex.ts'
import { addressOf, isSameName, itemsOf, redacted, SettingError } from '../../lib/setting-readers.ts'

/** What tokens are traded against, taken as one dollar. */
export type QuoteToken = { readonly symbol: string; readonly address: Hex; readonly decimals: number }

/** A pool as POOLS names it: a token by its symbol or address, and the currency by its symbol, or null for the first one. */
export type NamedPool = {
  readonly token: string
  readonly currency: string | null
  readonly kind: 'uniswap_v3' | 'uniswap_v4' | 'slipstream'
  readonly id: Hex
  readonly manager: Hex | null
}

/** The same with its currency. */
export type PoolSetting = Omit<NamedPool, 'currency'> & { readonly currency: QuoteToken }

/** No ERC-20 token has more decimals that a price can be computed with. */
const DECIMALS_BOUND = 36
/** Every pool is read at least every STOCKS_REFRESH, all in one batch. */
const POOLS_BOUND = 500

const POOL_FORM =
  /^(?<token>[^=/]+)(\/(?<currency>[^=/]+))?=(?<kind>uniswap_v3|uniswap_v4|slipstream):(?<id>0x[0-9a-f]+)(@(?<manager>0x[0-9a-f]+))?$/i

export function pools(text: string): readonly NamedPool[] {
  const items = itemsOf(text)
  if (items.length > POOLS_BOUND) throw new SettingError(`must name at most ${POOLS_BOUND} pools`)
  const named = items.map(pool)
  const repeated = named.find(({ id }, index) => named.findIndex((other) => other.id === id) < index)
  if (repeated) throw new SettingError(`must name each pool once, and ${repeated.id} appears twice`)
  return named
}

function pool(item: string): NamedPool {
  const refuse = (why: string) => new SettingError(`${why}, and ${redacted(item)} does not`)
  const { token = '', currency = null, kind, id = '', manager } = POOL_FORM.exec(item.replaceAll(/\s+/g, ''))?.groups ?? {}
  if (kind !== 'uniswap_v3' && kind !== 'uniswap_v4' && kind !== 'slipstream')
    throw new SettingError(
      `must be pools such as AAPLc/USDC=uniswap_v3:0x…, slipstream:0x… or uniswap_v4:0x<pool id>@0x<pool manager>, and ${redacted(item)} is not one`,
    )
  const isV4 = kind === 'uniswap_v4'
  if (isV4 !== (manager !== undefined)) throw refuse('must name the pool manager behind @ for uniswap_v4, and only there')
  const address = manager === undefined ? null : addressOf(manager)
  const poolId = isV4 ? wordOf(id) : addressOf(id)
  if (poolId === null || (isV4 && address === null))
    throw refuse('must name a pool by its address, or for uniswap_v4 by its id of 32 bytes and the address of its manager')
  return { token: tokenNameOf(token), currency, kind, id: poolId, manager: address }
}

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

/** The pools with their currencies. */
export const withCurrencies = (named: readonly NamedPool[], currencies: readonly QuoteToken[]): readonly PoolSetting[] =>
  named.flatMap((one) => {
    const currency = currencyOf(one, currencies)
    return currency ? [{ ...one, currency }] : []
  })

/** What POOLS and QUOTE_TOKENS say against each other. */
export function poolContradictions(named: readonly NamedPool[], currencies: readonly QuoteToken[]): readonly string[] {
  if (named.length === 0) return []
  if (currencies.length === 0)
    return ['QUOTE_TOKENS is missing: POOLS needs what the tokens are traded against, such as USDC:0x…:6']
  return named.flatMap((one) => {
    const currency = currencyOf(one, currencies)
    if (!currency) return [`POOLS names ${redacted(one.currency ?? '')}, which QUOTE_TOKENS does not`]
    const isItself = isSameName(one.token, currency.symbol) || one.token === currency.address
    if (isItself) return [`POOLS trades ${redacted(one.token)} against itself in ${one.id}`]
    const isPart = one.id === currency.address || one.manager === currency.address
    return isPart ? [`POOLS names ${currency.address} as a pool, and QUOTE_TOKENS as a token`] : []
  })
}

const currencyOf = ({ currency }: NamedPool, currencies: readonly QuoteToken[]): QuoteToken | undefined =>
  currency === null ? currencies[0] : currencies.find(({ symbol }) => isSameName(symbol, currency))

function tokenNameOf(token: string): string {
  if (!/^0x/i.test(token)) return token
  const address = addressOf(token)
  if (address === null) throw new SettingError(`must name a token by its symbol or its address, and ${redacted(token)} is neither`)
  return address
}

const wordOf = (text: string): Hex | null => readHex(text.toLowerCase(), WORD_CHARS)

const v3 = (token: NamedPool['token'], id: NamedPool['id']): NamedPool => ({
  token,
  currency: null,
  kind: 'uniswap_v3',
  id,
  manager: null,
})

/** Pools on Base against USDC, as read on 2026-09-05. The stocks trade elsewhere too: POOLS names other pools. */
export const basePools: readonly NamedPool[] = [
  // AAPLc, 0.3 %
  v3('0xb200000000000000000000c2e324d24d7eecd1fb', '0x97f35d1e92795327614be000cd18cba1be2c1931'),
  // GOOGLc, 1 %
  v3('0xb2000000000000000000002d0ba3164cc74f58b7', '0x1f52f46bac657564c31122b12b43a459e09273c8'),
  // METAc, 0.3 %
  v3('0xb2000000000000000000008bc8786b856e61707c', '0x583919ec1975a1238c50e1940911894ee6912476'),
  // NVDAc, 0.3 %
  v3('0xb20000000000000000000078ee7ce2fe4908108c', '0x60661b315553eb81872deea9a66d567cf0ccd33b'),
  // NVDAc, 0.05 %
  { ...v3('0xb20000000000000000000078ee7ce2fe4908108c', '0x853f5f1b92b16714fe6cda67caad0856b83c7ab9'), kind: 'slipstream' },
  // SPCXc, 1 %
  v3('0xb2000000000000000000007b9fcbd005511acbd5', '0x127a12fc0953ab2ab89558c67ba6d597d7140431'),
]
