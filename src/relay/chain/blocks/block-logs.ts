import type { Hex } from '../../../lib/hex.ts'
import type { Host } from '../../host.ts'
import { type LogOrigin, matchesAny, type ReadFilter } from '../logs/log-filter.ts'
import type { Log, Logs } from '../logs/log-parser.ts'
import { isSealed, type SealedHeader } from '../rpc/block-header.ts'
import type { BlockId, ChainReader } from '../rpc/chain-reader.ts'
import type { ConfirmChain } from '../rpc/endpoint-pool.ts'
import { FilterRefusedError, UpstreamError, type UpstreamErrorKind } from '../rpc/upstream-error.ts'
import type { OpenKey, OpenKeys, SealedBlock } from './sealed-block.ts'

/** A chain check is valid for this long. An endpoint with an older check is checked before the relay retracts a log. */
const CONFIRMED_FOR_MS = 60_000

/** The logs of blocks are incomplete: a log is missing or cannot be read. */
export class MissingLogsError extends Error {
  readonly hashes: readonly Hex[]

  constructor(message: string, hashes: readonly Hex[]) {
    super(message)
    this.hashes = hashes
  }
}

export type BlockReadContext = Pick<Host, 'clock'> & {
  readonly node: ChainReader
  readonly confirmChain: ConfirmChain
  readonly openKeys: OpenKeys
  /** Returns the listed contracts at this moment. */
  readonly filters: () => readonly ReadFilter[]
  readonly signal: AbortSignal
}

export type BlockReading = Logs & {
  readonly header: SealedHeader
  /** The filters when the read began. */
  readonly listed: readonly ReadFilter[]
  /** The filters of the request: the listed ones, and those of published keys that they do not match. */
  readonly filters: readonly ReadFilter[]
  /** The keys that were published when the logs were checked. */
  readonly judged: readonly OpenKey[]
}

/** A block that was read, or the reason for which the relay gives it up. */
export type BlockResult = BlockReading | (Pick<BlockReading, 'header' | 'listed'> & { readonly holeReason: UpstreamErrorKind })

/** Reads the logs that settle a block. `acceptsMissing`: missing logs count as gone, and unreadable logs are no failure. */
export async function readBlock(
  { node, confirmChain, openKeys, filters: listedFilters, clock, signal }: BlockReadContext,
  header: SealedHeader,
  acceptsMissing: boolean,
): Promise<BlockReading> {
  const answeredSince = clock.now()
  const listed = listedFilters()
  const filters = filtersToRead(listed, openKeys.at(header.number))
  const first = await readLogs(node, header, filters, signal)
  const answer = mayPrecedeOthers(first, filters) ? await readLogs(node, header, filters, signal) : first
  if (!acceptsMissing && answer.unreadable > 0)
    throw new MissingLogsError(`block ${header.number} has logs that cannot be read`, [header.hash])
  // The relay may have published more keys during the read, so the ledger is asked again.
  const judged = openKeys.at(header.number)
  // A key of another contract, or of one that the node answers for again, was published or shown since the read began.
  if (judged.some((key) => !matchesAny(filters, key)))
    throw new UpstreamError('behind', `block ${header.number} was read without a filter that its logs need now`)
  if (!acceptsMissing) await checkMissing(node, header, { ...answer, filters, judged }, signal)
  // The answer lacks a published log. The reason may be that a node of another chain answers under this URL now.
  if (isRetracting(answer, judged)) await confirmChain({ answeredSince, askedAfter: clock.now() - CONFIRMED_FOR_MS }, signal)
  return { ...answer, header, listed, filters, judged }
}

/** Whether the answer lacks a log that was published after the check: nothing shows yet that this log is gone. */
export function lacksNewKeys({ judged, ...answer }: BlockReading, published: readonly OpenKey[]): boolean {
  // The keys of a block that is not settled only become more.
  if (published.length === judged.length) return false
  const known = new Set(judged.map(({ key }) => key))
  const added = published.filter(({ key }) => !known.has(key))
  return isRetracting(answer, added)
}

/** Whether the first of several filters matched no log, though others did: its answer may precede the indexing of the block. */
const mayPrecedeOthers = ({ logs }: Logs, [first, ...others]: readonly ReadFilter[]): boolean =>
  first !== undefined && others.length > 0 && logs.length > 0 && !logs.some((log) => matchesAny([first], log))

/** Omits all logs of a transaction with an unreadable log, since the unreadable log could change their meaning. */
export function settleableLogs({ logs, unreadable, unreadableTxs }: Logs): Pick<SealedBlock, 'logs' | 'unreadable'> {
  if (!unreadableTxs) return { logs }
  const isWhole = ({ transactionHash }: Log) => !unreadableTxs.has(null) && !unreadableTxs.has(transactionHash)
  return { logs: logs.filter(isWhole), unreadable }
}

