/** Leads below this are counted to the millisecond. */
const EXACT_BELOW_MS = 10_000
/** Of a longer one three digits are kept: so many there are in each decade, and so many decades. */
const THREE_DIGITS = 900
const LEAST_THREE_DIGITS = 100
const DECADES = 4
/** The longest that can be told from others, about a day. */
const LONGEST_MS = EXACT_BELOW_MS * 10 ** DECADES - 1
const BINS = EXACT_BELOW_MS + DECADES * THREE_DIGITS

/** How many leads there were of each length; takes the same room however many there are. */
export class Leads {
  readonly counts = new Uint32Array(BINS)
  total = 0

  add(ms: number): void {
    const bin = binOf(ms)
    this.counts[bin] = (this.counts[bin] ?? 0) + 1
    this.total += 1
  }
}

/** The lead at a percentile of all that were counted, by nearest rank; null where there were none. */
export function percentile(percent: number, leads: readonly Leads[]): number | null {
  const total = leads.reduce((sum, one) => sum + one.total, 0)
  if (total === 0) return null
  let left = Math.ceil((percent * total) / 100)
  let bin = -1
  while (left > 0) {
    bin += 1
    for (const { counts } of leads) left -= counts[bin] ?? 0
  }
  return leastOf(bin)
}

function binOf(ms: number): number {
  const lead = Math.min(Math.max(0, Math.floor(ms)), LONGEST_MS)
  if (lead < EXACT_BELOW_MS) return lead
  let [decade, step] = [0, EXACT_BELOW_MS / LEAST_THREE_DIGITS]
  for (; lead >= step * 10 * LEAST_THREE_DIGITS; step *= 10) decade += 1
  return EXACT_BELOW_MS + decade * THREE_DIGITS + Math.floor(lead / step) - LEAST_THREE_DIGITS
}

/** The shortest lead that a bin counts. */
function leastOf(bin: number): number {
  if (bin < EXACT_BELOW_MS) return bin
  const decade = Math.floor((bin - EXACT_BELOW_MS) / THREE_DIGITS)
  const digits = LEAST_THREE_DIGITS + ((bin - EXACT_BELOW_MS) % THREE_DIGITS)
  return (digits * EXACT_BELOW_MS * 10 ** decade) / LEAST_THREE_DIGITS
}
