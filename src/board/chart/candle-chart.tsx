import {
  AreaSeries,
  type AutoscaleInfo,
  CandlestickSeries,
  CrosshairMode,
  createChart,
  createSeriesMarkers,
  createTextWatermark,
  HistogramSeries,
  type IChartApi,
  type ISeriesMarkersPluginApi,
  LineSeries,
  LineStyle,
  LineType,
  TickMarkType,
  type Time,
  type UTCTimestamp,
} from 'lightweight-charts'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Bar, BarInterval, StockState, Update } from '../../sdk/client/index.ts'
import { barIntervals } from '../../sdk/generated/bar-intervals.ts'
import type { BoardFeed } from '../feed/board-feed.ts'
import { CsvButton } from '../shared/csv-button.tsx'
import { formatBps, formatMoney, formatPrice, UNKNOWN } from '../shared/number-text.ts'
import { newsBpsOf } from '../shared/stock-texts.ts'
import { formatClock, formatMoment } from '../shared/time-text.ts'
import { barsCsv, chartSentence, marksOf, navPoints, premiumTitle, type Shade, shadesOf, stepsOf } from './chart-data.ts'

export type ChartProps = {
  readonly stock: StockState
  readonly feed: BoardFeed
  /** The NAVs of the tape, and the events, oldest first. */
  readonly readings: readonly Update[]
  readonly events: readonly Update[]
  readonly nowMs: number
}
type ChartData = {
  readonly bars: readonly Bar[]
  readonly navs: ReturnType<typeof navPoints>
  /** All steps of the chart, so that equal times are equally wide. */
  readonly times: readonly number[]
  readonly shades: ReturnType<typeof shadesOf>
  readonly marks: ReturnType<typeof marksOf>
  /** Basis points from which a premium has a colour. */
  readonly newsBps: number
}
type Pointed = { readonly bar: Bar | undefined; readonly time: number }

/** Limit on the bars of one chart. A longer interval shows an older time. */
const BARS_BOUND = 2_000
/** Least interval between two drawings, because each takes milliseconds. */
const REDRAW_MS = 250
const FONT_PX = 12
/** A low part of the chart has labels as near to each other as this many of their heights. */
const TICK_DENSITY = 1.4
/** Heights of the prices, the premium and the volume. */
const HEIGHTS = [6, 2.1, 1.5]

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
/** The last choice of the reader, for the next symbol. */
let chosen: { readonly interval: CandleLength; readonly range: Range } | null = null
/** A phone has no room for as many candles. */
const firstChoice = () => ({ interval: matchMedia('(max-width: 719px)').matches ? '15m' : '5m', range: '6h' }) as const

/** Candles of the trades with the NAV over them; below, the volume and how far the price is from the NAV. */
export function CandleChart(props: ChartProps) {
  const [{ interval, range }, setShown] = useState(chosen ?? firstChoice)
  const show = (next: NonNullable<typeof chosen>) => {
    chosen = next
    setShown(next)
  }
  const { stock, feed, readings, events, nowMs } = props
  const step = barIntervals[interval]
  const isLive = feed.state?.phase === 'live'
  const { bars, failure } = useBars(feed, stock.address, interval, isLive)
  const navs = navPoints(bars, readings, { nav: stock.nav, seconds: nowMs / 1_000 }, step)
  const known = [...bars.map(timeOf), ...navs.map(({ time }) => time)]
  const times = known.length === 0 ? [] : stepsOf(Math.min(...known), Math.max(...known), step, BARS_BOUND)
  const data = { bars, navs, times, shades: shadesOf(times, navs, events), marks: marksOf(events, step), newsBps: newsBpsOf(stock) }
  return (
    <section class="chart-panel" aria-label="Price, NAV, volume and premium">
      <div class="chart-head">
        <Choices
          label="Range"
          all={rangeNames}
          chosen={range}
          choose={(name) => show({ range: name, interval: ranges[name].interval })}
        />
        <Choices label="Candle" all={intervals} chosen={interval} choose={(name) => show({ range, interval: name })} />
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
        <DrawnChart key={interval} data={data} range={range} nowMs={nowMs} />
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
  <fieldset class="tabs" aria-label={label}>
    <small class="faint">{label}</small>
    {all.map((name) => (
      <button type="button" key={name} aria-pressed={name === chosen} onClick={() => choose(name)}>
        {name}
      </button>
    ))}
  </fieldset>
)

/** Reads the newest bars of a stock, and follows them. */
function useBars(feed: BoardFeed, address: string, interval: CandleLength, isLive: boolean) {
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
      for await (const bar of feed.client.bars(address, { interval, limit: BARS_BOUND, signal: abort.signal })) {
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
  }, [feed, address, interval, attempt])
  return read
}

