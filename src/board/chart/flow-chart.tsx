import { formatMoney } from '../shared/number-text.ts'
import { FLOW_MINUTES, type Flow, type FlowSums } from './flow.ts'

const BAR = 8
const HEIGHT = 96
const MIDDLE = HEIGHT / 2

type FlowChartProps = { readonly flow: Flow | undefined; readonly minutesRead: number }

/** Flow by minute: in above, out below; what was minted and burnt is marked in it. Minutes before the first line are shaded. */
export function FlowChart({ flow, minutesRead }: FlowChartProps) {
  const minutes = flow?.minutes ?? []
  const largest = Math.max(1, largestOf(minutes))
  const scale = (value: number) => (value / largest) * (MIDDLE - 2)
  const unknown = FLOW_MINUTES - minutesRead
  return (
    <figure class="flow-chart">
      <svg viewBox={`0 0 ${FLOW_MINUTES * BAR} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={sentenceOf(flow)}>
        <rect class="flow-unknown" x="0" y="0" width={unknown * BAR} height={HEIGHT} />
        <line x1="0" x2={FLOW_MINUTES * BAR} y1={MIDDLE} y2={MIDDLE} class="flow-axis" />
        {minutes.map((sums, minute) => (
          <MinuteBar key={minute} left={minute * BAR} sums={sums} scale={scale} />
        ))}
      </svg>
      <p class="flow-times" aria-hidden="true">
        <span>60 min ago{unknown > 0 && ' · shaded: not known'}</span>
        <span>largest minute {formatMoney(largestOf(minutes))}</span>
        <span>now</span>
      </p>
      <figcaption>{sentenceOf(flow)}</figcaption>
    </figure>
  )
}

const largestOf = (minutes: readonly FlowSums[]): number =>
  Math.max(0, ...minutes.flatMap((sums) => [sums.in + sums.minted, sums.out + sums.burnt]))

function MinuteBar({
  left,
  sums,
  scale,
}: {
  readonly left: number
  readonly sums: FlowSums
  readonly scale: (value: number) => number
}) {
  const [inward, minted, outward, burnt] = [sums.in, sums.minted, sums.out, sums.burnt].map(scale) as [
    number,
    number,
    number,
    number,
  ]
  const width = BAR - 2
  return (
    <>
      <rect class="flow-in" x={left} width={width} y={MIDDLE - inward} height={inward} />
      <rect class="flow-minted" x={left} width={width} y={MIDDLE - inward - minted} height={minted} />
      <rect class="flow-out" x={left} width={width} y={MIDDLE} height={outward} />
      <rect class="flow-burnt" x={left} width={width} y={MIDDLE + outward} height={burnt} />
    </>
  )
}

function sentenceOf(flow: Flow | undefined): string {
  if (!flow) return 'No movement in the last hour, as far as it was read.'
  const traded = flow.in + flow.out > 0 ? [`in ${formatMoney(flow.in)}`, `out ${formatMoney(flow.out)}`] : []
  const parts = [
    ...traded,
    `minted ${formatMoney(flow.minted)}`,
    `burnt ${formatMoney(flow.burnt)}`,
    `${formatMoney(flow.moved)} between holders`,
  ]
  return `${parts.join(' · ')}${flow.unvalued > 0 ? ` · ${flow.unvalued} without a NAV` : ''}`
}
