const EXACT_BELOW_MS = 10_000
/** Number of bins from each power of ten to the next, above EXACT_BELOW_MS: there a lead is counted by its first three digits. */
const BINS_PER_DECADE = 900
const MIN_THREE_DIGITS = 100
const DECADES = 4
/** The longest lead with a bin of its own, about a day. */
const LONGEST_MS = EXACT_BELOW_MS * 10 ** DECADES - 1
const BIN_COUNT = EXACT_BELOW_MS + DECADES * BINS_PER_DECADE

/** Counts leads, which are times from publication to seal, in constant memory. */
export class LeadHistogram {
  readonly counts = new Uint32Array(BIN_COUNT)
  total = 0

  add(ms: number): void {
    const bin = binOf(ms)
    this.counts[bin] = (this.counts[bin] ?? 0) + 1
    this.total += 1
  }
}

/** Returns the lead at a percentile, by nearest rank; null without leads. */
export function percentile(percent: number, histograms: readonly LeadHistogram[]): number | null {
  const total = histograms.reduce((sum, one) => sum + one.total, 0)
  if (total === 0) return null
  let remaining = Math.ceil((percent * total) / 100)
  let bin = -1
  while (remaining > 0) {
    bin += 1
    for (const { counts } of histograms) remaining -= counts[bin] ?? 0
  }
  return minLeadOf(bin)
}

function binOf(ms: number): number {
  const lead = Math.min(Math.max(0, Math.floor(ms)), LONGEST_MS)
  if (lead < EXACT_BELOW_MS) return lead
  let [decade, step] = [0, EXACT_BELOW_MS / MIN_THREE_DIGITS]
  for (; lead >= step * 10 * MIN_THREE_DIGITS; step *= 10) decade += 1
  return EXACT_BELOW_MS + decade * BINS_PER_DECADE + Math.floor(lead / step) - MIN_THREE_DIGITS
}

function minLeadOf(bin: number): number {
  if (bin < EXACT_BELOW_MS) return bin
  const decade = Math.floor((bin - EXACT_BELOW_MS) / BINS_PER_DECADE)
  const digits = MIN_THREE_DIGITS + ((bin - EXACT_BELOW_MS) % BINS_PER_DECADE)
  return (digits * EXACT_BELOW_MS * 10 ** decade) / MIN_THREE_DIGITS
}
