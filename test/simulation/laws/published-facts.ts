import type { Block as ToldBlock } from '../../../src/protocol/fields.ts'
import type { Update } from '../../../src/protocol/updates.ts'
import type { PlacedLog } from '../simulated-block.ts'
import { tokenAt } from '../simulated-tokens.ts'
import { type ExpectedLog, expectedText, movementOf, wadText } from './expected-logs.ts'

/** What is told of one on-chain fact. */
const factTypes = [
  ...(['transfer', 'mint', 'burn', 'seize', 'approval'] as const),
  ...(['multiplier', 'pause', 'action', 'token', 'log'] as const),
] as const
type WithKey<One> = One extends unknown
  ? One & Pick<Extract<Update, { type: 'transfer' }>, 'key' | 'stage' | 'late' | 'block' | 'tx'>
  : never
export type Fact = WithKey<Extract<Update, { type: (typeof factTypes)[number] }>>
/** A fact as an amendment carries it. */
export type AmendedFact = Omit<Fact, 'id' | 'prev' | 'time'> & Pick<Fact, 'type'>
export type MovementFact = Extract<Fact, { type: 'transfer' | 'mint' | 'burn' | 'seize' }>

export const isFact = (update: Update): update is Fact =>
  (factTypes as readonly string[]).includes(update.type) && 'key' in update && update.key !== undefined

export const isMovement = (fact: AmendedFact | Fact): fact is MovementFact => 'shares' in fact

/** What was told, in the words of `sayingOf`. */
export function publishedText(fact: AmendedFact | Fact): string {
  const published = fact as Fact
  const { address } = published
  switch (published.type) {
    case 'approval':
      return `${address} approval ${published.owner} ${published.spender} ${published.raw}`
    case 'multiplier':
      return `${address} multiplier ${published.phase} ${published.to} ${published.effective_at}`
    case 'pause':
      return `${address} pause ${published.change} ${published.feature_ids.join()}`
    case 'action':
      return `${address} action ${published.action_id} ${published.description} ${published.uri}`
    case 'token':
      return `${address} token ${published.changed.join()} ${published.changed.map((name) => JSON.stringify(published.token[name] ?? null)).join()}`
    case 'log':
      return `${address} log ${published.topics.join()} ${published.data}`
    default:
      return `${address} ${published.type} ${published.from} ${published.to} ${published.raw} ${published.memo}`
  }
}

/** What else is told under a key, and follows from what was said elsewhere. */
export function publishedDetail(fact: AmendedFact | Fact): string {
  const published = fact as Fact
  if (isMovement(published)) return `${published.multiplier} ${published.shares}`
  if (published.type === 'action') return published.keys.join()
  return published.type === 'multiplier' ? `${published.from}` : ''
}

/** All that may be said of a log before its block is whole: what belongs to it may be there already, or not yet. */
export function acceptableTexts(
  log: PlacedLog,
  beside: readonly PlacedLog[],
  published: AmendedFact | Fact,
  timeless: boolean,
): string[] {
  const sameTokenLogs = beside.filter(({ content }) => content.address === log.content.address)
  const movement = movementOf(log)
  const { tokenEvent } = log.content
  if (movement) {
    const memos = sameTokenLogs.flatMap(({ logIndex, content }) =>
      content.tokenEvent?.event === 'Memo' && logIndex === log.logIndex + 1 ? [content.tokenEvent.memo] : [],
    )
    const seizes = sameTokenLogs.some(({ content: { tokenEvent: other } }) => {
      const names = other?.event === 'Seized' && other.from === movement.from && other.to === movement.to
      return names && other.raw === movement.raw
    })
    return [null, ...memos].flatMap((memo) =>
      (seizes ? [false, true] : [false]).map((seized) => expectedText(log, { memo, seized })),
    )
  }
  if (tokenEvent?.event === 'Announcement') {
    const closes = ({ content: { tokenEvent: other } }: PlacedLog) =>
      other?.event === 'EndAnnouncement' && other.id === tokenEvent.id
    return sameTokenLogs.some(closes) ? [expectedText(log)] : []
  }
  // Where the time of a block that is being built is not said, it is not known what is to come.
  if (timeless && tokenEvent?.event === 'UIMultiplierUpdated')
    return [log.timestamp, tokenEvent.at, tokenEvent.at - 1].map((timestamp) => expectedText({ ...log, timestamp }))
  if (timeless && tokenEvent?.event === 'MultiplierUpdated' && published.type === 'multiplier') {
    const { effective_at } = published as Extract<Fact, { type: 'multiplier' }>
    return [`${log.content.address} multiplier effective ${wadText(tokenEvent.to)} ${effective_at}`]
  }
  return [expectedText(log)]
}

