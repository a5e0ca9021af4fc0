import type { Hex } from '../../protocol/fields.ts'
import { type DecodedEvent, decodeLog } from './events.ts'
import type { Log } from './log-schema.ts'

/** What one log says, with what the logs beside it in its transaction add. */
export type DecodedLog = {
  readonly log: Log
  readonly decoded: DecodedEvent
  /** The memo that follows a movement. */
  readonly memo: Hex | null
  /** Whether a Seized says that the movement was a seizure. */
  readonly isSeized: boolean
  /** Of an announcement: the keys of what was said inside its bracket, in log order. */
  readonly enclosedKeys: readonly string[]
  /** Whether the bracket of an announcement was closed. */
  readonly isClosed: boolean
}

/** What logs say together: every saying, and the logs that are only part of another's; both in log order. */
type FoldedLogs = { readonly decodedLogs: readonly DecodedLog[]; readonly foldedLogs: readonly Log[] }

/** So many brackets of one contract may stand open at once; of more, the oldest counts as never closed. */
const OPEN_BRACKETS_BOUND = 16

type MutableDecodedLog = { -readonly [Name in keyof DecodedLog]: DecodedLog[Name] }

/** Reads logs of one block. Only what one contract says in one transaction belongs together. */
export function decodeLogs(logs: readonly Log[]): FoldedLogs {
  const drafts = logs
    .toSorted((one, other) => one.logIndex - other.logIndex)
    .map(
      (log): MutableDecodedLog => ({
        log,
        decoded: decodeLog(log),
        memo: null,
        isSeized: false,
        enclosedKeys: [],
        isClosed: false,
      }),
    )
  const folded = new Set<MutableDecodedLog>()
  for (const transaction of Map.groupBy(drafts, ({ log }) => log.transactionHash).values())
    for (const contractLogs of Map.groupBy(transaction, ({ log }) => log.address).values())
      foldContractLogs(contractLogs, folded)
  return {
    decodedLogs: drafts.filter((draft) => !folded.has(draft)),
    foldedLogs: drafts.filter((draft) => folded.has(draft)).map(({ log }) => log),
  }
}

/** What one contract says in one transaction: adds to each what belongs to it, and names what is only part of it. */
function foldContractLogs(contractLogs: readonly MutableDecodedLog[], folded: Set<MutableDecodedLog>): void {
  const seizureMatcher = contractLogs.some(({ decoded }) => decoded.event === 'Seized') ? new SeizureMatcher() : null
  const brackets = new AnnouncementBrackets()
  let lastMultiplier: { readonly draft: MutableDecodedLog; readonly to: bigint } | null = null
  for (const [index, draft] of contractLogs.entries()) {
    const { decoded, log } = draft
    switch (decoded.event) {
      case 'Transfer': {
        const seizure = seizureMatcher?.addTransfer(draft, decoded)
        if (seizure) folded.add(seizure)
        break
      }
      case 'Memo': {
        const transfer = contractLogs[index - 1]
        if (transfer?.decoded.event !== 'Transfer' || transfer.log.logIndex !== log.logIndex - 1) break
        transfer.memo = decoded.memo
        folded.add(draft)
        break
      }
      case 'Seized':
        if (seizureMatcher?.addSeizure(draft, decoded)) folded.add(draft)
        break
      case 'MultiplierUpdated':
        lastMultiplier = { draft, to: decoded.to }
        break
      case 'UIMultiplierUpdated':
        if (lastMultiplier?.to !== decoded.to) break
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

type TransferFields = { readonly from: Hex; readonly to: Hex; readonly amount: bigint }

const transferKeyOf = ({ from, to, amount }: TransferFields): string => `${from} ${to} ${amount}`

/** Which movement each seizure is of: the nearest before it that is not seized yet, else the next. */
class SeizureMatcher {
  readonly #unseized = new Map<string, MutableDecodedLog[]>()
  readonly #unmatched = new Map<string, MutableDecodedLog[]>()

  /** The seizure that said so before. */
  addTransfer(draft: MutableDecodedLog, transfer: TransferFields): MutableDecodedLog | null {
    const transferKey = transferKeyOf(transfer)
    const seizure = this.#unmatched.get(transferKey)?.shift()
    if (!seizure) {
      pushTo(this.#unseized, transferKey, draft)
      return null
    }
    draft.isSeized = true
    return seizure
  }

  /** Whether there was such a movement. */
  addSeizure(seizure: MutableDecodedLog, transfer: TransferFields): boolean {
    const transferKey = transferKeyOf(transfer)
    const draft = this.#unseized.get(transferKey)?.pop()
    if (!draft) {
      pushTo(this.#unmatched, transferKey, seizure)
      return false
    }
    draft.isSeized = true
    return true
  }
}

function pushTo(stacks: Map<string, MutableDecodedLog[]>, key: string, draft: MutableDecodedLog): void {
  const stack = stacks.get(key)
  if (stack) stack.push(draft)
  else stacks.set(key, [draft])
}

/** Which announcement each end belongs to: they may lie within one another, or across. */
class AnnouncementBrackets {
  /** The announcements that were closed, and where what lies inside begins and ends. */
  readonly closed: { readonly draft: MutableDecodedLog; readonly from: number; readonly to: number }[] = []
  readonly #open: { readonly draft: MutableDecodedLog; readonly id: string; readonly index: number }[] = []

  open(draft: MutableDecodedLog, id: string, index: number): void {
    this.#open.push({ draft, id, index })
    if (this.#open.length > OPEN_BRACKETS_BOUND) this.#open.shift()
  }

  /** Whether such an announcement was open. */
  close(id: string, index: number): boolean {
    const opened = this.#open.findLast((one) => one.id === id)
    if (!opened) return false
    this.#open.splice(this.#open.indexOf(opened), 1)
    opened.draft.isClosed = true
    this.closed.push({ draft: opened.draft, from: opened.index + 1, to: index })
    return true
  }
}
