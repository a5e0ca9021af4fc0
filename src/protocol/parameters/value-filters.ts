import { z } from 'zod'
import type { Hex } from '../../lib/hex.ts'
import { compareDecimals, type Decimal, formatDecimal, parseDecimal } from '../decimal.ts'
import { Address, DecimalText } from '../fields.ts'
import { type Movement, movementTypes, type UpdateType } from '../updates.ts'

/** The fields that filters test. Every message of the types that a filter tests has them. */
type FilteredContent = Pick<Movement, 'reference_value' | 'shares' | 'from' | 'to'>

/** A row of the table: a query parameter, an option of `subscribe`, a field of `subscribed`, a flag of `tail`, names in the SDK. */
type ValueFilter<Value> = {
  readonly description: string
  /** `number`: a program may give a number, and a person `10k`. `list`: an array in a `subscribe`, separated by commas in a query. */
  readonly form: 'number' | 'list'
  readonly read: z.ZodType<Value, string> | z.ZodType<Value, string[]>
  readonly readText: z.ZodType<Value, string>
  /** Form of the value in `subscribed`. A URL contains this text too, with commas in a list. */
  readonly shown: z.ZodType<string | readonly string[]>
  show(value: Value): string | readonly string[]
  /** Types that the filter tests. Messages of all other types pass. */
  readonly types: ReadonlySet<UpdateType>
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

export const commaList = (text: string) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')

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

/** Limit of addresses in a selection: each movement is compared with all of them. */
const MAX_ACCOUNTS = 20

const Accounts = z
  .array(AnyCaseAddress)
  .min(1, 'names no address')
  .max(MAX_ACCOUNTS, `names more than ${MAX_ACCOUNTS} addresses`)
  .transform((addresses): readonly Hex[] => [...new Set(addresses)])

const account = {
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
  account,
} as const

export type FilterName = keyof typeof valueFilters
type FilterRow<Name extends FilterName> = (typeof valueFilters)[Name]
type FilterValue<Name extends FilterName> = z.infer<FilterRow<Name>['read']>
/** The values of all filters; null for a filter that is not set. */
export type FilterValues = { readonly [Name in FilterName]: FilterValue<Name> | null }

export const filterNames = Object.keys(valueFilters) as readonly FilterName[]
/** Names all filters, as in `min_value, min_shares or account`. */
export const anyFilter = `${filterNames.slice(0, -1).join(', ')} or ${filterNames.at(-1)}`

const mapFilters = <Mapped>(map: (filter: ValueFilter<unknown>, name: FilterName) => Mapped) =>
  Object.fromEntries(filterNames.map((name) => [name, map(valueFilters[name], name)])) as Record<FilterName, Mapped>

export const noFilters = mapFilters(() => null) as { readonly [Name in FilterName]: null }

/** Options of a `subscribe`. An omitted option keeps the current value; null removes the filter. */
export const filterOptions = mapFilters(({ read, description }) => read.nullish().describe(description)) as {
  readonly [Name in FilterName]: z.ZodOptional<z.ZodNullable<FilterRow<Name>['read']>>
}

export const filterParameters = mapFilters(({ readText, description }) => readText.optional().describe(description)) as {
  readonly [Name in FilterName]: z.ZodOptional<FilterRow<Name>['readText']>
}

export const filterFields = mapFilters(({ shown }) => shown.nullable()) as {
  readonly [Name in FilterName]: z.ZodNullable<FilterRow<Name>['shown']>
}

export const shownFilters = (values: FilterValues) =>
  mapFilters((filter, name) => (values[name] === null ? null : filter.show(values[name]))) as {
    readonly [Name in FilterName]: z.infer<FilterRow<Name>['shown']> | null
  }

export const hasValueFilter = (values: FilterValues): boolean => filterNames.some((name) => values[name] !== null)

/** Types whose messages the filters may omit. */
export const leftOutTypes = (values: FilterValues): ReadonlySet<UpdateType> =>
  new Set(filterNames.flatMap((name) => (values[name] === null ? [] : [...valueFilters[name].types])))

type Typed = { readonly type: UpdateType }

/** Makes a test of a message against all filters that are set; null if none is set. */
export function filterTestOf(values: FilterValues): ((content: Typed) => boolean) | null {
  const tests = filterNames.flatMap((name) => {
    const filter: ValueFilter<unknown> = valueFilters[name]
    const value = values[name]
    const mayBeLeftOut = (content: Typed): content is Typed & FilteredContent => filter.types.has(content.type)
    return value === null ? [] : [(content: Typed) => !mayBeLeftOut(content) || filter.passes(content, value)]
  })
  return tests.length === 0 ? null : (content) => tests.every((passes) => passes(content))
}
