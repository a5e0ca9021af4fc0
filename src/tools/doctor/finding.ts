import { failureReason } from '../../lib/http-fetch.ts'
import { UpstreamError } from '../../relay/chain/rpc/upstream-error.ts'

/** What one check found out about one upstream. */
export type Finding = {
  readonly id: string
  /** The origin of the upstream's URL. Path and query may hold a key. */
  readonly target: string
  readonly state: 'ok' | 'warn' | 'fail' | 'skip'
  readonly value?: unknown
  readonly message: string
  /** What to change. */
  readonly advice?: string
}

/** A finding before it has its place. */
export type Outcome = Omit<Finding, 'id' | 'target'>

/** An outcome under the name of its check. */
export type NamedOutcome = readonly [name: string, outcome: Outcome]

export const ok = (message: string, value?: unknown): Outcome => ({ state: 'ok', ...(value !== undefined && { value }), message })
export const skip = (message: string): Outcome => ({ state: 'skip', message })
export const warn = (message: string, advice?: string, value?: unknown): Outcome => bad('warn', message, advice, value)
export const fail = (message: string, advice?: string, value?: unknown): Outcome => bad('fail', message, advice, value)

const bad = (state: 'warn' | 'fail', message: string, advice: string | undefined, value: unknown): Outcome => ({
  ...{ state, ...(value !== undefined && { value }), message },
  ...(advice !== undefined && { advice }),
})

/** Of a check that began too late. */
export const timeUp = skip('not examined: the time is up (--timeout)')

/** Scheme, host and port. The rest of a URL may hold a key. */
export const originOf = (url: string): string => new URL(url).origin

/** A number with its noun. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

/** What the codes of failed connections mean. */
const connectionFailures: readonly (readonly [RegExp, string])[] = [
  [/ECONNREFUSED|^connect E\w*$/, 'the connection is refused: nothing listens there'],
  [/ENOTFOUND/, 'the host name does not exist'],
  [/EAI_AGAIN/, 'the host name cannot be resolved now'],
  [/ECONNRESET|socket hang up|other side closed/, 'the connection was closed without an answer'],
  [/aborted due to timeout|TimeoutError/, 'no answer in time'],
  [/certificate|SSL|TLS/i, 'the TLS certificate is not accepted'],
  [/^bad port$/, 'HTTP clients refuse to use this port'],
  [/unexpected redirect/i, 'it redirects elsewhere, which the relay does not follow'],
]

/** Why an upstream gave no answer, in words. */
export function reasonOf(failure: unknown): string {
  const reason = failureReason(failure)
  return connectionFailures.find(([pattern]) => pattern.test(reason))?.[1] ?? reason
}

/** What to change where an upstream does not answer as it should. */
export function adviceFor(failure: unknown, setting: string): string {
  if (!(failure instanceof UpstreamError)) return `check ${setting}`
  switch (failure.kind) {
    case 'busy':
      return `the endpoint limits the rate: use one with a higher limit in ${setting}, or several, separated by commas`
    case 'forbidden':
      return `the key in ${setting} is missing, wrong, or does not allow this`
    case 'unreadable':
      return `${setting} does not lead to a JSON-RPC endpoint: check its path`
    default:
      return `check ${setting}, and name a second URL behind a comma, so that one may fail`
  }
}
