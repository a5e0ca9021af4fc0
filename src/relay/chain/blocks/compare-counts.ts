import type { Hex } from '../../../lib/hex.ts'
import { matchesAny, type ReadFilter } from '../logs/log-filter.ts'
import type { Log } from '../logs/log-parser.ts'
import { FilterRefusedError } from '../rpc/upstream-error.ts'
import type { BlockReadContext } from './block-logs.ts'

/** A block whose logs were counted: `logCount` of them match `filters`, `wholeCount` the first one. Null if they were not read. */
export type CountedBlock = {
  readonly number: number
  readonly hash: Hex | null
  readonly logCount: number | null
  readonly wholeCount?: number
  readonly filters: readonly ReadFilter[]
}

type Comparison = {
  /** Blocks that have more logs now. */
  readonly incomplete: readonly number[]
  /** Block up to which the answer is complete: a node that lags or cuts omits later ones. Null without logs, or if some are unreadable. */
  readonly readTo: number | null
}

/** Reads the logs of blocks again, which are in ascending order, and compares their numbers with the counted ones. */
export async function compareCounts(
  context: BlockReadContext,
  blocks: readonly CountedBlock[],
  listed: readonly ReadFilter[],
  isOurs: (log: Log) => boolean,
): Promise<Comparison> {
  const { node, signal } = context
  const [first, last] = [blocks[0]?.number, blocks.at(-1)?.number]
  if (first === undefined || last === undefined) return { incomplete: [], readTo: null }
  const counts = new Map(blocks.flatMap(({ hash, logCount }) => (hash && logCount !== null ? [[hash, logCount] as const] : [])))
  const [whole] = listed
  const answer = await node.logsIfCountsDiffer(counts, first, last, listed, signal).catch((failure: unknown) => {
    if (failure instanceof FilterRefusedError) return 'refused' as const
    throw failure
  })
  if (answer === 'refused') return compareCounts(context, blocks, [whole ?? { addresses: [] }], isOurs)
  if (!answer) return { incomplete: [], readTo: blocks.findLast(({ logCount }) => logCount)?.number ?? null }
  const byHash = Map.groupBy(answer.logs, ({ blockHash }) => blockHash)
  const differences = blocks.map(({ hash, logCount, wholeCount, filters }) => {
    const logs = byHash.get(hash) ?? []
    // Filters of the block that are left out now must not hide that it has more logs of the first one.
    if (filters.length > listed.length)
      return Math.max(0, logs.filter((log) => matchesAny(filters.slice(0, 1), log)).length - (wholeCount ?? 0))
    // Logs of tokens that were listed after the count do not count.
    if (filters === listed || logs.length <= (logCount ?? 0)) return logs.length - (logCount ?? 0)
    return Math.max(0, logs.filter((log) => matchesAny(filters, log)).length - (logCount ?? 0))
  })
  // After a change of the token list, the answer may have fewer logs only because a token was delisted.
  const isShort = blocks.some(({ filters }, index) => (differences[index] ?? 0) < 0 && filters === listed)
  const lastRead = answer.logs.findLast(isOurs)?.blockNumber ?? 0
  return {
    incomplete: blocks.flatMap(({ number }, index) => ((differences[index] ?? 0) > 0 ? [number] : [])),
    // A cut answer may lack logs of its last block. The first block always counts as read, so that later ones get their turn.
    readTo: answer.unreadable > 0 ? null : isShort ? Math.max(lastRead - 1, Math.min(lastRead, first)) : lastRead || null,
  }
}
