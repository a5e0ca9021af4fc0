import { sessionFields } from '../../../protocol/fields.ts'
import { type Metrics, type Sample, TOKEN_SERIES_BOUND } from '../../metrics.ts'
import { navAt } from '../../tokens/nav.ts'
import { featureName } from '../../tokens/pause-history.ts'
import { mainQuote, type QuoteFields } from '../../tokens/quotes.ts'
import type { EdgeContext } from '../live/edge-context.ts'

type Read<From> = (from: From) => number | string | null | undefined

/** Connects the gauges of tokens, pools and market. Each process shows its own view, of the first tokens of the list. */
export function measureMarket(metrics: Metrics, { current, now, wallTime, navStaleAfterMs }: EdgeContext): void {
  const all = metrics.oncePerReading(() =>
    (current.listed ?? []).map((token) => ({ token, nav: navAt(token.navReading, wallTime(), navStaleAfterMs, token.frozen) })),
  )
  const shown = metrics.oncePerReading(() =>
    all()
      .slice(0, TOKEN_SERIES_BOUND)
      .map((row) => ({ ...row, symbol: row.token.symbol, quotes: current.quotesOf(row.token.address) })),
  )
  type Row = ReturnType<typeof shown>[number]
  const perToken = (read: Read<Row>) => () => shown().flatMap((row) => sampleOf({ symbol: row.symbol }, read(row)))
  const perPool =
    (read: Read<QuoteFields>, labelsOf: (quote: QuoteFields) => Sample[0] = () => ({})) =>
    () =>
      shown().flatMap(({ symbol, quotes }) =>
        quotes.flatMap((quote) => sampleOf({ symbol, ...poolLabels(quote), ...labelsOf(quote) }, read(quote))),
      )
  metrics.tokens.measureBy(() => {
    const counts = Map.groupBy(all(), ({ nav }) => nav.state)
    return [...counts].map(([nav_state, ofState]): Sample => [{ nav_state }, ofState.length])
  })
  metrics.navPrice.measureBy(perToken(({ nav }) => nav.price))
  metrics.navAge.measureBy(perToken(({ nav }) => nav.age_s))
  metrics.navState.measureBy(() => shown().map(({ symbol, nav }): Sample => [{ symbol, state: nav.state }, 1]))
  metrics.navFrozen.measureBy(perToken(({ nav }) => (nav.frozen === null ? null : Number(nav.frozen))))
  metrics.quoteAge.measureBy(
    perToken(({ quotes }) => {
      const timestamp = mainQuote(quotes)?.block.timestamp
      return timestamp && Math.max(0, now() - Date.parse(timestamp)) / 1_000
    }),
  )
  metrics.poolPrice.measureBy(perPool(({ price }) => price))
  metrics.poolDepth.measureBy(perPool(({ depth }) => depth))
  metrics.poolBasis.measureBy(
    perPool(
      ({ basis_bps }) => basis_bps,
      ({ basis }) => ({ basis: basis ?? '' }),
    ),
  )
  metrics.supply.measureBy(perToken(({ token }) => token.supply))
  metrics.multiplier.measureBy(perToken(({ token }) => token.multiplier))
  metrics.multiplierNext.measureBy(perToken(({ token }) => token.scheduled?.to))
  metrics.multiplierNextTime.measureBy(perToken(({ token }) => token.scheduled?.effectiveAt))
  metrics.paused.measureBy(() =>
    shown().flatMap(({ symbol, token }) => token.paused.map((id): Sample => [{ symbol, feature: featureName(id) }, 1])),
  )
  metrics.marketSession.measureBy(() => {
    const { market, state: now = null } = current.marketSession ?? {}
    return market === undefined
      ? []
      : sessionFields.state.options.map((state): Sample => [{ market, state }, Number(state === now)])
  })
  metrics.calendarEnd.measureBy(() => {
    const { marketSession: session } = current
    return session ? [[{ market: session.market }, Date.parse(session.valid_to) / 1_000]] : []
  })
}

const poolLabels = ({ venue: { kind, pool, currency } }: QuoteFields): Sample[0] => ({
  ...{ venue: kind, pool, currency: currency.symbol },
})

/** Returns no sample for a value that is unknown. */
function sampleOf(labels: Sample[0], value: ReturnType<Read<never>>): readonly Sample[] {
  return value === null || value === undefined || value === '' ? [] : [[labels, Number(value)]]
}
