import { useEffect, useState } from 'preact/hooks'
import type { StockState, Update } from '../../sdk/client/index.ts'
import type { ChartStretch } from '../chart/price-chart.tsx'
import { type PricePoint, PriceSeries, type Prices } from '../chart/price-series.ts'
import { navStateOf } from '../shared/state-words.ts'
import type { BoardFeed } from './board-feed.ts'

/** Limit on the NAVs and quotes that are read for one symbol; EVENTS_BOUND is the limit on other messages. */
const READINGS_BOUND = 3_000
const EVENTS_BOUND = 200

type SymbolHistory = { readonly readings: readonly Update[]; readonly events: readonly Update[] }

/** Returns the messages of a symbol on the tape, oldest first. Reads them again when the state of the symbol changes. */
export function useHistory({ address, multiplier, scheduled, paused, nav, session }: StockState, feed: BoardFeed): SymbolHistory {
  const [history, setHistory] = useState<SymbolHistory>({ readings: [], events: [] })
  const state = JSON.stringify([multiplier, scheduled, paused, navStateOf(nav), session?.state])
  useEffect(() => {
    const abort = new AbortController()
    const read = async (types: readonly Update['type'][], limit: number) => {
      const newestFirst = feed.client.history(address, { types, limit, order: 'desc', signal: abort.signal })
      return (await Array.fromAsync(newestFirst)).reverse()
    }
    const load = async () => {
      const events = await read(['multiplier', 'pause', 'action', 'session'], EVENTS_BOUND)
      setHistory((now) => ({ ...now, events }))
      const readings = await read(['nav', 'quote'], READINGS_BOUND)
      setHistory((now) => ({ ...now, readings }))
    }
    load().catch(() => {})
    return () => abort.abort()
  }, [address, feed, state])
  return history
}

export function pointsOf(readings: readonly Update[], feed: BoardFeed, stock: StockState): Prices {
  const series = new PriceSeries()
  for (const update of readings) series.apply(update)
  const [read, live] = [series.of(stock), feed.prices.of(stock)]
  const after = (points: readonly PricePoint[], known: readonly PricePoint[]) => {
    const last = known.at(-1)?.atMs ?? 0
    return [...known, ...points.filter(({ atMs }) => atMs > last)]
  }
  return { nav: after(live.nav, read.nav), quote: after(live.quote, read.quote) }
}

export function stretchesOf(readings: readonly Update[], events: readonly Update[], nowMs: number): ChartStretch[] {
  const sessions = events.flatMap((update) =>
    update.type === 'session' ? [{ atMs: Date.parse(update.started_at ?? update.time), isOn: update.state === 'closed' }] : [],
  )
  const navs = readings.flatMap((update) =>
    update.type === 'nav' ? [{ atMs: Date.parse(update.time), isOn: ['stale', 'frozen'].includes(navStateOf(update.nav)) }] : [],
  )
  return [...spansOf(sessions, 'closed', nowMs), ...spansOf(navs, 'held', nowMs)]
}

type Change = { readonly atMs: number; readonly isOn: boolean }

const spansOf = (changes: readonly Change[], kind: ChartStretch['kind'], nowMs: number): ChartStretch[] =>
  changes.flatMap(({ atMs, isOn }, index) => (isOn ? [{ kind, fromMs: atMs, untilMs: changes[index + 1]?.atMs ?? nowMs }] : []))

export const marksOf = (events: readonly Update[]): number[] =>
  events.flatMap((update) =>
    update.type === 'pause' || (update.type === 'multiplier' && update.phase === 'effective') ? [Date.parse(update.time)] : [],
  )
