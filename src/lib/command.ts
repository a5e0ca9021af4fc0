/** A command of the program: takes its arguments, returns the exit code. */
export type Command = (args: readonly string[]) => Promise<number>

/** The flags of a command, for `parseArgs` and for the completion of a shell. */
export type CommandFlags = Readonly<Record<string, CommandFlag>>

type CommandFlag = {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  readonly description?: string
  /** All values that the flag takes, where they are few. */
  readonly choices?: readonly string[]
}

export const EXIT_OK = 0
/** What was asked for failed. */
export const EXIT_FAILED = 1
/** The user made a mistake. */
export const EXIT_USAGE = 2
/** A second Ctrl-C ended the program; what a shell reports then. */
export const EXIT_INTERRUPTED = 130

/** A mistake of the user: one line on standard error, then exit code 2. */
export class UsageError extends Error {}
