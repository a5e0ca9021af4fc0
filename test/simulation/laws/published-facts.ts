import type { Block as PublishedBlock } from '../../../src/protocol/fields.ts'
import type { Update } from '../../../src/protocol/updates.ts'
import type { PlacedLog } from '../placed-logs.ts'
import { tokenAt } from '../simulated-tokens.ts'
import { decimalText, wadText } from './exact-decimals.ts'
import { type ExpectedLog, expectedText, movementOf } from './expected-logs.ts'
import { findTradeError, tradeText } from './swaps.ts'

/** The types of messages about one on-chain fact. */
const factTypes = [
  ...(['transfer', 'mint', 'burn', 'seize', 'trade', 'approval'] as const),
  ...(['multiplier', 'pause', 'action', 'token', 'log'] as const),
] as const
type WithKey<Type> = Type extends unknown
  ? Type & Pick<Extract<Update, { type: 'transfer' }>, 'key' | 'stage' | 'late' | 'block' | 'tx'>
  : never
export type Fact = WithKey<Extract<Update, { type: (typeof factTypes)[number] }>>
/** A fact inside an amend. */
export type AmendedFact = Omit<Fact, 'id' | 'prev' | 'time'> & Pick<Fact, 'type'>
/** A fact with an amount of tokens that is valued: a movement or a trade. */
type ValuedFact = Extract<Fact, { type: 'transfer' | 'mint' | 'burn' | 'seize' | 'trade' }>

export const isFact = (update: Update): update is Fact =>
  (factTypes as readonly string[]).includes(update.type) && 'key' in update && update.key !== undefined

export const isValued = (fact: AmendedFact | Fact): fact is ValuedFact => 'shares' in fact

/** A published fact in the form of `expectedText`. */
export function publishedText(fact: AmendedFact | Fact): string {
  const published = fact as Fact
  const { address } = published
  switch (published.type) {
    case 'approval':
      return `${address} approval ${published.owner} ${published.spender} ${published.raw}`
    case 'multiplier':
      return `${address} multiplier ${published.phase} ${published.multiplier} ${published.effective_at}`
    case 'pause':
      return `${address} pause ${published.change} ${published.feature_ids.join()}`
    case 'action':
      return `${address} action ${published.action_id} ${published.description} ${published.uri}`
    case 'token':
      return `${address} token ${published.changed.join()} ${published.changed.map((name) => JSON.stringify(published.token[name] ?? null)).join()}`
    case 'trade':
      return tradeText(published)
    case 'log':
      return `${address} log ${published.topics.join()} ${published.data}`
    default:
      return `${address} ${published.type} ${published.from} ${published.to} ${published.raw} ${published.memo}`
  }
}

/** Published fields of a fact that follow from other logs. */
export function publishedDetail(fact: AmendedFact | Fact): string {
  const published = fact as Fact
  if (published.type === 'trade') return `${published.multiplier} ${published.shares} ${published.pool_price}`
  if (isValued(published)) return `${published.multiplier} ${published.shares}`
  if (published.type === 'action') return published.keys.join()
  return published.type === 'multiplier' ? `${published.previous}` : ''
}

/** What the node says of the time of a block before it is sealed: some nodes say nothing, and a message may be false. */
type PendingTimes = 'true' | 'missing' | 'false'

/** All texts that are correct for a log before its block is complete: its parts may have arrived or not. */
export function acceptableTexts(
  log: PlacedLog,
  beside: readonly PlacedLog[],
  published: AmendedFact | Fact,
  times: PendingTimes,
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
  // Without the pending block's time the relay cannot know whether a change lies in the future.
  if (times !== 'true' && tokenEvent?.event === 'UIMultiplierUpdated')
    return [log.timestamp, tokenEvent.at, tokenEvent.at - 1].map((timestamp) => expectedText({ ...log, timestamp }))
  if (times !== 'true' && tokenEvent?.event === 'MultiplierUpdated' && published.type === 'multiplier') {
    const { effective_at } = published as Extract<Fact, { type: 'multiplier' }>
    return [`${log.content.address} multiplier effective ${wadText(tokenEvent.to)} ${effective_at}`]
  }
  return [expectedText(log)]
}

