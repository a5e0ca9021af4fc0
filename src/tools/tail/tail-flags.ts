import { UsageError } from '../../lib/exit-codes.ts'
import { type CommandFlags, commonFlags, readFlags, switchFlag, textFlag } from '../../lib/flags.ts'
import { flagTerms, helpText } from '../../lib/help.ts'
import { camelCaseOf } from '../../lib/text.ts'
import { formerNames } from '../../protocol/parameters/read-parameters.ts'
import { type FilterName, filterNames, valueFilters } from '../../protocol/parameters/value-filters.ts'
import type { StreamOptions, Update, ValueFilters } from '../../sdk/client/index.ts'

type FlagOf<Name extends string> = Name extends `${infer First}_${infer Others}` ? `${First}-${FlagOf<Others>}` : Name
const flagOf = (name: FilterName) => name.replaceAll('_', '-') as FlagOf<FilterName>
const helpOf = ({ description, form }: (typeof valueFilters)[FilterName]): string =>
  `${description.charAt(0).toLowerCase()}${description.slice(1, -1)}${form === 'number' ? ': 2500, 10k, 1.5m' : ', separated by commas'}`
const filterFlags = Object.fromEntries(filterNames.map((name) => [flagOf(name), textFlag(helpOf(valueFilters[name]))])) as Readonly<
  Record<FlagOf<FilterName>, ReturnType<typeof textFlag>>
>

export const tailFlags = {
  url: textFlag('the relay (http://127.0.0.1:8080, or STOCKTAPE_URL)'),
  key: textFlag('an API key, for a relay that requires one (or STOCKTAPE_KEY)'),
  since: textFlag('a position, start, a duration (90s, 5m, 2h) or an RFC 3339 time; default: now'),
  types: textFlag('message types separated by commas, or *'),
  stage: { ...textFlag('sealed: only facts of sealed blocks'), choices: ['preconfirmed', 'sealed'] },
  ...filterFlags,
  json: switchFlag('NDJSON messages as on the wire, instead of readable lines'),
  tui: switchFlag('a live table instead of lines; q ends it'),
  color: switchFlag('colours even without a terminal; --no-color, or NO_COLOR, for none'),
  ...commonFlags,
} as const satisfies CommandFlags

const help = helpText(
  'stocktape tail SYMBOL [SYMBOL ...] [--since 5m] [--types transfer,quote] [--min-value 10k]\n    [--json | --tui]',
  [['SYMBOL', 'a symbol in upper or lower case, an address, isin:..., or * for all'], ...flagTerms(tailFlags)],
  'It reconnects by itself and loses nothing. It writes messages to standard output, and everything else to standard error. Ctrl-C prints totals and the position to continue from.',
  'Exit codes: 0 after Ctrl-C or when the reader of the pipe leaves, 1 when the relay cannot be reached or ends the stream, 2 for a mistake.',
)

/** Explains a former flag. A filter's flag has the name of its parameter. */
function retiredFlag(flag: string): string | undefined {
  const successor = formerNames.get(flag.slice(2))
  return successor && `'${flag}' is now '--${successor}'`
}

export type TailRequest = ReturnType<typeof readFlags<typeof tailFlags>>['values'] & { readonly symbols: readonly string[] }

const suffixDigits: Readonly<Record<string, number>> = { '': 0, k: 3, m: 6, b: 9 }

export function readTailFlags(args: readonly string[]): TailRequest {
  const { values, positionals } = readFlags(tailFlags, args, { help, allowsWords: true, explain: retiredFlag })
  if (positionals.length === 0) throw new UsageError('name at least one symbol, or * for all')
  if (values.json && values.tui) throw new UsageError('--json and --tui exclude each other')
  return { ...values, symbols: positionals }
}

export function selectionOf(request: TailRequest): StreamOptions {
  const { since, types, stage } = request
  if (stage !== undefined && stage !== 'sealed' && stage !== 'preconfirmed')
    throw new UsageError(`--stage must be sealed or preconfirmed, not ${stage}`)
  return {
    ...(since !== undefined && { since }),
    ...(types !== undefined && { types: types === '*' ? types : (types.split(',') as Update['type'][]) }),
    ...(stage !== undefined && { stage }),
    ...filtersOf(request),
  }
}

function filtersOf(request: TailRequest): ValueFilters {
  const given = filterNames.flatMap((name) => {
    const value = request[flagOf(name)]
    if (value === undefined) return []
    return [[camelCaseOf(name), valueFilters[name].form === 'number' ? readAmount(`--${flagOf(name)}`, value) : value]]
  })
  return Object.fromEntries(given)
}

/** Reads `10k` as `10000`, digit by digit, because a float would lose digits. */
export function readAmount(flag: string, text: string): string {
  const [, whole = '', fraction = '', suffix = ''] = /^(\d{1,30})(?:\.(\d{1,30}))?([kmb]?)$/i.exec(text) ?? []
  if (whole === '') throw new UsageError(`${flag} must be an amount such as 2500, 10k or 1.5m, not ${text}`)
  const digits = suffixDigits[suffix.toLowerCase()] ?? 0
  const shifted = fraction.padEnd(digits, '0')
  const rest = shifted.slice(digits)
  return `${whole}${shifted.slice(0, digits)}${rest && `.${rest}`}`.replace(/^0+(?=\d)/, '')
}
