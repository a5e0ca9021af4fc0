import { useEffect, useRef, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import { UNKNOWN } from '../shared/number-text.ts'
import { formatClock, formatDuration } from '../shared/time-text.ts'
import { alignedPrices, type PricePoint, type Prices } from './price-series.ts'

export type ChartStretch = { readonly fromMs: number; readonly untilMs: number; readonly kind: 'closed' | 'held' }

type ChartProps = Prices & {
  readonly stretches: readonly ChartStretch[]
  /** Times of events that the axis marks, in milliseconds. */
  readonly marks: readonly number[]
  readonly nowMs: number
  /** Whether the relay answers. */
  readonly isLive: boolean
}

const FONT_PX = 12
/** Least interval between two drawings, because each takes milliseconds. */
const REDRAW_MS = 250

/** Draws NAV and the price on the chain as steps. A line has a break while its value is not known. */
export function PriceChart(props: ChartProps) {
  const isKnown = [...props.nav, ...props.quote].some(({ price }) => price !== null)
  if (!isKnown) return <p class="chart empty">No readings yet: the lines begin with the next one.</p>
  return <KnownChart {...props} />
}

function KnownChart(props: ChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const latest = useRef(props)
  const [cursorMs, setCursorMs] = useState<number | null>(null)
  const [hasFailed, setFailed] = useState(false)
  latest.current = props
  const isRefused = hasFailed && props.isLive
  useEffect(() => {
    let isOpen = true
    let plot: uPlot | undefined
    let timer: ReturnType<typeof setInterval> | undefined
    const resize = new ResizeObserver(([entry]) =>
      plot?.setSize({ width: entry?.contentRect.width ?? 0, height: entry?.contentRect.height ?? 0 }),
    )
    const open = async () => {
      const { default: Plot } = await import('uplot')
      const element = box.current
      if (!isOpen || !element) return
      const options = optionsOf(Plot, element, () => latest.current, setCursorMs)
      plot = new Plot(options, alignedPrices(latest.current), element)
      resize.observe(element)
      let drawn: ChartProps | null = null
      timer = setInterval(() => {
        if (drawn !== latest.current) plot?.setData(alignedPrices(latest.current))
        drawn = latest.current
      }, REDRAW_MS)
    }
    open().then(
      () => setFailed(false),
      () => setFailed(true),
    )
    return () => {
      isOpen = false
      clearInterval(timer)
      resize.disconnect()
      plot?.destroy()
    }
    // A chart that could not be loaded without a connection is loaded once the relay answers.
  }, [isRefused])
  return (
    <>
      <div class="chart" ref={box} role="img" aria-label={chartSentence(props)} />
      <p class="cursor-text figure">{hasFailed ? failureText(props) : cursorMs === null ? '' : cursorText(props, cursorMs)}</p>
    </>
  )
}

/** A newer relay may lack the file that a page from before its update asks for. */
const failureText = ({ isLive }: ChartProps): string =>
  isLive ? 'The chart could not be loaded: load the page again.' : 'The chart is drawn once the relay answers.'

/** Returns both values at the cursor, and for how long each had been unchanged. */
function cursorText({ nav, quote }: ChartProps, cursorMs: number): string {
  const textOf = (points: readonly PricePoint[]) => {
    const point = points.findLast(({ atMs }) => atMs <= cursorMs)
    return point?.price == null ? UNKNOWN : `${point.price.toFixed(2)} for ${formatDuration(cursorMs - point.atMs)}`
  }
  return `${formatClock(new Date(cursorMs).toISOString())}  NAV ${textOf(nav)}  on chain ${textOf(quote)}`
}

function chartSentence({ nav, quote }: ChartProps): string {
  const rangeOf = (points: readonly PricePoint[]) => {
    const prices = points.flatMap(({ price }) => (price === null ? [] : [price]))
    return prices.length === 0 ? 'not known' : `between ${Math.min(...prices).toFixed(2)} and ${Math.max(...prices).toFixed(2)}`
  }
  return `Chart. NAV ${rangeOf(nav)}, on chain ${rangeOf(quote)}.`
}

function optionsOf(
  Plot: typeof uPlot,
  element: HTMLElement,
  props: () => ChartProps,
  onCursor: (atMs: number | null) => void,
): uPlot.Options {
  // The element resolves a CSS variable for the present theme, because a canvas cannot read CSS variables.
  const color = (name: string) => {
    element.style.color = `var(${name})`
    return getComputedStyle(element).color
  }
  // The chart itself is not enlarged, because it measures the pointer in pixels of the screen.
  const zoom = Number(getComputedStyle(element).getPropertyValue('--zoom')) || 1
  const axis: uPlot.Axis = {
    stroke: () => color('--soft'),
    grid: { stroke: () => color('--line'), width: 1 },
    ticks: { show: false },
    font: `${FONT_PX * zoom}px system-ui`,
  }
  const stepped = Plot.paths.stepped?.({ align: 1 })
  const line = { width: 1.5, points: { show: false }, ...(stepped && { paths: stepped }) }
  return {
    width: element.clientWidth,
    height: element.clientHeight,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 7 } },
    axes: [
      { ...axis, size: 30 * zoom, space: 84 * zoom, values: (_, times) => times.map((at) => axisTime(at, times)) },
      { ...axis, size: 64 * zoom },
    ],
    series: [{}, { ...line, stroke: () => color('--ink') }, { ...line, stroke: () => color('--accent') }],
    hooks: {
      setCursor: [
        ({ cursor, posToVal }) => onCursor(cursor.left == null || cursor.left < 0 ? null : posToVal(cursor.left, 'x') * 1_000),
      ],
      drawClear: [(plot) => drawStretches(plot, props(), color)],
      draw: [(plot) => drawMarks(plot, props(), color)],
    },
  }
}

