import { APPROVAL, TRANSFER } from '../random-transactions.ts'
import type { Placed } from '../simulated-block.ts'

/** What one log of a block says once the block is read whole; of a part, what it would say by itself. */
export type Reading = {
  readonly log: Placed
  readonly saying: string
  readonly isPart: boolean
  /** Of an announcement: whether its end is there, and the keys inside. */
  readonly closed: boolean
  readonly keys: readonly string[] | null
}

const addressOf = (word: string): string => `0x${word.slice(26)}`
const ZERO = `0x${'0'.repeat(40)}`
const WORD_CHARS = 66

export type Movement = { readonly from: string; readonly to: string; readonly raw: bigint }

/** A movement, if a log is one. */
export function movementOf({ content: { topics, data } }: Placed): Movement | null {
  const [name, from = '', to = ''] = topics
  if (name !== TRANSFER || topics.length !== 3 || data.length !== WORD_CHARS) return null
  return { from: addressOf(from), to: addressOf(to), raw: BigInt(data) }
}

const isoOf = (second: number): string => new Date(second * 1_000).toISOString()

/** An exact number as it is told, of one that the chain keeps with 18 decimals. */
export function wadText(wad: bigint): string {
  const digits = wad.toString().padStart(19, '0')
  return `${digits.slice(0, -18)}.${digits.slice(-18)}`.replace(/\.?0+$/, '')
}

/** What a log says, written so that two that say the same are the same text. Read here once more, by other means. */
export function sayingOf(
  log: Placed,
  { memo = null, seized = false }: { memo?: string | null; seized?: boolean } = {},
) {
  const { content, timestamp } = log
  const { address, topics, data, means } = content
  const moved = movementOf(log)
  if (moved) {
    const type = seized ? 'seize' : moved.from === ZERO ? 'mint' : moved.to === ZERO ? 'burn' : 'transfer'
    return `${address} ${type} ${moved.from} ${moved.to} ${moved.raw} ${memo}`
  }
  const [name, one = '', other = ''] = topics
  if (name === APPROVAL && topics.length === 3 && data.length === WORD_CHARS)
    return `${address} approval ${addressOf(one)} ${addressOf(other)} ${BigInt(data)}`
  switch (means?.event) {
    case 'MultiplierUpdated':
      return `${address} multiplier effective ${wadText(means.to)} ${isoOf(timestamp)}`
    case 'UIMultiplierUpdated': {
      const phase = means.at <= timestamp ? 'effective' : 'scheduled'
      return `${address} multiplier ${phase} ${wadText(means.to)} ${isoOf(means.at)}`
    }
    case 'UIMultiplierUpdateCancelled':
      return `${address} multiplier cancelled ${wadText(means.to)} ${isoOf(means.at)}`
    case 'Paused':
    case 'Unpaused':
      return `${address} pause ${means.event === 'Paused'} ${means.features.join()}`
    case 'Announcement':
      return `${address} action ${means.id} ${means.description} ${means.uri}`
    case 'FieldUpdated':
      return `${address} token ${means.field} ${JSON.stringify(means.value)}`
    default:
      return `${address} log ${topics.join()} ${data}`
  }
}

const readings = new WeakMap<readonly Placed[], ReadonlyMap<string, Reading>>()

/** Every log of a block by its key, as the token standard has them belong together. */
export function readingsOf(logs: readonly Placed[]): ReadonlyMap<string, Reading> {
  const known = readings.get(logs)
  if (known) return known
  const voices = Map.groupBy(logs, ({ tx, content }) => `${tx} ${content.address}`)
  const read = [...voices.values()].flatMap(readVoice)
  const all = new Map(read.toSorted((a, b) => a.log.logIndex - b.log.logIndex).map((one) => [one.log.key, one]))
  readings.set(logs, all)
  return all
}

/** What one contract says in one transaction. */
function readVoice(voice: readonly Placed[]): readonly Reading[] {
  const memos = new Map(voice.flatMap((log, nth) => memoBefore(voice, nth, log)))
  const seizures = seizuresIn(voice)
  const brackets = bracketsIn(voice)
  const isPart = (log: Placed, nth: number) =>
    memos.has(log) || seizures.has(log) || brackets.some(({ to }) => to === nth) || isRepeated(voice, nth)
  const told = new Set(voice.filter((log, nth) => !isPart(log, nth)))
  return voice.map((log, nth) => {
    const note = [...memos].find(([, movement]) => movement === log)?.[0].content.means
    const seized = [...seizures.values()].includes(log)
    const bracket = brackets.find(({ from }) => from === nth)
    const inside = voice.slice(nth + 1, bracket?.to ?? nth + 1).filter((one) => told.has(one))
    return {
      log,
      saying: sayingOf(log, { memo: note?.event === 'Memo' ? note.memo : null, seized }),
      isPart: !told.has(log),
      closed: bracket !== undefined,
      keys: log.content.means?.event === 'Announcement' ? inside.map(({ key }) => key) : null,
    }
  })
}

/** A memo, and the movement in the log just before it. */
function memoBefore(voice: readonly Placed[], nth: number, log: Placed): [Placed, Placed][] {
  const before = voice[nth - 1]
  if (log.content.means?.event !== 'Memo' || !before || before.logIndex + 1 !== log.logIndex) return []
  return movementOf(before) ? [[log, before]] : []
}

/** Each seizure with its movement: the nearest before it that no other has taken, else the first after it. */
function seizuresIn(voice: readonly Placed[]): ReadonlyMap<Placed, Placed> {
  const taken = new Map<Placed, Placed>()
  for (const [nth, log] of voice.entries()) {
    const { means } = log.content
    if (means?.event !== 'Seized') continue
    const isFree = (one: Placed) => {
      const moved = movementOf(one)
      const same = moved?.from === means.from && moved.to === means.to && moved.raw === means.raw
      return same && ![...taken.values()].includes(one)
    }
    const found = voice.slice(0, nth).findLast(isFree) ?? voice.slice(nth).find(isFree)
    if (found) taken.set(log, found)
  }
  return taken
}

/** Where announcements begin and end: an end belongs to the last of its name that is still open. */
function bracketsIn(voice: readonly Placed[]): readonly { readonly from: number; readonly to: number }[] {
  const brackets: { from: number; to: number }[] = []
  for (const [to, { content }] of voice.entries()) {
    const { means } = content
    if (means?.event !== 'EndAnnouncement') continue
    const opens = ({ content: { means: other } }: Placed, nth: number) =>
      other?.event === 'Announcement' && other.id === means.id && nth < to && !brackets.some(({ from }) => from === nth)
    const from = voice.findLastIndex(opens)
    if (from >= 0) brackets.push({ from, to })
  }
  return brackets
}

/** An old event whose new one says the same after it, with no other old one between. */
function isRepeated(voice: readonly Placed[], nth: number): boolean {
  const means = voice[nth]?.content.means
  if (means?.event !== 'MultiplierUpdated') return false
  for (const { content } of voice.slice(nth + 1)) {
    if (content.means?.event === 'MultiplierUpdated') return false
    if (content.means?.event === 'UIMultiplierUpdated' && content.means.to === means.to) return true
  }
  return false
}
