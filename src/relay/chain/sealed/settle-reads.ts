import type { Host } from '../../host.ts'
import {
  type BlockReadContext,
  type BlockReading,
  type BlockResult,
  lacksNewKeys,
  readBlock,
  readHeader,
  readLogs,
} from '../blocks/block-logs.ts'
import { firstWithinAge } from '../blocks/block-search.ts'
import { acceptsMissing, type Failures, isExhausted, isPruned, isReadFailure, noFailures } from '../blocks/read-failures.ts'
import type { Cursor } from '../blocks/sealed-block.ts'
import { isSealed, type SealedHeader } from '../rpc/block-header.ts'
import { FilterRefusedError, UpstreamError } from '../rpc/upstream-error.ts'
import { findRollbackTarget } from './rollback-target.ts'
import { hashOf, type SealedState } from './sealed-state.ts'
import type { Found, ReadOf } from './settlement-types.ts'

/** Number of newest blocks that are settled one by one after an outage. Backfill reads the older ones in ranges. */
const NEWEST_BLOCKS = 64

export type SettleContext = BlockReadContext &
  Pick<Host, 'log'> & {
    /** Limit of the age of blocks to catch up on after an outage, in chain time. */
    readonly backfillLimitMs: number
    /** How far back in chain time settling begins if nothing was settled before. */
    readonly backfillFirstMs?: number
    /** Called with the block after which settling begins in the past: what that block leaves behind is read first. */
    readonly readFirstState?: (block: Cursor, signal: AbortSignal) => Promise<void>
  }

/** Reads the header of a settled block for which a node gave another hash. */
export async function readDisputed(context: SettleContext, state: SealedState, read: ReadOf<'disputed'>): Promise<Found> {
  const { node, clock, signal } = context
  const { number } = read
  const answeredSince = clock.now()
  const header = await node.header(number, signal)
  if (!isSealed(header) && !read.acceptsMissing) throw new UpstreamError('behind', `block ${number} is gone, or not there yet`)
  const ourHash = hashOf(state, number)
  const isReplaced = isSealed(header) && ourHash !== null && ourHash !== header.hash
  return isReplaced ? findReplaced(context, state, number, answeredSince) : { type: 'confirmed', number }
}

/** Reads the next blocks in parallel. */
export async function readNext(context: SettleContext, state: SealedState, { settled, count }: ReadOf<'next'>): Promise<Found> {
  const { confirmChain, clock, signal } = context
  const answeredSince = clock.now()
  const numbers = Array.from({ length: count }, (_, index) => settled.number + 1 + index)
  // The counted failures are those of the first block, so the other blocks have none.
  const reads = await Promise.allSettled(
    numbers.map((number, index) => readOne(context, state, number, index === 0 ? state.failures.settle : noFailures)),
  )
  // No parent shows then that the first block is of our chain.
  if (settled.hash === null && reads[0]?.status === 'fulfilled')
    await confirmChain({ answeredSince, askedAfter: clock.now() }, signal)
  const results: BlockResult[] = []
  let previous = settled
  for (const read of reads) {
    if (read.status === 'rejected') {
      if (!isReadFailure(read.reason)) throw read.reason
      return { type: 'blocks', results, failure: read.reason }
    }
    const { header } = read.value
    if (previous.hash && header.parentHash && header.parentHash !== previous.hash) {
      // One of the two blocks is of another branch. The next read begins with this mismatch.
      if (results.length > 0) break
      const replaced = await findIfReplaced(context, state, settled)
      if (replaced) return replaced
      throw new UpstreamError('behind', `the next block has another parent than our block ${settled.number}`)
    }
    // Headers and other blocks are read beside the logs. Meanwhile more logs may be published.
    if ('judged' in read.value && lacksNewKeys(read.value, context.openKeys.at(header.number))) {
      const failure = new UpstreamError('behind', `logs of block ${header.number} were published during its read`)
      return { type: 'blocks', results, failure }
    }
    results.push(read.value)
    previous = { number: header.number, hash: header.hash }
  }
  return { type: 'blocks', results, failure: null }
}

/** Reads a settled block again that has more logs now, or was settled without a filter that it needs. */
export async function readAgain(
  context: SettleContext,
  state: SealedState,
  { lane, number }: ReadOf<'incomplete' | 'outdated'>,
): Promise<Found> {
  // A header that was announced before the block was settled may be that of a replaced one.
  const unannounced: SealedState = { ...state, announced: new Map() }
  return { type: 'blocks', results: [await readOne(context, unannounced, number, state.failures[lane])], failure: null }
}

