import type { Bar, ReferenceValue, Update } from '../../sdk/client/index.ts'
import { csvOf } from '../shared/csv.ts'
import { formatPrice } from '../shared/number-text.ts'
import { navStateOf } from '../shared/state-words.ts'
import { sharesText } from '../shared/stock-texts.ts'

/** A NAV from this time on, in seconds. */
type NavPoint = { readonly time: number; readonly value: number; readonly isHeld: boolean }
/** The words of a mark, and fewer of them for the chart. */
type EventMark = { readonly time: number; readonly text: string; readonly short: string }
/** A stretch of time with a reason not to take a price at its face, in seconds. */
export type Shade = 'held' | 'closed'

const secondsOf = (time: string): number => Date.parse(time) / 1_000

const isHeld = (nav: ReferenceValue): boolean => ['stale', 'frozen'].includes(navStateOf(nav))

/** The NAV of each step of the chart: of the bars, and where the tape still has them of the messages, and of now. */
export function navPoints(
  bars: readonly Pick<Bar, 'start' | 'nav'>[],
  readings: readonly Update[],
  now: { readonly nav: ReferenceValue; readonly seconds: number },
  step: number,
): readonly NavPoint[] {
  const points = new Map<number, NavPoint>()
  const add = (seconds: number, nav: ReferenceValue) => {
    if (nav.price === null) return
    const time = Math.floor(seconds / step) * step
    points.set(time, { time, value: Number(nav.price), isHeld: isHeld(nav) })
  }
  for (const { start, nav } of bars) add(secondsOf(start), nav)
  for (const update of readings) if (update.type === 'nav') add(secondsOf(update.time), update.nav)
  add(now.seconds, now.nav)
  return [...points.values()].sort((a, b) => a.time - b.time)
}

/** The steps of the chart in which the NAV is held, or the market closed. */
export function shadesOf(
  times: readonly number[],
  navs: readonly NavPoint[],
  events: readonly Update[],
): ReadonlyMap<number, Shade> {
  const sessions = events.flatMap((update) =>
    update.type === 'session' ? [{ time: secondsOf(update.started_at ?? update.time), isOn: update.state === 'closed' }] : [],
  )
  const held = navs.map(({ time, isHeld: isOn }) => ({ time, isOn }))
  const isOnAt = (changes: readonly { readonly time: number; readonly isOn: boolean }[]) => {
    let next = 0
    return (time: number) => {
      while ((changes[next]?.time ?? Number.POSITIVE_INFINITY) <= time) next += 1
      return changes[next - 1]?.isOn ?? false
    }
  }
  const [isNavHeld, isClosed] = [isOnAt(held), isOnAt(sessions)]
  return new Map(
    times.flatMap((time): readonly (readonly [number, Shade])[] => {
      const [navIsHeld, marketIsClosed] = [isNavHeld(time), isClosed(time)]
      return navIsHeld ? [[time, 'held']] : marketIsClosed ? [[time, 'closed']] : []
    }),
  )
}

/** Corporate actions and pauses, at the steps in which they were. */
export function marksOf(events: readonly Update[], step: number): readonly EventMark[] {
  const texts = new Map<number, string[]>()
  for (const update of events) {
    const text = markText(update)
    const time = Math.floor(secondsOf(update.time) / step) * step
    if (text !== null) texts.set(time, [...(texts.get(time) ?? []), text])
  }
  // Several in one step have one mark, with the words of a split if there is one.
  return [...texts].map(([time, all]) => {
    const first = all.find((text) => text.endsWith(PER_TOKEN)) ?? all[0] ?? ''
    const others = all.length - 1
    if (others === 0) return { time, text: first, short: first.replace(/ shares?/, '') }
    return { time, text: `${first} · ${others} more ${others === 1 ? 'action' : 'actions'}`, short: `${all.length} actions` }
  })
}

/** All steps between two times, so that equal times are equally wide; the newest ones up to a limit. */
export const stepsOf = (first: number, last: number, step: number, bound: number): readonly number[] =>
  Array.from({ length: Math.min(bound, Math.floor((last - first) / step) + 1) }, (_, index) => last - index * step).toReversed()

const PER_TOKEN = ' per token'

function markText(update: Update): string | null {
  if (update.type === 'multiplier') return update.phase === 'effective' && update.previous !== null ? sharesText(update) : null
  if (update.type === 'pause') return update.change
  return update.type === 'action' ? 'announcement' : null
}

export const hasBasis = (bars: readonly Pick<Bar, 'basis_bps'>[]): boolean => bars.some(({ basis_bps }) => basis_bps !== null)

/** Names the part of the premium. */
export function premiumTitle(bars: readonly Pick<Bar, 'basis' | 'close'>[]): string {
  const kinds = new Set(bars.map(({ basis }) => basis))
  if (kinds.has('premium')) return 'Last trade against NAV, bps'
  if (kinds.has('drift')) return 'Last trade against held NAV, bps'
  return bars.some(({ close }) => close !== null) ? 'No NAV for these candles' : 'No premium: no trades'
}

/** From when on trades have a NAV, in seconds, if some since this time have none before. */
export function navSinceOf(bars: readonly Pick<Bar, 'start' | 'basis' | 'close'>[], since: number): number | null {
  const traded = bars.filter(({ start, close }) => close !== null && secondsOf(start) >= since)
  const first = traded.findIndex(({ basis }) => basis !== null)
  return first > 0 ? secondsOf(traded[first]?.start ?? '') : null
}

/** A sentence for readers who see no chart. */
export function chartSentence(bars: readonly Pick<Bar, 'high' | 'low' | 'close'>[], navs: readonly NavPoint[]): string {
  const words = (values: readonly number[], newest: string | null | undefined) =>
    values.length === 0 || newest == null
      ? 'not known'
      : `${formatPrice(newest)}, between ${Math.min(...values).toFixed(2)} and ${Math.max(...values).toFixed(2)}`
  const prices = bars.flatMap(({ high, low }) => (high === null || low === null ? [] : [Number(high), Number(low)]))
  const price = words(prices, bars.findLast(({ close }) => close !== null)?.close)
  const nav = words(
    navs.map(({ value }) => value),
    navs.at(-1)?.value.toString(),
  )
  return `Chart. Last trade ${price}; NAV ${nav}.`
}

/** The bars of the shown range as CSV, with the columns that the relay's own has. */
export function barsCsv(bars: readonly Bar[], seconds: number | null): string {
  const last = bars.at(-1)
  if (!last) return ''
  const from = seconds === null ? 0 : secondsOf(last.end) - seconds
  const columns = (Object.keys(last) as (keyof Bar)[]).filter((name) => !['nav', 'venues', 'blocks'].includes(name))
  const shown = bars.filter(({ end }) => secondsOf(end) > from)
  return csvOf(
    columns,
    shown.map((bar) => columns.map((name) => bar[name] as string | number | null)),
  )
}
