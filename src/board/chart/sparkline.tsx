import { memo } from '../feed/board-hooks.ts'
import type { DayFigures } from '../feed/day-bars.ts'

const WIDTH = 96
const HEIGHT = 28
const PAD = 2
const VIEW = `0 0 ${WIDTH} ${HEIGHT}`
/** Least width of the small charts. */
const LEAST_WIDTH_MS = 3_600_000
/** A price that has moved by less than this is a flat line. */
const LEAST_SCALE = 0.0025

type Closes = Pick<DayFigures, 'closes' | 'change'>

/** The price from which the change of the day is measured. */
const baseOf = ({ closes, change }: Closes): number => change?.base ?? closes[0]?.price ?? 1

/** The scale of all small charts of a list: the largest change of a price of the day, and the oldest close that is known. */
export type SparkScale = { readonly maxChange: number; readonly fromMs: number }

export const scaleOf = (days: readonly Closes[]): SparkScale => ({
  maxChange: Math.max(LEAST_SCALE, ...days.flatMap((day) => day.closes.map(({ price }) => Math.abs(price / baseOf(day) - 1)))),
  fromMs: Math.min(...days.flatMap(({ closes }) => closes.slice(0, 1).map(({ atMs }) => atMs - LEAST_WIDTH_MS))),
})

type SparkProps = Closes & SparkScale

/** Draws the closes of a day. The line in the middle is the price from which the change is measured. */
export const Sparkline = memo(({ closes, change, maxChange, fromMs }: SparkProps) => {
  const base = baseOf({ closes, change })
  const untilMs = closes.at(-1)?.atMs ?? 0
  const x = (atMs: number) => WIDTH - PAD - ((untilMs - atMs) / Math.max(LEAST_WIDTH_MS, untilMs - fromMs)) * (WIDTH - 2 * PAD)
  const y = (price: number) => HEIGHT / 2 - ((price / base - 1) / maxChange) * (HEIGHT / 2 - PAD)
  // The change begins at its base, so the line does too.
  const begin =
    change && closes[0] && change.sinceMs <= closes[0].atMs ? [{ atMs: Math.max(fromMs, change.sinceMs), price: base }] : []
  const line = [...begin, ...closes].map(({ atMs, price }) => `${x(atMs).toFixed(1)} ${y(price).toFixed(1)}`).join('L')
  return (
    <svg class="spark" viewBox={VIEW} preserveAspectRatio="none" aria-hidden="true">
      {closes.length > 1 && <path class="spark-zero" d={`M${PAD} ${HEIGHT / 2}H${WIDTH - PAD}`} />}
      {closes.length > 1 && <path class="spark-close" d={`M${line}`} />}
      {closes.length > 1 && <path class="spark-close spark-end" d={`M${line.split('L').at(-1)}h0`} />}
    </svg>
  )
})
