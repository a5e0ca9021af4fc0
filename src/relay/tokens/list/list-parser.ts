import { z } from 'zod'
import { ADDRESS_CHARS, type Hex, readHex, ZERO_ADDRESS } from '../../../lib/hex.ts'
import { isNestedDeeper, parseJson } from '../../../lib/json.ts'
import { formatDecimal, parseDecimal } from '../../../protocol/decimal.ts'
import type { TokenRecord } from '../../../protocol/fields.ts'
import { ExactNumber, exactNumbersIn, isFiniteNumber } from '../exact-number.ts'
import type { NavReading } from '../nav.ts'
import { findRecords, ListError } from './list-records.ts'

/** A parsed record of the list: the checked values, and the record itself. */
export type ListedToken = {
  readonly address: Hex
  readonly symbol: string
  readonly isin: string | null
  /** Null where the list has none: then amounts are unknown, not guessed. */
  readonly decimals: number | null
  /** From tokens to shares, with all digits; null where it is invalid. */
  readonly multiplier: string | null
  readonly supply: string | null
  readonly paused: readonly number[]
  readonly nav: NavReading
  readonly record: TokenRecord
}

/** The valid tokens by address, and the reasons why other records were skipped. */
export type ParsedList = { readonly tokens: ReadonlyMap<Hex, ListedToken>; readonly skipped: readonly string[] }

/** Upstream text that becomes a channel name is cut to this length. */
const SYMBOL_BOUND_CHARS = 128
const DECIMALS_BOUND = 77
const ICON_BOUND_BYTES = 2_048
/** A real record has about 600 bytes and two levels. Beyond these bounds it is skipped, since each copy of it costs everybody. */
const RECORD_BOUND_BYTES = 64 * 1_024
const RECORD_BOUND_DEPTH = 32
/** Records of this many bytes are parsed in one step. */
const STEP_BYTES = 64 * 1_024

/** The answer without its records. An empty list may omit `tokens`; any other object without it is no list. */
const Envelope = z.union([z.object({ tokens: z.array(z.unknown()).length(0) }), z.strictObject({})])

/** Parses a list in one go. */
export function parseList(body: Buffer): ParsedList {
  const steps = parseListInSteps(body)
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/**
 * Parses the list record by record, so that one bad record never drops the others. It yields between steps of a few
 * milliseconds, since a long list is a second of work.
 */
export function* parseListInSteps(body: Buffer): Generator<undefined, ParsedList> {
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

function readJson(text: string): unknown {
  const value = parseJson(text)
  if (value === undefined) throw new ListError('the answer is not JSON')
  return value
}

function parseRecord(text: string): ListedToken | string {
  const item = readJson(text)
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return 'not an object'
  const fields = new Map<string, unknown>([...Object.entries(item), ...exactNumbersIn(text)])
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

/** Web pages show the icon unchecked, so anything but a short https URL is removed from the record. */
function withoutBadIcon(item: object): object {
  const isKept = ([name, value]: [string, unknown]) => name !== 'icon_url' || isIcon(value)
  return Object.fromEntries(Object.entries(item).filter(isKept))
}

const isIcon = (value: unknown): boolean =>
  typeof value === 'string' && Buffer.byteLength(value) <= ICON_BOUND_BYTES && /^https:\/\//i.test(value) && URL.canParse(value)

/** The record as it can be written as JSON: without infinity, and without minus zero, which would look like a change after a restart. */
function toWritableJson(value: unknown): unknown {
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : null
  if (Array.isArray(value)) return value.map(toWritableJson)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, toWritableJson(inner)]))
}

/** A symbol from the list or from a log; null where it is invalid. `*` is no symbol, since it selects every token. */
export function parseSymbol(value: unknown): string | null {
  const symbol = parseText(value)
  return symbol?.trim() === '*' ? null : symbol
}

/** Well-formed Unicode, since half a surrogate pair cannot be written into a URL. */
const parseText = (value: unknown): string | null =>
  typeof value === 'string' && value.trim() !== '' ? value.slice(0, SYMBOL_BOUND_CHARS).toWellFormed() : null

function parseSupply(value: unknown): string | null {
  const supply = value instanceof ExactNumber ? parseDecimal(value.text) : null
  return supply && supply.units >= 0n ? formatDecimal(supply) : null
}

/** Garbage is kept as the name of its type, so that the NAV becomes invalid and not missing. */
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
  const ordinals = items.flatMap((item) => (typeof item === 'number' && Number.isSafeInteger(item) ? [item] : []))
  return [...new Set(ordinals)].filter((ordinal) => ordinal >= 0).sort((a, b) => a - b)
}

const rfc3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt]([01]\d|2[0-3]):\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/

/** RFC 3339 with an offset; a local time without one is ambiguous and therefore refused. */
function parseTime(value: unknown): number | null {
  const match = typeof value === 'string' ? rfc3339.exec(value) : null
  if (!match) return null
  const [text, year, month, day] = match
  // `Date.parse` would read a day that the month lacks as a day of the next month.
  if (new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate() !== Number(day)) return null
  const time = Date.parse(text)
  return time >= 0 && time < Date.UTC(10_000, 0) ? time : null
}
