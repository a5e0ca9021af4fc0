import { barOf, floorTo, foldOf, OpenBars, secondsOf } from '../client/open-bars.ts'
import { barIntervals } from '../generated/bar-intervals.ts'
import type { Bar, BarsPage } from '../generated/messages.ts'
import type { ScriptedTape } from './scripted-tape.ts'

const PAGE_SIZE = 500

/**
 * A page of the bars that a test has published, and with `open` of the trades after them. A minute is over when a bar of it or of
 * a later one was published. `since` and `until` are times; a duration stands for the whole tape.
 */
export function barsPageOf(tape: ScriptedTape, symbols: readonly string[], query: URLSearchParams): BarsPage {
  const interval = (query.get('interval') ?? '1m') as BarsPage['interval']
  const pools = query.get('pools')?.toLowerCase().split(',') ?? null
  const hasOpen = query.get('open') === 'true'
  const [since, until] = ['since', 'until'].map((name) => Date.parse(query.get(name) ?? ''))
  const all = symbols
    .flatMap((symbol) => barsOfToken(tape, symbol, barIntervals[interval], pools))
    .filter(
      ({ start, state }) =>
        !(Date.parse(start) < Number(since) || Date.parse(start) >= Number(until)) && (hasOpen || state !== 'open'),
    )
    .sort((a, b) => a.start.localeCompare(b.start))
  const isDesc = query.get('order') === 'desc'
  if (isDesc) all.reverse()
  const bars = all.slice(0, Number(query.get('limit') ?? PAGE_SIZE))
  const next = (isDesc ? bars.at(-1) : all[bars.length])?.start ?? null
  return { as_of: tape.end, interval, bars, next: bars.length < all.length ? next : null }
}

function barsOfToken(tape: ScriptedTape, symbol: string, seconds: number, pools: readonly string[] | null): readonly Bar[] {
  const minutes = tape.barsOf(symbol).filter(({ venues }) => pools === null || venues.every((pool) => pools.includes(pool)))
  const updates = tape.after(tape.oldest).filter((update) => update.symbol === symbol)
  const traded = updates.flatMap((update) => (update.type === 'trade' ? update.venue.pool : []))
  const open = new OpenBars(seconds, pools ?? [...new Set(traded)])
  for (const minute of minutes) open.takeMinute(minute)
  for (const update of updates) open.apply(update)
  const closed = [...Map.groupBy(minutes, ({ start }) => floorTo(secondsOf(start), seconds))].flatMap(([start, inside]): Bar[] => {
    if (start + seconds > open.openFrom) return []
    const staleAfterS = inside[0]?.nav.stale_after_s ?? 0
    return [{ ...barOf(inside.map(foldOf), { symbol, start, seconds, staleAfterS, partial: null }), state: 'closed' }]
  })
  return [...closed, ...open.takeChanges()]
}
