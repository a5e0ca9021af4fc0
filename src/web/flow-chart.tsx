import { FLOW_MINUTES, type Flow, type FlowSums } from './flow.ts'
import { formatMoney } from './number-text.ts'

const BAR = 8
const HEIGHT = 96
const MIDDLE = HEIGHT / 2

/** Flow by minute: in above, out below; what was minted and burnt is marked in it. */
export function FlowChart({ flow }: { readonly flow: Flow | undefined }) {
  const minutes = flow?.minutes ?? []
  const largest = Math.max(1, ...minutes.flatMap((sums) => [sums.in + sums.minted, sums.out + sums.burnt]))
  const scale = (value: number) => (value / largest) * (MIDDLE - 2)
  return (
    <figure class="flow-chart">
      <svg viewBox={`0 0 ${FLOW_MINUTES * BAR} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={sentenceOf(flow)}>
        <line x1="0" x2={FLOW_MINUTES * BAR} y1={MIDDLE} y2={MIDDLE} class="flow-axis" />
        {minutes.map((sums, minute) => (
          <MinuteBar key={minute} left={minute * BAR} sums={sums} scale={scale} />
        ))}
      </svg>
      <figcaption>{sentenceOf(flow)}</figcaption>
    </figure>
  )
}

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
