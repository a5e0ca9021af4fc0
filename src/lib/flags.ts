import { parseArgs } from 'node:util'
import { nearestName } from './nearest-name.ts'
import { versionText } from './version.ts'

/** Runs a command of the program. Resolves to the exit code. */
export type Command = (args: readonly string[]) => Promise<number>

/** Flags of a command by name. The help of the command and the completion in a shell are made from them. */
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

export const EXIT_OK = 0
export const EXIT_FAILED = 1
/** Exit code for a mistake in the arguments or in a setting. */
export const EXIT_USAGE = 2
/** Exit code if a second Ctrl-C ends the program at once, as shells expect it. */
export const EXIT_INTERRUPTED = 130

/** A mistake of the user. The program prints each line of the message to standard error, and ends with EXIT_USAGE. */
export class UsageError extends Error {}

/** Text for --help or --version. The program prints it to standard output, and ends with EXIT_OK. */
class RequestedText extends Error {}

export const commonFlags = {
  help: { type: 'boolean', short: 'h', description: 'explain the command' },
  version: { type: 'boolean', short: 'V', description: 'print the version' },
} as const

export async function runToExitCode(name: string, run: () => Promise<number>): Promise<number> {
  try {
    return await run()
  } catch (end) {
    if (end instanceof RequestedText) {
      process.stdout.write(end.message)
      return EXIT_OK
    }
    if (!(end instanceof UsageError)) throw end
    for (const line of end.message.split('\n')) process.stderr.write(`${name}: ${line}\n`)
    return EXIT_USAGE
  }
}

/** Returns advice after a wrong name: to use the nearest known name, if one is near enough, or to read the help. */
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

/** Reads the flags of a command. Throws a UsageError for mistakes, and the text to print for --help and --version. */
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

export const oneLine = (text: string): string => text.replace(/\s+/g, ' ')
