import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { type Bar, type BarInterval, premium, type StockState, type Update } from '../../sdk/client/index.ts'
import { barIntervals } from '../../sdk/generated/bar-intervals.ts'
import type { BoardFeed } from '../feed/board-feed.ts'
import { CsvButton } from '../shared/csv-button.tsx'
import { formatBps, formatMoney, formatPrice, UNKNOWN } from '../shared/number-text.ts'
import { isPhone } from '../shared/page-settings.ts'
import { newsBpsOf } from '../shared/stock-texts.ts'
import { formatMoment } from '../shared/time-text.ts'
import { CandleDrawing, type ChartData, timeOf } from './candle-drawing.ts'
import { barsCsv, chartSentence, hasBasis, marksOf, navPoints, type Shade, shadesOf, stepsOf } from './chart-data.ts'

export type ChartProps = {
  readonly stock: StockState
  readonly feed: BoardFeed
  /** The NAVs of the tape, and the events, oldest first. */
  readonly readings: readonly Update[]
  readonly events: readonly Update[]
  readonly nowMs: number
}
type Pointed = { readonly bar: Bar | undefined; readonly time: number }

/** Limit on the bars of one chart. A longer interval shows an older time. */
const BARS_BOUND = 2_000
/** Least interval between two drawings, because each takes milliseconds. */
const REDRAW_MS = 250

const intervals = ['1m', '5m', '15m', '1h', '1d'] as const satisfies readonly BarInterval[]
type CandleLength = (typeof intervals)[number]
/** Lengths of time that the chart shows, in seconds, and the bars that suit them. */
const ranges = {
  '15m': { seconds: 900, interval: '1m' },
  '1h': { seconds: 3_600, interval: '1m' },
  '6h': { seconds: 21_600, interval: '5m' },
  '24h': { seconds: 86_400, interval: '15m' },
  All: { seconds: null, interval: '1h' },
} as const satisfies Readonly<Record<string, { readonly seconds: number | null; readonly interval: CandleLength }>>
type Range = keyof typeof ranges
const rangeNames = Object.keys(ranges) as readonly Range[]
/** The pools whose trades make the candles: all of them, or the one of the price. */
const poolNames = ['all pools', 'deepest pool'] as const
type Choice = { readonly interval: CandleLength; readonly range: Range; readonly pools: (typeof poolNames)[number] }
/** The last choice of the reader, for the next symbol. */
let chosen: Choice | null = null
/** A phone has no room for as many candles. */
const firstChoice = (): Choice => ({ interval: isPhone() ? '15m' : '5m', range: '6h', pools: 'deepest pool' })

/** Candles of the trades with the NAV over them; below, the volume and how far the price is from the NAV. */
export function CandleChart(props: ChartProps) {
  const [choice, setShown] = useState(chosen ?? firstChoice)
  const show = (next: Partial<Choice>) => {
    chosen = { ...choice, ...next }
    setShown(chosen)
  }
  const { interval, range } = choice
  const { stock, feed, readings, events, nowMs } = props
  const step = barIntervals[interval]
  const isLive = feed.state?.phase === 'live'
  const deepest = stock.quote?.venue.pool ?? null
  const pools = deepest === null ? 'all pools' : choice.pools
  const { bars, failure } = useBars(feed, stock.address, { interval, pool: pools === 'all pools' ? null : deepest }, isLive)
  const navs = navPoints(bars, readings, { nav: stock.nav, seconds: nowMs / 1_000 }, step)
  const bps = premium(stock)?.bps
  const known = [...bars.map(timeOf), ...navs.map(({ time }) => time)]
  const times = known.length === 0 ? [] : stepsOf(Math.min(...known), Math.max(...known), step, BARS_BOUND)
  const data = {
    bars,
    navs,
    times,
    shades: shadesOf(times, navs, events),
    marks: marksOf(events, step),
    newsBps: newsBpsOf(stock),
    price: stock.quote?.price ?? null,
    premiumBps: bps === undefined ? null : Number(bps),
  }
  return (
    <section class="chart-panel" aria-label="Price, NAV, volume and premium">
      <div class="chart-head">
        <Choices
          label="Range"
          all={rangeNames}
          chosen={range}
          choose={(name) => show({ range: name, interval: ranges[name].interval })}
        />
        <Choices label="Candle" all={intervals} chosen={interval} choose={(name) => show({ interval: name })} />
        {deepest !== null && <Choices label="Trades of" all={poolNames} chosen={pools} choose={(name) => show({ pools: name })} />}
        <CsvButton
          label="Save these candles as CSV"
          name={`stocktape-${stock.symbol}-${interval}`}
          text={() => barsCsv(bars, ranges[range].seconds)}
        />
      </div>
      {failure !== null && isLive && <p class="attention">The bars could not be read: {failure}</p>}
      {times.length === 0 ? (
        <p class="chart empty">No readings yet: the line begins with the next one.</p>
      ) : (
        <DrawnChart key={interval} {...{ data, range, pools, nowMs }} />
      )}
    </section>
  )
}

