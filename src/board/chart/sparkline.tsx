import { memo } from '../feed/board-hooks.ts'
import type { PricePoint, Prices } from './price-series.ts'

const WIDTH = 96
const HEIGHT = 28
const PAD = 2
const VIEW = `0 0 ${WIDTH} ${HEIGHT}`
/** Limit on the points drawn. The eye could not distinguish more. */
const DRAWN_BOUND = 120

type SparklineProps = Prices & { readonly pointCount: number; readonly untilMs: number }

/** Draws NAV and the price on the chain as steps: a reading is valid until the next one. */
export const Sparkline = memo(({ untilMs, ...prices }: SparklineProps) => {
  const nav = prices.nav.slice(-DRAWN_BOUND)
  const quote = prices.quote.slice(-DRAWN_BOUND)
  const known = [...nav, ...quote].filter(({ price }) => price !== null)
  if (known.length < 2) return <svg class="spark" viewBox={VIEW} aria-hidden="true" />
  const times = known.map(({ atMs }) => atMs)
  const values = known.map(({ price }) => price ?? 0)
  const [from, to, low, high] = [Math.min(...times), Math.max(untilMs, ...times), Math.min(...values), Math.max(...values)]
  const x = (atMs: number) => PAD + ((atMs - from) / Math.max(1, to - from)) * (WIDTH - 2 * PAD)
  const y = (price: number) => HEIGHT - PAD - ((price - low) / Math.max(high - low, high * 1e-6)) * (HEIGHT - 2 * PAD)
  return (
    <svg class="spark" viewBox={VIEW} preserveAspectRatio="none" aria-hidden="true">
      <path class="spark-nav" d={pathOf(nav, x, y)} />
      <path class="spark-quote" d={pathOf(quote, x, y)} />
    </svg>
  )
})

const pathOf = (points: readonly PricePoint[], x: (atMs: number) => number, y: (price: number) => number): string =>
  points
    .map(({ atMs, price }, index) => {
      if (price === null) return ''
      const start = points[index - 1]?.price == null ? `M${x(atMs).toFixed(1)} ` : 'V'
      const next = points[index + 1]
      return `${start}${y(price).toFixed(1)}H${next ? x(next.atMs).toFixed(1) : WIDTH - PAD}`
    })
    .join('')