/** Returns the listed filters, and what the published keys need that they do not match. */
export function filtersToRead(listed: readonly ReadFilter[], openKeys: readonly OpenKey[]): readonly ReadFilter[] {
  const others: LogOrigin[] = openKeys.filter((key) => !matchesAny(listed, key))
  for (const { token } of openKeys) if (token && !matchesAny(listed, { address: token })) others.push({ address: token })
  if (others.length === 0) return listed
  const [first, ...rest] = listed
  const contracts = new Set(others.flatMap(({ address, topics }) => (topics ? [] : [address])))
  const narrow = [...Map.groupBy(others, ({ address }) => address)].flatMap(([address, origins]) => {
    const tuples = origins.flatMap(({ topics }) => (topics ? [topics] : []))
    const [first] = tuples
    if (!first) return []
    const topics = first.map((_, place) => [...new Set(tuples.flatMap((tuple) => tuple[place] ?? []))])
    return [{ addresses: [address], topics }]
  })
  return [{ ...first, addresses: [...(first?.addresses ?? []), ...contracts] }, ...rest, ...narrow]
}

/** Fails if the node does not have the block. */
export async function readHeader(node: ChainReader, number: number, signal: AbortSignal): Promise<SealedHeader> {
  const header = await node.header(number, signal)
  if (!isSealed(header) || header.number !== number) throw new UpstreamError('behind', `no block ${number} yet`)
  return header
}

/** Reads the logs of a block by its hash, or by its number if the node does not support hashes. */
export async function readLogs(
  node: ChainReader,
  header: BlockId,
  filters: readonly ReadFilter[],
  signal: AbortSignal,
): Promise<Logs> {
  try {
    return await node.logsByHash(header, filters, signal)
  } catch (failure) {
    const isRefused = failure instanceof FilterRefusedError && failure.reason === 'invalid'
    if (!isInvalid(failure) && !isRefused) throw failure
    return readLogsByNumber(node, header, filters, signal)
  }
}

/** A lagging node returns no logs for a block that it lacks, so it must also return the header with the expected hash. */
async function readLogsByNumber(
  node: ChainReader,
  { number, hash }: BlockId,
  filters: readonly ReadFilter[],
  signal: AbortSignal,
): Promise<Logs> {
  const answer = await node.logsInRange(number, number, filters, signal).catch((failure: unknown) => {
    // A node refuses a range of one block as invalid only if the block is above its head, so it lags.
    throw isInvalid(failure) ? new UpstreamError('behind', failure.message) : failure
  })
  const reread = await node.header(number, signal)
  if (reread?.hash !== hash || answer.logs.some((log) => log.blockHash !== hash))
    throw new UpstreamError('behind', `block ${number} is not ${hash}`)
  return answer
}

/** Whether a published log is retracted because the block lacks it. A block with unreadable logs retracts nothing. */
function isRetracting({ logs, unreadable }: Logs, published: readonly OpenKey[]): boolean {
  if (unreadable > 0 || published.length === 0) return false
  const found = new Map(logs.map(({ key, address }) => [key, address]))
  return published.some(({ key, address }) => found.get(key) !== address)
}

/** Fails unless the logs that the answer lacks are gone, because the block lacks their transactions. A node may lag. */
async function checkMissing(
  node: ChainReader,
  { number, hash }: SealedHeader,
  { logs, filters, judged: openKeys }: Pick<BlockReading, 'logs' | 'filters' | 'judged'>,
  signal: AbortSignal,
): Promise<void> {
  if (openKeys.length === 0) return
  // The logs of a pool manager are an answer of their own, maybe of another node: they show for themselves alone that it has the transaction.
  const managers = new Set(filters.flatMap(({ addresses, topics }) => (topics ? addresses : [])))
  const returned = new Set(logs.map(({ transactionHash: tx, address }) => (managers.has(address) ? `${tx} ${address}` : tx)))
  const missing = openKeys.filter(({ tx, address, topics }) => !returned.has(topics ? `${tx} ${address}` : tx))
  if (missing.length === 0) return
  const reread = await node.header(number, signal)
  if (reread?.hash !== hash) throw new UpstreamError('behind', `block ${number} is not ${hash}`)
  const included = new Set(reread.transactions)
  // A block that used gas has transactions, even if the node lists none.
  const areGone = (included.size > 0 || reread.gasUsed === 0) && missing.every(({ tx }) => !included.has(tx))
  if (!areGone) throw new MissingLogsError(`block ${number} lacks logs of transactions that it may contain`, [hash])
}

export const isInvalid = (failure: unknown): failure is UpstreamError =>
  failure instanceof UpstreamError && failure.kind === 'invalid'
