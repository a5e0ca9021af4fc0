import { nearestName } from './nearest-name.ts'
import type { RecurringWindow } from './recurring-window.ts'
import { itemsOf, redacted, SettingError } from './setting-readers.ts'
import { durationMs } from './units.ts'

/** The share of what could happen that does, from 0 to 1; a reorg also has a depth. */
type Share = { readonly share: number; readonly depth: number }

/** A fault that can be asked for: what it is without a value, what it does, and how its value is read. */
type FaultDefinition<Value> = {
  readonly fallback: string
  readonly what: string
  readonly read: (value: string) => Value | null
  /** What a value must be. */
  readonly needs: string
}

const SHARE_BOUND = 100
const DEPTH_BOUND = 64
const PERIOD_BOUND_MS = 3_600_000
const LAG_BOUND_BLOCKS = 1_000
/** Without a period, a window comes again after this many times its length. */
const LENGTHS_PER_PERIOD = 4

/** Every fault that `FAULTS` and `--faults` know. The table in `docs/faults.md` shows these texts. */
export const faultDefinitions = {
  reorg: {
    ...share('2%', 'a share such as 2%, or 2%x3 for reorgs of 3 blocks', true),
    what: 'A reorg follows this share of the blocks. One in ten of its transactions is gone, the others come again.',
  },
  drop: { ...share('5%', 'a share such as 5%'), what: 'This share of the pre-confirmed transactions is not sealed.' },
  late: {
    ...share('5%', 'a share such as 5%'),
    what: 'This share of the transactions is not pre-confirmed, and comes with the sealed block.',
  },
  silent: window('30s', 'The node pushes no pre-confirmed logs, and says nothing about it.'),
  refused: window('30s', 'The node refuses `pendingLogs`.'),
  sealed: window('30s', 'Nothing is pre-confirmed: pending is latest, and `pendingLogs` is silent.'),
  disconnect: window('10s', 'The node closes its sockets and accepts none; HTTP goes on.'),
  outage: window('20s', 'The node and the list answer nothing but 503.'),
  stall: window('40s', 'The chain makes no block. All that are missing come at once when it goes on.'),
  lag: {
    fallback: '3',
    needs: 'a number of blocks such as 3',
    what: 'HTTP is answered by a node that is so many blocks behind.',
    read: (value: string) => numberUpTo(LAG_BOUND_BLOCKS, value),
  },
  gap: window('10s', 'The relay disconnects its clients and is away. It keeps only half as much tape: who comes back has a gap.'),
} as const satisfies Readonly<Record<string, FaultDefinition<unknown>>>

type FaultDefinitions = typeof faultDefinitions
type FaultName = keyof FaultDefinitions
export type RequestedFaults = { readonly [N in FaultName]?: NonNullable<ReturnType<FaultDefinitions[N]['read']>> }

const faultNames = Object.keys(faultDefinitions) as FaultName[]

/** Reads a list such as `reorg=2%,silent=30s,gap`. */
export const requestedFaults = (text: string): RequestedFaults => {
  const faults: Partial<Record<FaultName, unknown>> = {}
  for (const item of itemsOf(text)) {
    const [given = '', ...values] = item.split('=').map((part) => part.trim())
    const name = faultNames.find((known) => known === given)
    if (!name)
      throw new SettingError(`must be faults such as reorg=2%,silent=30s,gap, and ${redacted(item)} is none${hintFor(given)}`)
    if (name in faults) throw new SettingError(`must name each fault once, and ${name} appears twice`)
    const { fallback, needs, read } = faultDefinitions[name]
    const value = values.length > 1 ? null : read(values[0] ?? fallback)
    if (value === null) throw new SettingError(`must give ${name} ${needs}, and has ${redacted(item)}`)
    faults[name] = value
  }
  return faults as RequestedFaults
}

const hintFor = (given: string): string => {
  const nearest = nearestName(given, faultNames)
  return nearest === undefined ? ` (there are ${faultNames.join(', ')})` : ` (did you mean ${nearest}?)`
}

// Hoisted, since the table comes first.

function share(fallback: string, needs: string, hasDepth = false) {
  const read = (value: string): Share | null => {
    const [, percent = '', depth] = /^(\d{1,3}(?:\.\d{1,4})?)%(?:x(\d{1,2}))?$/.exec(value) ?? []
    if (percent === '' || Number(percent) > SHARE_BOUND || (depth !== undefined && !hasDepth)) return null
    const blocks = Number(depth ?? 1)
    return blocks >= 1 && blocks <= DEPTH_BOUND ? { share: Number(percent) / 100, depth: blocks } : null
  }
  return { fallback, needs, read }
}

function window(fallback: string, what: string) {
  const read = (value: string): RecurringWindow | null => {
    const [length = '', period, ...others] = value.split('/')
    const lengthMs = durationMs(length)
    const periodMs = period === undefined ? lengthMs * LENGTHS_PER_PERIOD : durationMs(period)
    return others.length === 0 && lengthMs > 0 && lengthMs < periodMs && periodMs <= PERIOD_BOUND_MS ? { lengthMs, periodMs } : null
  }
  return { fallback, what, read, needs: 'a time such as 30s, or 30s/5m for 30 s of every 5 minutes' }
}

function numberUpTo(bound: number, text: string): number | null {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : 0
  return value >= 1 && value <= bound ? value : null
}