/** Reads an outdated block. Gives it up if the node has lost it, or answers what the block needs for newer blocks alone. */
export async function readOutdated(context: SettleContext, state: SealedState, read: ReadOf<'outdated'>): Promise<Found> {
  try {
    return await readAgain(context, state, read)
  } catch (cause) {
    const failure = (await isRefusedForOld(context, state, cause)) ? new UpstreamError('gone', String(cause)) : cause
    if (isPruned(state.failures.outdated, failure)) return { type: 'lost', number: read.number }
    throw failure
  }
}

async function isRefusedForOld({ node, signal }: SettleContext, { blocks }: SealedState, failure: unknown): Promise<boolean> {
  const { number, hash = null } = blocks.newest ?? {}
  if (!(failure instanceof FilterRefusedError) || number === undefined || hash === null) return false
  return readLogs(node, { number, hash }, failure.filters, signal).then(
    () => true,
    () => false,
  )
}

async function readOne(
  context: SettleContext,
  { announced, target }: SealedState,
  number: number,
  failures: Failures,
): Promise<BlockResult> {
  const { node, filters, signal } = context
  const known = announced.get(number)
  const isPushed = known?.isPushed === true
  // The header of the newest block is requested in parallel with its logs, to settle the block sooner.
  const isConfirmedBeside = isPushed && target?.number === number
  const header = known && (!isPushed || isConfirmedBeside) ? known.header : await readHeader(node, number, signal)
  const listed = filters()
  const reading = readBlock(context, header, acceptsMissing(failures, header.hash))
  try {
    return isConfirmedBeside ? await confirm(context, header, reading) : await reading
  } catch (failure) {
    if (!isExhausted(failures, failure)) throw failure
    return { header, listed, holeReason: failure.kind }
  }
}

/** A pushed header counts only if the node confirms its hash. */
async function confirm({ node, signal }: SettleContext, { number, hash }: SealedHeader, read: Promise<BlockReading>) {
  const [reading, header] = await Promise.all([read, readHeader(node, number, signal)])
  if (header.hash !== hash) throw new UpstreamError('behind', `block ${number} is not ${hash}`)
  return { ...reading, header }
}

/** Finds the block from which on the past is read. A node that pruned it begins with the oldest block that it has. */
export async function findFirst(context: SettleContext, { target }: ReadOf<'first'>): Promise<Found> {
  const { node, backfillFirstMs = 0, readFirstState, signal } = context
  const head = await readHeader(node, target.number, signal)
  const { number, hash } = await readHeader(node, await firstWithinAge(node, 0, head, backfillFirstMs, signal), signal)
  await readFirstState?.({ number, hash }, signal)
  return { type: 'first', cursor: { number, hash } }
}

/** Finds the last block that is too old to catch up on after an outage. */
export async function findOldest(
  context: SettleContext,
  state: SealedState,
  { settled, target }: ReadOf<'oldest'>,
): Promise<Found> {
  const { node, backfillLimitMs, signal } = context
  const replaced = await findIfReplaced(context, state, settled)
  if (replaced) return replaced
  // A pushed header does not suffice: with a false time it would make all blocks too old.
  const known = state.announced.get(target.number)
  const head = known?.isPushed === false ? known.header : await readHeader(node, target.number, signal)
  const first = await firstWithinAge(node, settled.number + 1, head, backfillLimitMs, signal)
  return { type: 'skipped', to: { number: first - 1, hash: null }, missingReason: 'backfill_bound' }
}

/** Finds the block to skip to. Backfill reads the skipped ones in parallel. */
export async function findNewest(
  context: SettleContext,
  state: SealedState,
  { settled, target }: ReadOf<'newest'>,
): Promise<Found> {
  const { number, hash } = await readHeader(context.node, target.number - NEWEST_BLOCKS, context.signal)
  // Checked after the read: if the settled block is still canonical, the block that was read descends from it.
  const replaced = await findIfReplaced(context, state, settled)
  return replaced ?? { type: 'skipped', to: { number, hash }, missingReason: null }
}

/** Returns the block to roll back to if the node has another block in place of the settled one. */
async function findIfReplaced(context: SettleContext, state: SealedState, { number, hash }: Cursor): Promise<Found | null> {
  const answeredSince = context.clock.now()
  const header = hash === null ? null : await context.node.header(number, context.signal)
  return isSealed(header) && header.hash !== hash ? findReplaced(context, state, number, answeredSince) : null
}

/** Finds the block to roll back to. Fails if a node that answered turns out to be of another chain. */
async function findReplaced(context: SettleContext, state: SealedState, number: number, answeredSince: number): Promise<Found> {
  const { node, confirmChain, clock, log, signal } = context
  const noticedAt = clock.now()
  const { to, lost } = await findRollbackTarget(node, state.blocks, { number, safe: state.safe }, signal)
  await confirmChain({ answeredSince, askedAfter: noticedAt }, signal)
  log('reorg', { from: to.number + 1, depth: (state.blocks.newest?.number ?? to.number) - to.number, lost })
  return { type: 'replaced', to, lost }
}
