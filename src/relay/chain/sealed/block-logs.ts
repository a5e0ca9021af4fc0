import type { SchedulerLike } from 'rxjs'
import type { Hex } from '../../../lib/hex.ts'
import { addressSetOf } from '../logs/memoized-address-set.ts'
import type { Log, Logs } from '../logs/read-logs.ts'
import type { BlockReader } from '../rpc/block-reader.ts'
import type { ConfirmChain } from '../rpc/endpoint-pool.ts'
import { isSealed, type SealedHeader } from '../rpc/header.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'
import type { BackfillRanges } from './backfill-ranges.ts'
import type { Cursor } from './recent-blocks.ts'

/** A published pre-confirmed log. The settling of its block confirms or retracts it. */
export type OpenKey = { readonly key: string; readonly address: Hex; readonly tx: Hex }

/** The ledger's open keys, as settling reads them. */
export interface OpenKeys {
  /** The open keys of a block, and those of sealed ones that the ledger still has. */
  at(block: number): readonly OpenKey[]
  /** The blocks of a range with published keys: open ones, or sealed ones that a reorganisation may have removed. */
  publishedBlocksBetween(from: number, to: number): readonly number[]
  /** The blocks with keys that the previous run sealed, in order. */
  readonly sealedInPreviousRun: readonly Cursor[]
}

/** One sealed block with all logs of the given addresses. */
export type SealedBlock = {
  readonly number: number
  readonly hash: Hex
  /** In seconds. */
  readonly timestamp: number | null
  readonly logs: readonly Log[]
  /** The logs of other addresses are unknown. */
  readonly addresses: readonly Hex[]
  /** `backfill` for a block that was sealed during an outage. */
  readonly via: 'sealed' | 'backfill'
  /** It has logs that cannot be read, so it proves nothing about what `logs` lacks. A hole was reported before. */
  readonly isPartial?: true
}

/** The events of settling, in the order of the chain except for backfill. */
export type SettlementEvent =
  | {
      readonly type: 'sealed'
      readonly blocks: readonly SealedBlock[]
      /** Up to this block nothing can be pre-confirmed any more. */
      readonly newest: number
      /** Up to this block everything is settled. */
      readonly cursor: Cursor
      /** Where a restart continues: not above the cursor, since blocks below it may still gain logs. It settles them again. */
      readonly restartCursor: Cursor
    }
  | {
      readonly type: 'hole'
      readonly blocks: { readonly from: number; readonly to: number }
      readonly reason: string
      readonly cursor: Cursor
      readonly restartCursor: Cursor
    }
  /** A reorganisation may have removed this block and all above it. Unless it is only suspected, they are settled again. */
  | { readonly type: 'reorg'; readonly from: number; readonly isSuspected?: true }
  | { readonly type: 'unreadable'; readonly count: number }

/** What settling reads from, and where its events go. */
export type SettlementContext = {
  readonly node: BlockReader
  readonly confirmChain: ConfirmChain
  readonly openKeys: OpenKeys
  /** The listed tokens. Another list is another array. */
  readonly addresses: () => readonly Hex[]
  readonly clock: SchedulerLike
  readonly warn: (kind: string, detail: unknown) => void
  readonly emit: (event: SettlementEvent) => void
  /** Ends all loops and reads. */
  readonly signal: AbortSignal
}

/** A block that was read. */
export type BlockReading = Logs & {
  readonly header: SealedHeader
  /** The listed tokens at the time of the read. */
  readonly listed: readonly Hex[]
  /** The listed tokens, and unlisted ones with open keys. */
  readonly queried: readonly Hex[]
}

/** How long an endpoint that named its chain is believed to be of it where something is retracted. */
const CONFIRMED_FOR_MS = 60_000

/** The answer lacks logs that the block may contain. */
export class MissingLogsError extends Error {
  readonly block: number

  constructor(block: number, what = 'lacks logs of transactions that it may contain') {
    super(`block ${block} ${what}`)
    this.block = block
  }
}

/**
 * Reads the logs that settle a block. `acceptsMissing` tells whether missing logs are believed to be gone, and unreadable ones to
 * stay so.
 */
export async function readBlock(
  { node, confirmChain, openKeys, addresses, clock, signal }: Omit<SettlementContext, 'warn' | 'emit'>,
  header: SealedHeader,
  acceptsMissing: boolean,
): Promise<BlockReading> {
  const answeredSince = clock.now()
  const listed = addresses()
  const queried = addressesToQuery(listed, openKeys.at(header.number))
  const answer = await readLogs(node, header, queried, signal)
  if (!acceptsMissing && answer.unreadable > 0) throw new MissingLogsError(header.number, 'has logs that cannot be read')
  // More keys may have been published during the read.
  if (!acceptsMissing) await checkMissing(node, header, answer, openKeys.at(header.number), signal)
  // Another chain may answer under the same URL.
  if (isRetracting(answer, openKeys.at(header.number)))
    await confirmChain({ answeredSince, askedAfter: clock.now() - CONFIRMED_FOR_MS })
  return { ...answer, header, listed, queried }
}

