import {
  AreaSeries,
  type AutoscaleInfo,
  CandlestickSeries,
  CrosshairMode,
  createChart,
  createSeriesMarkers,
  HistogramSeries,
  type IChartApi,
  type IPrimitivePaneRenderer,
  type ISeriesApi,
  type ISeriesMarkersPluginApi,
  LineSeries,
  LineStyle,
  LineType,
  TickMarkType,
  type Time,
  type UTCTimestamp,
} from 'lightweight-charts'
import type { Bar } from '../../sdk/client/index.ts'
import { formatBps, formatDecimal, formatMoney } from '../shared/number-text.ts'
import { formatClock, formatMoment } from '../shared/time-text.ts'
import { hasBasis, type marksOf, type navPoints, navSinceOf, premiumTitle, type shadesOf } from './chart-data.ts'

export type ChartData = {
  readonly bars: readonly Bar[]
  readonly navs: ReturnType<typeof navPoints>
  /** All steps of the chart, so that equal times are equally wide. */
  readonly times: readonly number[]
  readonly shades: ReturnType<typeof shadesOf>
  readonly marks: ReturnType<typeof marksOf>
  /** Basis points from which a premium has a colour. */
  readonly newsBps: number
  /** The price at the head of the page. */
  readonly price: string | null
  /** The premium there, in basis points. */
  readonly premiumBps: number | null
}

const FONT_PX = 12
/** A low part of the chart has labels as near to each other as this many of their heights. */
const TICK_DENSITY = 1.4
/** Heights of the premium, and of the prices, the premium and the volume. */
const [PREMIUM_HEIGHT, NO_PREMIUM_HEIGHT] = [2.1, 0.6]
const HEIGHTS = [6, PREMIUM_HEIGHT, 1.5]

/** Room for half a label at the edges of the time, and the largest part of the width for it. */
const [LABEL_PX, EDGE_PART] = [24, 0.1]
/** Room for the names of the prices beside the newest candle, less in a narrow chart. */
const [NAMES_ROOM_PX, NARROW_ROOM_PX, NARROWEST_PX] = [52, 42, 200]
/** Height of a tag at a scale, and how near to its middle it would cover a part of a label. */
const [TAG_PX, COVERED_PX] = [18, 13]
/** Dots of a line from the newest candle to a tag. */
const DOTS_PX = [1, 3]
/** Newest bars of a narrow chart that leave no room for words above them. */
const EDGE_BARS = 12
/** Least width of a chart whose labels of prices have names. */
const NAMES_PX = 600
/** A longer time has labels at full hours; a shorter one every five minutes. */
const LABELLED_S = 3_600
/** How far one press of a key moves and zooms. */
const [MOVED_BARS, ZOOM] = [5, 1.25]

/** The chart itself, which the library draws on a canvas. */
export class CandleDrawing {
  readonly #element: HTMLElement
  readonly #chart: IChartApi
  readonly #candles
  readonly #price
  readonly #nav
  readonly #shade
  readonly #volume
  readonly #premium
  readonly #premiumNow
  readonly #zero
  readonly #marks: ISeriesMarkersPluginApi<Time>
  readonly #titles
  #ink = ''
  /** Values of the tags at the scale of the prices, the most important first, and at that of the premium. */
  #tags: readonly number[] = []
  #lastPrice: number | null = null
  #premiumBps: number | null = null
  /** Seconds that are shown while the reader has not moved or zoomed; if they are null, everything. */
  #followed: { readonly seconds: number | null } | null = null
  #newest = 0
  #count = 0

