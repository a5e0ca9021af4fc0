/** Shown for a number that is not known, which is never shown as 0. */
export const UNKNOWN = '–'

const PLACES_BOUND = 18

/** Rounds an exact decimal half up. With `keepsSmall`, a number that would become 0 keeps its first two digits. */
export function formatDecimal(text: string | null, places: number, keepsSmall = true): string {
  const [, sign = '', whole = '', fraction = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text ?? '') ?? []
  if (whole === '') return UNKNOWN
  const isSmall = keepsSmall && /^0+$/.test(whole) && /[1-9]/.test(fraction)
  const firstDigit = fraction.search(/[1-9]/)
  const shown = isSmall && firstDigit >= places ? Math.min(firstDigit + 2, PLACES_BOUND) : places
  const units = BigInt(whole + fraction.slice(0, shown).padEnd(shown, '0')) + (Number(fraction[shown] ?? 0) >= 5 ? 1n : 0n)
  const digits = String(units).padStart(shown + 1, '0')
  const wholeDigits = digits.slice(0, digits.length - shown).replace(/\B(?=(\d{3})+$)/g, ',')
  const minus = sign === '-' && units !== 0n ? '−' : ''
  return `${minus}${wholeDigits}${shown > 0 ? `.${digits.slice(-shown)}` : ''}`
}

/** Formats a price with two decimals, or with four if it is below one. */
export const formatPrice = (text: string | null): string => formatDecimal(text, text?.startsWith('0') ? 4 : 2)

/** Formats an amount with the decimals that it has, at most four. */
export const formatAmount = (text: string | null): string => formatDecimal(text, Math.min(4, text?.split('.')[1]?.length ?? 0))

/** Formats an amount of tokens for a column, in which all have their points at the same place: `12,345.6780`, `< 0.0001`. */
export function formatTokens(text: string): string {
  if (!/[1-9]/.test(text)) return '0'
  return /^0\.0{4}/.test(text) ? '< 0.0001' : formatDecimal(text, 4, false)
}

/** Formats a quantity, which below a thousand keeps what is after its point. */
export const formatQuantity = (quantity: number): string =>
  quantity >= 1_000 ? formatCount(quantity) : formatAmount(quantity.toFixed(PLACES_BOUND).replace(/\.?0+$/, ''))

export const formatCount = (count: number): string => formatDecimal(String(Math.trunc(count)), 0)

export const formatBlock = (number: number | null | undefined): string => (number == null ? UNKNOWN : formatCount(number))

export function formatMoney(dollars: number): string {
  const size = Math.abs(dollars)
  const [divisor, unit] = size >= 999_950_000 ? [1e9, 'B'] : size >= 999_950 ? [1e6, 'M'] : size >= 1_000 ? [1e3, 'k'] : [1, '']
  const places = unit === '' || size / divisor >= 100 ? 0 : 1
  return `$${(size / divisor).toFixed(places)}${unit}`
}

/** Formats a change in percent with its sign. */
export function formatPercent(percent: number): string {
  const text = Math.abs(percent).toFixed(2)
  return `${text === '0.00' ? '' : percent > 0 ? '+' : '−'}${text} %`
}

export function formatBps(bps: string): string {
  const text = formatDecimal(bps, Math.abs(Number(bps)) >= 1_000 ? 0 : 1, false)
  return Number(bps) > 0 && text !== '0.0' ? `+${text}` : text
}

/** Formats a percentage, which never rounds up to 100. */
export function formatShare(part: number, whole: number): string {
  if (whole === 0) return UNKNOWN
  const percent = Math.floor((part / whole) * 10_000) / 100
  return `${percent === 100 ? '100' : percent.toFixed(2)} %`
}

/** A percentage of fewer would look more certain than it is. */
const FEW = 200

/** Says how many are right, such as `9 of 11` or `99.92 % of 12,345`. */
export const formatRight = (right: number, all: number): string =>
  `${all < FEW ? formatCount(right) : formatShare(right, all)} of ${formatCount(all)}`

export const shortHex = (hex: string): string => (hex.length > 13 ? `${hex.slice(0, 6)}…${hex.slice(-4)}` : hex)

/** Reads an amount as people write it, such as `$10,000` or `10k`. What is no amount stays as it is. */
export function plainAmount(text: string): string {
  const bare = text
    .trim()
    .replace(/^\$\s*/, '')
    .replace(/,(?=\d{3}(\D|$))/g, '')
  const [, digits = '', fraction = '', unit = ''] = /^(\d+)(?:\.(\d+))?\s*([km])$/i.exec(bare) ?? []
  if (digits === '') return bare
  const places = unit.toLowerCase() === 'k' ? 3 : 6
  const whole = `${digits}${fraction.slice(0, places).padEnd(places, '0')}`.replace(/^0+(?=\d)/, '')
  const rest = fraction.slice(places)
  return rest === '' ? whole : `${whole}.${rest}`
}
