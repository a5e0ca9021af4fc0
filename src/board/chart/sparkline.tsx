import { memo } from '../feed/board-hooks.ts'
import type { DayFigures } from '../feed/day-bars.ts'

const WIDTH = 96
const HEIGHT = 28
const PAD = 2
const VIEW = `0 0 ${WIDTH} ${HEIGHT}`
const DAY_MS = 86_400_000
/** A price that has moved by less than this is a flat line. */
const LEAST_SCALE = 0.0025

type Closes = Pick<DayFigures, 'closes'>

/** The largest distance of a price from the first one of its day. All small charts of a list have this height. */
export const scaleOf = (days: readonly Closes[]): number =>
  Math.max(
    LEAST_SCALE,
    ...days.flatMap(({ closes }) => closes.map(({ price }) => Math.abs(price / (closes[0]?.price ?? price) - 1))),
  )

/** Draws the closes of a day. The middle is the first price, and the width is a day. */
export const Sparkline = memo(({ closes, scale }: Closes & { readonly scale: number }) => {
  const [first] = closes
  const untilMs = closes.at(-1)?.atMs ?? 0
  const x = (atMs: number) => WIDTH - PAD - ((untilMs - atMs) / DAY_MS) * (WIDTH - 2 * PAD)
  const y = (price: number) => HEIGHT / 2 - ((price / (first?.price ?? price) - 1) / scale) * (HEIGHT / 2 - PAD)
  const line = closes.map(({ atMs, price }) => `${x(atMs).toFixed(1)} ${y(price).toFixed(1)}`).join('L')
  return (
    <svg class="spark" viewBox={VIEW} preserveAspectRatio="none" aria-hidden="true">
      {closes.length > 1 && <path class="spark-zero" d={`M${PAD} ${HEIGHT / 2}H${WIDTH - PAD}`} />}
      {closes.length > 1 && <path class="spark-close" d={`M${line}`} />}
    </svg>
  )
})
