import { z } from 'zod'
import type { Hex } from '../lib/hex.ts'
import { compareDecimals, type Decimal, formatDecimal, parseDecimal } from './decimal.ts'
import { Address, DecimalText } from './fields.ts'
import { type Movement, movementTypes, type UpdateType } from './updates.ts'

/**
 * The filters that look into a message. Each is a parameter of a query, an option of a `subscribe`, a field of `subscribed`
 * and a flag of `tail`. All of these are derived from the table below, and so are the key of an audience, the link to what a
 * replay skipped, and the names in the SDK, which proves completeness in another way if a filter is set.
 */

/** The fields that filters look at; every message of their types has them. */
type FilteredContent = Pick<Movement, 'reference_value' | 'shares' | 'from' | 'to'>

type ValueFilter<Value> = {
  readonly description: string
  /** `number`: a program may give a number, and a person `10k`. `list`: an array in a `subscribe`, separated by commas in a query. */
  readonly form: 'number' | 'list'
  /** Reads the value of a `subscribe`. */
  readonly read: z.ZodType<Value, string> | z.ZodType<Value, string[]>
  /** Reads the text of a query. */
  readonly readText: z.ZodType<Value, string>
  /** How `subscribed` shows the value; a URL has the same text, with commas in a list. */
  readonly shown: z.ZodType<string | readonly string[]>
  show(value: Value): string | readonly string[]
  /** The types that it may leave out; others pass. */
  readonly types: ReadonlySet<UpdateType>
  /** Whether a message of these types passes. */
  passes(content: FilteredContent, value: Value): boolean
}

const decimalMessage = 'must be a decimal number such as 10000 or 0.5'

const MinimumDecimal = z
  .string()
  .regex(/^\d{1,40}(\.\d{1,40})?$/, decimalMessage)
  .transform((text, context): Decimal => {
    const value = parseDecimal(text)
    if (value) return value
    context.addIssue(decimalMessage)
    return z.NEVER
  })

const AnyCaseAddress = z
  .string()
  .meta({ pattern: '^0[xX][0-9a-fA-F]{40}$' })
  .transform((text) => text.toLowerCase())
  .pipe(z.custom<Hex>((text) => Address.safeParse(text).success, 'must be an address of 40 hex digits'))

/** The items of a text with commas. */
export const commaList = (text: string) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')

/** At least this decimal; a null value does not pass. */
const minimumOf = (field: 'reference_value' | 'shares', description: string) =>
  ({
    description,
    form: 'number',
    read: MinimumDecimal,
    readText: MinimumDecimal,
    shown: DecimalText,
    show: formatDecimal,
    types: movementTypes,
    passes: (content, minimum) => {
      const text = content[field]
      const value = text === null ? null : parseDecimal(text)
      return value !== null && compareDecimals(value, minimum) >= 0
    },
  }) satisfies ValueFilter<Decimal>

/** The most addresses of one selection: each movement is compared with all of them. */
const MAX_ACCOUNTS = 20

const Accounts = z
  .array(AnyCaseAddress)
  .min(1, 'names no address')
  .max(MAX_ACCOUNTS, `names more than ${MAX_ACCOUNTS} addresses`)
  .transform((addresses): readonly Hex[] => [...new Set(addresses)])

const accountFilter = {
  description: `Only movements from or to one of these addresses, 1 to ${MAX_ACCOUNTS}.`,
  form: 'list',
  read: Accounts,
  readText: z.string().transform(commaList).pipe(Accounts),
  shown: z.array(Address).readonly(),
  show: (addresses) => addresses,
  types: movementTypes,
  passes: ({ from, to }, addresses) => addresses.includes(from) || addresses.includes(to),
} satisfies ValueFilter<readonly Hex[]>

export const valueFilters = {
  min_value: minimumOf('reference_value', 'Only movements whose reference_value is at least this; a null value does not pass.'),
  min_shares: minimumOf('shares', 'Only movements whose shares are at least this; a null value does not pass.'),
  account: accountFilter,
} as const

export type FilterName = keyof typeof valueFilters
type FilterRow<Name extends FilterName> = (typeof valueFilters)[Name]
type FilterValue<Name extends FilterName> = z.infer<FilterRow<Name>['read']>
/** The values of a selection; null is no filter. */
export type FilterValues = { readonly [Name in FilterName]: FilterValue<Name> | null }

export const filterNames = Object.keys(valueFilters) as readonly FilterName[]
/** For a sentence: `min_value, min_shares or account`. */
export const anyFilter = `${filterNames.slice(0, -1).join(', ')} or ${filterNames.at(-1)}`

const mapFilters = <Mapped>(map: (filter: ValueFilter<unknown>, name: FilterName) => Mapped) =>
  Object.fromEntries(filterNames.map((name) => [name, map(valueFilters[name], name)])) as Record<FilterName, Mapped>

export const noFilters = mapFilters(() => null) as { readonly [Name in FilterName]: null }

/** The options of a `subscribe`: an absent one keeps the current value, null clears it. */
export const filterOptions = mapFilters(({ read, description }) => read.nullish().describe(description)) as {
  readonly [Name in FilterName]: z.ZodOptional<z.ZodNullable<FilterRow<Name>['read']>>
}

/** The parameters of a query. */
export const filterParameters = mapFilters(({ readText, description }) => readText.optional().describe(description)) as {
  readonly [Name in FilterName]: z.ZodOptional<FilterRow<Name>['readText']>
}

/** The fields of `subscribed`. */
export const filterFields = mapFilters(({ shown }) => shown.nullable()) as {
  readonly [Name in FilterName]: z.ZodNullable<FilterRow<Name>['shown']>
}

/** The values as `subscribed` and URLs show them. */
export const shownFilters = (values: FilterValues) =>
  mapFilters((filter, name) => (values[name] === null ? null : filter.show(values[name]))) as {
    readonly [Name in FilterName]: z.infer<FilterRow<Name>['shown']> | null
  }

export const hasValueFilter = (values: FilterValues): boolean => filterNames.some((name) => values[name] !== null)

/** The types of which a selection may leave messages out. */
export const leftOutTypes = (values: FilterValues): ReadonlySet<UpdateType> =>
  new Set(filterNames.flatMap((name) => (values[name] === null ? [] : [...valueFilters[name].types])))

type Typed = { readonly type: UpdateType }

/** Tests whether every filter that is set lets a message pass; null if none is set. */
export function filterTestOf(values: FilterValues): ((content: Typed) => boolean) | null {
  const tests = filterNames.flatMap((name) => {
    const filter: ValueFilter<unknown> = valueFilters[name]
    const value = values[name]
    const mayBeLeftOut = (content: Typed): content is Typed & FilteredContent => filter.types.has(content.type)
    return value === null ? [] : [(content: Typed) => !mayBeLeftOut(content) || filter.passes(content, value)]
  })
  return tests.length === 0 ? null : (content) => tests.every((passes) => passes(content))
}
