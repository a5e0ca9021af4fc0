import { type AnyBlock, LOGS_RANGE_BOUND, type Method, methods, type Params } from '../../protocol/json-rpc-methods.ts'
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

/** The blocks that a call concerns. They determine the validity of its answer. */
type CallScope =
  | { readonly at: 'pending' }
  | { readonly at: 'head' }
  /** A sealed block, or a range that ends with it. `several` is true for a range. */
  | { readonly at: 'number'; readonly number: number; readonly several: boolean }
  | { readonly at: 'hash' }
  | { readonly at: 'chain' }

type LogsFilter = Params<'eth_getLogs'>[0]

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

/** Returns the number of the block that a parameter such as `latest` means now; null while it is unknown. */
function numberOf(block: string, chainState: ChainState): number | null {
  switch (block) {
    case 'earliest':
      return 0
    case 'latest':
      return chainState.head
    case 'pending':
      return chainState.pending
    case 'safe':
      return chainState.safe
    case 'finalized':
      return chainState.finalized
    default:
      return Number(block)
  }
}

/** Index of the block among the params of each method that has one. */
const blockParamIndex: Partial<Record<Method, number>> = {
  eth_getBlockByNumber: 0,
  eth_getBlockReceipts: 0,
  eth_getStorageAt: 2,
  eth_getTransactionCount: 1,
  eth_getCode: 1,
  eth_getBalance: 1,
}

function scopeOf(method: Method, params: readonly unknown[], chainState: ChainState): CallScope {
  if (method === 'eth_chainId') return { at: 'chain' }
  if (method === 'eth_blockNumber') return { at: 'head' }
  if (method === 'eth_getLogs') return scopeOfLogs(params[0] as LogsFilter, chainState)
  const scope = scopeOfBlock(params[blockParamIndex[method] ?? 0] as AnyBlock)
  // `eth_getBlockByNumber` takes no hash, and a number with as many digits as a hash is above every head.
  return scope.at === 'hash' && method === 'eth_getBlockByNumber' ? { at: 'head' } : scope
}

function scopeOfBlock(block: AnyBlock): CallScope {
  if (typeof block !== 'string') return 'blockHash' in block ? { at: 'hash' } : scopeOfBlock(block.blockNumber)
  if (block === 'pending') return { at: 'pending' }
  if (block === 'earliest') return { at: 'number', number: 0, several: false }
  if (!block.startsWith('0x')) return { at: 'head' }
  return block.length === 66 ? { at: 'hash' } : { at: 'number', number: Number(block), several: false }
}

function scopeOfLogs({ fromBlock, toBlock, blockHash }: LogsFilter, chainState: ChainState): CallScope {
  if (blockHash) return { at: 'hash' }
  const ends = [fromBlock ?? 'latest', toBlock ?? 'latest']
  if (ends.includes('pending')) return { at: 'pending' }
  const [from, to] = ends.map((end) => numberOf(end, chainState))
  if (!ends.every((end) => end === 'earliest' || end.startsWith('0x')) || to == null) return { at: 'head' }
  return { at: 'number', number: Math.max(from ?? 0, to), several: from !== to }
}
