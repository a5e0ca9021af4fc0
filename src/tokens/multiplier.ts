import { inserted, isBefore, keptIn, type Place, type Placed } from './chain-position.ts'

/** Who says what the factor between tokens and shares is. */
export type FactorSource = 'log' | 'call' | 'list'

/** One thing that was said of the factor, and where in the chain. */
export type FactorChange = Placed & {
  readonly source: FactorSource
  readonly phase: 'scheduled' | 'effective' | 'cancelled'
  /** What was held just before, where it was said. */
  readonly from: string | null
  /** Null where the list no longer knows. */
  readonly to: string | null
  /** In seconds; of a schedule alone. */
  readonly effectiveAt: number | null
  /** Of its block, in seconds, as far as is known. */
  readonly timestamp: number | null
  /** Of a schedule: whether chain time has reached it and that was told. */
  readonly matured: boolean
}

/** All that is known of a token's factor: what was held at first, and what was said since, in the order of the chain. */
export type Factor = {
  readonly base: string | null
  /** The last block of which nothing could be read: what a log says was held before it may have begun in there. */
  readonly gap: number | null
  readonly changes: readonly FactorChange[]
}

/** What the factor is somewhere. */
export type Standing = {
  readonly value: string | null
  readonly source: FactorSource | null
  readonly scheduled: FactorChange | null
}

/** Where in the chain it is asked for, and the time of that block in seconds, as far as is known. */
export type Asked = Place & { readonly timestamp: number | null }

/** How many changes of a factor are remembered; of more, the oldest is what was held at first. */
const CHANGES_BOUND = 64

/** On chain a factor is a whole number of this many decimals. */
const DECIMALS = 18

/** What an exact value may have become as a double: of its decimal text, or of the whole number on chain divided. */
const doublesOf = (value: string): readonly number[] => {
  const [whole = '0', fraction = ''] = value.split('.')
  return [Number(value), Number(whole + fraction.slice(0, DECIMALS).padEnd(DECIMALS, '0')) / 10 ** DECIMALS]
}

/** The list says doubles: it contradicts an exact value only where no rounding makes one of the other. */
export const sameDouble = (one: string | null, other: string | null): boolean =>
  one === other ||
  (one !== null && other !== null && doublesOf(one).some((double) => doublesOf(other).includes(double)))

/** The factor just before a place: a schedule counts from the block whose own time has reached it. */
export function factorAt(factor: Factor, asked: Asked): Standing {
  let standing = firstOf(factor)
  for (const change of factor.changes) {
    if (!isBefore(change, asked)) break
    standing = changed(matured(standing, change.timestamp), change)
  }
  return matured(standing, asked.timestamp)
}

/** The factor now: a schedule counts once that was told. */
export function factorNow(factor: Factor): Standing {
  let standing = firstOf(factor)
  for (const change of factor.changes) standing = changed(matured(standing, change.timestamp), change)
  return matured(standing, null)
}

/** With what a log says. A list that had said the same before it was ahead of the log, and no change of its own. */
export function withLog(factor: Factor, change: FactorChange): Factor {
  const before = factor.changes.filter((one) => isBefore(one, change))
  const lastLog = before.findLastIndex(({ source }) => source === 'log')
  const early = new Set(
    before.slice(lastLog + 1).filter(({ source, to }) => source === 'list' && !isBorneOut(to, change)),
  )
  const hidden = hiddenBefore(factor, change)
  if (hidden) return withLog(withWitness(factor, hidden), change)
  const known = factor.changes.find(({ key }) => key === change.key)
  const others = factor.changes.filter((one) => !early.has(one))
  return bounded({
    ...factor,
    changes: inserted(others, known ? { ...change, matured: known.matured && sameSchedule(known, change) } : change),
  })
}

/** Whether a log has replaced this value by the one that is held: whoever still says it was read before the log. */
export function isReplaced({ gap, changes }: Factor, value: string | null): boolean {
  const last = changes.at(-1)
  return (
    last?.source === 'log' && last.phase === 'effective' && last.block > (gap ?? -1) && sameDouble(last.from, value)
  )
}

/** What was changed where nothing could be read, as the first log after it says. */
function hiddenBefore(factor: Factor, change: FactorChange): FactorChange | null {
  const { gap, changes } = factor
  if (gap === null || change.source !== 'log' || change.from === null || change.block <= gap) return null
  const isSince = (one: FactorChange) => one.block >= gap && isBefore(one, change) && one.source !== 'list'
  if (changes.some(isSince)) return null
  const held = factorAt(factor, { block: gap, logIndex: Number.MAX_SAFE_INTEGER, timestamp: change.timestamp }).value
  if (held === change.from) return null
  const place = { block: gap, logIndex: Number.MAX_SAFE_INTEGER, key: null, timestamp: null }
  return {
    ...place,
    source: 'call',
    phase: 'effective',
    from: null,
    to: change.from,
    effectiveAt: null,
    matured: false,
  }
}

