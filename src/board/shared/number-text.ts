/** A number that is not known. It is never shown as 0. */
export const UNKNOWN = '–'

const PLACES_BOUND = 18

/**
 * An exact decimal with a fixed number of places, rounded half up, and with commas between thousands. What is not 0 and
 * would round to 0 is shown with its first two digits.
 */
export function formatDecimal(text: string | null, places: number): string {
  const [, sign = '', whole = '', fraction = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text ?? '') ?? []
  if (whole === '') return UNKNOWN
  const isSmall = /^0+$/.test(whole) && /[1-9]/.test(fraction)
  const firstDigit = fraction.search(/[1-9]/)
  const shown = isSmall && firstDigit >= places ? Math.min(firstDigit + 2, PLACES_BOUND) : places
  const units = BigInt(whole + fraction.slice(0, shown).padEnd(shown, '0')) + (Number(fraction[shown] ?? 0) >= 5 ? 1n : 0n)
  const digits = String(units).padStart(shown + 1, '0')
  const wholeDigits = digits.slice(0, digits.length - shown).replace(/\B(?=(\d{3})+$)/g, ',')
  const minus = sign === '-' && units !== 0n ? '−' : ''
  return `${minus}${wholeDigits}${shown > 0 ? `.${digits.slice(-shown)}` : ''}`
}

/** A price: two places, and more where it is below one. */
export const formatPrice = (text: string | null): string => formatDecimal(text, text?.startsWith('0') ? 4 : 2)

/** An amount of tokens: no more places than it has, up to four. */
export const formatAmount = (text: string | null): string => formatDecimal(text, Math.min(4, text?.split('.')[1]?.length ?? 0))

export const formatCount = (count: number): string => formatDecimal(String(Math.trunc(count)), 0)

/** A block number, or what stands for none. */
export const formatBlock = (number: number | null | undefined): string => (number == null ? UNKNOWN : formatCount(number))

/** Dollars of a sum, short: `$940`, `$12.4 k`, `$3.1 M`. */
export function formatMoney(dollars: number): string {
  const size = Math.abs(dollars)
  const [divisor, unit] = size >= 999_950_000 ? [1e9, ' B'] : size >= 999_950 ? [1e6, ' M'] : size >= 1_000 ? [1e3, ' k'] : [1, '']
  const places = unit === '' || size / divisor >= 100 ? 0 : 1
  return `$${(size / divisor).toFixed(places)}${unit}`
}

/** With a sign: `+`, a true minus, or none for what shows as 0. */
export function formatSignedMoney(dollars: number): string {
  const text = formatMoney(dollars)
  return text === '$0' ? text : `${dollars < 0 ? '−' : '+'}${text}`
}

/** Basis points with a sign, as the relay computed them. */
export function formatBps(bps: string): string {
  const text = formatDecimal(bps, Math.abs(Number(bps)) >= 1_000 ? 0 : 1)
  return Number(bps) > 0 ? `+${text}` : text
}

/** A share of a whole as a percentage that never rounds up to 100. */
export function formatShare(part: number, whole: number): string {
  if (whole === 0) return UNKNOWN
  const percent = Math.floor((part / whole) * 10_000) / 100
  return `${percent === 100 ? '100' : percent.toFixed(2)} %`
}

/** `0x3f2a…9c01`. A key has its block before that. */
export const shortHex = (hex: string): string => (hex.length > 13 ? `${hex.slice(0, 6)}…${hex.slice(-4)}` : hex)
