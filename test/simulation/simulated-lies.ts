import { UpstreamError } from '../../src/relay/chain/rpc/upstream-error.ts'
import type { ActiveFaults } from './active-faults.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { JsonObject } from './simulated-node-json.ts'
import { hex } from './simulated-transactions.ts'

/** Well-formed answers that are not true. */

/** What a node answers, by method and parameters. */
type Answer = (method: string, params: readonly unknown[]) => unknown

export const SIMULATED_CHAIN = 8_453
const OTHER_CHAIN = 1
/** No hash of the simulated chain begins so. */
const OTHER_HASH = '0xc4'

const otherHash = (hash: unknown): unknown => (typeof hash === 'string' ? OTHER_HASH + hash.slice(OTHER_HASH.length) : hash)
const withOtherHashes = (json: unknown, names: readonly string[]): unknown =>
  json === null
    ? null
    : { ...(json as JsonObject), ...Object.fromEntries(names.map((name) => [name, otherHash((json as JsonObject)[name])])) }

type Lies = { readonly activeFaults: ActiveFaults; readonly elapsedMs: number; readonly random: SeededRandom }

/** Whether another chain answers, or did so in the past `withinMs`. */
export function isOfOtherChain({ activeFaults, elapsedMs }: Omit<Lies, 'random'>, withinMs = 0): boolean {
  const since = activeFaults.activeSince('otherChain')
  return since !== null && elapsedMs - since < (activeFaults.amount('otherChain') ?? 0) + withinMs
}

/** What the node answers, with the lies that are active. */
export function answerWithLies(
  truth: Answer,
  { method, params }: { readonly method: string; readonly params: readonly unknown[] },
  { activeFaults, elapsedMs, random }: Lies,
): unknown {
  const answer = isOfOtherChain({ activeFaults, elapsedMs }) ? answerOfOtherChain(truth, method, params) : truth(method, params)
  if (method !== 'eth_getLogs') return answer
  const isOfBlock = (params[0] as { readonly blockHash?: string }).blockHash !== undefined
  return logsLies.reduce((logs, lie) => {
    const own = random.fork(lie)
    const isTold = (lie !== 'misplacedLogs' || isOfBlock) && own.chance(activeFaults.amount(lie) ?? 0)
    return isTold ? withLie(lie, logs as readonly JsonObject[], own.fork('log')) : logs
  }, answer)
}

/** Another chain under the same URL: it has the same contracts and heights, under other hashes, and pre-confirms nothing. */
function answerOfOtherChain(answer: Answer, method: string, params: readonly unknown[]): unknown {
  if (method === 'eth_chainId') return `0x${OTHER_CHAIN.toString(16)}`
  if (method === 'eth_getBlockByNumber') {
    if (['pending', 'safe', 'finalized'].includes(String(params[0]))) return null
    const header = answer(method, params) as JsonObject | null
    const transactions = (header?.transactions as readonly unknown[] | undefined)?.map(otherHash)
    return header && { ...(withOtherHashes(header, ['hash', 'parentHash']) as JsonObject), transactions }
  }
  if (method !== 'eth_getLogs') return answer(method, params)
  const filter = params[0] as { readonly blockHash?: string; readonly toBlock?: string }
  if (filter.toBlock === 'pending') return []
  if (filter.blockHash !== undefined && !filter.blockHash.startsWith(OTHER_HASH))
    throw new UpstreamError('behind', '-32000 header not found', null, true)
  const own = filter.blockHash === undefined ? filter : { ...filter, blockHash: `0x00${filter.blockHash.slice(OTHER_HASH.length)}` }
  const logs = answer(method, [own]) as readonly unknown[]
  return logs.map((log) => withOtherHashes(log, ['blockHash', 'transactionHash']))
}

const logsLies = ['misplacedLogs', 'contradictions', 'unreadableLogs'] as const

/** The same logs with a lie about one of them. */
function withLie(lie: (typeof logsLies)[number], logs: readonly JsonObject[], random: SeededRandom): readonly unknown[] {
  const nth = random.int(0, logs.length - 1)
  const log = logs[nth]
  if (!log) return logs
  if (lie === 'contradictions') return [...logs, { ...log, data: hex(64, random.int(1, 1_000_000)) }]
  const number = Number(log.blockNumber)
  const changed =
    lie === 'misplacedLogs'
      ? random.pick<object>([
          { blockHash: null },
          { blockHash: hex(64, 7) },
          { blockNumber: `0x${(number + random.pick([-1, 1])).toString(16)}` },
        ])
      : random.pick<object>([{ data: '0x1' }, { topics: 'none' }, { address: '0x12' }, { logIndex: null }])
  return logs.with(nth, { ...log, ...changed })
}