/** Nothing could be read up to this block: what was held before it is no more than that. */
export function withGap(factor: Factor, block: number): Factor {
  const { value } = firstOf(factor)
  return {
    ...factor,
    base: sameDouble(factor.base, value) ? value : factor.base,
    gap: Math.max(block, factor.gap ?? 0),
  }
}

/** Whether a log bears out what the list had said before it: it says that this was held until then, and changes it. */
const isBorneOut = (to: string | null, change: FactorChange): boolean =>
  !sameDouble(to, change.to) && (change.from === null || sameDouble(to, change.from))

/** With what nobody's log says: the list, or the contract itself when it was asked. */
export const withWitness = (factor: Factor, change: FactorChange): Factor =>
  bounded({ ...factor, changes: inserted(factor.changes, change) })

/** Without what logs of a block said that it does not hold. */
export function factorKept(factor: Factor, block: number, keys: ReadonlySet<string>): Factor {
  const { base, changes: before } = factor
  const changes = keptIn(before, block, keys)
  if (changes === before) return factor
  const kept = new Set(changes)
  const { value } = firstOf(factor)
  return {
    ...factor,
    base: sameDouble(base, value) ? value : base,
    // What a log says was held before it may have followed from what is gone.
    changes: before.flatMap((change, nth) => {
      const earlier = before[nth - 1]
      if (!kept.has(change)) return []
      return earlier && !kept.has(earlier) ? [{ ...change, from: null }] : [change]
    }),
  }
}

/** Schedules that nothing ended before their time, and of which nobody was told that they are in force. */
export const waiting = ({ changes }: Factor): readonly FactorChange[] =>
  changes.filter(({ phase, matured, effectiveAt }, nth) => {
    if (phase !== 'scheduled' || matured || effectiveAt === null) return false
    const next = changes.slice(nth + 1).find((one) => one.source === 'log' || one.phase !== 'effective')
    // What a contract answers has no time: it answers what stands by then.
    return !next || (next.source !== 'call' && (next.timestamp === null || next.timestamp >= effectiveAt))
  })

/** With a schedule told as effective. */
export const withMatured = (factor: Factor, schedule: FactorChange): Factor => ({
  ...factor,
  changes: factor.changes.map((change) => (change === schedule ? { ...change, matured: true } : change)),
})

/** The first exact word says what was held before it, down to the last digit. */
function firstOf({ base, gap, changes: [first] }: Factor): Standing {
  const reaches = gap === null || (first !== undefined && first.block <= gap)
  if (reaches && first?.source === 'log' && first.from !== null)
    return { value: first.from, source: 'log', scheduled: null }
  const refined = reaches && first?.source === 'call' && first.phase === 'effective' && sameDouble(base, first.to)
  if (refined) return { value: first.to, source: 'call', scheduled: null }
  return { value: base, source: base === null ? null : 'list', scheduled: null }
}

function changed(standing: Standing, change: FactorChange): Standing {
  const { phase, source, to } = change
  if (phase === 'scheduled') return { ...standing, scheduled: change }
  if (phase === 'cancelled') return { ...standing, scheduled: null }
  if (source === 'list')
    return sameDouble(standing.value, to) ? standing : { ...standing, value: to, source: to === null ? null : source }
  if (source === 'call') return standing.value === to ? standing : { ...standing, value: to, source }
  // There is one schedule at a time, and an instant change ends it.
  return { value: to, source, scheduled: null }
}

/** What is scheduled counts only once that was told: before, something may still end it that was not heard yet. */
function matured(standing: Standing, timestamp: number | null): Standing {
  const { scheduled } = standing
  if (!scheduled || scheduled.effectiveAt === null) return standing
  const reached = scheduled.matured && (timestamp === null || timestamp >= scheduled.effectiveAt)
  return reached ? { value: scheduled.to, source: scheduled.source, scheduled: null } : standing
}

const sameSchedule = (one: FactorChange, other: FactorChange): boolean =>
  one.to === other.to && one.effectiveAt === other.effectiveAt

function bounded(factor: Factor): Factor {
  const [oldest, ...rest] = factor.changes
  if (!oldest || factor.changes.length <= CHANGES_BOUND) return factor
  const { value } = factorAt({ ...factor, changes: [oldest] }, rest[0] ?? { ...oldest, timestamp: null })
  return bounded({ ...factor, base: value, changes: rest })
}

/** What was held at first, as the list says it. */
export const factorOf = (base: string | null): Factor => ({ base, gap: null, changes: [] })
