import { failureReason } from '../../lib/http-fetch.ts'
import { UpstreamError } from '../../relay/chain/rpc/upstream-error.ts'

export type Finding = {
  readonly id: string
  /** Origin of the upstream's URL. Its path and query are omitted, since they may contain an access key. */
  readonly target: string
  readonly state: 'ok' | 'warn' | 'fail' | 'skip'
  readonly value?: unknown
  readonly message: string
  readonly advice?: string
}

export type Outcome = Omit<Finding, 'id' | 'target'>

export type NamedOutcome = readonly [name: string, outcome: Outcome]

// A field that is undefined is absent in JSON.
export const ok = (message: string, value?: unknown): Outcome => ({ state: 'ok', value, message })
export const skip = (message: string): Outcome => ({ state: 'skip', message })
export const warn = (message: string, advice?: string, value?: unknown): Outcome => ({ state: 'warn', value, message, advice })
export const fail = (message: string, advice?: string, value?: unknown): Outcome => ({ state: 'fail', value, message, advice })

export const timeUp = skip('not examined: the time is up (--timeout)')

export const noPendingAdvice =
  'nothing to change if the chain has no pre-confirmations (Base has none since Denim); else use a node that has them'

/** Returns scheme, host and port of a URL, whose path and query may contain an access key. */
export const originOf = (url: string): string => new URL(url).origin

export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

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

export function reasonOf(failure: unknown): string {
  const reason = failureReason(failure)
  return connectionFailures.find(([pattern]) => pattern.test(reason))?.[1] ?? reason
}

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
