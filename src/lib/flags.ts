import { parseArgs } from 'node:util'
import { RequestedText, UsageError } from './exit-codes.ts'
import { nearestName } from './nearest-name.ts'
import { oneLine } from './text.ts'
import { versionText } from './version.ts'

/** The help of a command and the completion of a shell are made from its flags too. */
export type CommandFlags = Readonly<Record<string, CommandFlag>>

type CommandFlag = {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  readonly description?: string
  /** All values that the flag accepts; absent if there are too many to list. */
  readonly choices?: readonly string[]
}

export const textFlag = (description: string) => ({ type: 'string', description }) as const
export const switchFlag = (description: string) => ({ type: 'boolean', description }) as const

export const commonFlags = {
  help: { type: 'boolean', short: 'h', description: 'explain the command' },
  version: { type: 'boolean', short: 'V', description: 'print the version' },
} as const

/** Suggests the known name that is nearest to a wrong one, and the help. */
export function adviceFor(name: string, known: Iterable<string>, help = '--help'): string {
  const nearest = nearestName(name, known)
  return `${nearest === undefined ? '' : `Did you mean ${nearest}? `}Try ${help}.`
}

type FlagValues<Flags extends CommandFlags> = {
  readonly [N in keyof Flags]?: Flags[N]['type'] extends 'boolean' ? boolean : string
}
type ReadFlags<Flags extends CommandFlags> = {
  readonly values: FlagValues<Flags>
  readonly positionals: readonly string[]
  readonly mistakes: readonly string[]
}

/** Returns the message about a flag of an earlier version; undefined for any other flag. */
type ExplainFlag = (flag: string) => string | undefined

/** Reads the flags of a command. Throws a UsageError for mistakes, and a RequestedText for --help and --version. */
export function readFlags<const Flags extends CommandFlags>(
  flags: Flags,
  args: readonly string[],
  { help, allowsWords = false, explain }: { readonly help: string; readonly allowsWords?: boolean; readonly explain?: ExplainFlag },
): Omit<ReadFlags<Flags>, 'mistakes'> {
  const { mistakes, ...read } = parseFlags(flags, args, allowsWords, explain)
  const { help: wantsHelp, version: wantsVersion }: FlagValues<typeof commonFlags> = read.values
  if (wantsHelp) throw new RequestedText(help)
  if (wantsVersion) throw new RequestedText(`${versionText}\n`)
  if (mistakes.length > 0) throw new UsageError(mistakes.join('\n'))
  return read
}

/** Reads flags without throwing. Each mistake is one line. `explain` returns the line for a flag of an earlier version. */
export function parseFlags<const Flags extends CommandFlags>(
  flags: Flags,
  args: readonly string[],
  allowsWords = false,
  explain: ExplainFlag = () => undefined,
): ReadFlags<Flags> {
  const options = { options: flags, strict: false, allowPositionals: true, allowNegative: true, tokens: true } as const
  const values: Record<string, string | boolean> = {}
  const positionals: string[] = []
  const mistakes: string[] = []
  let isAfterUnknown = false
  for (const token of parseArgs({ args: [...args], ...options }).tokens) {
    if (token.kind === 'option-terminator') continue
    if (token.kind === 'positional') {
      positionals.push(token.value)
      // The word after an unknown flag may be the value of that flag, which is already reported as a mistake.
      if (!allowsWords && !isAfterUnknown) mistakes.push(`'${oneLine(token.value)}' is not a flag. Try --help.`)
      isAfterUnknown = false
      continue
    }
    const { name, rawName, value, inlineValue } = token
    const flag = Object.hasOwn(flags, name) ? flags[name] : undefined
    const isNegated = flag !== undefined && rawName === `--no-${name}`
    isAfterUnknown = flag === undefined || (isNegated && flag.type === 'string')
    if (!flag || (isNegated && flag.type === 'string'))
      mistakes.push(explain(rawName) ?? `'${oneLine(rawName)}' is not a flag. ${adviceForFlag(rawName, flags)}`)
    else if (flag.type === 'boolean' && value !== undefined) mistakes.push(`'${rawName}' takes no value. Try --help.`)
    else if (flag.type === 'boolean') values[name] = !isNegated
    else if (value === undefined || (!inlineValue && /^-./.test(value))) mistakes.push(`'${rawName}' needs a value. Try --help.`)
    else values[name] = value
  }
  return { values: values as FlagValues<Flags>, positionals, mistakes }
}

function adviceForFlag(rawName: string, flags: CommandFlags): string {
  const others = Object.values(flags).flatMap(({ short }) => (short === undefined ? [] : [`-${short}`]))
  const sameLetter = others.find((other) => other.toLowerCase() === rawName.toLowerCase())
  if (!rawName.startsWith('--')) return adviceFor(rawName, sameLetter === undefined ? [] : [sameLetter])
  return adviceFor(
    rawName,
    Object.keys(flags).map((name) => `--${name}`),
  )
}