type ChoicesProps<Name extends string> = {
  readonly label: string
  readonly all: readonly Name[]
  readonly chosen: Name
  readonly choose: (name: Name) => void
}

const Choices = <Name extends string>({ label, all, chosen, choose }: ChoicesProps<Name>) => (
  <>
    <fieldset class="tabs" aria-label={label}>
      <small class="faint">{label}</small>
      {all.map((name) => (
        <button type="button" key={name} aria-pressed={name === chosen} onClick={() => choose(name)}>
          {name}
        </button>
      ))}
    </fieldset>
    <label class="narrow-choice">
      <span class="unseen">{label}</span>
      <select value={chosen} onChange={({ currentTarget: { value } }) => choose(all.find((name) => name === value) ?? chosen)}>
        {all.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  </>
)

/** Reads the newest bars of a stock, and follows them. */
function useBars(
  feed: BoardFeed,
  address: string,
  { interval, pool }: { readonly interval: CandleLength; readonly pool: string | null },
  isLive: boolean,
) {
  const [read, setRead] = useState<{ readonly bars: readonly Bar[]; readonly failure: string | null }>({ bars: [], failure: null })
  const [attempt, setAttempt] = useState(0)
  useEffect(() => {
    if (isLive && read.failure !== null) setAttempt(attempt + 1)
  }, [isLive])
  useEffect(() => {
    const abort = new AbortController()
    const byStart = new Map<string, Bar>()
    let timer: ReturnType<typeof setTimeout> | undefined
    const draw = () => {
      timer = undefined
      const bars = [...byStart.values()].sort((a, b) => timeOf(a) - timeOf(b)).slice(-BARS_BOUND)
      byStart.clear()
      for (const bar of bars) byStart.set(bar.start, bar)
      setRead({ bars, failure: null })
    }
    const follow = async () => {
      const options = { interval, limit: BARS_BOUND, signal: abort.signal, ...(pool !== null && { pools: pool }) }
      for await (const bar of feed.client.bars(address, options)) {
        byStart.set(bar.start, bar)
        timer ??= setTimeout(draw, REDRAW_MS)
      }
    }
    setRead({ bars: [], failure: null })
    follow().catch((failure: unknown) => {
      if (!abort.signal.aborted)
        setRead((now) => ({ ...now, failure: failure instanceof Error ? failure.message : String(failure) }))
    })
    return () => {
      abort.abort()
      clearTimeout(timer)
    }
  }, [feed, address, interval, pool, attempt])
  return read
}

type DrawnProps = { readonly data: ChartData; readonly nowMs: number } & Pick<Choice, 'range' | 'pools'>

function DrawnChart({ data, range, pools, nowMs }: DrawnProps) {
  const box = useRef<HTMLDivElement>(null)
  const chart = useRef<CandleDrawing | null>(null)
  const latest = useRef(data)
  const [pointed, setPointed] = useState<Pointed | null>(null)
  latest.current = data
  useEffect(() => {
    if (!box.current) return
    const drawing = new CandleDrawing(box.current, (time) =>
      setPointed(time === null ? null : { time, bar: latest.current.bars.find((bar) => timeOf(bar) === time) }),
    )
    chart.current = drawing
    drawing.draw(latest.current)
    let drawn = latest.current
    const timer = setInterval(() => {
      if (drawn !== latest.current) drawing.draw(latest.current)
      drawn = latest.current
    }, REDRAW_MS)
    return () => {
      clearInterval(timer)
      drawing.close()
    }
  }, [])
  // New bars are drawn with the words about them.
  useLayoutEffect(() => chart.current?.draw(latest.current), [data.bars])
  useEffect(() => chart.current?.show(ranges[range].seconds), [range])
  const last = data.bars.at(-1)
  const shown = pointed ?? (last ? { bar: last, time: timeOf(last) } : null)
  return (
    <>
      <p class={`cursor-text figure ${pointed ? '' : 'idle'}`}>
        {shown && !pointed && <span class="wide-word">Last candle, {pools}</span>}
        {shown &&
          pointedParts(shown, data, nowMs).map(([name, value]) => (
            <span key={name}>
              {name} <b>{value}</b>
            </span>
          ))}
      </p>
      <div
        class="chart"
        ref={box}
        role="img"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys move and zoom it
        tabIndex={0}
        aria-label={chartSentence(data.bars, data.navs)}
        onKeyDown={(event) => chart.current?.press(event)}
      />
      <Legend {...{ data, range, pools }} />
    </>
  )
}

function Legend({ data: { bars, navs, shades, marks, times, premiumBps }, range, pools }: Omit<DrawnProps, 'nowMs'>) {
  const { seconds } = ranges[range]
  const shown = marks.filter(({ time }) => seconds === null || time > (times.at(-1) ?? 0) - seconds)
  const nav = navs.at(-1)
  return (
    <p class="legend">
      {nav && <span class={`legend-nav ${nav.isHeld ? 'legend-soft' : ''}`}>NAV</span>}
      {[...new Set(shades.values())].map((shade) => (
        <span key={shade} class={`legend-${shade}`}>
          {shadeNames[shade]}
        </span>
      ))}
      {shown[0] && <span class="legend-mark">{shown.length === 1 ? shown[0].text : 'corporate actions'}</span>}
      {premiumBps !== null && hasBasis(bars) && <span class="legend-now">now: deepest pool</span>}
      {pools === 'all pools' && <span>candles: {pools}</span>}
      <span class="wide-word">Ctrl + wheel zooms</span>
      <a href="https://www.tradingview.com/">Charts by TradingView</a>
    </p>
  )
}

const shadeNames: Readonly<Record<Shade, string>> = { held: 'NAV held', closed: 'market closed' }

/** The names and values of a step of the chart. */
function pointedParts(
  { bar, time }: Pointed,
  { navs }: ChartData,
  nowMs: number,
): readonly (readonly [name: string, value: string])[] {
  const nav = navs.findLast((point) => point.time <= time)
  const at = ['', formatMoment(new Date(time * 1_000).toISOString(), nowMs)] as const
  const navPart = [nav?.isHeld ? 'held NAV' : 'NAV', nav ? nav.value.toFixed(2) : UNKNOWN] as const
  if (!bar?.close) return [at, ['no trades', ''], navPart]
  const prices = (['open', 'high', 'low', 'close'] as const).map(
    (name) => [name[0]?.toUpperCase() ?? '', formatPrice(bar[name])] as const,
  )
  const volume = ['Vol', formatMoney(Number(bar.currency_volume))] as const
  const basis =
    bar.basis_bps === null
      ? []
      : ([[bar.basis === 'drift' ? 'last trade, drift' : 'last trade', `${formatBps(bar.basis_bps)} bps`]] as const)
  return [at, ...prices, volume, navPart, ...basis]
}
