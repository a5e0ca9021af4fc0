import { z } from 'zod'
import { ADDRESS_CHARS, type Hex, readHex, ZERO_ADDRESS } from '../../../lib/hex.ts'
import { isNestedDeeper, parseJson, type Reviver } from '../../../lib/safe-json.ts'
import { runAtOnce, type Steps } from '../../../lib/turns.ts'
import { formatDecimal, parseDecimal } from '../../../protocol/decimal.ts'
import type { TokenRecord } from '../../../protocol/fields.ts'
import type { NavReading } from '../nav.ts'
import { findRecords, ListError } from './find-records.ts'

export type ListedToken = {
  readonly address: Hex
  readonly symbol: string
  readonly isin: string | null
  /** Null if the list has no valid number. Then amounts are unknown, and not guessed. */
  readonly decimals: number | null
  /** Number of shares for one token, with all digits; null if it is missing or invalid. */
  readonly multiplier: string | null
  readonly supply: string | null
  readonly paused: readonly number[]
  readonly nav: NavReading
  readonly record: TokenRecord
}

/** The valid tokens by address, and in `skipped` the reason for each skipped record. */
export type ParsedList = { readonly tokens: ReadonlyMap<Hex, ListedToken>; readonly skipped: readonly string[] }

/** Limit of a symbol and of an ISIN. A longer one is cut. */
const SYMBOL_BOUND_CHARS = 128
const DECIMALS_BOUND = 77
const ICON_BOUND_BYTES = 2_048
/** Limit of a record, since every client receives it. A longer one is skipped; real records have about 600 bytes. */
const RECORD_BOUND_BYTES = 64 * 1_024
const RECORD_BOUND_DEPTH = 32
const STEP_BYTES = 64 * 1_024

/** The answer without its records. Only an empty object may omit `tokens`. */
const Envelope = z.union([z.object({ tokens: z.array(z.unknown()).length(0) }), z.strictObject({})])

export const parseList = (body: Buffer): ParsedList => runAtOnce(parseListInSteps(body))

/** Parses record by record, so that a wrong record never drops others. A long list takes a second, in steps of milliseconds. */
export function* parseListInSteps(body: Buffer): Steps<ParsedList> {
  const { envelope, ranges } = yield* findRecords(body)
  if (!Envelope.safeParse(readJson(envelope)).success) throw new ListError('the answer has no array of tokens')
  const tokens = new Map<Hex, ListedToken>()
  const skipped: string[] = []
  let stepEnd = STEP_BYTES
  for (const [index, { from, to }] of ranges.entries()) {
    const record = body.subarray(from, to)
    const token = tooLarge(record) ?? parseRecord(record.toString('utf8'))
    if (typeof token === 'string') skipped.push(`record ${index}: ${token}`)
    else if (tokens.has(token.address)) skipped.push(`record ${index}: ${token.address} is listed twice`)
    else tokens.set(token.address, token)
    if (to < stepEnd) continue
    stepEnd = to + STEP_BYTES
    yield
  }
  return { tokens, skipped }
}

function tooLarge(record: Buffer): string | null {
  if (record.length > RECORD_BOUND_BYTES) return `longer than ${RECORD_BOUND_BYTES} bytes`
  return isNestedDeeper(record, RECORD_BOUND_DEPTH) ? `nested deeper than ${RECORD_BOUND_DEPTH} levels` : null
}

function readJson(text: string, revive?: Reviver): unknown {
  const value = parseJson(text, revive)
  if (value === undefined) throw new ListError('the answer is not JSON')
  return value
}

function parseRecord(text: string): ListedToken | string {
  const item = readJson(text, withExactNumbers)
  if (typeof item !== 'object' || item === null || Array.isArray(item) || item instanceof ExactNumber) return 'not an object'
  const fields = new Map<string, unknown>(Object.entries(item))
  const address = readHex(fields.get('contract_address'), ADDRESS_CHARS)
  if (!address || address === ZERO_ADDRESS) return 'no usable contract_address'
  const symbol = parseSymbol(fields.get('symbol'))
  return {
    address,
    symbol: symbol ?? address,
    isin: parseText(fields.get('isin')),
    decimals: parseDecimals(fields.get('decimals')),
    multiplier: parseMultiplier(fields.get('multiplier')),
    supply: parseSupply(fields.get('total_supply')),
    paused: parseOrdinals(fields.get('paused_features')),
    nav: { price: parsePrice(fields.get('nav_price')), updatedAt: parseTime(fields.get('nav_price_updated_at')) },
    record: toWritableJson(withoutBadIcon(item)) as TokenRecord,
  }
}

