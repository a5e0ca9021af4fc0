import { parseArgs } from 'node:util'
import { nearestName } from './nearest-name.ts'
import { versionText } from './version.ts'

/** A command of the program: takes its arguments, returns the exit code. */
export type Command = (args: readonly string[]) => Promise<number>

/** The flags of a command: read here, explained by its help, completed by a shell. */
export type CommandFlags = Readonly<Record<string, CommandFlag>>

type CommandFlag = {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  readonly description?: string
  /** All values that the flag takes, where they are few. */
  readonly choices?: readonly string[]
}

export const EXIT_OK = 0
/** The command ran, and failed. */
export const EXIT_FAILED = 1
/** The user made a mistake, in the arguments or in a setting. */
export const EXIT_USAGE = 2
/** A second Ctrl-C ended the program; what a shell reports then. */
export const EXIT_INTERRUPTED = 130

/** A mistake of the user: each line goes to standard error, then exit code 2. */
export class UsageError extends Error {}

/** A text that the user asked for instead of a run: it goes to standard output, then exit code 0. */
class RequestedText extends Error {}

/** The flags that every command has. */
export const commonFlags = {
  help: { type: 'boolean', short: 'h', description: 'explain the command' },
  version: { type: 'boolean', short: 'V', description: 'print the version' },
} as const

/** Runs a command to its exit code, and prints what ends it early: a mistake, or the text that was asked for. */
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

/** Advice about a name that is not known: the nearest one, as a question, and the help. */
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
  /** One line each. */
  readonly mistakes: readonly string[]
}

/** The flags of a command, and the words beside them. Ends the command for a mistake, and for the help or the version. */
export function readFlags<const Flags extends CommandFlags>(
  flags: Flags,
  args: readonly string[],
  { help, allowsWords = false }: { readonly help: string; readonly allowsWords?: boolean },
): Omit<ReadFlags<Flags>, 'mistakes'> {
  const { mistakes, ...read } = parseFlags(flags, args, allowsWords)
  const { help: wantsHelp, version: wantsVersion }: FlagValues<typeof commonFlags> = read.values
  if (wantsHelp) throw new RequestedText(help)
  if (wantsVersion) throw new RequestedText(`${versionText}\n`)
  if (mistakes.length > 0) throw new UsageError(mistakes.join('\n'))
  return read
}

/** Reads all flags, with every mistake in them. `explain` knows flags that no longer exist. */
export function parseFlags<const Flags extends CommandFlags>(
  flags: Flags,
  args: readonly string[],
  allowsWords = false,
  explain: (flag: string) => string | undefined = () => undefined,
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
      // Behind an unknown flag it may be the value of that flag, whose mistake is reported already.
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
