import { nearestName } from './nearest-name.ts'
import { itemsOf, redacted, SettingError } from './setting-readers.ts'
import { durationMs } from './units.ts'

/** `share` is a fraction from 0 to 1. `depth` is the number of blocks that a reorg replaces. */
type Share = { readonly share: number; readonly depth: number }

type FaultDefinition<Value> = {
  /** Value that applies if FAULTS names the fault without a value. */
  readonly fallback: string
  readonly what: string
  readonly read: (value: string) => Value | null
  /** Describes a correct value, in the message about a wrong one. */
  readonly needs: string
}

const SHARE_BOUND = 100
const DEPTH_BOUND = 64
const PERIOD_BOUND_MS = 3_600_000
const LAG_BOUND_BLOCKS = 1_000
/** A fault whose period is not given repeats after this many times its length. */
const LENGTHS_PER_PERIOD = 4

/** Faults of the built-in chain by name. The table in `docs/faults.md` shows these texts. */
export const faultDefinitions = {
  reorg: share(
    '2%',
    'A reorg follows this share of the blocks. One in ten of its transactions is dropped, and the others are sealed again.',
    true,
  ),
  drop: share('5%', 'This share of the pre-confirmed transactions is not sealed.'),
  late: share('5%', 'This share of the transactions is not pre-confirmed, only sealed.'),
  silent: window('30s', 'The node pushes no pre-confirmed logs, and says nothing about it.'),
  refused: window('30s', 'The node refuses `pendingLogs`.'),
  sealed: window('30s', 'Nothing is pre-confirmed: pending is latest, and `pendingLogs` is silent.'),
  disconnect: window('10s', 'The node closes its sockets and accepts none; HTTP continues.'),
  outage: window('20s', 'The node and the list answer every request with 503.'),
  stall: window('40s', 'The chain makes no block. When it continues, it makes all missing blocks at once.'),
  lag: {
    fallback: '3',
    needs: 'a number of blocks such as 3',
    what: 'HTTP is answered by a node that is this many blocks behind.',
    read: (value: string) => {
      const blocks = /^\d{1,6}$/.test(value) ? Number(value) : 0
      return blocks >= 1 && blocks <= LAG_BOUND_BLOCKS ? blocks : null
    },
  },
  gap: window(
    '10s',
    'The relay disconnects its clients, and is absent. It keeps only half as much tape, so clients that reconnect have a gap.',
  ),
} as const satisfies Readonly<Record<string, FaultDefinition<unknown>>>

type FaultDefinitions = typeof faultDefinitions
type FaultName = keyof FaultDefinitions
export type RequestedFaults = { readonly [N in FaultName]?: NonNullable<ReturnType<FaultDefinitions[N]['read']>> }

const faultNames = Object.keys(faultDefinitions) as FaultName[]

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

function share(fallback: string, what: string, hasDepth = false) {
  const read = (value: string): Share | null => {
    const [, percent = '', depth] = /^(\d{1,3}(?:\.\d{1,4})?)%(?:x(\d{1,2}))?$/.exec(value) ?? []
    if (percent === '' || Number(percent) > SHARE_BOUND || (depth !== undefined && !hasDepth)) return null
    const blocks = Number(depth ?? 1)
    return blocks >= 1 && blocks <= DEPTH_BOUND ? { share: Number(percent) / 100, depth: blocks } : null
  }
  return { fallback, what, read, needs: hasDepth ? 'a share such as 2%, or 2%x3 for reorgs of 3 blocks' : 'a share such as 5%' }
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

/** The last `lengthMs` of every `periodMs` of the clock. */
export type RecurringWindow = { readonly lengthMs: number; readonly periodMs: number }

export const isWithin = ({ lengthMs, periodMs }: RecurringWindow, atMs: number): boolean => atMs % periodMs >= periodMs - lengthMs

/** Outside a window, the end of the next one. */
export const windowEndMs = ({ periodMs }: RecurringWindow, atMs: number): number => (Math.floor(atMs / periodMs) + 1) * periodMs