/** Removes an icon that is no short https URL, because web pages show the icon unchecked. */
function withoutBadIcon(item: object): object {
  const isKept = ([name, value]: [string, unknown]) => name !== 'icon_url' || isIcon(value)
  return Object.fromEntries(Object.entries(item).filter(isKept))
}

const isIcon = (value: unknown): boolean =>
  typeof value === 'string' && Buffer.byteLength(value) <= ICON_BOUND_BYTES && /^https:\/\//i.test(value) && URL.canParse(value)

/** Replaces infinity, which JSON cannot contain, and minus zero, which would look like a change after a restart. */
function toWritableJson(value: unknown): unknown {
  if (value instanceof ExactNumber) return isFiniteNumber(value) ? value.value + 0 : null
  if (Array.isArray(value)) return value.map(toWritableJson)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, toWritableJson(inner)]))
}

/** Parses a symbol of the list or of a log; null if it is invalid. `*` is no symbol, because it selects every token. */
export function parseSymbol(value: unknown): string | null {
  const symbol = parseText(value)
  return symbol?.trim() === '*' ? null : symbol
}

/** Cuts a text to the limit, and makes its Unicode well-formed: a URL cannot contain half a surrogate pair. */
const parseText = (value: unknown): string | null =>
  typeof value === 'string' && value.trim() !== '' ? value.slice(0, SYMBOL_BOUND_CHARS).toWellFormed() : null

function parseSupply(value: unknown): string | null {
  const supply = value instanceof ExactNumber ? parseDecimal(value.text) : null
  return supply && supply.units >= 0n ? formatDecimal(supply) : null
}

/** Returns the name of a value's type if it is no usable number, so that the NAV is invalid and not missing. */
const parsePrice = (value: unknown): string | null => {
  if (value === undefined || value === null) return null
  return isFiniteNumber(value) ? value.text : typeof value
}

function parseDecimals(value: unknown): number | null {
  if (!(value instanceof ExactNumber)) return null
  const decimals = value.value
  return Number.isInteger(decimals) && decimals >= 0 && decimals <= DECIMALS_BOUND ? decimals : null
}

function parseMultiplier(value: unknown): string | null {
  const multiplier = isFiniteNumber(value) ? parseDecimal(value.text) : null
  return multiplier && multiplier.units > 0n ? formatDecimal(multiplier) : null
}

function parseOrdinals(value: unknown): readonly number[] {
  const items: readonly unknown[] = Array.isArray(value) ? value : []
  const ordinals = items.flatMap((item) => (item instanceof ExactNumber && Number.isSafeInteger(item.value) ? [item.value] : []))
  return [...new Set(ordinals)].filter((ordinal) => ordinal >= 0).sort((a, b) => a - b)
}

const rfc3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt]([01]\d|2[0-3]):\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/

/** Accepts RFC 3339 with an offset. A local time without an offset would be ambiguous. */
function parseTime(value: unknown): number | null {
  const match = typeof value === 'string' ? rfc3339.exec(value) : null
  if (!match) return null
  const [text, year, month, day] = match
  // `Date.parse` accepts a day that the month does not have, and returns a day of the next month.
  if (new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate() !== Number(day)) return null
  const time = Date.parse(text)
  return time >= 0 && time < Date.UTC(10_000, 0) ? time : null
}

/** A number and its original text, so that no digit is lost. */
class ExactNumber {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  get value(): number {
    return Number(this.text)
  }
}

/** False for a number beyond the range of doubles: other readers of the list see infinity. */
const isFiniteNumber = (value: unknown): value is ExactNumber => value instanceof ExactNumber && Number.isFinite(value.value)

/** Keeps the digits of each number. */
const withExactNumbers: Reviver = (_name, value, { source } = {}) =>
  typeof value === 'number' && source !== undefined ? new ExactNumber(source) : value
