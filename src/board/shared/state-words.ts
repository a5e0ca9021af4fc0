import type { Head, QuoteMessage, ReferenceValue, SessionMessage, Source, SourceReason } from '../../sdk/client/index.ts'
import { formatDuration, formatMoment } from './time-text.ts'

export type NavState = ReferenceValue['state'] | 'frozen'

/** A frozen NAV counts as frozen even if it is young. */
export const navStateOf = (nav: ReferenceValue): NavState => (nav.frozen && nav.price !== null ? 'frozen' : nav.state)

type Session = Pick<SessionMessage, 'market' | 'state' | 'ends_at' | 'reason'>

/** Says how far a NAV can be trusted, such as "held since Fri 20:00 · market closed". */
export function navWords(nav: ReferenceValue, session: Session | null, nowMs: number): string {
  switch (navStateOf(nav)) {
    case 'frozen':
      return `frozen${nav.updated_at === null ? '' : ` at ${formatMoment(nav.updated_at, nowMs)}`} · corporate action`
    case 'stale': {
      const since = nav.updated_at === null ? '' : ` since ${formatMoment(nav.updated_at, nowMs)}`
      const isExplained = session !== null && session.state !== 'open' && session.state !== 'unknown'
      return `held${since}${isExplained ? ` · ${sessionWords(session)}` : ` · older than ${formatDuration(nav.stale_after_s * 1_000)}`}`
    }
    default:
      return nav.state
  }
}

const sessionNames: Readonly<Record<Session['state'], string>> = {
  pre: 'before the open',
  open: 'market open',
  post: 'after the close',
  overnight: 'overnight session',
  closed: 'market closed',
  unknown: 'market hours unknown',
}
export const sessionWords = ({ state, reason }: Pick<Session, 'state' | 'reason'>): string =>
  `${sessionNames[state]}${reason === null ? '' : ` (${reason})`}`

const quoteWords: Readonly<Record<QuoteMessage['state'], string>> = {
  ok: '',
  thin: 'thin',
  empty: 'empty pool',
  unreadable: 'unreadable',
}
/** Says why there is no price on the chain; empty if there is one. */
export const quoteStateWords = (quote: Pick<QuoteMessage, 'state'> | null): string => (quote ? quoteWords[quote.state] : 'no pool')

export const venueNames: Readonly<Record<QuoteMessage['venue']['kind'], string>> = {
  uniswap_v3: 'v3',
  uniswap_v4: 'v4',
  slipstream: 'Slipstream',
}
export const venueWords = ({ kind, currency }: QuoteMessage['venue']): string => `${currency.symbol} · ${venueNames[kind]}`

/** Says which NAV a basis is measured against, and that the currency counts as one dollar. */
export const basisWords = (kind: 'premium' | 'drift', venue: QuoteMessage['venue']): string =>
  `${kind === 'drift' ? 'against a held NAV' : 'against a NAV that is not held'}, with ${venue.currency.symbol} taken as 1 USD`

/** How early the lines of a source are. */
export const sourceNames: Readonly<Record<Source, string>> = {
  pendingLogs: 'Before the block',
  poll: 'Before the block, slower',
  sealed: 'With the block',
  down: 'None',
}

export const sourceWords: Readonly<Record<Source, string>> = {
  pendingLogs: 'the node pushes each line before its block',
  poll: 'slower: the relay polls the node',
  sealed: 'only what is in blocks: nothing is pre-confirmed',
  down: 'the chain cannot be read',
}

const reasonWords: Readonly<Record<SourceReason | 'no_list' | 'wrong_chain', string>> = {
  ok: '',
  silent: 'the subscription went silent',
  refused: 'the node refuses the subscription',
  behind: 'the node is behind',
  no_pending: 'the node shows no pending state',
  unreachable: 'no endpoint answers',
  stale_head: 'the chain has stopped',
  no_list: 'the token list was never read',
  wrong_chain: 'every endpoint serves another chain',
}
/** A relay that polls has an endpoint that answers: it lacks one that pushes. */
export const reasonSentence = (reason: string, source: Source | undefined): string =>
  source === 'poll' && reason === 'unreachable'
    ? 'no connection for pushes'
    : ((reasonWords as Readonly<Record<string, string>>)[reason] ?? reason)

const typeNames: Readonly<Record<string, string>> = {
  multiplier: 'shares per token',
  token: 'listing',
  action: 'announcement',
  venue: 'pool',
  hole: 'gap',
}
/** The name of a type of message on the page. */
export const typeName = (type: string): string => typeNames[type] ?? type

export type LineStage = 'preconfirmed' | 'sealed' | 'safe' | 'finalized' | 'retracted'

/** Returns the stage of a sealed block: the heads say up to which block the chain is safe and finalized. */
export function stageByHead(block: number, { safe, finalized }: Pick<Head, 'safe' | 'finalized'>): LineStage {
  if (finalized !== null && block <= finalized) return 'finalized'
  return safe !== null && block <= safe ? 'safe' : 'sealed'
}

export const stageWords: Readonly<Record<LineStage, string>> = {
  preconfirmed: 'pre-confirmed',
  sealed: 'sealed',
  safe: 'safe',
  finalized: 'final',
  retracted: 'retracted',
}
