import { type AnyBlock, LOGS_RANGE_BOUND, type Method, methods, type Params } from '../chain/rpc/methods.ts'
import type { Moment } from './chain-state.ts'
import { codes, Fault } from './rpc-error.ts'

/** A question for the node, checked. */
export type Question = {
  readonly method: Method
  readonly params: Params<Method>
  /** The same for every way of writing the same question. */
  readonly key: string
  readonly about: About
}

/** What a question is about: how long its answer keeps follows from it. */
type About =
  | { readonly at: 'pending' }
  | { readonly at: 'head' }
  /** A sealed block, or several up to it. */
  | { readonly at: 'number'; readonly number: number; readonly several: boolean }
  | { readonly at: 'hash' }
  /** What never changes. */
  | { readonly at: 'chain' }

type Range = Pick<Params<'eth_getLogs'>[0], 'fromBlock' | 'toBlock'>

/** Reads one call by the table of methods; throws what is wrong with it. */
export function readQuestion(name: string, params: unknown, moment: Moment): Question {
  if (name === 'eth_subscribe' || name === 'eth_unsubscribe')
    throw new Fault(codes.method, 'subscriptions need a WebSocket: connect to this path with ws:// or wss://')
  if (!isMethod(name)) throw new Fault(codes.method, `the method ${shown(name)} does not exist or is not served here`)
  if (!Array.isArray(params)) throw new Fault(codes.params, 'invalid params: they go by position, in an array')
  const read = methods[name].params.safeParse(params)
  if (!read.success) throw new Fault(codes.params, `invalid params: ${complaint(name, params, read.error.issues[0])}`)
  const asked = name === 'eth_getLogs' ? [filterOf((read.data as Params<'eth_getLogs'>)[0], moment)] : read.data
  return {
    method: name,
    params: asked as Params<Method>,
    // Every word of a question is hex or a tag.
    key: `${name} ${JSON.stringify(asked)}`.toLowerCase(),
    about: aboutOf(name, asked, moment),
  }
}

const isMethod = (name: string): name is Method => Object.hasOwn(methods, name)

/** How much of a name from outside is repeated. */
const NAME_BOUND_CHARS = 64

const shown = (name: string): string => JSON.stringify(name.slice(0, NAME_BOUND_CHARS))

type Issue = { readonly path: readonly PropertyKey[]; readonly message: string } | undefined

function complaint(name: Method, params: readonly unknown[], issue: Issue): string {
  const count = methods[name].params.def.items.length
  if (params.length !== count)
    return `${name} takes ${count} parameter${count === 1 ? '' : 's'}, this call has ${params.length}`
  return `params${placeOf(issue?.path ?? [])} must be ${issue?.message ?? 'something else'}`
}

/** Where in a value something is wrong, as it would be written to reach it. */
export const placeOf = (path: readonly PropertyKey[]): string =>
  path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('')

/** The filter as it is asked upstream: a block's hash wins over a range, and nothing is said that means nothing. */
function filterOf(filter: Params<'eth_getLogs'>[0], moment: Moment): Params<'eth_getLogs'>[0] {
  const { blockHash, fromBlock, toBlock, ...wanted } = filter
  const where = blockHash ? { blockHash } : { fromBlock, toBlock }
  if (!blockHash) checkRange({ fromBlock, toBlock }, moment)
  return Object.fromEntries(Object.entries({ ...wanted, ...where }).filter(([, value]) => value != null))
}

function checkRange({ fromBlock, toBlock }: Range, moment: Moment): void {
  const from = numberOf(fromBlock ?? 'latest', moment)
  const to = numberOf(toBlock ?? 'latest', moment)
  if (from === null || to === null || to - from + 1 <= LOGS_RANGE_BOUND) return
  throw new Fault(
    codes.params,
    `invalid params: the range holds ${to - from + 1} blocks; eth_getLogs is answered for at most ${LOGS_RANGE_BOUND.toLocaleString('en')} at once`,
  )
}

/** The number that a block parameter stands for now; null where nobody knows. */
function numberOf(block: string, moment: Moment): number | null {
  switch (block) {
    case 'earliest':
      return 0
    case 'latest':
      return moment.head
    case 'pending':
      return moment.pending
    case 'safe':
      return moment.safe
    case 'finalized':
      return moment.finalized
    default:
      return Number(block)
  }
}

/** Where in each method's parameters its block stands. */
const blockAt: Partial<Record<Method, number>> = {
  eth_getBlockByNumber: 0,
  eth_getBlockReceipts: 0,
  eth_getStorageAt: 2,
  eth_getTransactionCount: 1,
  eth_getCode: 1,
  eth_getBalance: 1,
}

function aboutOf(method: Method, params: readonly unknown[], moment: Moment): About {
  if (method === 'eth_chainId') return { at: 'chain' }
  if (method === 'eth_blockNumber') return { at: 'head' }
  if (method === 'eth_getLogs') return aboutLogs(params[0] as Params<'eth_getLogs'>[0], moment)
  const about = aboutBlock(params[blockAt[method] ?? 0] as AnyBlock)
  // Where only a number can be meant, as many digits as a hash has are one that no chain reaches.
  return about.at === 'hash' && method === 'eth_getBlockByNumber' ? { at: 'head' } : about
}

function aboutBlock(block: AnyBlock): About {
  if (typeof block !== 'string') return 'blockHash' in block ? { at: 'hash' } : aboutBlock(block.blockNumber)
  if (block === 'pending') return { at: 'pending' }
  if (block === 'earliest') return { at: 'number', number: 0, several: false }
  if (!block.startsWith('0x')) return { at: 'head' }
  return block.length === 66 ? { at: 'hash' } : { at: 'number', number: Number(block), several: false }
}

function aboutLogs({ fromBlock, toBlock, blockHash }: Params<'eth_getLogs'>[0], moment: Moment): About {
  if (blockHash) return { at: 'hash' }
  const ends = [fromBlock ?? 'latest', toBlock ?? 'latest']
  if (ends.includes('pending')) return { at: 'pending' }
  const [from, to] = ends.map((end) => numberOf(end, moment))
  if (!ends.every((end) => end === 'earliest' || end.startsWith('0x')) || to == null) return { at: 'head' }
  return { at: 'number', number: Math.max(from ?? 0, to), several: from !== to }
}
