import type { Hex } from '../../../lib/hex.ts'
import type { Log } from '../logs/read-logs.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'
import { readHeader, readLogs, type SettlementContext } from './block-logs.ts'
import type { BlockRange } from './page-size.ts'

/** A page with at least so many logs is checked. No node cuts an answer to fewer. */
const CHECKED_PAGE_LOGS = 10
/** Nodes cut their answers at multiples of this, so such a count is not believed. */
const ROUND_COUNT = 1_000

/**
 * Some nodes cut a long answer without an error. The last block in it then has more logs, or later blocks have some.
 * Asks for both again, the block by its hash, and throws `too_large` where the answers differ: smaller pages end in one
 * block, which is read by its hash.
 */
export async function checkPageEnd(
  { node, signal }: Pick<SettlementContext, 'node' | 'signal'>,
  { from, to }: BlockRange,
  logs: readonly Log[],
  addresses: readonly Hex[],
): Promise<void> {
  const last = logs.at(-1)
  if (!last || logs.length < CHECKED_PAGE_LOGS) return
  if (logs.length % ROUND_COUNT === 0 && from < to) throw cutOff(`exactly ${logs.length} logs`)
  const number = last.blockNumber
  const block = readHeader(node, number, signal).then((header) => readLogs(node, header, addresses, signal))
  const answers = await Promise.all([block, node.logsInRange(number, to, addresses, signal)])
  const count = logs.filter(({ blockNumber }) => blockNumber === number).length
  const isWhole = answers.every((answer) => answer.logs.length === count && answer.logs.at(-1)?.key === last.key)
  if (!isWhole) throw cutOff(`other answers differ from block ${number} on`)
}

const cutOff = (detail: string): UpstreamError => new UpstreamError('too_large', `the answer may be cut: ${detail}`)
