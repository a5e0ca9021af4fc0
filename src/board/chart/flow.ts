import type { TapeLine } from '../tape/tape-lines.ts'

/** What moved of one token. Values are in dollars by the NAV of each movement. */
export type Flow = FlowSums & {
  /** The last hour by minute, oldest first. */
  readonly minutes: readonly FlowSums[]
}
export type FlowSums = {
  /** Bought from pools, or received by an address of the filter. */
  readonly in: number
  /** Sold to pools, or sent by an address of the filter. */
  readonly out: number
  readonly minted: number
  readonly burnt: number
  /** Every other movement between holders. */
  readonly moved: number
  /** Movements without a value: their NAV was missing. */
  readonly unvalued: number
}
type Sums = { -readonly [Name in keyof FlowSums]: FlowSums[Name] }

/** For how long back the movements were read, in words and in minutes of the chart. */
export type FlowSpan = { readonly words: string; readonly minutes: number }

const MINUTE_MS = 60_000
export const FLOW_MINUTES = 60

/** The flow of every token by its address, seen from the pool of the token, or from the addresses of the filter. */
export function flowOf(
  lines: readonly TapeLine[],
  nowMs: number,
  poolOf: (address: string) => string | null,
  account: readonly string[],
): ReadonlyMap<string, Flow> {
  const own = new Set(account.map((address) => address.toLowerCase()))
  const startMs = nowMs - FLOW_MINUTES * MINUTE_MS
  const flows = new Map<string, { total: Sums; minutes: Sums[] }>()
  for (let index = lines.length - 1; index >= 0; index -= 1) {
    const content = lines[index]?.content
    if (!content || content.type === 'gap') continue
    const atMs = Date.parse(content.time)
    if (atMs < startMs) break
    if (!('shares' in content) || lines[index]?.retraction) continue
    const flow = flows.get(content.address) ?? newFlow()
    flows.set(content.address, flow)
    const minute = flow.minutes[Math.min(FLOW_MINUTES - 1, Math.floor((atMs - startMs) / MINUTE_MS))]
    const direction = own.size === 0 ? poolDirectionOf(content, poolOf(content.address)) : ownDirectionOf(content, own)
    for (const sums of [flow.total, minute]) if (sums) add(sums, direction, content.reference_value)
  }
  return new Map([...flows].map(([address, { total, minutes }]) => [address, { ...total, minutes }]))
}

const newFlow = () => ({ total: noFlow(), minutes: Array.from({ length: FLOW_MINUTES }, noFlow) })
const noFlow = (): Sums => ({ in: 0, out: 0, minted: 0, burnt: 0, moved: 0, unvalued: 0 })

type Sides = { readonly type: string; readonly from: string; readonly to: string }
type Direction = Exclude<keyof FlowSums, 'unvalued'>

/** Tokens that a pool gives are bought. */
function poolDirectionOf({ type, from, to }: Sides, pool: string | null): Direction {
  if (type === 'mint') return 'minted'
  if (type === 'burn') return 'burnt'
  if (from === pool) return 'in'
  return to === pool ? 'out' : 'moved'
}

/** Tokens that move between two of the reader's own addresses are neither received nor sent. */
function ownDirectionOf({ type, from, to }: Sides, own: ReadonlySet<string>): Direction {
  if (type === 'mint') return 'minted'
  if (type === 'burn') return 'burnt'
  if (own.has(from) === own.has(to)) return 'moved'
  return own.has(to) ? 'in' : 'out'
}

function add(sums: Sums, direction: Direction, value: string | null): void {
  if (value === null) sums.unvalued += 1
  else sums[direction] += Number(value)
}

/** What holders gained in all: bought and minted, less sold and burnt. */
export const netOf = (sums: FlowSums): number => sums.in + sums.minted - sums.out - sums.burnt
