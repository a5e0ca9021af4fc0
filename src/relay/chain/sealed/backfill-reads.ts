import type { Hex } from '../../../lib/hex.ts'
import { type BlockReadContext, isInvalid, readHeader } from '../blocks/block-logs.ts'
import { readBlocks, readOldBlock, splitIntoParts } from '../blocks/block-pages.ts'
import { rangesAround } from '../blocks/block-ranges.ts'
import { firstWithLogs } from '../blocks/block-search.ts'
import { acceptsMissing, type Failures, isExhausted, isPruned, isReadFailure, mayBePruned } from '../blocks/read-failures.ts'
import type { BlockRange, SealedBlock } from '../blocks/sealed-block.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'
import type { Found, Hole, ReadOf } from './settlement-types.ts'

/** Reads a page of old blocks. The answer has several parts if the page has many logs. */
export async function readPage(
  context: BlockReadContext,
  failures: Failures,
  { page, range }: ReadOf<'page'>,
): Promise<readonly Found[]> {
  const isAccepted = (hash: Hex) => acceptsMissing(failures, hash)
  try {
    return pageParts(page.to, await readBlocks(context, isAccepted, page))
  } catch (failure) {
    context.signal.throwIfAborted()
    // A lagging node refuses a page that ends above its head as invalid. It lacks the last block too, and is asked again.
    if (isInvalid(failure)) await readHeader(context.node, page.to, context.signal)
    if (isExhausted(failures, failure)) return [{ type: 'unavailable', to: page.to, reason: failure.kind }]
    if (!(failure instanceof UpstreamError)) throw failure
    if (failure.kind === 'gone') {
      const available = await firstWithLogs(context, page.from, range.to)
      // Another node behind the load balancer has the first block, so the page is retried and there is no hole.
      if (available <= page.from) throw failure
      return [{ type: 'unavailable', to: available - 1, reason: 'pruned' }]
    }
    // A single block that is too large is read for parts of the list of addresses.
    if (failure.kind === 'too_large' && page.to === page.from)
      return pageParts(page.to, [await readOldBlock(context, isAccepted, page.from)])
    throw failure
  }
}

const pageParts = (to: number, blocks: readonly SealedBlock[]): readonly Found[] =>
  splitIntoParts(blocks, to).map((part) => ({ type: 'page', ...part, holes: [] }))

/** Reports blocks as missing. Those with published keys are still read, if the node has them. A failure ends the answer before it. */
export async function readMissing(
  context: BlockReadContext,
  failures: Failures,
  { range, reason }: ReadOf<'missing'>,
): Promise<readonly Found[]> {
  const blocks: SealedBlock[] = []
  const pruned: number[] = []
  let done: number | null = null
  const upTo = (to: number): Found => {
    const numbers = blocks.map(({ number }) => number)
    const missing = rangesAround(numbers, { from: range.from, to })
    return { type: 'page', blocks, to, holes: missing.flatMap((part) => splitAtPruned(part, pruned, reason)) }
  }
  for (const number of context.openKeys.publishedBlocksBetween(range.from, range.to)) {
    try {
      blocks.push(await readOldBlock(context, (hash) => acceptsMissing(failures, hash), number))
    } catch (failure) {
      context.signal.throwIfAborted()
      if (isPruned(failures, failure)) pruned.push(number)
      // A block that may be pruned is tried again first: if it is pruned, the hole up to it has another reason.
      else if (done === null || mayBePruned(failure) || !isReadFailure(failure)) throw failure
      else return [upTo(done), { type: 'failed', failure }]
    }
    done = number
  }
  return [upTo(range.to)]
}

/** Splits a hole at the highest block that the node pruned: the reason of all blocks up to that one is `pruned`. */
function splitAtPruned({ from, to }: BlockRange, pruned: readonly number[], reason: string): readonly Hole[] {
  const last = pruned.findLast((number) => number <= to) ?? -1
  if (last < from || reason === 'pruned') return [{ blocks: { from, to }, reason }]
  const rest = last < to ? [{ blocks: { from: last + 1, to }, reason }] : []
  return [{ blocks: { from, to: last }, reason: 'pruned' }, ...rest]
}
