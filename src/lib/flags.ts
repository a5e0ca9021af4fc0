import { parseArgs } from 'node:util'
import { nearestName } from './nearest-name.ts'

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
/** The user made a mistake. */
export const EXIT_USAGE = 2
/** A second Ctrl-C ended the program; what a shell reports then. */
export const EXIT_INTERRUPTED = 130

/** A mistake of the user: one line on standard error, then exit code 2. */
export class UsageError extends Error {}

export const helpFlag = { help: { type: 'boolean', short: 'h', description: 'explain the command' } } as const

/** The nearest name is suggested up to this many edits. */
const SUGGESTION_BOUND_EDITS = 2

/** Advice about a name that is not known: the nearest one, as a question, and the help. */
export function adviceFor(
  name: string,
  known: Iterable<string>,
  { boundEdits = SUGGESTION_BOUND_EDITS, help = '--help' } = {},
): string {
  const nearest = nearestName(name, known, boundEdits)
  return `${nearest === undefined ? '' : `Did you mean ${nearest}? `}Try ${help}.`
}

/** Reads the flags of a command, and what stands beside them. A mistake names the nearest flag. */
export function readFlags<const Flags extends CommandFlags>(flags: Flags, args: readonly string[], allowPositionals = false) {
  try {
    return parseArgs({ args: [...args], options: flags, allowPositionals, allowNegative: true })
  } catch (mistake) {
    // Node explains how to write positional arguments, from the second sentence on.
    const [sentence = ''] = (mistake instanceof Error ? mistake.message : String(mistake)).split(/\.\s/)
    const [, unknown] = /^Unknown option '(--?[^']*)'/.exec(sentence) ?? []
    const known = unknown === undefined ? [] : Object.keys(flags).map((name) => `--${name}`)
    throw new UsageError(`${sentence}. ${adviceFor(unknown ?? '', known)}`)
  }
}

/** The flags with their descriptions, one line each, for a help text. */
export function flagLines(flags: CommandFlags): string {
  const column = Math.max(...Object.keys(flags).map(({ length }) => length)) + 2
  return Object.entries(flags)
    .map(([name, { description = '' }]) => `  ${`--${name}`.padEnd(column)}  ${description}`)
    .join('\n')
}
