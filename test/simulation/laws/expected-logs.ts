import type { PlacedLog } from '../placed-logs.ts'
import { APPROVAL, TRANSFER } from '../random-transactions.ts'
import { wadText } from './exact-decimals.ts'
import { swapOf, swapText } from './swaps.ts'

/** The content of one log, given its whole block. For a part: its content if it stood alone. */
export type ExpectedLog = {
  readonly log: PlacedLog
  readonly text: string
  readonly isPart: boolean
  /** For an announcement: whether its end exists, and the keys between. */
  readonly isClosed: boolean
  readonly keys: readonly string[] | null
}

const addressOf = (word: string): string => `0x${word.slice(26)}`
const ZERO = `0x${'0'.repeat(40)}`
const WORD_CHARS = 66

export type MovementContent = { readonly from: string; readonly to: string; readonly raw: bigint }

/** The movement that a log describes, if any. */
export function movementOf({ content: { topics, data } }: PlacedLog): MovementContent | null {
  const [name, from = '', to = ''] = topics
  if (name !== TRANSFER || topics.length !== 3 || data.length !== WORD_CHARS) return null
  return { from: addressOf(from), to: addressOf(to), raw: BigInt(data) }
}

const isoOf = (second: number): string => new Date(second * 1_000).toISOString()

/** A log's content as text: equal content gives equal text. This reads logs independently of the relay. */
export function expectedText(log: PlacedLog, { memo = null, seized = false }: { memo?: string | null; seized?: boolean } = {}) {
  const { content, timestamp } = log
  const { address, topics, data, tokenEvent } = content
  const swap = swapOf(log)
  if (swap) return swapText(swap)
  const moved = movementOf(log)
  if (moved) {
    const type = seized ? 'seize' : moved.from === ZERO ? 'mint' : moved.to === ZERO ? 'burn' : 'transfer'
    return `${address} ${type} ${moved.from} ${moved.to} ${moved.raw} ${memo}`
  }
  const [name, owner = '', spender = ''] = topics
  if (name === APPROVAL && topics.length === 3 && data.length === WORD_CHARS)
    return `${address} approval ${addressOf(owner)} ${addressOf(spender)} ${BigInt(data)}`
  switch (tokenEvent?.event) {
    case 'MultiplierUpdated':
      return `${address} multiplier effective ${wadText(tokenEvent.to)} ${isoOf(timestamp)}`
    case 'UIMultiplierUpdated': {
      const phase = tokenEvent.at <= timestamp ? 'effective' : 'scheduled'
      return `${address} multiplier ${phase} ${wadText(tokenEvent.to)} ${isoOf(tokenEvent.at)}`
    }
    case 'UIMultiplierUpdateCancelled':
      return `${address} multiplier cancelled ${wadText(tokenEvent.to)} ${isoOf(tokenEvent.at)}`
    case 'Paused':
    case 'Unpaused':
      return `${address} pause ${tokenEvent.event.toLowerCase()} ${tokenEvent.features.join()}`
    case 'Announcement':
      return `${address} action ${tokenEvent.id} ${tokenEvent.description} ${tokenEvent.uri}`
    case 'FieldUpdated':
      return `${address} token ${tokenEvent.field} ${JSON.stringify(tokenEvent.value)}`
    default:
      return `${address} log ${topics.join()} ${data}`
  }
}

const cachedLogs = new WeakMap<readonly PlacedLog[], ReadonlyMap<string, ExpectedLog>>()

/** Every log of a block by its key, with logs joined as the token standard prescribes. */
export function expectedLogsOf(logs: readonly PlacedLog[]): ReadonlyMap<string, ExpectedLog> {
  const known = cachedLogs.get(logs)
  if (known) return known
  const logsByContract = Map.groupBy(logs, ({ tx, content }) => `${tx} ${content.address}`)
  const read = [...logsByContract.values()].flatMap(readContractLogs)
  const all = new Map(read.toSorted((a, b) => a.log.logIndex - b.log.logIndex).map((expected) => [expected.log.key, expected]))
  cachedLogs.set(logs, all)
  return all
}

