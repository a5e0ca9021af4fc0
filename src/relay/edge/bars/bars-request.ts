import type { Hex } from '../../../lib/hex.ts'
import { type BarsQuery, intervals } from '../../../protocol/bars/bars-query.ts'
import type { EdgeContext } from '../live/edge-context.ts'
import { resolveKnownSymbols } from '../select/resolve-symbols.ts'
import type { BarsContext, BarsRange, BarToken } from './bar-reader.ts'

export type BarsRequest = {
  readonly tokens: readonly BarToken[]
  readonly range: Omit<BarsRange, 'expected'>
  readonly chainTime: number
}

type TimePoint = NonNullable<BarsQuery['since']>

/** Finds the tokens, and turns the times into seconds of the chain. Delisted tokens keep their bars. */
export function barsRequestOf(query: BarsQuery, edge: Pick<EdgeContext, 'current' | 'wallTime'>): BarsRequest {
  const { tokens } = resolveKnownSymbols(edge.current, query.symbols ?? ['*'])
  const chainTime = chainTimeOf(edge)
  const range = {
    seconds: intervals[query.interval],
    since: query.since ? secondsOf(query.since, chainTime) : 0,
    until: query.until ? secondsOf(query.until, chainTime) : END,
    order: query.order,
    pools: query.pools ?? null,
    hasOpen: query.open,
  }
  return { tokens: tokensOf(edge, tokens), range, chainTime }
}

/** After every bar that the chain can have. */
const END = 2 ** 40

/** Time of the newest settled block, in seconds; the clock's if there is none yet. */
const chainTimeOf = ({ current, wallTime }: Pick<EdgeContext, 'current' | 'wallTime'>): number =>
  current.newestSettled?.timestamp ?? Math.floor(wallTime() / 1_000)

function secondsOf(point: TimePoint, chainTime: number): number {
  if (point.from === 'start') return 0
  if (point.from === 'now') return END
  return point.from === 'time' ? Math.ceil(point.time / 1_000) : Math.ceil(chainTime - point.ms / 1_000)
}

const tokensOf = ({ current }: Pick<EdgeContext, 'current'>, addresses: ReadonlySet<Hex> | null): readonly BarToken[] =>
  current.tokens
    .filter(({ address }) => addresses === null || addresses.has(address))
    .map(({ address, symbol }) => ({ address, symbol }))

export const barsContextOf = (
  { tape, current, navStaleAfterMs }: Pick<EdgeContext, 'tape' | 'current' | 'navStaleAfterMs'>,
  pause: BarsContext['pause'],
): BarsContext => ({ tape, pause, navStaleAfterMs, finalized: current.head.finalized })
