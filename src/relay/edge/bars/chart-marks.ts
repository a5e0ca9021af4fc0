import type { Hex } from '../../../lib/hex.ts'
import { clockStepsMs } from '../../../lib/steady-clock.ts'
import { type Interval, intervals } from '../../../protocol/bars/bars-query.ts'
import type { TimescaleMarks, UdfMarks } from '../../../protocol/bars/udf.ts'
import type { Update, UpdateType } from '../../../protocol/updates.ts'
import { MINUTE_S } from '../../tape/bars/bar-sums.ts'
import type { Entry, Tape } from '../../tape/tape.ts'
import type { EdgeContext } from '../live/edge-context.ts'
import { tapeTimeOf } from '../live/resume-point.ts'
import type { BarsContext, BarToken } from './bar-reader.ts'
import { newestStart } from './chart-history.ts'
import { plainText } from './chart-symbols.ts'

/** Limit of the marks of an answer. The newest are in it. */
const MARKS_BOUND = 500
/** Limit of the marks of one bar, which is the library's own. The newest are kept. */
const MARKS_PER_BAR_BOUND = 10
/** Messages that one read of the tape finds, and limit of the reads for an answer. Marks before the last one are missing. */
const [MESSAGES_PER_READ, READS_BOUND] = [100, 200]
/** A message may be older than the block that it is about by this much, if the clock of the machine was wrong. */
const CLOCK_ERROR_BOUND_MS = 86_400_000

const MARK_SIZE = 14
const LABEL_COLOR = 'white'

/** A thing that happened to a token, at a time in seconds. */
type ChartMark = {
  /** The key of its fact, or the position of its message. */
  readonly id: string
  readonly time: number
  readonly color: 'blue' | 'green' | 'red'
  /** A letter, as a bar has room for no more. */
  readonly label: 'A' | 'F' | 'M' | 'P'
  readonly text: string
}

/** Times in seconds. A chart asks with the starts of its first and its last bar. */
export type MarksRange = { readonly from: number; readonly to: number; readonly resolution: Interval }
type MarksContext = Pick<EdgeContext, 'tape' | 'now' | 'wallTime'> & { readonly pause: () => Promise<unknown> }

/** Returns the marks of a token from `from` to the end of the bar at `to`, oldest first. */
export async function readMarks(context: MarksContext, address: Hex, range: MarksRange): Promise<readonly ChartMark[]> {
  const { from, to, resolution } = range
  const until = startAt(to, intervals[resolution]) + intervals[resolution]
  const marks = [...(await readFactMarks(context, address, from)), ...(await readNavMarks(context, address, { from, until }))]
  return marks
    .filter(({ time }) => time >= from && time < until)
    .sort((a, b) => a.time - b.time || (a.id < b.id ? -1 : 1))
    .slice(-MARKS_BOUND)
}

/** Marks beside the time axis, at their own times. */
export const timescaleMarksOf = (marks: readonly ChartMark[]): TimescaleMarks =>
  marks.map(({ id, time, color, label, text }) => ({ id, time: Math.floor(time), color, label, tooltip: [text] }))

/** Marks on bars. The library shows a mark only at the time of a bar: that of its time, or else the last one before it. */
export async function barMarksOf(
  context: BarsContext,
  token: BarToken,
  marks: readonly ChartMark[],
  resolution: Interval,
): Promise<UdfMarks> {
  const seconds = intervals[resolution]
  const starts = new Map<number, number>()
  for (const time of marks.map((mark) => startAt(mark.time, seconds))) {
    if (starts.has(time)) continue
    const minute = await newestStart(context, token, { seconds: MINUTE_S, until: time + seconds })
    starts.set(time, minute === null ? time : startAt(minute, seconds))
  }
  const placed = marks.map((mark) => ({ ...mark, time: starts.get(startAt(mark.time, seconds)) ?? mark.time }))
  return tableOf([...Map.groupBy(placed, ({ time }) => time).values()].flatMap((ofBar) => ofBar.slice(-MARKS_PER_BAR_BOUND)))
}

const startAt = (time: number, seconds: number): number => Math.floor(time / seconds) * seconds

const tableOf = (marks: readonly ChartMark[]): UdfMarks => ({
  id: marks.map(({ id }) => id),
  time: marks.map(({ time }) => time),
  color: marks.map(({ color }) => color),
  text: marks.map(({ text }) => text),
  label: marks.map(({ label }) => label),
  labelFontColor: marks.map(() => LABEL_COLOR),
  minSize: marks.map(() => MARK_SIZE),
})

const factTypes: ReadonlySet<UpdateType> = new Set(['multiplier', 'pause', 'action'])

/**
 * Reads the newest message of each fact. A late fact is written long after its block, so the end of the range is no bound for
 * the read.
 */