/** What is wrong with a fact that claims to be this log, which may say any of these; null where nothing is. */
export function findFactError(fact: AmendedFact | Fact, log: PlacedLog, texts: readonly string[], timeless = false) {
  const published = fact as Fact
  const text = publishedText(published)
  if (!texts.includes(text)) return `says ${text}, not ${texts.join(' or ')}`
  const { hash, index, log_index } = published.tx
  if (hash !== log.tx || index !== log.txIndex || log_index !== log.logIndex)
    return `stands at ${hash} ${index} ${log_index}, not ${log.tx} ${log.txIndex} ${log.logIndex}`
  if (published.block.number !== log.block) return `is of block ${published.block.number}, not ${log.block}`
  const time = blockTime(published.block)
  // Some nodes do not say when a block that is being built will be.
  const unknown = time === null && published.stage === 'preconfirmed' && timeless
  return unknown || time === log.timestamp ? findAmountError(published) : `is of ${time}, not ${log.timestamp}`
}

/** What is wrong with what was told last of a log that is sealed now, beside what it says itself. */
export function findDetailError(fact: AmendedFact | Fact, { log, keys }: ExpectedLog): string | null {
  const published = fact as Fact
  const { tokenEvent } = log.content
  if (published.type === 'action' && published.keys.join() !== keys?.join())
    return `holds ${published.keys.join()}, not ${keys?.join()}`
  if (published.type !== 'multiplier' || tokenEvent?.event !== 'UIMultiplierUpdated') return null
  return published.from === wadText(tokenEvent.from)
    ? null
    : `is from ${published.from}, not ${wadText(tokenEvent.from)}`
}

export const blockTime = ({ timestamp }: ToldBlock): number | null =>
  timestamp === null ? null : Date.parse(timestamp) / 1_000

function findAmountError(published: Fact): string | null {
  if (!isMovement(published) && published.type !== 'approval') return null
  const stock = tokenAt(published.address)
  if (!stock) return `is of ${published.address}, which was never listed`
  const amount = formatDecimal(BigInt(published.raw), stock.decimals)
  if (published.amount !== amount) return `amounts to ${published.amount}, not ${amount}`
  if (published.type === 'approval') return null
  const shares = published.multiplier === null ? null : sharesOf(published.raw, published.multiplier, stock.decimals)
  if (published.shares !== shares) return `is ${published.shares} shares at ${published.multiplier}, not ${shares}`
  const value =
    published.nav.price === null ? null : formatMoney(BigInt(published.raw), stock.decimals, published.nav.price)
  return published.reference_value === value ? null : `is worth ${published.reference_value}, not ${value}`
}

/** What a multiplier makes of a raw amount, rounded down. */
export function sharesOf(raw: string, multiplier: string, decimals: number): string {
  const [whole = '', fraction = ''] = multiplier.split('.')
  return formatDecimal((BigInt(raw) * BigInt(whole + fraction)) / 10n ** BigInt(fraction.length), decimals)
}

/** Two decimals, half up. */
function formatMoney(raw: bigint, decimals: number, price: string): string {
  const [whole = '', fraction = ''] = price.split('.')
  const one = 10n ** BigInt(decimals + fraction.length)
  const cents = ((raw * BigInt(whole + fraction) * 200n + one) / (2n * one)).toString().padStart(3, '0')
  return `${cents.slice(0, -2)}.${cents.slice(-2)}`
}

function formatDecimal(units: bigint, scale: number): string {
  const digits = units.toString().padStart(scale + 1, '0')
  const text = `${digits.slice(0, -scale)}.${digits.slice(-scale)}`
  return text.replace(/\.?0+$/, '')
}
