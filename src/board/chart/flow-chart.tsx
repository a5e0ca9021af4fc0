import { formatMoney } from '../shared/number-text.ts'
import { FLOW_MINUTES, type Flow, type FlowSums } from './flow.ts'

const BAR = 8
const HEIGHT = 96
const MIDDLE = HEIGHT / 2

type FlowChartProps = { readonly flow: Flow | undefined; readonly minutesRead: number }

/** Draws the flow of each minute: in and minted above the axis, out and burnt below. Shades the minutes that were not read. */
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

type MinuteProps = { readonly left: number; readonly sums: FlowSums; readonly scale: (value: number) => number }

function MinuteBar({ left, sums, scale }: MinuteProps) {
  const bar = (name: 'in' | 'minted' | 'out' | 'burnt', top: number) => (
    <rect class={`flow-${name}`} x={left} width={BAR - 2} y={top} height={scale(sums[name])} />
  )
  return (
    <>
      {bar('in', MIDDLE - scale(sums.in))}
      {bar('minted', MIDDLE - scale(sums.in + sums.minted))}
      {bar('out', MIDDLE)}
      {bar('burnt', MIDDLE + scale(sums.out))}
    </>
  )
}

function sentenceOf(flow: Flow | undefined): string {
  if (!flow) return 'No movement in the last hour, as far as it was read.'
  const names = flow.in + flow.out > 0 ? (['in', 'out', 'minted', 'burnt'] as const) : (['minted', 'burnt'] as const)
  const sums = names.map((name) => `${name} ${formatMoney(flow[name])} · `).join('')
  const unvalued = flow.unvalued > 0 ? ` · ${flow.unvalued} without a NAV` : ''
  return `${sums}${formatMoney(flow.moved)} between holders${unvalued}`
}
