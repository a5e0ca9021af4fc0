import type { Hex } from '../../../protocol/fields.ts'
import type { Log } from '../../chain/logs/log-schema.ts'

/** Stands for the hash of a block that has none yet. */
const ZERO_HASH: Hex = `0x${'0'.repeat(64)}`

const hexOf = (number: number): Hex => `0x${number.toString(16)}`

/** A log as a node sends it. `blockHash` is null while the log is pre-confirmed, even if the upstream gave one. */
export function logToJson(log: Log, { blockHash, removed }: { blockHash: Hex | null; removed: boolean }): string {
  const { address, topics, data, blockNumber, blockTimestamp, transactionHash, transactionIndex, logIndex } = log
  return JSON.stringify({
    ...{ address, topics, data },
    blockHash: blockHash ?? ZERO_HASH,
    blockNumber: hexOf(blockNumber),
    ...(blockTimestamp !== null && { blockTimestamp: hexOf(blockTimestamp) }),
    transactionHash,
    transactionIndex: hexOf(transactionIndex),
    logIndex: hexOf(logIndex),
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