  constructor(element: HTMLElement, onPoint: (time: number | null) => void) {
    this.#element = element
    const quiet = { priceLineVisible: false, lastValueVisible: false }
    this.#chart = createChart(element, {
      ...{ autoSize: true, layout: { attributionLogo: false } },
      // Without it the library marks times that are not round near the newest candle.
      timeScale: { uniformDistribution: true },
      // A finger that moves up or down scrolls the page.
      handleScroll: { vertTouchDrag: false },
    })
    element.addEventListener('wheel', keepForPage, { capture: true, passive: true })
    this.#shade = this.#chart.addSeries(AreaSeries, {
      ...{ ...quiet, priceScaleId: 'shade', lineVisible: false, lineType: LineType.WithSteps, crosshairMarkerVisible: false },
      autoscaleInfoProvider: () => ({ priceRange: { minValue: 0, maxValue: 1 } }),
    })
    this.#shade.priceScale().applyOptions({ scaleMargins: { top: 0, bottom: 0 } })
    // The library moves other tags away from that of the first line.
    this.#price = this.#chart.addSeries(LineSeries, { lineVisible: false, priceLineVisible: false, crosshairMarkerVisible: false })
    this.#dotTo(this.#price, () => this.#lastPrice)
    // A NAV holds until the next one. Its line is behind the candles.
    this.#nav = this.#chart.addSeries(LineSeries, {
      ...{ lineType: LineType.WithSteps, lineWidth: 2, priceLineVisible: false, crosshairMarkerVisible: false },
    })
    this.#candles = this.#chart.addSeries(CandlestickSeries, quiet)
    this.#premium = this.#chart.addSeries(
      HistogramSeries,
      { ...quiet, autoscaleInfoProvider: (scale: () => AutoscaleInfo | null) => withZero(scale(), this.#premiumBps ?? 0) },
      1,
    )
    this.#premiumNow = this.#premium.createPriceLine({ price: 0, title: 'now', lineVisible: false })
    this.#zero = this.#premium.createPriceLine({ price: 0, axisLabelVisible: false, lineStyle: LineStyle.Solid, lineWidth: 1 })
    this.#dotTo(this.#premium, () => this.#premiumBps)
    this.#volume = this.#chart.addSeries(
      HistogramSeries,
      { ...quiet, priceFormat: { type: 'custom', minMove: 1, formatter: formatMoney } },
      2,
    )
    for (const series of [this.#volume, this.#premium])
      series.priceScale().applyOptions({ scaleMargins: { top: 0.3, bottom: 0.12 }, tickMarkDensity: TICK_DENSITY })
    this.#marks = createSeriesMarkers(this.#candles, [])
    for (const [index, pane] of this.#chart.panes().entries()) pane.setStretchFactor(HEIGHTS[index] ?? 1)
    this.#titles = this.#chart.panes().map(newTitle)
    for (const moved of ['pointerdown', 'wheel', 'touchstart'])
      element.addEventListener(moved, () => this.#leave(), { passive: true })
    // The library keeps the width of a candle, and not the range.
    this.#chart.timeScale().subscribeSizeChange(() => this.#followed && this.show(this.#followed.seconds))
    this.#chart.subscribeCrosshairMove(({ time }) => onPoint(typeof time === 'number' ? time : null))
  }

  draw({ bars, navs, times, shades, marks, newsBps, price, premiumBps }: ChartData): void {
    const colors = this.#paint()
    const at = (time: number) => ({ time: time as UTCTimestamp })
    this.#tags = [price, navs.at(-1)?.value ?? null].flatMap((value) => (value === null ? [] : [Number(value)]))
    this.#lastPrice = price === null ? null : Number(price)
    this.#premiumBps = premiumBps
    this.#price.setData(price === null ? [] : [{ ...at(times.at(-1) ?? 0), value: Number(price) }])
    this.#setFormats(Number(bars.at(-1)?.close ?? navs.at(-1)?.value ?? 1), price === null ? this.#nav : this.#price)
    this.#candles.setData(
      bars.map((bar) =>
        bar.close === null
          ? at(timeOf(bar))
          : { ...at(timeOf(bar)), open: Number(bar.open), high: Number(bar.high), low: Number(bar.low), close: Number(bar.close) },
      ),
    )
    this.#nav.setData(
      navs.flatMap(({ time, value, isHeld }) =>
        time < (times[0] ?? 0) ? [] : [{ ...at(time), value, color: isHeld ? colors.soft : colors.nav }],
      ),
    )
    this.#label(bars, colors)
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
    this.#mark(marks, times.at(-EDGE_BARS) ?? 0, colors.attention)
    // Without a known premium, its part is as low as the words that say so.
    this.#chart.panes()[1]?.setStretchFactor(hasBasis(bars) ? PREMIUM_HEIGHT : NO_PREMIUM_HEIGHT)
    const newest = Math.max(...[...bars.slice(-1).map(timeOf), ...navs.slice(-1).map(({ time }) => time)], 0)
    const count = bars.length + navs.length
    const isLonger = newest !== this.#newest || count !== this.#count
    this.#newest = newest
    this.#count = count
    if (isLonger && this.#followed) this.show(this.#followed.seconds)
  }

  #mark(marks: ChartData['marks'], edge: number, color: string): void {
    this.#marks.setMarkers(
      marks.map(({ time, short }) => ({
        time: time as UTCTimestamp,
        // At the edge of a narrow chart the words would be cut.
        text: this.#isNarrow && time > edge ? '' : short,
        position: 'aboveBar',
        shape: 'square',
        size: 0.6,
        color,
      })),
    )
  }

  /** A price below one dollar has four decimals. */
  #setFormats(price: number, tagged: ISeriesApi<'Line'>): void {
    const [precision, minMove] = price < 1 ? [4, 0.0001] : [2, 0.01]
    const formatter = (value: number) => value.toFixed(precision)
    const tickmarksFormatter = (values: readonly number[]) => this.#ticks(tagged, this.#tags, values, formatter)
    for (const series of [this.#candles, this.#nav, this.#price])
      series.applyOptions({ priceFormat: { type: 'custom', minMove, formatter, tickmarksFormatter } })
    this.#premium.applyOptions({
      priceFormat: {
        ...{ type: 'custom', minMove: 1, formatter: (value: number) => formatBps(value.toFixed(1)) },
        tickmarksFormatter: (values: readonly number[]) =>
          this.#ticks(this.#premium, this.#premiumBps === null ? [] : [this.#premiumBps], values, (value) =>
            formatDecimal(value.toFixed(), 0),
          ),
      },
    })
  }

  /** Formats the labels of a scale, except those that a tag would cover. */
  #ticks(
    series: ISeriesApi<'Line' | 'Histogram'>,
    [first, second]: readonly number[],
    values: readonly number[],
    format: (value: number) => string,
  ): string[] {
    const placeOf = (value: number | undefined) => (value === undefined ? null : series.priceToCoordinate(value))
    const [one, other] = [placeOf(first), placeOf(second)]
    const tag = TAG_PX * this.#zoom
    // The library moves the second tag away from the first.
    const moved = one !== null && other !== null && Math.abs(one - other) < tag ? one + (other > one ? tag : -tag) : other
    return values.map((value) => {
      const place = placeOf(value)
      const isCovered = [one, moved].some((at) => at !== null && place !== null && Math.abs(at - place) < COVERED_PX * this.#zoom)
      return isCovered ? '' : format(value)
    })
  }

  /** Dots lead from the newest candle to a tag at the scale. */
  #dotTo(series: ISeriesApi<'Line' | 'Histogram'>, readValue: () => number | null): void {
    const draw = (context: CanvasRenderingContext2D, width: number) => {
      const newest = this.#price.data().at(-1) ?? series.data().at(-1)
      const from = newest && this.#chart.timeScale().timeToCoordinate(newest.time)
      const value = readValue()
      const y = value === null ? null : series.priceToCoordinate(value)
      if (from == null || y === null) return
      context.strokeStyle = this.#ink
      context.lineWidth = 1
      context.setLineDash(DOTS_PX)
      context.beginPath()
      context.moveTo(from, y)
      context.lineTo(width, y)
      context.stroke()
    }
    const renderer = () => ({
      draw: (target: Parameters<IPrimitivePaneRenderer['draw']>[0]) =>
        target.useMediaCoordinateSpace(({ context, mediaSize }) => draw(context, mediaSize.width)),
    })
    series.attachPrimitive({ paneViews: () => [{ renderer }] })
  }

  /** Writes the tags, and the titles of the parts. */
  #label(bars: readonly Bar[], { ink, soft }: { readonly ink: string; readonly soft: string }): void {
    this.#price.applyOptions({ color: ink, title: 'Price' })
    this.#nav.applyOptions({ title: 'NAV' })
    const isNow = this.#premiumBps !== null
    this.#premiumNow.applyOptions({ ...{ price: this.#premiumBps ?? 0, axisLabelVisible: isNow, axisLabelColor: ink } })
    this.#zero.applyOptions({ color: soft, lineVisible: hasBasis(bars) })
    const shown = this.#chart.timeScale().getVisibleRange()
    const since = shown && navSinceOf(bars, Number(shown.from))
    const premium = [premiumTitle(bars), ...(since ? [`NAV known from ${localTime(since)}`] : [])].join(' · ')
    const short = premium.replace('against', 'vs').replace('NAV known', 'known')
    for (const [index, text] of ['', this.#isNarrow ? short : premium, 'Volume'].entries()) {
      const title = this.#titles[index]
      if (!title) continue
      title.textContent = text
      // The library makes the element of a part when it first draws it.
      if (!title.isConnected) this.#chart.panes()[index]?.getHTMLElement()?.querySelector('td:nth-child(2) > div')?.append(title)
    }
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
    const part = (this.#isNarrow ? NARROW_ROOM_PX : NAMES_ROOM_PX) / Math.max(NARROWEST_PX, scale.width())
    const room = ((to - from) * part) / (1 - part)
    const perSecond = (to - from) / seconds
    // The first label is at a full hour or so, or at the first candle. Too near to the edge, it would be cut.
    const unit = unitOf(seconds)
    const untilLabel = perSecond * ((unit - ((this.#newest - seconds) % unit)) % unit)
    scale.setVisibleLogicalRange({ from: from <= edge ? -edge : from - Math.max(0, edge - untilLabel), to: to + 1 + room })
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

  /** Whether it has no room for the names of the prices. */
  get #isNarrow(): boolean {
    return this.#element.clientWidth < NAMES_PX
  }

  get #zoom(): number {
    return Number(getComputedStyle(this.#element).getPropertyValue('--zoom')) || 1
  }

  /** The time below the chart. The library marks the newest candle too, at a time that is not round: it has no label. */
  #tickText(seconds: number, type: TickMarkType): string {
    if (type < TickMarkType.Time) return localTime(seconds)
    const isRound = !this.#followed?.seconds || seconds % unitOf(this.#followed.seconds) === 0
    return isRound ? formatClock(isoOf(seconds)).slice(0, 5) : ''
  }

  /** Takes the colours of the page, which may have changed. */
  #paint() {
    const colors = {
      ...{
        ink: this.#color('--ink'),
        soft: this.#color('--soft'),
        line: this.#color('--line'),
        paper: this.#color('--paper'),
        shade: this.#color('--shade'),
      },
      ...{ up: this.#color('--up'), down: this.#color('--down'), attention: this.#color('--attention') },
      ...{ faintUp: this.#color('--up', 0.6), faintDown: this.#color('--down', 0.6), held: this.#color('--attention', 0.06) },
      ...{ faint: this.#color('--soft', 0.5), nav: this.#color('--accent', 0.85) },
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
        tickMarkFormatter: (time: Time, type: TickMarkType) => this.#tickText(Number(time), type),
      },
      rightPriceScale: { borderColor: colors.line, entireTextOnly: true },
      crosshair: { mode: CrosshairMode.Normal },
      localization: { timeFormatter: (time: Time) => localTime(Number(time)) },
    })
    const { up, down, paper } = colors
    this.#candles.applyOptions({
      // A hollow candle rises, so that its side can be seen without colours.
      upColor: paper,
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

/** The title of a part of the chart: an element, whose background keeps the lines of the grid out of its words. */
function newTitle(): HTMLElement {
  const title = document.createElement('span')
  title.className = 'pane-title'
  return title
}

const unitOf = (seconds: number): number => (seconds > LABELLED_S ? 3_600 : 300)

/** A wheel scrolls the page. With Ctrl it zooms the chart, and sideways it moves it. */
function keepForPage(event: WheelEvent): void {
  if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaY) >= Math.abs(event.deltaX)) event.stopPropagation()
}

/** Least scale of the premium to both sides: a few basis points must not look like many. */
const LEAST_BPS = 10

/** The scale of the premium has its zero, from which it is measured, and that of now. */
function withZero(info: AutoscaleInfo | null, bps: number): AutoscaleInfo | null {
  if (!info?.priceRange) return info
  const { minValue, maxValue } = info.priceRange
  return { ...info, priceRange: { minValue: Math.min(-LEAST_BPS, bps, minValue), maxValue: Math.max(LEAST_BPS, bps, maxValue) } }
}

export const timeOf = ({ start }: Pick<Bar, 'start'>): number => Date.parse(start) / 1_000

const isUp = ({ open, close }: Bar): boolean => Number(close) >= Number(open)

/** The library writes times in UTC; the page writes those of its reader. */
const localTime = (seconds: number): string => formatMoment(isoOf(seconds), Date.now())
const isoOf = (seconds: number): string => new Date(seconds * 1_000).toISOString()
