import type { RequestFn } from '../../src/relay/chain/rpc/endpoint-pool.ts'
import { ANSWER_UPDATED } from './simulated-feed.ts'
import type { JsonObject } from './simulated-node-json.ts'
import { hex } from './simulated-transactions.ts'
import type { ModifyInputs } from './simulation.ts'

/** Bugs of a relay that believes a node which lies. */

type LogsAnswer = readonly JsonObject[]
type Filter = { readonly blockHash?: string }

/** Changes each list of logs before the relay reads it. */
const alterLogs =
  (change: (logs: LogsAnswer, filter: Filter) => LogsAnswer): ModifyInputs =>
  (inputs) => {
    const request: RequestFn = async (method, params, signal) => {
      const answer = await inputs.request(method, params, signal)
      return method === 'eth_getLogs' && Array.isArray(answer) ? change(answer, params[0] as Filter) : answer
    }
    return { ...inputs, request }
  }

const keyOf = ({ blockNumber, transactionHash, logIndex }: JsonObject): string => `${blockNumber} ${transactionHash} ${logIndex}`
const isReadable = ({ data, topics, address, logIndex }: JsonObject): boolean =>
  data !== '0x1' && topics !== 'none' && address !== '0x12' && logIndex !== null

export const plantedLieBugs: Readonly<Record<string, ModifyInputs>> = {
  'a retract does not wait for the chain': (inputs) => ({ ...inputs, confirmChain: () => Promise.resolve() }),
  'a log of another block is left out': alterLogs((logs, { blockHash }) => {
    if (blockHash === undefined) return logs
    const [number] = logs.filter((log) => log.blockHash === blockHash).map((log) => log.blockNumber)
    return logs.filter((log) => log.blockHash === blockHash && log.blockNumber === number)
  }),
  'the last of two contents counts': alterLogs((logs) => [...new Map(logs.map((log) => [keyOf(log), log])).values()]),
  'an older round takes the time of the one before': (inputs, simulation) => {
    let latest = 0n
    const withTime = (log: JsonObject): JsonObject => {
      if ((log.topics as readonly string[])[0] !== ANSWER_UPDATED) return log
      const own = BigInt(String(log.data))
      if (own > latest) latest = own
      return { ...log, data: hex(64, latest) }
    }
    return alterLogs((logs) => logs.map(withTime))(inputs, simulation)
  },
  'a log that cannot be read counts as gone': alterLogs((logs) => logs.filter(isReadable)),
}
