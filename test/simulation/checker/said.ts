import type { Block as ToldBlock } from '../../../src/protocol/parts.ts'
import type { Update } from '../../../src/protocol/updates.ts'
import type { Content, Placed } from '../block.ts'
import { APPROVAL, TRANSFER } from '../market.ts'
import { stockAt } from '../tokens.ts'

/** What is told of one on-chain fact. */
const factTypes = ['transfer', 'mint', 'burn', 'approval', 'log'] as const
export type Fact = Extract<Update, { type: (typeof factTypes)[number] }>
/** A fact as an amendment carries it. */
export type Amended = Omit<Fact, 'id' | 'prev' | 'time'> & Pick<Fact, 'type'>

export const isFact = (update: Update): update is Fact => (factTypes as readonly string[]).includes(update.type)

const addressOf = (word: string): string => `0x${word.slice(26)}`
const ZERO = `0x${'0'.repeat(40)}`
const WORD_CHARS = 66

/** What a content says, written so that two that say the same are the same text. Read here once more, by other means. */
export function sayingOf({ address, topics, data }: Content): string {
  const [name, one = '', other = ''] = topics
  const known = topics.length === 3 && data.length === WORD_CHARS
  if (known && name === TRANSFER) {
    const [from, to] = [addressOf(one), addressOf(other)]
    const type = from === ZERO ? 'mint' : to === ZERO ? 'burn' : 'transfer'
    return `${address} ${type} ${from} ${to} ${BigInt(data)}`
  }
  if (known && name === APPROVAL) return `${address} approval ${addressOf(one)} ${addressOf(other)} ${BigInt(data)}`
  return `${address} log ${topics.join()} ${data}`
}

/** The same of what was told. */
export function toldSaying(fact: Amended | Fact): string {
  const told = fact as Fact
  switch (told.type) {
    case 'approval':
      return `${told.address} approval ${told.owner} ${told.spender} ${told.raw}`
    case 'log':
      return `${told.address} log ${told.topics.join()} ${told.data}`
    default:
      return `${told.address} ${told.type} ${told.from} ${told.to} ${told.raw}`
  }
}

/** What is wrong with a fact that claims to be this log; null where nothing is. */
export function objectionTo(fact: Amended | Fact, log: Placed, timeless = false): string | null {
  const told = fact as Fact
  if (toldSaying(told) !== sayingOf(log.content)) return `says ${toldSaying(told)}, not ${sayingOf(log.content)}`
  const { hash, index, log_index } = told.tx
  if (hash !== log.tx || index !== log.txIndex || log_index !== log.logIndex)
    return `stands at ${hash} ${index} ${log_index}, not ${log.tx} ${log.txIndex} ${log.logIndex}`
  if (told.block.number !== log.block) return `is of block ${told.block.number}, not ${log.block}`
  const time = timeOf(told.block)
  // Some nodes do not say when a block that is being built will be.
  const unknown = time === null && told.stage === 'preconfirmed' && timeless
  return unknown || time === log.timestamp ? sumsObjection(told) : `is of ${time}, not ${log.timestamp}`
}

export const timeOf = ({ timestamp }: ToldBlock): number | null =>
  timestamp === null ? null : Date.parse(timestamp) / 1_000

function sumsObjection(told: Fact): string | null {
  if (told.type === 'log') return null
  const stock = stockAt(told.address)
  if (!stock) return `is of ${told.address}, which was never listed`
  const amount = decimal(BigInt(told.raw), stock.decimals)
  if (told.amount !== amount) return `amounts to ${told.amount}, not ${amount}`
  if (told.type === 'approval') return null
  const shares = decimal((BigInt(told.raw) * stock.hundredths) / 100n, stock.decimals)
  if (told.shares !== shares) return `is ${told.shares} shares, not ${shares}`
  const value = told.nav.price === null ? null : moneyOf(BigInt(told.raw), stock.decimals, told.nav.price)
  return told.reference_value === value ? null : `is worth ${told.reference_value}, not ${value}`
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