/** The logs of one contract in one transaction. */
function readContractLogs(contractLogs: readonly PlacedLog[]): readonly ExpectedLog[] {
  const memos = new Map(contractLogs.flatMap((log, nth) => findMemo(contractLogs, nth, log)))
  const seizures = findSeizures(contractLogs)
  const announcements = findAnnouncements(contractLogs)
  const isPart = (log: PlacedLog, nth: number) =>
    memos.has(log) || seizures.has(log) || announcements.some(({ to }) => to === nth) || isRestated(contractLogs, nth)
  const standalone = new Set(contractLogs.filter((log, nth) => !isPart(log, nth)))
  return contractLogs.map((log, nth) => {
    const note = [...memos].find(([, movement]) => movement === log)?.[0].content.tokenEvent
    const seized = [...seizures.values()].includes(log)
    const announcement = announcements.find(({ from }) => from === nth)
    const inside = contractLogs.slice(nth + 1, announcement?.to ?? nth + 1).filter((log) => standalone.has(log))
    return {
      log,
      text: expectedText(log, { memo: note?.event === 'Memo' ? note.memo : null, seized }),
      isPart: !standalone.has(log),
      isClosed: announcement !== undefined,
      keys: log.content.tokenEvent?.event === 'Announcement' ? inside.map(({ key }) => key) : null,
    }
  })
}

/** A memo, and the movement in the log just before it. */
function findMemo(contractLogs: readonly PlacedLog[], nth: number, log: PlacedLog): [PlacedLog, PlacedLog][] {
  const before = contractLogs[nth - 1]
  if (log.content.tokenEvent?.event !== 'Memo' || !before || before.logIndex + 1 !== log.logIndex) return []
  return movementOf(before) ? [[log, before]] : []
}

/** Each seizure with its movement: the nearest before it that no other seizure has, else the first after it. */
function findSeizures(contractLogs: readonly PlacedLog[]): ReadonlyMap<PlacedLog, PlacedLog> {
  const taken = new Map<PlacedLog, PlacedLog>()
  for (const [nth, log] of contractLogs.entries()) {
    const { tokenEvent } = log.content
    if (tokenEvent?.event !== 'Seized') continue
    const isFree = (candidate: PlacedLog) => {
      const moved = movementOf(candidate)
      const same = moved?.from === tokenEvent.from && moved.to === tokenEvent.to && moved.raw === tokenEvent.raw
      return same && ![...taken.values()].includes(candidate)
    }
    const found = contractLogs.slice(0, nth).findLast(isFree) ?? contractLogs.slice(nth).find(isFree)
    if (found) taken.set(log, found)
  }
  return taken
}

/** Where announcements begin and end. An end belongs to the last open announcement with its id. */
function findAnnouncements(contractLogs: readonly PlacedLog[]): readonly { readonly from: number; readonly to: number }[] {
  const announcements: { from: number; to: number }[] = []
  for (const [to, { content }] of contractLogs.entries()) {
    const { tokenEvent } = content
    if (tokenEvent?.event !== 'EndAnnouncement') continue
    const opens = ({ content: { tokenEvent: other } }: PlacedLog, nth: number) =>
      other?.event === 'Announcement' && other.id === tokenEvent.id && nth < to && !announcements.some(({ from }) => from === nth)
    const from = contractLogs.findLastIndex(opens)
    if (from >= 0) announcements.push({ from, to })
  }
  return announcements
}

/** Whether a new-style event of this second later in the transaction repeats this old-style one, with no other old one between. */
function isRestated(contractLogs: readonly PlacedLog[], nth: number): boolean {
  const means = contractLogs[nth]?.content.tokenEvent
  if (means?.event !== 'MultiplierUpdated') return false
  for (const { content, timestamp } of contractLogs.slice(nth + 1)) {
    const { tokenEvent } = content
    if (tokenEvent?.event === 'MultiplierUpdated') return false
    if (tokenEvent?.event === 'UIMultiplierUpdated' && tokenEvent.to === means.to && tokenEvent.at <= timestamp) return true
  }
  return false
}
