import { getOrAdd } from '../../../lib/bounded-map.ts'
import type { Hex } from '../../../lib/hex.ts'
import type { DecodedEvent } from './event-decoder.ts'
import type { Log } from './log-parser.ts'

/** A decoded log, with additions from other logs of its transaction. */
export type DecodedLog = {
  readonly log: Log
  readonly decoded: DecodedEvent
  /** For a transfer: the memo of the Memo log directly after it; null if there is none. */
  readonly memo: Hex | null
  readonly isSeized: boolean
  /** For an announcement: the keys of the logs between its start and its end, in log order. */
  readonly enclosedKeys: readonly string[]
  readonly isClosed: boolean
}

/** Limit of open announcements of one contract in one transaction. Beyond it, the oldest one counts as never closed. */
const OPEN_BRACKETS_BOUND = 16

type MutableDecodedLog = { -readonly [Name in keyof DecodedLog]: DecodedLog[Name] }

/** Events that may change the meaning of any other log of their transaction, and not only of the log next to them. */
const farRelatedEvents: ReadonlySet<DecodedEvent['event']> = new Set([
  'Seized',
  'MultiplierUpdated',
  'UIMultiplierUpdated',
  'Announcement',
  'EndAnnouncement',
])

/** Whether the event may change the meaning of a log that is not next to it in the transaction. */
export const isFarRelated = ({ event }: DecodedEvent): boolean => farRelatedEvents.has(event)

/** Whether the event may change the meaning of another log of its transaction. Most do not; a Memo explains the log before it. */
export const isRelated = (decoded: DecodedEvent): boolean => decoded.event === 'Memo' || isFarRelated(decoded)

const NO_KEYS: readonly string[] = []

type UnfoldedLog = Pick<DecodedLog, 'log' | 'decoded'>

/** Returns the decoded log of a log whose meaning no other log changes. */
export function foldAlone({ log, decoded }: UnfoldedLog): DecodedLog {
  return { log, decoded, memo: null, isSeized: false, enclosedKeys: NO_KEYS, isClosed: false }
}

/** Folds logs, which are in log order. Only logs of one contract in one transaction belong together. A folded log becomes null. */
export function foldLogs(logs: readonly UnfoldedLog[]): readonly (DecodedLog | null)[] {
  const drafts: MutableDecodedLog[] = logs.map(foldAlone)
  if (!logs.some(({ decoded }) => isRelated(decoded))) return drafts
  const folded = new Set<MutableDecodedLog>()
  for (const transaction of Map.groupBy(drafts, ({ log }) => log.transactionHash).values())
    for (const contractLogs of Map.groupBy(transaction, ({ log }) => log.address).values())
      if (contractLogs.some(({ decoded }) => isRelated(decoded))) foldContractLogs(contractLogs, folded)
  return drafts.map((draft) => (folded.has(draft) ? null : draft))
}

/** Folds the logs of one contract in one transaction, and adds those that are folded into another log to `folded`. */
function foldContractLogs(contractLogs: readonly MutableDecodedLog[], folded: Set<MutableDecodedLog>): void {
  const hasSeizure = contractLogs.some(({ decoded }) => decoded.event === 'Seized')
  const unmatched: UnmatchedLogs = new Map()
  const open: Bracket[] = []
  const closed: (Bracket & { readonly end: number })[] = []
  let lastMultiplier: { readonly draft: MutableDecodedLog; readonly to: bigint } | null = null
  for (const [index, draft] of contractLogs.entries()) {
    const { decoded, log } = draft
    switch (decoded.event) {
      case 'Transfer':
      case 'Seized':
        if (hasSeizure) matchSeizure(unmatched, draft, decoded, folded)
        break
      case 'Memo': {
        const transfer = contractLogs[index - 1]
        if (transfer?.decoded.event !== 'Transfer' || transfer.log.logIndex !== log.logIndex - 1) break
        transfer.memo = decoded.memo
        folded.add(draft)
        break
      }
      case 'MultiplierUpdated':
        lastMultiplier = { draft, to: decoded.to }
        break
      case 'UIMultiplierUpdated':
        if (lastMultiplier?.to !== decoded.to || isSchedule(decoded, log)) break
        folded.add(lastMultiplier.draft)
        lastMultiplier = null
        break
      case 'Announcement':
        open.push({ draft, id: decoded.id, start: index })
        if (open.length > OPEN_BRACKETS_BOUND) open.shift()
        break
      case 'EndAnnouncement': {
        const opened = open.findLast(({ id }) => id === decoded.id)
        if (!opened) break
        open.splice(open.indexOf(opened), 1)
        closed.push({ ...opened, end: index })
        folded.add(draft)
        break
      }
    }
  }
  for (const { draft, start, end } of closed) {
    draft.isClosed = true
    draft.enclosedKeys = contractLogs
      .slice(start + 1, end)
      .filter((inner) => !folded.has(inner))
      .map(({ log }) => log.key)
  }
}

/** An announcement, which its end encloses with the logs between them. Announcements may nest or overlap. */
type Bracket = { readonly draft: MutableDecodedLog; readonly id: string; readonly start: number }

/** Whether the log schedules a later change. It then never replaces an immediate change, not even one to the same value. */
const isSchedule = ({ effectiveAt }: { readonly effectiveAt: bigint }, { blockTimestamp }: Log): boolean =>
  blockTimestamp !== null && effectiveAt > blockTimestamp

type TransferFields = { readonly from: Hex; readonly to: Hex; readonly amount: bigint }

/** Transfers or Seized logs that no log has matched yet, by their fields. Equal logs of both kinds never wait together. */
type UnmatchedLogs = Map<string, MutableDecodedLog[]>

/** Matches each Seized log with the nearest unmatched equal transfer before it, or else with the next one after it. */
function matchSeizure(
  unmatched: UnmatchedLogs,
  draft: MutableDecodedLog,
  { from, to, amount }: TransferFields,
  folded: Set<MutableDecodedLog>,
): void {
  const equal = getOrAdd(unmatched, `${from} ${to} ${amount}`, () => [])
  if (!equal[0] || equal[0].decoded.event === draft.decoded.event) {
    equal.push(draft)
    return
  }
  const [transfer, seizure] = draft.decoded.event === 'Seized' ? [equal.pop(), draft] : [draft, equal.shift()]
  if (!transfer || !seizure) return
  transfer.isSeized = true
  folded.add(seizure)
}
