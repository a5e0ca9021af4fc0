import type { Hex } from '../../../lib/hex.ts'
import type { ReadFilter } from '../logs/log-filter.ts'
import type { Log } from '../logs/log-parser.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'
import {
  type BlockReadContext,
  filtersToRead,
  MissingLogsError,
  readBlock,
  readHeader,
  readLogs,
  settleableLogs,
} from './block-logs.ts'
import type { BlockRange, SealedBlock } from './sealed-block.ts'

const PARALLEL_BLOCKS = 4
/** The end of an answer with at least this many logs is checked. No node cuts an answer to fewer logs. */
const CHECKED_PAGE_LOGS = 10
/** Nodes cut answers at multiples of this number of logs, so an answer with a multiple of it is not believed. */
const ROUND_COUNT = 1_000
/** Limit of logs per part, so that no turn of the event loop takes long. A block is not split, even if it has more. */
const PART_BOUND_LOGS = 500

/** Tells whether logs that the block with this hash lacks count as gone. */
type AcceptsMissing = (hash: Hex) => boolean

/** Reads the blocks of a range that have logs. */
export async function readBlocks(context: BlockReadContext, acceptsMissing: AcceptsMissing, { from, to }: BlockRange) {
  const { node, openKeys, filters, signal } = context
  const publishedBlocks = new Set(openKeys.publishedBlocksBetween(from, to))
  const openKeysInPage = [...publishedBlocks].flatMap((number) => openKeys.at(number))
  const queried = filtersToRead(filters(), openKeysInPage)
  const answers: PageAnswer[] = []
  const page = await node.logsInRange(from, to, queried, signal, (filter, logs) => answers.push({ filter, logs }))
  // `too_large` makes the next pages smaller, until the block with the unreadable logs is read alone.
  if (page.unreadable > 0) throw new UpstreamError('too_large', 'the page has logs that cannot be read')
  // A lagging node may return no logs for blocks that it lacks, so the node must have the last block of the page.
  await Promise.all([readHeader(node, to, signal), ...answers.map((each) => checkAnswerEnd(context, { from, to }, each))])
  return groupByBlock(context, acceptsMissing, { logs: page.logs, publishedBlocks, queried })
}

/** The answer to one request of a page: a node cuts each answer alone. */
type PageAnswer = { readonly filter: ReadFilter; readonly logs: readonly Log[] }

type PageLogs = {
  readonly logs: readonly Log[]
  readonly publishedBlocks: ReadonlySet<number>
  readonly queried: readonly ReadFilter[]
}

/** Groups the logs of a page by block. Each block with published keys is read alone, to find out which logs are gone. */
async function groupByBlock(
  context: BlockReadContext,
  acceptsMissing: AcceptsMissing,
  { logs, publishedBlocks, queried }: PageLogs,
) {
  const blocks: SealedBlock[] = []
  const unclear = new Set(publishedBlocks)
  for (const [number, blockLogs] of Map.groupBy(logs, (log) => log.blockNumber)) {
    const block = publishedBlocks.has(number) ? null : blockFromLogs(blockLogs, queried)
    if (block) blocks.push(block)
    else unclear.add(number)
  }
  const numbers = [...unclear].sort((a, b) => a - b)
  const failures: MissingLogsError[] = []
  const readOne = async (number: number): Promise<void> => {
    try {
      blocks.push(await readOldBlock(context, acceptsMissing, number))
    } catch (failure) {
      if (!(failure instanceof MissingLogsError)) throw failure
      failures.push(failure)
    }
  }
  for (let first = 0; first < numbers.length; first += PARALLEL_BLOCKS)
    await Promise.all(numbers.slice(first, first + PARALLEL_BLOCKS).map(readOne))
  const [first, ...others] = failures
  // The page waits once for all of its blocks, and not once for each.
  if (first)
    throw new MissingLogsError(
      `${first.message}${others.length > 0 ? `, as ${others.length} more of its page` : ''}`,
      failures.flatMap(({ hashes }) => hashes),
    )
  return blocks.sort((a, b) => a.number - b.number)
}

export async function readOldBlock(
  context: BlockReadContext,
  acceptsMissing: AcceptsMissing,
  number: number,
): Promise<SealedBlock> {
  const header = await readHeader(context.node, number, context.signal)
  const reading = await readBlock(context, header, acceptsMissing(header.hash))
  const { hash, timestamp } = header
  return { number, hash, timestamp, ...settleableLogs(reading), filters: reading.filters, via: 'backfill' }
}

/** Builds a block from its logs alone; null if the first log lacks block hash or time, or if the logs have several hashes. */
function blockFromLogs(logs: readonly Log[], filters: readonly ReadFilter[]): SealedBlock | null {
  const [first] = logs
  if (!first?.blockHash || first.blockTimestamp === null) return null
  const { blockNumber: number, blockHash: hash, blockTimestamp: timestamp } = first
  const isSameBlock = logs.every((log) => log.blockHash === hash)
  return isSameBlock ? { number, hash, timestamp, logs, filters, via: 'backfill' } : null
}

/** Splits the blocks of a page into parts, each with its last block number. */
export function splitIntoParts(
  blocks: readonly SealedBlock[],
  to: number,
): readonly { readonly blocks: readonly SealedBlock[]; readonly to: number }[] {
  const parts = []
  let part: SealedBlock[] = []
  let size = 0
  for (const block of blocks) {
    const last = part.at(-1)
    if (last && size + block.logs.length > PART_BOUND_LOGS) {
      parts.push({ blocks: part, to: last.number })
      part = []
      size = 0
    }
    part.push(block)
    size += block.logs.length
  }
  // The last part ends with the page, since no log follows the blocks in it.
  return [...parts, { blocks: part, to }]
}

const cutOff = (detail: string): UpstreamError => new UpstreamError('too_large', `the answer may be cut: ${detail}`)

/** Some nodes cut a long answer without an error. So the block of the last log, and all later ones, are requested again. */
async function checkAnswerEnd(
  { node, signal }: BlockReadContext,
  { from, to }: BlockRange,
  { filter, logs }: PageAnswer,
): Promise<void> {
  const last = logs.at(-1)
  if (!last || logs.length < CHECKED_PAGE_LOGS) return
  if (logs.length % ROUND_COUNT === 0 && from < to) throw cutOff(`exactly ${logs.length} logs`)
  const number = last.blockNumber
  const block = readHeader(node, number, signal).then((header) => readLogs(node, header, [filter], signal))
  const answers = await Promise.all([block, node.logsInRange(number, to, [filter], signal)])
  const count = logs.filter(({ blockNumber }) => blockNumber === number).length
  const isWhole = answers.every((answer) => answer.logs.length === count && answer.logs.at(-1)?.key === last.key)
  if (!isWhole) throw cutOff(`other answers differ from block ${number} on`)
}
