import { LOGS_RANGE_BOUND } from '../../../protocol/json-rpc-methods.ts'
import type { BlockRange } from './sealed-block.ts'

/** Number of blocks that the node accepts in one request, and of successful pages since it changed. */
export type PageSize = { readonly blocks: number; readonly successes: number }

export const largestPage: PageSize = { blocks: LOGS_RANGE_BOUND, successes: 0 }

/** Number of successful pages before a larger one is tried. */
const GROW_AFTER_PAGES = 8

export function grownPage({ blocks, successes }: PageSize): PageSize {
  if (successes + 1 < GROW_AFTER_PAGES) return { blocks, successes: successes + 1 }
  return { blocks: Math.min(LOGS_RANGE_BOUND, blocks * 2), successes: 0 }
}

/** Halves a page that was too large, or takes a smaller size that the node's message suggests. */
export function shrunkPage({ from, to }: BlockRange, message = ''): PageSize {
  const size = to - from + 1
  return { blocks: Math.max(1, Math.min(suggestedSize(message, from) ?? size, Math.floor(size / 2))), successes: 0 }
}

/** Some nodes suggest a range: `retry with the range 16-31`, in decimal or hex. */
function suggestedSize(message: string, first: number): number | null {
  const [, low, high] = /range\D{0,3}(0x[0-9a-f]+|\d+)\s*[-–,]\s*(0x[0-9a-f]+|\d+)/i.exec(message) ?? []
  return Number(low) === first && Number(high) >= first ? Number(high) - first + 1 : null
}
