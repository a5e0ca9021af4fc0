import { LOGS_RANGE_BOUND, type Method, methods, type Params } from '../../protocol/json-rpc-methods.ts'
import { blockParamIndex, type CallScope, type LogsFilter, numberOf, scopeOf } from './call-scope.ts'
import type { ChainState } from './chain-state.ts'
import { errorCodes, invalidParams, RpcError } from './rpc-error.ts'

/** Limit of the characters of a method's name in an error. */
const NAME_BOUND_CHARS = 64

/** A validated call to the node. */
export type ValidatedCall = {
  readonly method: Method
  readonly params: Params<Method>
  /** Names the call in the cache. It is equal for every spelling of the call. */
  readonly key: string
  readonly scope: CallScope
}

/** Validates a call against the method table; throws an `RpcError` that says what is wrong. */
export function readCall(name: string, params: unknown, chainState: ChainState): ValidatedCall {
  if (name === 'eth_subscribe' || name === 'eth_unsubscribe')
    throw new RpcError(errorCodes.methodNotFound, 'subscriptions need a WebSocket: connect to this path with ws:// or wss://')
  if (!isMethod(name))
    throw new RpcError(
      errorCodes.methodNotFound,
      `the method ${JSON.stringify(name.slice(0, NAME_BOUND_CHARS))} does not exist or is not served here`,
    )
  if (!Array.isArray(params)) throw invalidParams('they go by position, in an array')
  // An omitted block is the latest one.
  const parsed = methods[name].params.safeParse(params.length === blockParamIndex[name] ? [...params, 'latest'] : params)
  if (!parsed.success) throw invalidParams(describeIssue(name, params, parsed.error.issues[0]))
  const checkedParams = name === 'eth_getLogs' ? [upstreamFilter(parsed.data[0] as LogsFilter, chainState)] : parsed.data
  return {
    method: name,
    params: checkedParams as Params<Method>,
    // All params are hex or block tags, so case has no meaning.
    key: `${name} ${JSON.stringify(checkedParams)}`.toLowerCase(),
    scope: scopeOf(name, checkedParams, chainState),
  }
}

const isMethod = (name: string): name is Method => Object.hasOwn(methods, name)

type Issue = { readonly path: readonly PropertyKey[]; readonly message: string }

function describeIssue(name: Method, params: readonly unknown[], issue: Issue | undefined): string {
  const paramCount = methods[name].params.def.items.length
  if (params.length !== paramCount)
    return `${name} takes ${paramCount} parameter${paramCount === 1 ? '' : 's'}, this call has ${params.length}`
  return `params${formatPath(issue?.path ?? [])} must be ${issue?.message ?? 'something else'}`
}

export const formatPath = (path: readonly PropertyKey[]): string =>
  path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('')

/** Returns the filter for the upstream: a block hash takes precedence over a range, and null fields are omitted. */
function upstreamFilter({ blockHash, fromBlock, toBlock, ...criteria }: LogsFilter, chainState: ChainState): LogsFilter {
  const blocks = blockHash ? { blockHash } : { fromBlock, toBlock }
  if (!blockHash) checkRange({ fromBlock, toBlock }, chainState)
  return Object.fromEntries(Object.entries({ ...criteria, ...blocks }).filter(([, value]) => value != null))
}

function checkRange({ fromBlock, toBlock }: LogsFilter, chainState: ChainState): void {
  const from = numberOf(fromBlock ?? 'latest', chainState)
  const to = numberOf(toBlock ?? 'latest', chainState)
  if (from === null || to === null || to - from + 1 <= LOGS_RANGE_BOUND) return
  throw invalidParams(
    `the range holds ${to - from + 1} blocks; eth_getLogs is answered for at most ${LOGS_RANGE_BOUND.toLocaleString('en')} at once`,
  )
}
