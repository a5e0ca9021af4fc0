import { isSealed } from '../rpc/block-header.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'
import type { ReceivedHeaders } from './received-headers.ts'
import type { Cursor, RecentBlocks } from './recent-blocks.ts'
import type { Recheck } from './recheck.ts'
import { findRollbackTarget } from './rollback-target.ts'
import type { SettlementContext } from './settlement-types.ts'
import type { UnreadRanges } from './unread-ranges.ts'

type Options = Pick<SettlementContext, 'node' | 'confirmChain' | 'clock' | 'warn' | 'emit' | 'signal'> & {
  readonly recentBlocks: RecentBlocks
  readonly heads: ReceivedHeaders
  readonly recheck: Recheck
  readonly ranges: UnreadRanges
}

/** Reads the header of a settled block for which a node gave another hash, and rolls back if the block was replaced. */
export async function resolveDispute(options: Options, number: number, acceptsMissing: boolean): Promise<void> {
  const { node, recentBlocks, heads, clock, signal } = options
  const answeredSince = clock.now()
  const header = await node.header(number, signal)
  if (!isSealed(header) && !acceptsMissing) throw new UpstreamError('behind', `block ${number} is gone, or not there yet`)
  const ourHash = recentBlocks.get(number)?.hash
  if (isSealed(header) && ourHash && ourHash !== header.hash) return rollBack(options, number, answeredSince)
  heads.resolveDispute(number)
}

/** Rolls back if the node has another block in place of the settled one. Returns whether it did; false for a null hash. */
export async function rollBackIfReplaced(options: Options, { number, hash }: Cursor): Promise<boolean> {
  const answeredSince = options.clock.now()
  const header = hash === null ? null : await options.node.header(number, options.signal)
  if (!isSealed(header) || header.hash === hash) return false
  await rollBack(options, number, answeredSince)
  return true
}

/** Rolls back below the block `number`. Fails if a node that answered turns out to be of another chain. */
async function rollBack(options: Options, number: number, answeredSince: number): Promise<void> {
  const { node, confirmChain, recentBlocks, heads, recheck, ranges, clock, warn, emit, signal } = options
  const noticedAt = clock.now()
  const { to, lost } = await findRollbackTarget(node, recentBlocks, { number, safe: heads.safe }, signal)
  await confirmChain({ answeredSince, askedAfter: noticedAt })
  warn('reorg', { from: to.number + 1, depth: (recentBlocks.newest?.number ?? to.number) - to.number, lost })
  recentBlocks.rollBackTo(to)
  heads.rolledBackTo(to.number)
  recheck.rolledBackTo(to.number)
  emit({ type: 'reorg', from: to.number + 1 })
  // The updates about the blocks in `lost` can be neither confirmed nor retracted.
  if (lost) emit({ type: 'hole', blocks: lost, reason: 'reorg', ...ranges.cursors() })
}
