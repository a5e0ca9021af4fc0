import type { Block as ToldBlock } from '../../../src/protocol/fields.ts'
import type { Update } from '../../../src/protocol/updates.ts'
import type { Placed } from '../simulated-block.ts'
import { stockAt } from '../simulated-tokens.ts'
import { movementOf, type Reading, sayingOf, wadText } from './expected-logs.ts'

/** What is told of one on-chain fact. */
const factTypes = [
  ...(['transfer', 'mint', 'burn', 'seize', 'approval'] as const),
  ...(['multiplier', 'pause', 'action', 'token', 'log'] as const),
] as const
type Keyed<One> = One extends unknown
  ? One & Pick<Extract<Update, { type: 'transfer' }>, 'key' | 'stage' | 'late' | 'block' | 'tx'>
  : never
export type Fact = Keyed<Extract<Update, { type: (typeof factTypes)[number] }>>
/** A fact as an amendment carries it. */
export type Amended = Omit<Fact, 'id' | 'prev' | 'time'> & Pick<Fact, 'type'>
export type Moved = Extract<Fact, { type: 'transfer' | 'mint' | 'burn' | 'seize' }>

export const isFact = (update: Update): update is Fact =>
  (factTypes as readonly string[]).includes(update.type) && 'key' in update && update.key !== undefined

export const isMovement = (fact: Amended | Fact): fact is Moved => 'shares' in fact

/** What was told, in the words of `sayingOf`. */
export function toldSaying(fact: Amended | Fact): string {
  const told = fact as Fact
  const { address } = told
  switch (told.type) {
    case 'approval':
      return `${address} approval ${told.owner} ${told.spender} ${told.raw}`
    case 'multiplier':
      return `${address} multiplier ${told.phase} ${told.to} ${told.effective_at}`
    case 'pause':
      return `${address} pause ${told.paused} ${told.raw.join()}`
    case 'action':
      return `${address} action ${told.action_id} ${told.description} ${told.uri}`
    case 'token':
      return `${address} token ${told.changed.join()} ${told.changed.map((name) => JSON.stringify(told.token[name] ?? null)).join()}`
    case 'log':
      return `${address} log ${told.topics.join()} ${told.data}`
    default:
      return `${address} ${told.type} ${told.from} ${told.to} ${told.raw} ${told.memo}`
  }
}

/** What else is told under a key, and follows from what was said elsewhere. */
export function toldDetail(fact: Amended | Fact): string {
  const told = fact as Fact
  if (isMovement(told)) return `${told.multiplier} ${told.shares}`
  if (told.type === 'action') return told.keys.join()
  return told.type === 'multiplier' ? `${told.from}` : ''
}

/** All that may be said of a log before its block is whole: what belongs to it may be there already, or not yet. */
export function sayingsOf(log: Placed, beside: readonly Placed[], told: Amended | Fact, timeless: boolean): string[] {
  const near = beside.filter(({ content }) => content.address === log.content.address)
  const moved = movementOf(log)
  const { means } = log.content
  if (moved) {
    const memos = near.flatMap(({ logIndex, content }) =>
      content.means?.event === 'Memo' && logIndex === log.logIndex + 1 ? [content.means.memo] : [],
    )
    const seizes = near.some(({ content: { means: other } }) => {
      const names = other?.event === 'Seized' && other.from === moved.from && other.to === moved.to
      return names && other.raw === moved.raw
    })
    return [null, ...memos].flatMap((memo) =>
      (seizes ? [false, true] : [false]).map((seized) => sayingOf(log, { memo, seized })),
    )
  }
  if (means?.event === 'Announcement') {
    const closes = ({ content: { means: other } }: Placed) =>
      other?.event === 'EndAnnouncement' && other.id === means.id
    return near.some(closes) ? [sayingOf(log)] : []
  }
  // Where the time of a block that is being built is not said, it is not known what is to come.
  if (timeless && means?.event === 'UIMultiplierUpdated')
    return [log.timestamp, means.at, means.at - 1].map((timestamp) => sayingOf({ ...log, timestamp }))
  if (timeless && means?.event === 'MultiplierUpdated' && told.type === 'multiplier') {
    const { effective_at } = told as Extract<Fact, { type: 'multiplier' }>
    return [`${log.content.address} multiplier effective ${wadText(means.to)} ${effective_at}`]
  }
  return [sayingOf(log)]
}