/** Shows seconds only if the ticks are not at whole minutes. */
function axisTime(at: number, times: readonly number[]): string {
  const clock = formatClock(new Date(at * 1_000).toISOString())
  return times.some((time) => time % 60 !== 0) ? clock : clock.slice(0, 5)
}

function drawStretches(plot: uPlot, { stretches }: ChartProps, color: (name: string) => string): void {
  const { ctx, bbox } = plot
  const { left, top, width, height } = bbox
  for (const { fromMs, untilMs, kind } of stretches) {
    const from = Math.max(left, plot.valToPos(fromMs / 1_000, 'x', true))
    const until = Math.min(left + width, plot.valToPos(untilMs / 1_000, 'x', true))
    if (until <= from) continue
    ctx.save()
    ctx.beginPath()
    ctx.rect(from, top, until - from, height)
    ctx.clip()
    if (kind === 'closed') {
      ctx.fillStyle = color('--shade')
      ctx.fill()
    } else hatch(ctx, bbox, color('--line'))
    ctx.restore()
  }
}

const HATCH_STEP_PX = 8

function hatch(ctx: CanvasRenderingContext2D, { left, top, width, height }: uPlot.BBox, stroke: string): void {
  ctx.strokeStyle = stroke
  ctx.beginPath()
  for (let x = left - height; x < left + width; x += HATCH_STEP_PX) {
    ctx.moveTo(x, top + height)
    ctx.lineTo(x + height, top)
  }
  ctx.stroke()
}

function drawMarks(plot: uPlot, { marks }: ChartProps, color: (name: string) => string): void {
  const { ctx, bbox } = plot
  const size = 5 * devicePixelRatio
  ctx.save()
  ctx.fillStyle = color('--attention')
  for (const atMs of marks) {
    const x = plot.valToPos(atMs / 1_000, 'x', true)
    if (x < bbox.left || x > bbox.left + bbox.width) continue
    ctx.beginPath()
    ctx.moveTo(x, bbox.top + bbox.height - 2 * size)
    ctx.lineTo(x + size, bbox.top + bbox.height)
    ctx.lineTo(x - size, bbox.top + bbox.height)
    ctx.fill()
  }
  ctx.restore()
}
