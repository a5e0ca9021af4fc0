import { type Hex, quantity, ZERO_WORD } from '../../../lib/hex.ts'
import type { Log } from '../../chain/logs/read-logs.ts'

/** A log as a node sends it. `blockHash` is null while the log is pre-confirmed, even if the upstream gave one. */
export function logToJson(log: Log, { blockHash, removed }: { blockHash: Hex | null; removed: boolean }): string {
  const { address, topics, data, blockNumber, blockTimestamp, transactionHash, transactionIndex, logIndex } = log
  return JSON.stringify({
    ...{ address, topics, data },
    blockHash: blockHash ?? ZERO_WORD,
    blockNumber: quantity(blockNumber),
    ...(blockTimestamp !== null && { blockTimestamp: quantity(blockTimestamp) }),
    transactionHash,
    transactionIndex: quantity(transactionIndex),
    logIndex: quantity(logIndex),
    removed,
    ...log.more,
  })
}

/** Whether two logs of the same key have the same content. */
export const isSameLog = (one: Log, other: Log): boolean =>
  one.address === other.address &&
  one.data === other.data &&
  one.topics.length === other.topics.length &&
  one.topics.every((topic, index) => topic === other.topics[index])
