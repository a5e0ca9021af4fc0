import { printableText } from '../lib/text.ts'
import { type Decimal, parseDecimal, referenceValueOf, tenTo } from './decimal.ts'
import type { Block, Head, Nav, Stage } from './fields.ts'
import type { Message } from './notices.ts'
import type { Movement } from './updates.ts'

/** Text from outside cannot move the cursor, or colour or reorder the line. */
export const formatTextLine = (message: Message): string => printableText(lineOf(message)).trimEnd()

const SYMBOL_COLUMN = 8
const TYPE_COLUMN = 10

function lineOf(message: Message): string {
  switch (message.type) {
    case 'hello':
      return `# ${message.protocol} at ${message.id ?? message.end}, source ${message.source}, ${headOf(message.head)}${message.demo ? ', the built-in chain: nothing here is real' : ''}`
    case 'subscribed':
      return `# subscribed to ${message.symbols.join(' ') || 'nothing'}${message.rejected.map(({ symbol, reason }) => `; ${symbol}: ${reason}`).join('')}`
    case 'unsubscribed':
      return `# unsubscribed from ${message.symbols.join(' ')}`
    case 'snapshot':
      return `# ${message.symbol} ${message.address} multiplier ${message.multiplier ?? 'unknown'}, ${message.supply.tokens ?? 'unknown'} tokens, NAV ${navOf(message.nav)}${message.quote ? `, ${quoteOf(message.quote)}` : ''}${message.session ? `, market ${message.session.state}` : ''}${message.paused.length > 0 ? `, paused: ${message.paused.join(' ')}` : ''}${message.token_warnings.length > 0 ? `, warnings: ${message.token_warnings.join(' ')}` : ''}`
    case 'live':
      return `# live after ${message.replayed} replayed`
    case 'heartbeat':
      return `# ${message.time} ${message.id} source ${message.source}, ${headOf(message.head)}`
    case 'gap':
      return `# gap: ${message.reason}, after ${message.after ?? 'unknown'} through ${message.through}`
    case 'error':
      return `# error ${message.code}: ${message.message}`
    case 'bye':
      return `# bye: ${message.reason}, reconnect after ${message.retry_ms} ms at ${message.id ?? 'the present'}`
    case 'pong':
      return `# pong ${message.time}`
    default:
      return `${message.time.slice(11, 23)} ${message.symbol.padEnd(SYMBOL_COLUMN)} ${message.type.padEnd(TYPE_COLUMN)} ${contentOf(message)}`
  }
}

type TapeMessage = Extract<Message, { prev: string | null }>
type AmendedUpdate = Extract<TapeMessage, { type: 'amend' }>['update']
type RetractMessage = Extract<TapeMessage, { type: 'retract' }>

function contentOf(update: TapeMessage | AmendedUpdate): string {
  if ('memo' in update) return movementOf(update)
  switch (update.type) {
    case 'trade':
      return tradeOf(update)
    case 'approval':
      return `${update.amount ?? update.raw} ${short(update.owner)} approves ${short(update.spender)}  ${locationOf(update)}`
    case 'multiplier':
      return `${update.phase} ${update.previous ?? 'unknown'} to ${update.multiplier ?? 'unknown'}${update.effective_at ? ` at ${update.effective_at}` : ''}${optionalLocationOf(update)}`
    case 'pause':
      return `${update.change} ${update.features.join(' ')}${optionalLocationOf(update)}`
    case 'action':
      return `${update.action_id} ${update.description}  ${locationOf(update)}`
    case 'token':
      return `${update.change} ${update.changed.join(' ')}${optionalLocationOf(update)}`
    case 'nav':
      return `${navOf(update.nav)}${update.before?.price && update.before.price !== update.nav.price ? `, was ${update.before.price}` : ''}`
    case 'log':
      return `${update.topics[0] ?? 'no topic'}  ${locationOf(update)}`
    case 'retract':
      return `${update.fact_type} ${shortKey(update.key)} retracted: ${reasonOf(update)}`
    case 'amend':
      return `${update.fact_type} ${shortKey(update.key)} amended in ${update.changed.join(', ')}: ${update.update.type} ${contentOf(update.update)}`
    case 'seal':
      return `block ${update.block.number}: ${update.count} ${update.count === 1 ? 'log' : 'logs'}${update.late_keys.length > 0 ? `, ${update.late_keys.length} of them late` : ''}, digest ${update.digest}`
    case 'hole':
      return `blocks ${update.blocks.first} to ${update.blocks.last} could not be read: ${update.reason}`
    case 'finality':
      return `${update.stage} up to block ${update.block.number}`
    case 'status':
      return `source ${update.source}, ${update.reason}, ${headOf(update.head)}`
    case 'quote':
      return quoteOf(update)
    case 'venue':
      return `${update.change} ${update.venue.pool} ${placeOf(update.venue)} from block ${update.from_block}${update.reason === null ? '' : `: ${update.reason}`}`
    case 'bar':
      return barOf(update)
    case 'session':
      return `${update.market} ${update.state}${update.reason === null ? '' : `, ${update.reason}`}${update.ends_at === null ? '' : `, until ${update.ends_at}`}`
  }
}