async function readFactMarks(context: MarksContext, address: Hex, from: number): Promise<readonly ChartMark[]> {
  const { tape } = context
  const marks: ChartMark[] = []
  const decided = new Set<string>()
  const wanted = { tokens: new Set([address]), types: factTypes, followersOf: factTypes }
  const range = { after: seqBefore(context, from * 1_000 - CLOCK_ERROR_BOUND_MS), before: tape.end() + 1 }
  for await (const { update } of newestFirst(context, wanted, range)) {
    const key = 'key' in update ? update.key : undefined
    if (update.type === 'seal' || (key !== undefined && decided.has(key))) continue
    if (key !== undefined) decided.add(key)
    const fact = update.type === 'amend' ? { ...update.update, id: update.id, prev: null, time: update.time } : update
    const mark = factMarkOf(fact as Update)
    if (mark) marks.push({ ...mark, id: key ?? update.id, text: plainText(mark.text) })
  }
  return marks
}

/** A change of `frozen` is a message without a fact, so its time is the only one that is known. */
async function readNavMarks(
  context: MarksContext,
  address: Hex,
  { from, until }: { readonly from: number; readonly until: number },
): Promise<readonly ChartMark[]> {
  const marks: ChartMark[] = []
  const wanted = { tokens: new Set([address]), types: new Set<UpdateType>(['nav']) }
  const range = { after: seqBefore(context, from * 1_000), before: seqBefore(context, until * 1_000) + 1 }
  for await (const { update } of newestFirst(context, wanted, range)) {
    if (update.type !== 'nav') continue
    const { nav, before, id, time } = update
    const common = { id, time: secondsOf(time), label: 'F' } as const
    const price = nav.price === null ? '' : ` at ${nav.price} USD`
    if (nav.frozen && !before?.frozen) marks.push({ ...common, color: 'red', text: `NAV frozen${price}` })
    if (nav.frozen === false && before?.frozen) marks.push({ ...common, color: 'green', text: `NAV no longer frozen${price}` })
  }
  return marks
}

async function* newestFirst(
  { tape, pause }: MarksContext,
  wanted: Parameters<Tape['read']>[0],
  { after, before }: { readonly after: number; readonly before: number },
): AsyncGenerator<Entry> {
  let left = before
  for (let reads = 0; reads < READS_BOUND; reads += 1) {
    const { entries, reached } = tape.read(wanted, { after, before: left, order: 'desc', limit: MESSAGES_PER_READ })
    yield* entries
    if (reached === null) return
    left = reached
    await pause()
  }
}

const seqBefore = ({ tape, now, wallTime }: MarksContext, time: number): number =>
  tape.seqBefore(tapeTimeOf({ from: 'time', time }, { now: now(), clockStepsMs: clockStepsMs(wallTime, now) }))

function factMarkOf(update: Update): Omit<ChartMark, 'id'> | null {
  if (update.type === 'action')
    return { time: blockTimeOf(update), color: 'blue', label: 'A', text: `Announcement: ${update.description}` }
  if (update.type === 'pause') {
    const rest = update.paused.length > 0 && update.change === 'unpaused' ? `; still paused: ${update.paused.join(', ')}` : ''
    const text = `${update.change === 'paused' ? 'Paused' : 'Unpaused'}: ${update.features.join(', ')}${rest}`
    return { time: blockTimeOf(update), color: update.change === 'paused' ? 'red' : 'green', label: 'P', text }
  }
  return update.type === 'multiplier' ? multiplierMarkOf(update) : null
}

function multiplierMarkOf(update: Extract<Update, { type: 'multiplier' }>): Omit<ChartMark, 'id'> | null {
  const { phase, previous, multiplier, effective_at, source } = update
  // The first multiplier that the list names is no corporate action.
  if (previous === null && source === 'list') return null
  const change = `${multiplier ?? 'unknown'}, before ${previous ?? 'unknown'}`
  const from = effective_at === null ? '' : `, from ${effective_at}`
  if (phase === 'scheduled')
    return { time: blockTimeOf(update), color: 'blue', label: 'M', text: `Multiplier announced: ${change}${from}` }
  if (phase === 'cancelled')
    return { time: blockTimeOf(update), color: 'red', label: 'M', text: `Announced multiplier cancelled${from}` }
  const time = effective_at === null ? blockTimeOf(update) : secondsOf(effective_at)
  return { time, color: 'green', label: 'M', text: `Multiplier in effect: ${change}` }
}

/** The time of the block, or of the message if the change was read from the list. */
const blockTimeOf = ({
  block,
  time,
}: {
  readonly block?: { readonly timestamp: string | null } | undefined
  readonly time: string
}) => secondsOf(block?.timestamp ?? time)

const secondsOf = (time: string): number => Date.parse(time) / 1_000
