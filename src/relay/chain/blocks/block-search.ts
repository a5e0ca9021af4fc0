import type { SealedHeader } from '../rpc/block-header.ts'
import type { ChainReader } from '../rpc/chain-reader.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'
import type { BlockReadContext } from './block-logs.ts'

/** Returns the first block from `from` on whose timestamp is at most `boundMs` before that of `head`. */
export async function firstWithinAge(
  node: ChainReader,
  from: number,
  head: SealedHeader,
  boundMs: number,
  signal: AbortSignal,
): Promise<number> {
  if (head.timestamp === null) return from
  const since = head.timestamp - Math.floor(boundMs / 1_000)
  const timeOf = async (number: number) => (await node.header(number, signal))?.timestamp ?? null
  let [before, within] = [from, { number: head.number, time: head.timestamp }]
  let known = { number: from, time: await timeOf(from) }
  // A node that lacks the first block has pruned it or lags. The read of its logs will show which. No node lacks block 0.
  if (known.time === null ? from > 0 : known.time >= since) return from
  // Most chains are regular: every other step expects the block where it is then, also if the node lacks blocks before it.
  for (let isExpected = true; within.number - before > 1; isExpected = !isExpected) {
    const share = known.time === null ? 0.5 : (since - known.time) / (within.time - known.time)
    const expected = known.number + Math.floor((within.number - known.number) * share)
    const next = isExpected && expected >= before ? expected : Math.floor((before + within.number) / 2)
    const number = Math.min(within.number - 1, Math.max(before + 1, next))
    const time = await timeOf(number)
    if (time !== null && time >= since) within = { number, time }
    else before = number
    if (time !== null && time < since) known = { number, time }
  }
  return within.number
}

/** The first block of a range that the node has, or else the last block of the range. */
export async function firstAvailable(node: ChainReader, from: number, to: number, signal: AbortSignal): Promise<number> {
  const isAvailable = async (number: number) => (await node.header(number, signal)) !== null
  return (await isAvailable(from)) ? from : binarySearch(from, to, isAvailable)
}

/** Returns the first block of a range whose logs the node has not pruned; one above the range if there is none. */
export const firstWithLogs = ({ node, filters, signal }: BlockReadContext, first: number, rangeEnd: number): Promise<number> =>
  binarySearch(first, rangeEnd + 1, async (number) => {
    try {
      await node.logsInRange(number, number, filters(), signal)
      return true
    } catch (error) {
      if (error instanceof UpstreamError && error.kind === 'gone') return false
      throw error
    }
  })

/** Returns the lowest number from `low` to `high` for which `holds` is true. It must be true for all numbers above too. */
export async function binarySearch(low: number, high: number, holds: (number: number) => Promise<boolean>): Promise<number> {
  let [first, last] = [low, high]
  while (first < last) {
    const middle = Math.floor((first + last) / 2)
    if (await holds(middle)) last = middle
    else first = middle + 1
  }
  return last
}