function reasonOf({ reason, replaced_by }: RetractMessage): string {
  if (reason === 'replaced') return `sealed as ${replaced_by === null ? 'another' : shortKey(replaced_by)}`
  return reason === 'reorg' ? 'its block was replaced' : 'its block was sealed without it'
}

function movementOf(update: Omit<Movement, 'id' | 'prev' | 'time'>): string {
  const shares = update.shares !== null && update.shares !== update.amount ? ` (${update.shares} shares)` : ''
  const value = update.reference_value === null ? '' : ` = ${update.reference_value} USD`
  return `${update.amount ?? `${update.raw} raw`}${shares}${value}  ${short(update.from)} to ${short(update.to)}  ${locationOf(update)}`
}

function tradeOf({ side, amount, raw, price, currency_amount, venue, basis_bps, basis, ...place }: PlacedTrade): string {
  const { symbol } = venue.currency
  const at = price === null ? '' : ` at ${inCents(price)} ${symbol}`
  const against = basis_bps === null ? '' : `, ${basisTextOf(basis_bps, basis)}`
  const what = `${side ?? 'swap'} ${amount ?? `${raw} raw`}${at} = ${inCents(currency_amount)} ${symbol}${against}`
  return `${what}  ${venue.kind.replace('_', ' ')}  ${locationOf(place)}`
}
type PlacedTrade = Extract<AmendedUpdate, { type: 'trade' }>

/** Rounds an amount of one or more to two decimals. Smaller ones keep all. */
function inCents(text: string): string {
  const decimal = parseDecimal(text)
  return decimal && decimal.units >= tenTo(decimal.scale) ? referenceValueOf(decimal.units, decimal.scale, ONE) : text
}
const ONE: Decimal = { units: 1n, scale: 0 }

const locationOf = ({ stage, late, block, tx }: { stage: Stage; late: boolean; block: Block; tx: { hash: string } }): string =>
  `${stage}${late ? ', late' : ''} in ${block.number}, ${short(tx.hash)}`

/** Writes the location of an update. An update from the list or the clock has no log, and so no location. */
const optionalLocationOf = ({ stage, late = false, block, tx }: Partial<Parameters<typeof locationOf>[0]>): string =>
  stage && block && tx ? `  ${locationOf({ stage, late, block, tx })}` : ''

const navOf = (nav: Nav): string =>
  nav.price === null ? nav.state : `${nav.price} (${navStateOf(nav)}, ${nav.age_s ?? '?'} s old)`
const navStateOf = ({ state, frozen }: Nav): string => (frozen ? `${state}, frozen` : state)

/** Writes a quote. The NAV is in dollars, so a basis takes the currency as one dollar, and the line says so. */
function quoteOf({ venue, price, state, basis, basis_bps, nav }: Quote): string {
  const place = placeOf(venue)
  if (price === null) return `${state}, ${place}`
  if (basis_bps === null) return `${price} ${place}, NAV ${navStateOf(nav)}`
  return `${price} ${place}, ${basisTextOf(basis_bps, basis)} with ${venue.currency.symbol} as 1 USD, ${navStateOf(nav)}`
}

const placeOf = ({ currency, kind }: Quote['venue']): string => `${currency.symbol} on ${kind.replace('_', ' ')}`

const basisTextOf = (bps: string, basis: Quote['basis']): string =>
  `${bps.replace('-', '')} bps ${bps.startsWith('-') ? 'under' : 'over'} ${basis === 'drift' ? 'a held NAV' : 'NAV'}`

type Quote = Pick<Extract<TapeMessage, { type: 'quote' }>, 'venue' | 'price' | 'state' | 'basis' | 'basis_bps' | 'nav'>

function barOf({ start, revision, open, high, low, close, volume, trades, partial }: TapeBar): string {
  const prices = close === null ? 'no price' : `${open} ${high} ${low} ${close}`
  return `${start.slice(0, 16)} ${prices}, ${volume} in ${trades} ${trades === 1 ? 'trade' : 'trades'}${partial === null ? '' : `, partial: ${partial}`}  revision ${revision}`
}
type TapeBar = Extract<TapeMessage, { type: 'bar' }>

const headOf = (head: Head): string => `sealed ${head.sealed ?? 'unknown'}, pending ${head.pending ?? 'unknown'}`

const short = (hex: string): string => `${hex.slice(0, 6)}…${hex.slice(-4)}`
const shortKey = (key: string): string => key.replace(/0x[0-9a-f]+/, short)