/** What is wrong with a fact that claims to be this log, which may have any of these texts; null if nothing is. */
export function findFactError(
  fact: AmendedFact | Fact,
  log: PlacedLog,
  texts: readonly string[],
  times: PendingTimes = 'true',
): string | null {
  const published = fact as Fact
  const text = publishedText(published)
  if (!texts.includes(text)) return `contains ${text}, not ${texts.join(' or ')}`
  const { hash, index, log_index } = published.tx
  if (hash !== log.tx || index !== log.txIndex || log_index !== log.logIndex)
    return `is at ${hash} ${index} ${log_index}, not ${log.tx} ${log.txIndex} ${log.logIndex}`
  if (published.block.number !== log.block) return `is of block ${published.block.number}, not ${log.block}`
  const time = blockTime(published.block)
  const isUnknown = times === 'false' || (times === 'missing' && time === null)
  const isPreconfirmed = published.stage === 'preconfirmed'
  return (isPreconfirmed && isUnknown) || time === log.timestamp
    ? (findAmountError(published) ?? (published.type === 'trade' ? findTradeError(published, log) : null))
    : `has the time ${time}, not ${log.timestamp}`
}

/** What is wrong with the last published form of a sealed log, apart from its own content. */
export function findDetailError(fact: AmendedFact | Fact, { log, keys }: ExpectedLog): string | null {
  const published = fact as Fact
  const { tokenEvent } = log.content
  if (published.type === 'trade') return findTradeError(published, log)
  if (published.type === 'action' && published.keys.join() !== keys?.join())
    return `contains ${published.keys.join()}, not ${keys?.join()}`
  if (published.type !== 'multiplier' || tokenEvent?.event !== 'UIMultiplierUpdated') return null
  return published.previous === wadText(tokenEvent.from) ? null : `is from ${published.previous}, not ${wadText(tokenEvent.from)}`
}

export const blockTime = ({ timestamp }: PublishedBlock): number | null =>
  timestamp === null ? null : Date.parse(timestamp) / 1_000

function findAmountError(published: Fact): string | null {
  if (!isValued(published) && published.type !== 'approval') return null
  const token = tokenAt(published.address)
  if (!token) return `is of ${published.address}, which was never listed`
  const amount = decimalText(BigInt(published.raw), token.decimals)
  if (published.amount !== amount) return `has the amount ${published.amount}, not ${amount}`
  if (published.type === 'approval') return null
  const shares = published.multiplier === null ? null : sharesOf(published.raw, published.multiplier, token.decimals)
  if (published.shares !== shares) return `is ${published.shares} shares at ${published.multiplier}, not ${shares}`
  const value = published.nav.price === null ? null : formatMoney(BigInt(published.raw), token.decimals, published.nav.price)
  return published.reference_value === value ? null : `is worth ${published.reference_value}, not ${value}`
}

/** The shares of a raw amount at a multiplier, rounded down. */
export function sharesOf(raw: string, multiplier: string, decimals: number): string {
  const [whole = '', fraction = ''] = multiplier.split('.')
  return decimalText((BigInt(raw) * BigInt(whole + fraction)) / 10n ** BigInt(fraction.length), decimals)
}

/** Two decimals, half up. */
function formatMoney(raw: bigint, decimals: number, price: string): string {
  const [whole = '', fraction = ''] = price.split('.')
  const unit = 10n ** BigInt(decimals + fraction.length)
  const cents = ((raw * BigInt(whole + fraction) * 200n + unit) / (2n * unit)).toString().padStart(3, '0')
  return `${cents.slice(0, -2)}.${cents.slice(-2)}`
}
