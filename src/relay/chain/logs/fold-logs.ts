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
  const brackets = new AnnouncementBrackets()
  let lastMultiplier: { readonly draft: MutableDecodedLog; readonly to: bigint } | null = null
  for (const [index, draft] of contractLogs.entries()) {
    const { decoded, log } = draft
    switch (decoded.event) {
      case 'Transfer': {
        const seizure = hasSeizure ? takeMatch(unmatched, draft, decoded) : undefined
        if (!seizure) break
        draft.isSeized = true
        folded.add(seizure)
        break
      }
      case 'Memo': {
        const transfer = contractLogs[index - 1]
        if (transfer?.decoded.event !== 'Transfer' || transfer.log.logIndex !== log.logIndex - 1) break
        transfer.memo = decoded.memo
        folded.add(draft)
        break
      }
      case 'Seized': {
        const transfer = takeMatch(unmatched, draft, decoded)
        if (!transfer) break
        transfer.isSeized = true
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
        brackets.open(draft, decoded.id, index)
        break
      case 'EndAnnouncement':
        if (brackets.close(decoded.id, index)) folded.add(draft)
        break
    }
  }
  for (const { draft, from, to } of brackets.closed)
    draft.enclosedKeys = contractLogs
      .slice(from, to)
      .filter((inner) => !folded.has(inner))
      .map(({ log }) => log.key)
}

/** Whether the log schedules a later change. It then never replaces an immediate change, not even one to the same value. */
const isSchedule = ({ effectiveAt }: { readonly effectiveAt: bigint }, { blockTimestamp }: Log): boolean =>
  blockTimestamp !== null && effectiveAt > blockTimestamp

type TransferFields = { readonly from: Hex; readonly to: Hex; readonly amount: bigint }

/** Transfers or Seized logs that no log has matched yet, by their fields. Equal logs of both kinds never wait together. */
type UnmatchedLogs = Map<string, MutableDecodedLog[]>

/** Matches each Seized log with the nearest unmatched equal transfer before it, or else with the next one after it. */
function takeMatch(unmatched: UnmatchedLogs, draft: MutableDecodedLog, fields: TransferFields): MutableDecodedLog | undefined {
  const equal = getOrAdd(unmatched, `${fields.from} ${fields.to} ${fields.amount}`, () => [])
  const isSeizure = draft.decoded.event === 'Seized'
  if (equal[0] && equal[0].decoded.event !== draft.decoded.event) return isSeizure ? equal.pop() : equal.shift()
  equal.push(draft)
  return undefined
}

/** Matches each EndAnnouncement with an announcement. Announcements may nest or overlap. */
class AnnouncementBrackets {
  /** Closed announcements, each with the range of logs that it encloses. */
  readonly closed: { readonly draft: MutableDecodedLog; readonly from: number; readonly to: number }[] = []
  readonly #open: { readonly draft: MutableDecodedLog; readonly id: string; readonly index: number }[] = []

  open(draft: MutableDecodedLog, id: string, index: number): void {
    this.#open.push({ draft, id, index })
    if (this.#open.length > OPEN_BRACKETS_BOUND) this.#open.shift()
  }

  close(id: string, index: number): boolean {
    const opened = this.#open.findLast((announcement) => announcement.id === id)
    if (!opened) return false
    this.#open.splice(this.#open.indexOf(opened), 1)
    opened.draft.isClosed = true
    this.closed.push({ draft: opened.draft, from: opened.index + 1, to: index })
    return true
  }
}
