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
  let old = { number: from, time: await timeOf(from) }
  // A node that lacks the first block has pruned it or lags. The read of its logs will show which. No node lacks block 0.
  if (old.time === null ? from > 0 : old.time >= since) return from
  let within = { number: head.number, time: head.timestamp }
  // Most chains are regular: every other step expects the block where it is then.
  for (let isExpected = true; within.number - old.number > 1; isExpected = !isExpected) {
    const blocks = within.number - old.number
    const share = isExpected && old.time !== null ? (since - old.time) / (within.time - old.time) : 0.5
    const number = old.number + Math.min(blocks - 1, Math.max(1, Math.floor(blocks * share)))
    const time = await timeOf(number)
    if (time !== null && time >= since) within = { number, time }
    else old = { number, time }
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