/** The logs that can be settled. What an unreadable log means for the others of its transaction is unknown. */
export function settleableLogs({ logs, unreadableTxs }: Logs): Pick<SealedBlock, 'logs' | 'isPartial'> {
  if (!unreadableTxs) return { logs }
  const isWhole = ({ transactionHash }: Log) => !unreadableTxs.has(null) && !unreadableTxs.has(transactionHash)
  return { logs: logs.filter(isWhole), isPartial: true }
}

/** The holes come first: what changed in them is unknown to the logs that can be read. */
export function reportPartial(blocks: readonly SealedBlock[], ranges: BackfillRanges, emit: SettlementContext['emit']): void {
  for (const { number, isPartial } of blocks)
    if (isPartial) emit({ type: 'hole', blocks: { from: number, to: number }, reason: 'unreadable', ...ranges.cursors() })
}

/** The listed tokens, and unlisted ones with open keys. */
export function addressesToQuery(listed: readonly Hex[], openKeys: readonly OpenKey[]): readonly Hex[] {
  const known = addressSetOf(listed)
  const others = new Set(openKeys.map(({ address }) => address).filter((address) => !known.has(address)))
  return others.size === 0 ? listed : [...listed, ...others]
}

/** The header of a block that has to exist. */
export async function readHeader(node: BlockReader, number: number, signal: AbortSignal): Promise<SealedHeader> {
  const header = await node.header(number, signal)
  if (!isSealed(header) || header.number !== number) throw new UpstreamError('behind', `no block ${number} yet`)
  return header
}

/** The logs of a block, by its hash where the node supports that. */
export async function readLogs(
  node: BlockReader,
  header: SealedHeader,
  addresses: readonly Hex[],
  signal: AbortSignal,
): Promise<Logs> {
  try {
    return await node.logsByHash(header, addresses, signal)
  } catch (failure) {
    // Some nodes do not support logs by block hash.
    if (!isInvalid(failure)) throw failure
    return readLogsByNumber(node, header, addresses, signal)
  }
}

/** A lagging node returns no logs for a number it lacks, so it must also return the header with our hash. */
async function readLogsByNumber(
  node: BlockReader,
  { number, hash }: SealedHeader,
  addresses: readonly Hex[],
  signal: AbortSignal,
): Promise<Logs> {
  const answer = await node.logsInRange(number, number, addresses, signal).catch((failure: unknown) => {
    // A range of one block is only invalid above the head of a lagging node.
    throw isInvalid(failure) ? new UpstreamError('behind', failure.message) : failure
  })
  const reread = await node.header(number, signal)
  if (reread?.hash !== hash || answer.logs.some((log) => log.blockHash !== hash))
    throw new UpstreamError('behind', `block ${number} is not ${hash}`)
  return answer
}

/** Whether the block lacks what was published of it. One with unreadable logs retracts nothing. */
function isRetracting({ logs, unreadable }: Logs, published: readonly OpenKey[]): boolean {
  if (unreadable > 0 || published.length === 0) return false
  const found = new Map(logs.map(({ key, address }) => [key, address]))
  return published.some(({ key, address }) => found.get(key) !== address)
}

/**
 * If an open key's transaction has no logs, the block's transactions decide. A transaction that the block lacks is gone.
 * One that it contains causes a `MissingLogsError`, since a lagging node returns no logs either. So does a block that
 * lists no transactions but used gas.
 */
async function checkMissing(
  node: BlockReader,
  { number, hash }: SealedHeader,
  { logs }: Logs,
  openKeys: readonly OpenKey[],
  signal: AbortSignal,
): Promise<void> {
  if (openKeys.length === 0) return
  const returned = new Set(logs.map((log) => log.transactionHash))
  const missing = openKeys.filter(({ tx }) => !returned.has(tx))
  if (missing.length === 0) return
  const reread = await node.header(number, signal)
  if (reread?.hash !== hash) throw new UpstreamError('behind', `block ${number} is not ${hash}`)
  const included = new Set(reread.transactions)
  const areGone = (included.size > 0 || reread.gasUsed === 0) && missing.every(({ tx }) => !included.has(tx))
  if (!areGone) throw new MissingLogsError(number)
}

const isInvalid = (failure: unknown): failure is UpstreamError => failure instanceof UpstreamError && failure.kind === 'invalid'
