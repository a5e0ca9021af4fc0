/** After this many sealed logs in a row that were never pushed, the stream is unhealthy. */
const MISSED_LOGS_BOUND = 3
/** The logs of a single block may be lost together, so alone they count only after this. */
const SINGLE_BLOCK_GRACE_MS = 10_000

/** Sealed logs that were never pushed: the only evidence that separates a dead stream from a quiet market. */
export type MissedLogs = {
  /** The first block that is evidence; infinite before the first head. */
  readonly countsFrom: number
  /** The block that was being built when the subscription began; null before the first head, and once it was polled. */
  readonly partialBlock: number | null
  /** The newest block of which a log was pushed in time. */
  readonly newestPushed: number
  /** Blocks since then whose logs were not pushed, with their counts. */
  readonly blocks: ReadonlyMap<number, number>
  readonly missedSince: number
  /** Whether logs were pushed long after their block was sealed. */
  readonly areLate: boolean
}

/** A new subscription: earlier pushes prove nothing about it. */
export const noMissedLogs: MissedLogs = {
  countsFrom: Number.POSITIVE_INFINITY,
  partialBlock: null,
  newestPushed: -1,
  blocks: new Map(),
  missedSince: 0,
  areLate: false,
}

/** The first head of a subscription shows which block was being built. Its logs from before it are not missed. */
export const afterHead = (missed: MissedLogs, head: number): MissedLogs =>
  missed.countsFrom === Number.POSITIVE_INFINITY ? { ...missed, countsFrom: head + 2, partialBlock: head + 1 } : missed

/**
 * Pre-confirmed logs were polled, the newest of this block: they may be older than the subscription. `closesGap`: the
 * poll came after the subscription, so what it does not show of the blocks above the head has to be pushed.
 */
export function afterPoll(missed: MissedLogs, newest: number | null, closesGap: boolean, head: number): MissedLogs {
  const from = closesGap ? Math.max(missed.partialBlock ?? missed.countsFrom, head + 1) : missed.countsFrom
  const countsFrom = Math.max(from, (newest ?? -1) + 1)
  return { ...missed, countsFrom, partialBlock: closesGap ? null : missed.partialBlock }
}

/** Logs were pushed before their block was sealed, the newest of this block. */
export function afterTimelyPush(missed: MissedLogs, newest: number): MissedLogs {
  const newestPushed = Math.max(missed.newestPushed, newest)
  const isUnchanged = newestPushed === missed.newestPushed && missed.blocks.size === 0 && !missed.areLate
  return isUnchanged ? missed : { ...missed, newestPushed, blocks: noMissedLogs.blocks, areLate: false }
}

export const afterLatePush = (missed: MissedLogs): MissedLogs => (missed.areLate ? missed : { ...missed, areLate: true })

/** A block was settled with this many logs. Once there are enough blocks for a verdict, more change nothing. */
export function afterSettling(missed: MissedLogs, number: number, logs: number, at: number): MissedLogs {
  const { countsFrom, newestPushed, blocks } = missed
  if (number < countsFrom || number <= newestPushed || logs <= (blocks.get(number) ?? 0)) return missed
  if (blocks.size >= MISSED_LOGS_BOUND && !blocks.has(number)) return missed
  const missedSince = blocks.size === 0 ? at : missed.missedSince
  return { ...missed, blocks: new Map(blocks).set(number, logs), missedSince }
}

/** Blocks up to this one are settled again after a reorganisation. No node pushes the logs of a block that replaces another. */
export const afterReorg = (missed: MissedLogs, settled: number): MissedLogs => ({
  ...missed,
  countsFrom: Math.max(missed.countsFrom, settled + 1),
})

/** The health of the stream by the evidence so far. */
export function streamHealth({ blocks, missedSince, areLate }: MissedLogs, at: number): 'ok' | 'silent' | 'behind' {
  const missedLogs = [...blocks.values()].reduce((sum, logs) => sum + logs, 0)
  if (missedLogs < MISSED_LOGS_BOUND || (blocks.size < 2 && at - missedSince < SINGLE_BLOCK_GRACE_MS)) return 'ok'
  return areLate ? 'behind' : 'silent'
}
