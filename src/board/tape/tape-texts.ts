import type { Head, Source, SourceReason } from '../../sdk/client/index.ts'
import { formatAmount, formatBps, formatDecimal, formatTokens, shortHex, UNKNOWN } from '../shared/number-text.ts'
import {
  type LineStage,
  reasonSentence,
  sessionWords,
  sourceWords,
  stageByHead,
  stageWords,
  typeName,
  venueNames,
} from '../shared/state-words.ts'
import { OLD_NAV_MS, shortMultiplier } from '../shared/stock-texts.ts'
import { formatMoment } from '../shared/time-text.ts'
import type { TapeLine } from './tape-lines.ts'

export type LineText = {
  readonly symbol: string
  readonly type: string
  /** Number at the right of the line, such as the amount. */
  readonly figure: string
  readonly detail: string
  readonly value: string
}

export function lineText({ content }: TapeLine): LineText {
  const base = { symbol: 'symbol' in content ? content.symbol : '', type: typeName(content.type), figure: '', value: '' }
  switch (content.type) {
    case 'transfer':
    case 'mint':
    case 'burn':
    case 'seize':
      if (content.raw === '0') return { ...base, type: `zero ${base.type}`, detail: partiesOf(content) }
      return { ...base, figure: amountText(content), value: valueText(content), detail: partiesOf(content) }
    case 'trade': {
      const { side, price, venue, basis_bps } = content
      const at = price === null ? '' : `at ${formatDecimal(price, 2)}`
      const against = basis_bps === null ? '' : `${formatBps(basis_bps)} bps${againstWords(content)}`
      const value = `${formatDecimal(content.currency_amount, 2)} ${venue.currency.symbol}`
      const detail = [at, against, venueNames[venue.kind]].filter(Boolean).join(' · ')
      return { ...base, type: side ?? 'swap', figure: amountText(content), value, detail }
    }
    case 'approval':
      return { ...base, figure: amountText(content), detail: `${shortHex(content.owner)} → ${shortHex(content.spender)}` }
    case 'multiplier':
      return {
        ...base,
        type: multiplierWords(content),
        detail: [
          [content.previous, content.multiplier ?? UNKNOWN]
            .flatMap((text) => (text === null ? [] : shortMultiplier(text)))
            .join(' → '),
          phaseWords[content.phase],
          isLater(content) && `from ${formatMoment(content.effective_at, Date.parse(content.time))}`,
        ]
          .filter(Boolean)
          .join(' · '),
      }
    case 'pause':
      return { ...base, type: content.change, detail: content.features.join(', ').toLowerCase() }
    case 'action':
      return { ...base, detail: content.description || content.action_id }
    case 'token':
      return { ...base, ...tokenText(content) }
    case 'nav':
      return { ...base, figure: formatDecimal(content.nav.price, 2), detail: content.nav.state }
    case 'quote':
      return { ...base, figure: formatDecimal(content.price, 2), detail: content.state }
    case 'venue':
      return { ...base, detail: `${content.change} ${shortHex(content.venue.pool)} from block ${content.from_block}` }
    case 'bar':
      return {
        ...base,
        figure: formatDecimal(content.close, 2),
        detail: `${content.trades} trades from ${content.start.slice(11, 16)}`,
      }
    case 'log':
      return { ...base, detail: shortHex(content.topics[0] ?? 'no topic') }
    case 'hole':
      return { ...base, detail: `blocks ${content.blocks.first}–${content.blocks.last} could not be read: ${content.reason}` }
    case 'status':
      return { ...base, type: `source ${sourceStates[content.source]}`, detail: statusWords(content) }
    case 'session':
      return { ...base, detail: `${content.market}: ${sessionWords(content)}` }
    case 'gap':
      return {
        ...base,
        type: `messages ${isMissing(content.reason) ? 'are' : 'may be'} missing here`,
        detail: gapWords[content.reason],
      }
  }
}

const sourceStates: Readonly<Record<Source, string>> = { pendingLogs: 'live', poll: 'slow', sealed: 'late', down: 'down' }

const statusWords = ({ source, reason }: { readonly source: Source; readonly reason: SourceReason }): string =>
  reasonSentence(reason, source) || sourceWords[source]

/** Warns of a NAV that says little about the trade that is measured against it. */
function againstWords({ basis, nav }: Extract<TapeLine['content'], { type: 'trade' }>): string {
  if (basis === 'drift') return ' drift'
  return nav.age_s !== null && nav.age_s * 1_000 >= OLD_NAV_MS ? ', old NAV' : ''
}

