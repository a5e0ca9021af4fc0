import { z } from 'zod'
import type { Hex } from '../../lib/hex.ts'
import { compareDecimals, type Decimal, formatDecimal, parseDecimal } from '../decimal.ts'
import { Address, DecimalText, PoolId } from '../fields.ts'
import { type Movement, movementTypes, type Update, type UpdateType } from '../updates.ts'

type UpdateOf<Type extends UpdateType> = Extract<Update, { readonly type: Type }>

/** The tests of a filter, for each group of types with the same fields. Messages of all other types pass. */
type FilterTests<Value> = {
  movement?(content: Movement, value: Value): boolean
  trade?(content: UpdateOf<'trade'>, value: Value): boolean
  quote?(content: UpdateOf<'quote'>, value: Value): boolean
}
type Group = keyof FilterTests<unknown>

const groupTypes: Readonly<Record<Group, ReadonlySet<UpdateType>>> = {
  movement: movementTypes,
  trade: new Set(['trade']),
  quote: new Set(['quote']),
}

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
  readonly passes: FilterTests<Value>
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

/** A word of hex digits in any case. */
const anyCase = (pattern: string, schema: z.ZodType, message: string) =>
  z
    .string()
    .meta({ pattern })
    .transform((text) => text.toLowerCase())
    .pipe(z.custom<Hex>((text) => schema.safeParse(text).success, message))

export const commaList = (text: string) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')

const isAtLeast = (text: string | null, minimum: Decimal): boolean => {
  const value = text === null ? null : parseDecimal(text)
  return value !== null && compareDecimals(value, minimum) >= 0
}

const minimum = (description: string, passes: FilterTests<Decimal>) =>
  ({
    description,
    form: 'number',
    read: MinimumDecimal,
    readText: MinimumDecimal,
    shown: DecimalText,
    show: formatDecimal,
    passes,
  }) satisfies ValueFilter<Decimal>

/** Limit of the words in a list: each message is compared with all of them. */
const MAX_LISTED = 20

/** A list of words in any case. `what` names one of them. */
const listOf = (what: string, word: z.ZodType<Hex, string>) => {
  const read = z
    .array(word)
    .min(1, `names no ${what}`)
    .max(MAX_LISTED, `names more than ${MAX_LISTED} ${what === 'address' ? 'addresses' : `${what}s`}`)
    .transform((words): readonly Hex[] => [...new Set(words)])
  return { read, readText: z.string().transform(commaList).pipe(read) }
}

const account = {
  description: `Only movements from or to one of these addresses, 1 to ${MAX_LISTED}, and trades of which one is the sender or recipient.`,
  form: 'list',
  ...listOf('address', anyCase('^0[xX][0-9a-fA-F]{40}$', Address, 'must be an address of 40 hex digits')),
  shown: z.array(Address).readonly(),
  show: (addresses) => addresses,
  passes: {
    movement: ({ from, to }, addresses) => addresses.includes(from) || addresses.includes(to),
    trade: ({ sender, recipient }, addresses) =>
      addresses.includes(sender) || (recipient !== null && addresses.includes(recipient)),
  },
} satisfies ValueFilter<readonly Hex[]>

const isOfPool = ({ venue }: { readonly venue: { readonly pool: Hex } }, pools: readonly Hex[]) => pools.includes(venue.pool)

const pools = {
  description: `Only trades and quotes of these pools, 1 to ${MAX_LISTED}: addresses, or ids of Uniswap v4.`,
  form: 'list',
  ...listOf(
    'pool',
    anyCase('^0[xX]([0-9a-fA-F]{40}|[0-9a-fA-F]{64})$', PoolId, 'must be an address of 40 hex digits, or an id of 64'),
  ),
  shown: z.array(PoolId).readonly(),
  show: (ids) => ids,
  passes: { trade: isOfPool, quote: isOfPool },
} satisfies ValueFilter<readonly Hex[]>

export const valueFilters = {
  min_value: minimum(
    'Only movements whose reference_value, and trades whose currency_amount, is at least this; a null value does not pass.',
    {
      movement: ({ reference_value }, value) => isAtLeast(reference_value, value),
      trade: ({ currency_amount }, value) => isAtLeast(currency_amount, value),
    },
  ),
  min_shares: minimum('Only movements and trades whose shares are at least this; a null value does not pass.', {
    movement: ({ shares }, value) => isAtLeast(shares, value),
    trade: ({ shares }, value) => isAtLeast(shares, value),
  }),
  account,
  pools,
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

/** The groups that a filter tests, each with its test. */
const testsOf = (name: FilterName) => Object.entries(valueFilters[name].passes) as unknown as readonly [Group, Test][]
type Test = (content: unknown, value: unknown) => boolean

/** Types whose messages the filters may omit. */
export const leftOutTypes = (values: FilterValues): ReadonlySet<UpdateType> =>
  new Set(filterNames.flatMap((name) => (values[name] === null ? [] : testsOf(name).flatMap(([group]) => [...groupTypes[group]]))))

type Typed = { readonly type: UpdateType }

/** Makes a test of a message against all filters that are set; null if none is set. */
export function filterTestOf(values: FilterValues): ((content: Typed) => boolean) | null {
  const tests = filterNames.flatMap((name) =>
    values[name] === null
      ? []
      : testsOf(name).map(([group, passes]) => ({ types: groupTypes[group], passes, value: values[name] })),
  )
  if (tests.length === 0) return null
  return (content) => tests.every(({ types, passes, value }) => !types.has(content.type) || passes(content, value))
}