type DrawnProps = { readonly data: ChartData; readonly range: Range; readonly nowMs: number }

function DrawnChart({ data, range, nowMs }: DrawnProps) {
  const box = useRef<HTMLDivElement>(null)
  const chart = useRef<Drawing | null>(null)
  const latest = useRef(data)
  const [pointed, setPointed] = useState<Pointed | null>(null)
  latest.current = data
  useEffect(() => {
    if (!box.current) return
    const drawing = new Drawing(box.current, (time) =>
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
  useEffect(() => chart.current?.show(ranges[range].seconds), [range])
  const last = data.bars.at(-1)
  const shown = pointed ?? (last ? { bar: last, time: timeOf(last) } : null)
  return (
    <>
      <p class="cursor-text figure">{shown && `${pointed ? '' : 'Last candle  '}${pointedText(shown, data, nowMs)}`}</p>
      <div
        class="chart"
        ref={box}
        role="img"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys move and zoom it
        tabIndex={0}
        aria-label={chartSentence(data.bars, data.navs)}
        onKeyDown={(event) => chart.current?.press(event)}
      />
      <p class="legend">
        <span class="legend-nav">NAV</span>
        {[...new Set(data.shades.values())].map((shade) => (
          <span key={shade} class={`legend-${shade}`}>
            {shadeNames[shade]}
          </span>
        ))}
        <span>candles: trades of all pools</span>
        <span class="wide-word">Ctrl + wheel zooms</span>
        <a href="https://www.tradingview.com/">Charts by TradingView</a>
      </p>
    </>
  )
}

const shadeNames: Readonly<Record<Shade, string>> = { held: 'NAV held', closed: 'market closed' }

function pointedText({ bar, time }: Pointed, { navs }: ChartData, nowMs: number): string {
  const nav = navs.findLast((point) => point.time <= time)
  const navText = `NAV ${nav ? nav.value.toFixed(2) : UNKNOWN}${nav?.isHeld ? ' held' : ''}`
  const at = formatMoment(new Date(time * 1_000).toISOString(), nowMs)
  if (!bar?.close) return `${at}  no trades  ${navText}`
  const prices = (['open', 'high', 'low', 'close'] as const).map((name) => `${name[0]?.toUpperCase()} ${formatPrice(bar[name])}`)
  const premium =
    bar.basis_bps === null
      ? ''
      : `  last trade ${formatBps(bar.basis_bps)} bps from ${bar.basis === 'drift' ? 'a held NAV' : 'the NAV'}`
  return `${at}  ${prices.join(' ')}  Vol ${formatMoney(Number(bar.currency_volume))}  ${navText}${premium}`
}

const timeOf = ({ start }: Pick<Bar, 'start'>): number => Date.parse(start) / 1_000

/** Room for half a label at the edges of the time, and the largest part of the width for it. */
const [LABEL_PX, EDGE_PART] = [24, 0.1]
/** A longer time has labels at full hours; a shorter one every five minutes. */
const LABELLED_S = 3_600
/** How far one press of a key moves and zooms. */
const [MOVED_BARS, ZOOM] = [5, 1.25]

/** The chart itself, which the library draws on a canvas. */
class Drawing {
  readonly #element: HTMLElement
  readonly #chart: IChartApi
  readonly #candles
  readonly #nav
  readonly #shade
  readonly #volume
  readonly #premium
  readonly #marks: ISeriesMarkersPluginApi<Time>
  readonly #titles
  #ink = ''
  /** Seconds that are shown while the reader has not moved or zoomed; if they are null, everything. */
  #followed: { readonly seconds: number | null } | null = null
  #newest = 0
  #count = 0

  constructor(element: HTMLElement, onPoint: (time: number | null) => void) {
    this.#element = element
    const quiet = { priceLineVisible: false, lastValueVisible: false }
    this.#chart = createChart(element, {
      ...{ autoSize: true, layout: { attributionLogo: false } },
      // A finger that moves up or down scrolls the page.
      handleScroll: { vertTouchDrag: false },
    })
    element.addEventListener('wheel', keepForPage, { capture: true, passive: true })
    this.#shade = this.#chart.addSeries(AreaSeries, {
      ...{ ...quiet, priceScaleId: 'shade', lineVisible: false, lineType: LineType.WithSteps, crosshairMarkerVisible: false },
      autoscaleInfoProvider: () => ({ priceRange: { minValue: 0, maxValue: 1 } }),
    })
    this.#shade.priceScale().applyOptions({ scaleMargins: { top: 0, bottom: 0 } })
    // The candles are drawn over the line, whose whole steps would look like hollow ones.
    this.#nav = this.#chart.addSeries(LineSeries, {
      ...{ lineType: LineType.WithSteps, lineStyle: LineStyle.Dotted, lineWidth: 2, title: 'NAV' },
      ...{ priceLineVisible: false, crosshairMarkerVisible: false },
    })
    this.#candles = this.#chart.addSeries(CandlestickSeries, { priceLineVisible: false })
    this.#premium = this.#chart.addSeries(
      HistogramSeries,
      { ...quiet, priceFormat: { type: 'price', precision: 0, minMove: 1 }, autoscaleInfoProvider: withZero },
      1,
    )
    this.#volume = this.#chart.addSeries(
      HistogramSeries,
      { ...quiet, priceFormat: { type: 'custom', minMove: 1, formatter: formatMoney } },
      2,
    )
    for (const series of [this.#volume, this.#premium])
      series.priceScale().applyOptions({ scaleMargins: { top: 0.3, bottom: 0.12 }, tickMarkDensity: TICK_DENSITY })
    this.#marks = createSeriesMarkers(this.#candles, [])
    for (const [index, pane] of this.#chart.panes().entries()) pane.setStretchFactor(HEIGHTS[index] ?? 1)
    this.#titles = this.#chart.panes().map((pane) => createTextWatermark(pane, {}))
    for (const moved of ['pointerdown', 'wheel', 'touchstart'])
      element.addEventListener(moved, () => this.#leave(), { passive: true })
    // The library keeps the width of a candle, and not the range.
    this.#chart.timeScale().subscribeSizeChange(() => this.#followed && this.show(this.#followed.seconds))
    this.#chart.subscribeCrosshairMove(({ time }) => onPoint(typeof time === 'number' ? time : null))
  }

  draw({ bars, navs, times, shades, marks, newsBps }: ChartData): void {
    const colors = this.#paint()
    const at = (time: number) => ({ time: time as UTCTimestamp })
    const first = Number(bars.at(-1)?.close ?? navs.at(-1)?.value ?? 1)
    const [precision, minMove] = first < 1 ? [4, 0.0001] : [2, 0.01]
    for (const series of [this.#candles, this.#nav]) series.applyOptions({ priceFormat: { type: 'price', precision, minMove } })
    this.#candles.setData(
      bars.map((bar) =>
        bar.close === null
          ? at(timeOf(bar))
          : {
              ...at(timeOf(bar)),
              ...{ open: Number(bar.open), high: Number(bar.high), low: Number(bar.low), close: Number(bar.close) },
            },
      ),
    )
    this.#nav.setData(navs.map(({ time, value, isHeld }) => ({ ...at(time), value, color: isHeld ? colors.soft : colors.ink })))
    this.#shade.setData(
      times.map((time) => {
        const shade = shades.get(time)
        const color = shade === 'held' ? colors.held : colors.shade
        return { ...at(time), value: shade === undefined ? 0 : 1, topColor: color, bottomColor: color }
      }),
    )
    this.#volume.setData(
      bars.map((bar) => ({
        ...at(timeOf(bar)),
        value: Number(bar.currency_volume),
        color: isUp(bar) ? colors.faintUp : colors.faintDown,
      })),
    )
    this.#premium.setData(
      bars.flatMap(({ basis_bps, basis, ...bar }) => {
        const value = Number(basis_bps)
        // Against a held NAV it is a drift, which has no side.
        const color =
          basis === 'drift' || shades.has(timeOf(bar)) || Math.abs(value) < newsBps
            ? colors.faint
            : value < 0
              ? colors.faintDown
              : colors.faintUp
        return basis_bps === null ? [] : [{ ...at(timeOf(bar)), value, color }]
      }),
    )
    this.#marks.setMarkers(
      marks.map(({ time, text }) => ({
        ...at(time),
        text,
        position: 'aboveBar',
        shape: 'square',
        size: 0.6,
        color: colors.attention,
      })),
    )
    const font = { fontSize: FONT_PX * this.#zoom, fontFamily: getComputedStyle(this.#element).fontFamily }
    for (const [index, text] of ['', premiumTitle(bars), 'Volume'].entries())
      this.#titles[index]?.applyOptions({ horzAlign: 'left', vertAlign: 'top', lines: [{ text, color: colors.soft, ...font }] })
    const newest = Math.max(...[...bars.slice(-1).map(timeOf), ...navs.slice(-1).map(({ time }) => time)], 0)
    const count = bars.length + navs.length
    const isLonger = newest !== this.#newest || count !== this.#count
    this.#newest = newest
    this.#count = count
    if (isLonger && this.#followed) this.show(this.#followed.seconds)
  }

  /** Shows the last seconds, or everything, until the reader moves or zooms the chart. */
  show(seconds: number | null): void {
    this.#followed = { seconds }
    const scale = this.#chart.timeScale()
    if (this.#newest === 0) return
    if (seconds === null) return scale.fitContent()
    const indexOf = (time: number) => scale.timeToIndex(time as UTCTimestamp, true) ?? 0
    const [from, to] = [indexOf(this.#newest - seconds), indexOf(this.#newest)]
    const edge = (to - from) * Math.min(EDGE_PART, LABEL_PX / Math.max(1, scale.width()))
    const perSecond = (to - from) / seconds
    // The first label is at a full hour or so, or at the first candle. Too near to the edge, it would be cut.
    const unit = seconds > LABELLED_S ? 3_600 : 300
    const untilLabel = perSecond * ((unit - ((this.#newest - seconds) % unit)) % unit)
    scale.setVisibleLogicalRange({ from: from <= edge ? -edge : from - Math.max(0, edge - untilLabel), to: to + 1 + edge })
  }

  #leave(): void {
    this.#followed = null
  }

  press(event: KeyboardEvent): void {
    const scale = this.#chart.timeScale()
    const shown = scale.getVisibleLogicalRange()
    const moved = { ArrowLeft: -MOVED_BARS, ArrowRight: MOVED_BARS }[event.key]
    const zoom = { '+': 1 / ZOOM, '-': ZOOM }[event.key]
    if (!shown || (moved === undefined && zoom === undefined)) return
    event.preventDefault()
    this.#leave()
    const width = (shown.to - shown.from) * (zoom ?? 1)
    const to = shown.to + (moved ?? 0)
    scale.setVisibleLogicalRange({ from: to - width, to })
  }

  close(): void {
    this.#chart.remove()
  }

  get #zoom(): number {
    return Number(getComputedStyle(this.#element).getPropertyValue('--zoom')) || 1
  }

  /** Takes the colours of the page, which may have changed. */
  #paint() {
    const colors = {
      ...{ ink: this.#color('--ink'), soft: this.#color('--soft'), line: this.#color('--line'), shade: this.#color('--shade') },
      ...{ up: this.#color('--up'), down: this.#color('--down'), attention: this.#color('--attention') },
      ...{ faintUp: this.#color('--up', 0.6), faintDown: this.#color('--down', 0.6), held: this.#color('--attention', 0.06) },
      faint: this.#color('--soft', 0.5),
    }
    if (colors.ink === this.#ink) return colors
    this.#ink = colors.ink
    const grid = { color: colors.line }
    this.#chart.applyOptions({
      layout: {
        ...{ background: { color: 'transparent' }, textColor: colors.soft, fontSize: FONT_PX * this.#zoom },
        ...{ fontFamily: getComputedStyle(this.#element).fontFamily, panes: { separatorColor: colors.line } },
      },
      grid: { vertLines: grid, horzLines: grid },
      timeScale: {
        ...{ timeVisible: true, secondsVisible: false, allowBoldLabels: false, borderColor: colors.line },
        tickMarkFormatter: (time: Time, type: TickMarkType) =>
          type >= TickMarkType.Time ? formatClock(isoOf(Number(time))).slice(0, 5) : localTime(Number(time)),
      },
      rightPriceScale: { borderColor: colors.line, entireTextOnly: true },
      crosshair: { mode: CrosshairMode.Normal },
      localization: { timeFormatter: (time: Time) => localTime(Number(time)) },
    })
    const { up, down } = colors
    this.#candles.applyOptions({
      upColor: up,
      downColor: down,
      borderUpColor: up,
      borderDownColor: down,
      wickUpColor: up,
      wickDownColor: down,
    })
    return colors
  }

  /** A colour of the page as the library reads it. A canvas draws every form of a colour, and has pixels. */
  #color(name: string, alpha = 1): string {
    this.#element.style.color = `var(${name})`
    const pixel = new OffscreenCanvas(1, 1).getContext('2d')
    if (!pixel) return '#888'
    pixel.fillStyle = getComputedStyle(this.#element).color
    pixel.fillRect(0, 0, 1, 1)
    const [red, green, blue, opacity = 255] = pixel.getImageData(0, 0, 1, 1).data
    return `rgba(${red}, ${green}, ${blue}, ${((opacity / 255) * alpha).toFixed(3)})`
  }
}

/** A wheel scrolls the page. With Ctrl it zooms the chart, and sideways it moves it. */
function keepForPage(event: WheelEvent): void {
  if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaY) >= Math.abs(event.deltaX)) event.stopPropagation()
}

/** Least scale of the premium to both sides: a few basis points must not look like many. */
const LEAST_BPS = 10

/** The scale of the premium has its zero, from which it is measured. */
function withZero(scale: () => AutoscaleInfo | null): AutoscaleInfo | null {
  const info = scale()
  if (!info?.priceRange) return info
  const { minValue, maxValue } = info.priceRange
  return { ...info, priceRange: { minValue: Math.min(-LEAST_BPS, minValue), maxValue: Math.max(LEAST_BPS, maxValue) } }
}

const isUp = ({ open, close }: Bar): boolean => Number(close) >= Number(open)

/** The library writes times in UTC; the page writes those of its reader. */
const localTime = (seconds: number): string => formatMoment(isoOf(seconds), Date.now())
const isoOf = (seconds: number): string => new Date(seconds * 1_000).toISOString()