type LaterMultiplier = Extract<TapeLine['content'], { type: 'multiplier' }> & { readonly effective_at: string }

const isLater = (content: Extract<TapeLine['content'], { type: 'multiplier' }>): content is LaterMultiplier =>
  content.phase === 'scheduled' && content.effective_at !== null

/** Fields of a token whose values say nothing to a reader. */
const metadataNames: Readonly<Record<string, string>> = { extra_metadata: 'metadata', contract_uri: 'link to its document' }

function tokenText(content: Extract<TapeLine['content'], { type: 'token' }>): Pick<LineText, 'type' | 'detail'> {
  const { change, changed, before } = content
  const names = changed.map((field) => metadataNames[field] ?? field.replaceAll('_', ' ')).join(', ')
  if (change !== 'changed') return { type: change, detail: names || (content.token.name ?? '') }
  if (changed.every((field) => field in metadataNames)) return { type: 'token details changed', detail: names }
  const steps = changed.flatMap((field) => {
    const [old, now] = [before?.[field], content.token[field]]
    return typeof old === 'string' && typeof now === 'string' ? [`${old} → ${now}`] : []
  })
  return { type: changed.includes('symbol') ? 'renamed' : `${names} changed`, detail: steps.join(' · ') }
}

/** A multiplier that becomes a whole number of times as large, or as small, is that of a split. */
export function multiplierWords({ previous, multiplier }: Pick<LaterMultiplier, 'previous' | 'multiplier'>): string {
  const ratio = Number(multiplier ?? Number.NaN) / Number(previous ?? Number.NaN)
  return Number.isInteger(ratio) && ratio > 1
    ? 'split'
    : Number.isInteger(1 / ratio) && ratio < 1
      ? 'reverse split'
      : 'shares per token'
}

export const phaseWords = { scheduled: 'scheduled', effective: 'in effect', cancelled: 'cancelled' } as const

type GapReason = Extract<TapeLine['content'], { type: 'gap' }>['reason']

export const gapWords: Readonly<Record<GapReason, string>> = {
  expired: 'the relay had deleted them',
  epoch: 'the relay lost its tape and began a new one',
  ahead: 'the relay lost the end of its tape',
  long: 'they were too many to send again',
  missed: 'they were lost on the way',
}

/** Whether messages are missing at a gap for sure. */
export const isMissing = (reason: GapReason): boolean => reason !== 'epoch' && reason !== 'ahead'

const amountText = ({ amount, raw }: { readonly amount: string | null; readonly raw: string }): string =>
  amount === null ? `${raw} raw` : formatAmount(amount)

/** Value from which a line has no cents: the NAV of an estimate is not so exact. */
const WHOLE_USD = 1_000

/** The value of a line: of an estimate in round dollars. The sheet of the fact has the cents. */
export function shortValue(line: TapeLine): string {
  const { content } = line
  const isEstimate = content.type !== 'trade' && 'reference_value' in content && Number(content.reference_value) >= WHOLE_USD
  return isEstimate ? `≈ $${formatDecimal(content.reference_value, 0)}` : lineText(line).value
}

/** Formats a value. A value below half a cent is not shown as 0. The NAV that was unknown then may be known now. */
function valueText({ reference_value }: { readonly reference_value: string | null }): string {
  if (reference_value === null) return 'NAV unknown'
  return reference_value === '0.00' ? '< $0.01' : `≈ $${formatDecimal(reference_value, 2)}`
}

export const ZERO_ADDRESS = /^0x0{40}$/

function partiesOf({ from, to }: { readonly from: string; readonly to: string }): string {
  if (ZERO_ADDRESS.test(from)) return `to ${shortHex(to)}`
  if (ZERO_ADDRESS.test(to)) return `from ${shortHex(from)}`
  return `${shortHex(from)} → ${shortHex(to)}`
}

export function stageOf({ content, isSealed, retraction }: TapeLine, head: Head | null): LineStage | null {
  if (!('key' in content) || content.key === undefined || !content.block) return null
  if (retraction) return 'retracted'
  if (!isSealed) return 'preconfirmed'
  return head ? stageByHead(content.block.number, head) : 'sealed'
}

const retractWords = {
  not_sealed: 'not in the sealed block',
  reorg: 'its block was replaced',
  replaced: 'sealed under another key',
} as const

/** A trade so far from the NAV is marked. */
const OFF_NAV_BPS = 500

const isOffNav = ({ content }: TapeLine): boolean => content.type === 'trade' && Math.abs(Number(content.basis_bps)) >= OFF_NAV_BPS

