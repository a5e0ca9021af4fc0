import { SourceName } from '../../../protocol/fields.ts'
import type { Metrics, Sample } from '../../metrics.ts'
import { navAt } from '../../tokens/nav.ts'
import { mainQuote } from '../../tokens/quotes.ts'
import type { EdgeContext } from '../live/edge-context.ts'

/** Limit of the tokens with their own series of metrics. The counts by NAV state include all tokens. */
const NAV_SERIES_BOUND = 1_000

/** Connects the gauges of source, chain, tokens and listeners, which are measured whenever the metrics are read. */
export function measureState(metrics: Metrics, context: EdgeContext): void {
  const { hub, current, now } = context
  const ageOf = (time: number) => Math.max(0, now() - time) / 1_000
  metrics.source.measureBy(() => SourceName.options.map((source): Sample => [{ source }, current.source === source ? 1 : 0]))
  metrics.sourceAge.measureBy(() => (current.startedAt === null ? null : ageOf(Date.parse(current.startedAt))))
  metrics.headBlock.measureBy(() =>
    Object.entries(current.head).flatMap(([stage, block]): Sample[] => (block === null ? [] : [[{ stage }, block]])),
  )
  metrics.lag.measureBy(() => current.newestSettled && ageOf(current.newestSettled.timestamp * 1_000))
  metrics.settlingLag.measureBy(() =>
    current.head.sealed === null || !current.newestSettled ? null : Math.max(0, current.head.sealed - current.newestSettled.number),
  )
  metrics.listAge.measureBy(() => (current.listReadAt === null ? null : ageOf(current.listReadAt)))
  measureTokens(metrics, context)
  metrics.audiences.measureBy(() => hub.measure().audiences)
  metrics.unsentBytes.measureBy(() => hub.measure().unsentBytes)
  metrics.replays.measureBy(() => hub.measure().replays)
  metrics.replayBytes.measureBy(() => hub.measure().replayBytes)
}

function measureTokens(metrics: Metrics, { current, now, wallTime, navStaleAfterMs }: EdgeContext): void {
  const navs = () =>
    (current.listed ?? []).map(({ symbol, address, navReading, frozen }) => ({
      ...{ symbol, address, nav: navAt(navReading, wallTime(), navStaleAfterMs, frozen) },
    }))
  const firstNavs = () => navs().slice(0, NAV_SERIES_BOUND)
  metrics.tokens.measureBy(() => {
    const counts = Map.groupBy(navs(), ({ nav }) => nav.state)
    return [...counts].map(([nav_state, ofState]): Sample => [{ nav_state }, ofState.length])
  })
  metrics.navAge.measureBy(() =>
    firstNavs().flatMap(({ symbol, nav }): Sample[] => (nav.age_s === null ? [] : [[{ symbol }, nav.age_s]])),
  )
  metrics.navState.measureBy(() => firstNavs().map(({ symbol, nav }): Sample => [{ symbol, state: nav.state }, 1]))
  metrics.quoteAge.measureBy(() =>
    firstNavs().flatMap(({ symbol, address }): Sample[] => {
      const timestamp = mainQuote(current.quotesOf(address))?.block.timestamp
      return timestamp ? [[{ symbol }, Math.max(0, now() - Date.parse(timestamp)) / 1_000]] : []
    }),
  )
}
