/** The stream of pushed logs counts as broken once this many sealed logs in a row were never pushed. */
const MISSED_LOGS_BOUND = 3
/** A node may lose the logs of a single block together. If only one block has missed logs, they count only after this time. */
const SINGLE_BLOCK_GRACE_MS = 10_000

/** Sealed logs that were never pushed: the only evidence that tells a dead stream from a quiet market. */
export type MissedLogs = {
  /** Logs of blocks below this one are no evidence; infinite before the first head. */
  readonly countsFrom: number
  /** The block that was being built when the subscription began; null before the first head, and after a poll of that block. */
  readonly partialBlock: number | null
  /** The newest block with a log that was pushed in time. */
  readonly newestPushed: number
  /** Number of logs that were not pushed, for each block above `newestPushed`. */
  readonly blocks: ReadonlyMap<number, number>
  readonly missedSince: number
  /** Whether logs were pushed long after their block was sealed. */
  readonly areLate: boolean
}

/** State at the start of each subscription: logs that an earlier one pushed prove nothing about the new one. */
export const noMissedLogs: MissedLogs = {
  countsFrom: Number.POSITIVE_INFINITY,
  partialBlock: null,
  newestPushed: -1,
  blocks: new Map(),
  missedSince: 0,
  areLate: false,
}

/** The first head of a subscription shows which block was being built. That block may have logs from before the subscription. */
export const afterHead = (missed: MissedLogs, head: number): MissedLogs =>
  missed.countsFrom === Number.POSITIVE_INFINITY ? { ...missed, countsFrom: head + 2, partialBlock: head + 1 } : missed

/** Excuses blocks up to `newest`, the newest one with polled logs: these logs may be older than the subscription. */
export function afterPoll(missed: MissedLogs, newest: number | null, closesGap: boolean, head: number): MissedLogs {
  // This poll read all logs from before the subscription, so the node has to push every other log above the head.
  const from = closesGap ? Math.max(missed.partialBlock ?? missed.countsFrom, head + 1) : missed.countsFrom
  const countsFrom = Math.max(from, (newest ?? -1) + 1)
  return { ...missed, countsFrom, partialBlock: closesGap ? null : missed.partialBlock }
}

/** Called after logs up to the block `newest` were pushed before their blocks were sealed. */
export function afterTimelyPush(missed: MissedLogs, newest: number): MissedLogs {
  const newestPushed = Math.max(missed.newestPushed, newest)
  const isUnchanged = newestPushed === missed.newestPushed && missed.blocks.size === 0 && !missed.areLate
  return isUnchanged ? missed : { ...missed, newestPushed, blocks: noMissedLogs.blocks, areLate: false }
}

export const afterLatePush = (missed: MissedLogs): MissedLogs => (missed.areLate ? missed : { ...missed, areLate: true })

/** Called after a block was settled with this many logs. Keeps no more blocks than a verdict needs. */
export function afterSettling(missed: MissedLogs, number: number, logs: number, at: number): MissedLogs {
  const { countsFrom, newestPushed, blocks } = missed
  if (number < countsFrom || number <= newestPushed || logs <= (blocks.get(number) ?? 0)) return missed
  if (blocks.size >= MISSED_LOGS_BOUND && !blocks.has(number)) return missed
  const missedSince = blocks.size === 0 ? at : missed.missedSince
  return { ...missed, blocks: new Map(blocks).set(number, logs), missedSince }
}

/** Excuses the blocks that are settled again after a reorg: no node pushes the logs of a block that replaces another. */
export function afterReorg(missed: MissedLogs, settled: number): MissedLogs {
  return { ...missed, countsFrom: Math.max(missed.countsFrom, settled + 1) }
}

export function streamHealth({ blocks, missedSince, areLate }: MissedLogs, at: number): 'ok' | 'silent' | 'behind' {
  const missedLogs = [...blocks.values()].reduce((sum, logs) => sum + logs, 0)
  if (missedLogs < MISSED_LOGS_BOUND || (blocks.size < 2 && at - missedSince < SINGLE_BLOCK_GRACE_MS)) return 'ok'
  return areLate ? 'behind' : 'silent'
}