/** What is wrong with a fact that claims to be this log, which may say any of these; null where nothing is. */
export function objectionTo(fact: Amended | Fact, log: Placed, sayings: readonly string[], timeless = false) {
  const told = fact as Fact
  const saying = toldSaying(told)
  if (!sayings.includes(saying)) return `says ${saying}, not ${sayings.join(' or ')}`
  const { hash, index, log_index } = told.tx
  if (hash !== log.tx || index !== log.txIndex || log_index !== log.logIndex)
    return `stands at ${hash} ${index} ${log_index}, not ${log.tx} ${log.txIndex} ${log.logIndex}`
  if (told.block.number !== log.block) return `is of block ${told.block.number}, not ${log.block}`
  const time = timeOf(told.block)
  // Some nodes do not say when a block that is being built will be.
  const unknown = time === null && told.stage === 'preconfirmed' && timeless
  return unknown || time === log.timestamp ? sumsObjection(told) : `is of ${time}, not ${log.timestamp}`
}

/** What is wrong with what was told last of a log that is sealed now, beside what it says itself. */
export function detailObjection(fact: Amended | Fact, { log, keys }: Reading): string | null {
  const told = fact as Fact
  const { means } = log.content
  if (told.type === 'action' && told.keys.join() !== keys?.join())
    return `holds ${told.keys.join()}, not ${keys?.join()}`
  if (told.type !== 'multiplier' || means?.event !== 'UIMultiplierUpdated') return null
  return told.from === wadText(means.from) ? null : `is from ${told.from}, not ${wadText(means.from)}`
}

export const timeOf = ({ timestamp }: ToldBlock): number | null =>
  timestamp === null ? null : Date.parse(timestamp) / 1_000

function sumsObjection(told: Fact): string | null {
  if (!isMovement(told) && told.type !== 'approval') return null
  const stock = stockAt(told.address)
  if (!stock) return `is of ${told.address}, which was never listed`
  const amount = decimal(BigInt(told.raw), stock.decimals)
  if (told.amount !== amount) return `amounts to ${told.amount}, not ${amount}`
  if (told.type === 'approval') return null
  const shares = told.multiplier === null ? null : sharesOf(told.raw, told.multiplier, stock.decimals)
  if (told.shares !== shares) return `is ${told.shares} shares at ${told.multiplier}, not ${shares}`
  const value = told.nav.price === null ? null : moneyOf(BigInt(told.raw), stock.decimals, told.nav.price)
  return told.reference_value === value ? null : `is worth ${told.reference_value}, not ${value}`
}

/** What a multiplier makes of a raw amount, rounded down. */
export function sharesOf(raw: string, multiplier: string, decimals: number): string {
  const [whole = '', fraction = ''] = multiplier.split('.')
  return decimal((BigInt(raw) * BigInt(whole + fraction)) / 10n ** BigInt(fraction.length), decimals)
}

/** Two decimals, half up. */
function moneyOf(raw: bigint, decimals: number, price: string): string {
  const [whole = '', fraction = ''] = price.split('.')
  const one = 10n ** BigInt(decimals + fraction.length)
  const cents = ((raw * BigInt(whole + fraction) * 200n + one) / (2n * one)).toString().padStart(3, '0')
  return `${cents.slice(0, -2)}.${cents.slice(-2)}`
}

function decimal(units: bigint, scale: number): string {
  const digits = units.toString().padStart(scale + 1, '0')
  const text = `${digits.slice(0, -scale)}.${digits.slice(-scale)}`
  return text.replace(/\.?0+$/, '')
}
