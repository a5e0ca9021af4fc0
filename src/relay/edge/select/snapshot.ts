import { isoFromSecondsOrNull } from '../../../lib/iso-time.ts'
import { parseDecimal, sharesOf } from '../../../protocol/decimal.ts'
import type { NoticeOf } from '../../../protocol/notices.ts'
import { navAt } from '../../tokens/nav.ts'
import { featureName } from '../../tokens/pause-history.ts'
import { mainQuote } from '../../tokens/quotes.ts'
import type { Token } from '../../tokens/token.ts'
import { isFollowed, venueFields } from '../../tokens/venue.ts'
import type { CurrentState } from './current-state.ts'

export function snapshotOf(
  token: Token,
  current: Pick<CurrentState, 'quotesOf' | 'lastTradeOf' | 'venuesOf' | 'marketSession' | 'warnings'>,
  context: { id: string | null; asOf: string; now: number; navStaleAfterMs: number },
): NoticeOf<'snapshot'> {
  return {
    type: 'snapshot',
    id: context.id,
    symbol: token.symbol,
    address: token.address,
    as_of: context.asOf,
    token: token.record,
    token_warnings: [...current.warnings.of(token)],
    multiplier: token.multiplier,
    multiplier_source: token.multiplierSource,
    scheduled: token.scheduled && {
      multiplier: token.scheduled.to,
      effective_at: isoFromSecondsOrNull(token.scheduled.effectiveAt),
    },
    paused: token.paused.map(featureName),
    supply: supplyOf(token),
    nav: navAt(token.navReading, context.now, context.navStaleAfterMs, token.frozen),
    quote: mainQuote(current.quotesOf(token.address)),
    last_trade: current.lastTradeOf(token.address),
    venues: current.venuesOf(token.address).filter(isFollowed).map(venueFields),
    session: current.marketSession,
  }
}
function supplyOf({ supply, decimals, multiplier }: Token): NoticeOf<'snapshot'>['supply'] {
  const tokens = supply === null ? null : parseDecimal(supply)
  const parsedMultiplier = multiplier === null ? null : parseDecimal(multiplier)
  if (!tokens || !parsedMultiplier || decimals === null) return { tokens: supply, shares: null }
  const raw = (tokens.units * 10n ** BigInt(decimals)) / 10n ** BigInt(tokens.scale)
  return { tokens: supply, shares: sharesOf(raw, parsedMultiplier, decimals) }
}
