/** Resolves to the exit code. */
export type Command = (args: readonly string[]) => Promise<number>

export const EXIT_OK = 0
export const EXIT_FAILED = 1
/** A mistake in the arguments or in a setting. */
export const EXIT_USAGE = 2
/** Exit code that a shell expects after a second Ctrl-C. */
export const EXIT_INTERRUPTED = 130

/** The program prints each line of the message to standard error, and ends with EXIT_USAGE. */
export class UsageError extends Error {}

/** The program prints this help or version to standard output, and ends with EXIT_OK. */
export class RequestedText extends Error {}

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
