import type { TapeLine } from '../tape/tape-lines.ts'

/** Movements of one token in the last hour, in dollars by the NAV of each movement. */
export type Flow = FlowSums & {
  /** Sums of each minute, oldest first. */
  readonly minutes: readonly FlowSums[]
}
export type FlowSums = {
  /** Dollars bought from pools, or received by an address of the filter. */
  readonly in: number
  /** Dollars sold to pools, or sent by an address of the filter. */
  readonly out: number
  readonly minted: number
  readonly burnt: number
  /** Dollars of all other movements between holders. */
  readonly moved: number
  /** Number of movements without a value: their NAV was missing. */
  readonly unvalued: number
}
type Sums = { -readonly [Name in keyof FlowSums]: FlowSums[Name] }

/** The part of the last hour whose movements were read. */
export type FlowSpan = { readonly words: string; readonly minutes: number }

const MINUTE_MS = 60_000
export const FLOW_MINUTES = 60

/** Sums the flow of each token, by its address: between its pool and others, or between addresses of the filter and others. */
export function flowOf(
  lines: readonly TapeLine[],
  nowMs: number,
  poolOf: (address: string) => string | null,
  account: readonly string[],
): ReadonlyMap<string, Flow> {
  const own = new Set(account.map((address) => address.toLowerCase()))
  const startMs = nowMs - FLOW_MINUTES * MINUTE_MS
  const flows = new Map<string, Sums & { readonly minutes: readonly Sums[] }>()
  for (let index = lines.length - 1; index >= 0; index -= 1) {
    const content = lines[index]?.content
    if (!content || content.type === 'gap') continue
    const atMs = Date.parse(content.time)
    if (atMs < startMs) break
    if (!('from' in content) || lines[index]?.retraction) continue
    const { address, reference_value } = content
    const flow = flows.get(address) ?? { ...noFlow(), minutes: Array.from({ length: FLOW_MINUTES }, noFlow) }
    flows.set(address, flow)
    const minute = flow.minutes[Math.min(FLOW_MINUTES - 1, Math.floor((atMs - startMs) / MINUTE_MS))]
    const direction = directionOf(content, own, poolOf(address))
    for (const sums of [flow, minute]) {
      if (sums && reference_value === null) sums.unvalued += 1
      else if (sums) sums[direction] += Number(reference_value)
    }
  }
  return flows
}

const noFlow = (): Sums => ({ in: 0, out: 0, minted: 0, burnt: 0, moved: 0, unvalued: 0 })

type Sides = { readonly type: string; readonly from: string; readonly to: string }
type Direction = Exclude<keyof FlowSums, 'unvalued'>

/** Tokens that leave a pool are in. With addresses in the filter, tokens that one of these addresses receives are in. */
function directionOf({ type, from, to }: Sides, own: ReadonlySet<string>, pool: string | null): Direction {
  if (type === 'mint') return 'minted'
  if (type === 'burn') return 'burnt'
  const [isIn, isOut] = own.size === 0 ? [from === pool, to === pool] : [own.has(to), own.has(from)]
  if (isIn === isOut) return 'moved'
  return isIn ? 'in' : 'out'
}

export const netOf = (sums: FlowSums): number => sums.in + sums.minted - sums.out - sums.burnt