type Remark = { readonly words: string; readonly short: string }

function remarkOf(line: TapeLine): Remark | null {
  const { content, retraction, amended, isUnsure } = line
  if (retraction) return { words: retractWords[retraction.reason], short: retraction.reason.replace('_', ' ') }
  if (isUnsure) return { words: 'its end may be among the lost messages', short: 'end unknown' }
  if (amended.length > 0) return { words: `amended: ${[...new Set(amended)].join(', ')}`, short: 'amended' }
  if ('late' in content && content.late) return { words: 'late: first published when its block was already sealed', short: 'late' }
  return isOffNav(line) ? { words: 'far from the NAV', short: 'off NAV' } : null
}

/** Says what is unusual about a line, besides its stage. */
export const lineRemark = (line: TapeLine): string | null => remarkOf(line)?.words ?? null

/** Says it in one or two words, for a line that has no room for more. */
export const shortRemark = (line: TapeLine): string | null => remarkOf(line)?.short ?? null

/** The amount of a line that also has a value, with its first digits: the sheet of the fact has all of them. */
export function shortFigure({ content }: TapeLine): string {
  if (!('amount' in content) || !('reference_value' in content) || content.raw === '0') return ''
  return content.amount === null ? amountText(content) : formatTokens(content.amount)
}

/** Returns the tint of a line that a reader must not overlook. */
export function tintOf({ content, retraction }: TapeLine): 'attention' | 'bad' | null {
  const { type } = content
  if (retraction !== null) return 'bad'
  // A token that is listed tells its first multiplier, which is no event.
  if (content.type === 'multiplier' && content.previous === null) return null
  if (content.type === 'pause' && content.change === 'unpaused') return null
  if (content.type === 'status') return content.source === 'down' ? 'bad' : content.source === 'pendingLogs' ? null : 'attention'
  const isDelisted = content.type === 'token' && content.change === 'delisted'
  return isDelisted || ['seize', 'multiplier', 'pause', 'gap', 'hole'].includes(type) ? 'attention' : null
}

/** Values in dollars from which a trade and a movement are printed bold, and below which a line is soft. */
const [HEAVY_TRADE_USD, HEAVY_USD, LIGHT_USD] = [1_000, 10_000, 1]

/** The value of a line in dollars, with the currency of a trade taken as one; null of a line that has none. */
export const dollarsOf = ({ content }: TapeLine): number | null =>
  'reference_value' in content ? Number(content.type === 'trade' ? content.currency_amount : content.reference_value) : null

/** How much ink a line has, whatever its stage: trades lead, and what is worth nothing is soft. */
export function weightOf(line: TapeLine): 'heavy' | 'light' | 'unknown' | null {
  const { content } = line
  const dollars = dollarsOf(line)
  if (dollars === null) return null
  const isTrade = content.type === 'trade'
  if (!isTrade && 'reference_value' in content && content.reference_value === null && content.raw !== '0') return 'unknown'
  if (dollars >= (isTrade ? HEAVY_TRADE_USD : HEAVY_USD)) return 'heavy'
  return dollars < LIGHT_USD ? 'light' : null
}

/** Describes a line in one sentence, for screen readers. It has no addresses, which cannot be followed by ear. */
export function lineSentence(line: TapeLine, head: Head | null): string {
  const { content } = line
  const { symbol, type, figure, value, detail } = lineText(line)
  const stage = stageOf(line, head)
  const what =
    'raw' in content && content.amount !== null && figure !== ''
      ? `${type} of ${figure} tokens`
      : [type, figure].filter(Boolean).join(' ')
  const worth = value.replace('≈ $', 'about $')
  const more = content.type === 'trade' ? tradeWords(content) : 'raw' in content ? '' : detail.replace('→', 'to')
  const isOver = stage === null ? '' : stageWords[stage]
  return [symbol === '*' ? what : `${symbol} ${what}`, worth, more, isOver, lineRemark(line)].filter(Boolean).join(', ')
}

function tradeWords({ price, basis_bps, basis }: Extract<TapeLine['content'], { type: 'trade' }>): string {
  const at = price === null ? '' : `at ${formatDecimal(price, 2)}`
  if (basis_bps === null || basis === null) return at
  const side = Number(basis_bps) > 0 ? 'over' : Number(basis_bps) < 0 ? 'under' : 'at'
  return `${at}, ${formatDecimal(basis_bps.replace('-', ''), 1, false)} basis points ${side} ${basis === 'drift' ? 'a held NAV' : 'the NAV'}`
}
