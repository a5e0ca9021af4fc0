import fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Draft, Update } from '../../../../../src/protocol/updates.ts'
import { type HourCounts, HourlyScore } from '../../../../../src/relay/edge/status/hourly-score.ts'
import { LeadHistogram, percentile } from '../../../../../src/relay/edge/status/lead-histogram.ts'
import { TapeScorer } from '../../../../../src/relay/edge/status/tape-scorer.ts'
import { HOUR_MS, hourOf } from '../../../../../src/relay/notes/time-per-source.ts'
import { Notes } from '../../../../../src/relay/tape/notes.ts'
import type { Entry } from '../../../../../src/relay/tape/tape.ts'
import { openLocalTape, type TestTape } from '../../../../support/local-tape.ts'
import { navChange } from '../../tape/update-drafts.ts'
import { amendOf, retractOf, sealedAt, sealOf, transferAt } from '../fact-drafts.ts'

const noon = Date.parse('2026-11-20T12:00:00Z')
/** The bound of a tape that evicts updates. */
const SMALL_BOUND = 12

const iso = (ms: number): string => new Date(ms).toISOString()
const first = transferAt({ index: 1 })
const second = transferAt({ index: 2 })
/** A late fact at a time, of a block that is so much older; null is a block without a time. */
const lateAt = (index: number, now: number, ageMs: number | null) => {
  const fact = sealedAt(transferAt({ index }))
  return { ...fact, late: true, block: { ...fact.block, timestamp: ageMs === null ? null : iso(now - ageMs) } }
}

/** A tape that writes every update at the time of the clock. */
function openScoredTape({ bound = 1_000_000, tapeRetentionMs = 365 * 24 * HOUR_MS } = {}) {
  const clock = { now: noon }
  const tape = openLocalTape({
    dataDir: ':memory:',
    tapeRetentionMs,
    tapeMaxMessages: bound,
    now: () => clock.now,
    random: () => 0.5,
  })
  const write = (...drafts: readonly Draft[]) => tape.append(drafts.map((draft) => ({ ...draft, time: iso(clock.now) })))
  const openTracker = async () => {
    const tracker = await TapeScorer.open(tape, clock.now)
    return { tracker, hours: () => tracker.hours(clock.now) }
  }
  const close = () => tape.close()
  return { clock, tape, write, openTracker, close }
}

function openTestTape(bounds: Parameters<typeof openScoredTape>[0] = {}) {
  const opened = openScoredTape(bounds)
  onTestFinished(opened.close)
  return opened
}

const hourRow = (hour: number, counts: Partial<HourCounts> = {}): HourCounts => ({
  ...{ hour: iso(hour), published: 0, sealed: 0, late: 0, backfilled: 0, retracted: 0, amended: 0 },
  lead_ms: { p50: null, p95: null },
  ...counts,
})
const leadTimes = (p50: number, p95 = p50) => ({ lead_ms: { p50, p95 } })

describe('the score', () => {
  it('counts published, sealed, late, backfilled, retracted and amended facts and their lead', async () => {
    const { clock, write, openTracker } = openTestTape()
    const { hours } = await openTracker()
    await write(first, second, navChange({ at: 0 }))
    clock.now += 1_200
    await write(amendOf(second, second))
    clock.now += 300
    const late = [lateAt(3, clock.now, 0), lateAt(4, clock.now, 60_000), lateAt(5, clock.now, 60_001), lateAt(6, clock.now, null)]
    await write(retractOf(first), ...late, sealOf([second, { index: 3 }]))
    const counts = { published: 2, sealed: 1, late: 2, backfilled: 2, retracted: 1, amended: 1 }
    expect(hours()).toEqual([hourRow(noon, { ...counts, ...leadTimes(1_500) })])
    expect((await openTracker()).hours()).toEqual(hours())
  })

  it('measures the lead of a key that was retracted from its new publication', async () => {
    const { clock, write, openTracker } = openTestTape()
    const { hours } = await openTracker()
    await write(first)
    clock.now += 60_000
    await write(retractOf(first))
    await write(sealOf([first]))
    await write(first)
    clock.now += 250
    await write(sealOf([first], 7, 1))
    expect(hours()).toEqual([hourRow(noon, { published: 2, retracted: 1, sealed: 1, ...leadTimes(250) })])
  })

  it('counts a lead of zero when the clock went back before the seal', async () => {
    const { clock, write, openTracker } = openTestTape()
    const { hours } = await openTracker()
    clock.now += 5_000
    await write(first)
    clock.now -= 3_000
    await write(sealOf([first]))
    expect(hours()).toEqual([hourRow(noon, { published: 1, sealed: 1, ...leadTimes(0) })])
  })

  it('survives one update from a clock far ahead', async () => {
    const { clock, write, openTracker } = openTestTape()
    const { hours } = await openTracker()
    await write(first)
    clock.now += 10_000 * HOUR_MS
    await write(second)
    clock.now = noon + 1_000
    await write(sealOf([first]))
    expect(hours()).toEqual([hourRow(noon, { published: 1, sealed: 1, ...leadTimes(1_000) })])
  })

  it('keeps a bounded number of open keys and drops the oldest', () => {
    const score = new HourlyScore()
    const fold = (draft: Draft, seq: number) => score.add({ seq, update: draft as Update })
    const bound = 131_072
    const published = { ...first, time: iso(noon) }
    for (let seq = 1; seq <= bound + 1; seq += 1) fold({ ...published, key: `k${seq}` }, seq)
    const seal = { ...sealOf([first]), time: iso(noon + 1), keys: ['k1', 'k2', `k${bound + 1}`] }
    fold(seal, bound + 2)
    expect(score.hours(noon, 0)).toMatchObject([{ published: bound + 1, sealed: 2 }])
  })
})

describe('a tape that is read again', () => {
  it('gives the same score after any eviction, whenever the tracker is opened', async () => {
    await fc.assert(
      fc.asyncProperty(history, fc.nat(), bounds, async (steps, at, bound) => {
        const opened = openScoredTape(bound)
        try {
          const cut = at % steps.length
          const fromStart = await opened.openTracker()
          await applySteps(opened, steps.slice(0, cut), fromStart.hours)
          const since = await opened.openTracker()
          await applySteps(opened, steps.slice(cut), fromStart.hours)
          const after = await opened.openTracker()
          const shown = fromStart.hours() ?? []
          // The current hour is shown though eviction removed part of it, so its counts depend on when the tracker was opened.
          if (shown.length > 1 || opened.tape.oldest() === 0) {
            expect(since.hours()).toEqual(shown)
            expect(after.hours()).toEqual(shown)
            expect(shown).toEqual(countNaively(opened.tape, opened.clock.now))
          } else expect([since.hours()?.length, after.hours()?.length]).toEqual([1, 1])
        } finally {
          await opened.close()
        }
      }),
      { numRuns: 200 },
    )
  })

  it('has no score until all pages are read', async () => {
    const { tape, write, openTracker } = openTestTape()
    for (let block = 1; block <= 25; block += 1) {
      await write(...Array.from({ length: 100 }, (_, index) => transferAt({ block, index })))
    }
    const readTexts = vi.spyOn(tape, 'readTexts')
    const { tracker, hours } = await openTracker()
    expect(hours()).toBeNull()
    await write(transferAt({ block: 26 }))
    expect(hours()).toBeNull()
    await tracker.read()
    expect(hours()).toEqual([hourRow(noon, { published: 2_501 })])
    const limits = readTexts.mock.calls.map(([, limit]) => limit)
    expect(limits.length).toBeGreaterThan(20)
    expect(Math.max(...limits)).toBeLessThan(150)
  })

  it('counts an update once that is both read and followed', async () => {
    const { tape, write, clock } = openTestTape()
    const follow = vi.spyOn(tape, 'follow')
    const entries = await write(first)
    const tracker = await TapeScorer.open(tape, clock.now)
    follow.mock.calls[0]?.[0](entries, new Notes(), Number.POSITIVE_INFINITY, [])
    expect(tracker.hours(clock.now)).toEqual([hourRow(noon, { published: 1 })])
  })

  it('catches up when followed updates are evicted before they are read', async () => {
    const { tape, write, clock } = openTestTape({ tapeRetentionMs: HOUR_MS })
    await write(...Array.from({ length: 1_500 }, (_, index) => transferAt({ block: 1, index })))
    const tracker = await TapeScorer.open(tape, clock.now)
    await write(transferAt({ block: 2 }))
    clock.now += 2 * HOUR_MS
    while (tape.oldest() < tape.end()) await tape.append([])
    await tracker.read()
    expect(tracker.hours(clock.now)).not.toBeNull()
  })

  it('is not followed after the tracker is closed', async () => {
    const { write, openTracker } = openTestTape()
    const { tracker, hours } = await openTracker()
    tracker.close()
    await write(first)
    expect(hours()).toEqual([hourRow(noon)])
  })
})

describe('a percentile', () => {
  const histogramOf = (...leads: readonly number[]): LeadHistogram => {
    const histogram = new LeadHistogram()
    for (const ms of leads) histogram.add(ms)
    return histogram
  }

  it('is the lead at the nearest rank, to the millisecond below ten seconds and to three digits above', () => {
    const lead = fc.oneof(fc.nat(9_999), fc.nat(120_000), fc.nat(99_999_999))
    fc.assert(
      fc.property(fc.array(fc.array(lead, { maxLength: 60 }), { minLength: 1, maxLength: 3 }), (parts) => {
        const all = parts.flat().toSorted((a, b) => a - b)
        for (const percent of [50, 95]) {
          const exact = all[Math.ceil((percent * all.length) / 100) - 1] ?? null
          const histograms = parts.map((leads) => histogramOf(...leads))
          expect(percentile(percent, histograms)).toBe(exact === null ? null : toThreeDigits(exact))
        }
      }),
    )
  })

  it('is capped at about a day', () => {
    expect(percentile(50, [histogramOf(10 ** 12)])).toBe(99_900_000)
  })
})

/** Leads are exact below ten seconds, and have three digits above. */
const toThreeDigits = (ms: number): number => (ms < 10_000 ? ms : Number(String(ms).slice(0, 3).padEnd(String(ms).length, '0')))

/** A tape that evicts nothing, one that keeps a few hours, and one that keeps more hours than are shown. */
const bounds = fc.constantFrom(
  {},
  { bound: SMALL_BOUND, tapeRetentionMs: 5 * HOUR_MS },
  { bound: SMALL_BOUND, tapeRetentionMs: 40 * HOUR_MS },
)

/** An action on one of a few keys, and its delay after the action before it. */
type TapeStep = {
  readonly kind: 'publish' | 'late' | 'retract' | 'amend' | 'seal' | 'nav'
  readonly key: number
  readonly afterMs: number
}

const history: fc.Arbitrary<readonly TapeStep[]> = fc.array(
  fc.record({
    kind: fc.constantFrom('publish', 'publish', 'publish', 'late', 'retract', 'amend', 'seal', 'seal', 'nav'),
    key: fc.nat(6),
    afterMs: fc.oneof(
      { weight: 6, arbitrary: fc.nat(2_000) },
      { weight: 3, arbitrary: fc.nat(HOUR_MS) },
      { weight: 2, arbitrary: fc.nat(12 * HOUR_MS) },
    ),
  }),
  { minLength: 1, maxLength: 60 },
)

/** Applies the steps that the state of each key allows, and calls `check` after each. */
async function applySteps(
  { clock, write, tape }: ReturnType<typeof openScoredTape>,
  steps: readonly TapeStep[],
  check: () => unknown,
): Promise<void> {
  for (const { kind, key, afterMs } of steps) {
    clock.now += afterMs
    const fact = transferAt({ index: key })
    const isOpen = stateOfKey(await tape.find({ key: fact.key })) === 'open'
    if (kind === 'nav') await write(navChange({ at: 0 }))
    else if (kind === 'seal') await write(sealOf([fact, { index: 9 }]))
    else if (kind === 'amend') await write(amendOf(fact, fact))
    else if (kind === 'retract') await write(retractOf(fact))
    else if (kind === 'late') await write(lateAt(100 + key, clock.now, 59_998 + key))
    else if (!isOpen) await write(fact)
    check()
  }
}

const stateOfKey = (entries: readonly Entry[]): 'open' | 'over' => (entries.at(-1)?.update.type === 'transfer' ? 'open' : 'over')

/** How much older than a late message its block is; not a number if it is not late. */
function lateAgeMs(update: Update): number {
  if (!('late' in update) || update.late !== true) return Number.NaN
  return update.block?.timestamp ? Date.parse(update.time) - Date.parse(update.block.timestamp) : Number.POSITIVE_INFINITY
}

/** Counts the score from the whole tape, for each hour. */
function countNaively(tape: TestTape, now: number): readonly HourCounts[] {
  const entries = tape.readAfter(0, 100_000) as readonly Entry[]
  const timeOf = ({ update }: Entry) => Date.parse(update.time)
  const current = hourOf(now)
  const begins = entries.filter(({ seq }) => seq > tape.oldest()).map((entry) => hourOf(timeOf(entry)))
  const earliest = Math.min(current, ...begins.filter((hour) => hour >= current - 25 * HOUR_MS))
  const lossless = tape.oldest() === 0 ? earliest : earliest + HOUR_MS
  const start = Math.min(current, Math.max(lossless, current - 24 * HOUR_MS))
  const counted = entries.filter((entry) => timeOf(entry) >= start)
  const rows: HourCounts[] = []
  for (let hour = start; hour <= current; hour += HOUR_MS) {
    const during = counted.filter((entry) => hourOf(timeOf(entry)) === hour)
    const number = (holds: (update: Update) => boolean) => during.filter(({ update }) => holds(update)).length
    const ahead = during.flatMap((seal) => leadTimesOf(seal, counted)).toSorted((a, b) => a - b)
    const rank = (share: number) => {
      const at = ahead[Math.ceil(share * ahead.length) - 1]
      return at === undefined ? null : toThreeDigits(at)
    }
    rows.push({
      hour: iso(hour),
      published: number((update) => 'stage' in update && update.stage === 'preconfirmed'),
      sealed: ahead.length,
      late: number((update) => lateAgeMs(update) <= 60_000),
      backfilled: number((update) => lateAgeMs(update) > 60_000),
      retracted: number(({ type }) => type === 'retract'),
      amended: number(({ type }) => type === 'amend'),
      lead_ms: { p50: rank(0.5), p95: rank(0.95) },
    })
  }
  return rows
}

/** The leads of the keys that a seal is the first to list since their last publication, if they were not retracted. */
function leadTimesOf({ seq, update: seal }: Entry, counted: readonly Entry[]): readonly number[] {
  if (seal.type !== 'seal') return []
  return seal.keys.flatMap((key) => {
    const before = counted.filter((entry) => entry.seq < seq)
    const about = before.filter(({ update }) =>
      'key' in update ? update.key === key : update.type === 'seal' && update.keys.includes(key),
    )
    const last = about.findLast(({ update }) => update.type !== 'amend')?.update
    return last?.type === 'transfer' && last.stage === 'preconfirmed' ? [Date.parse(seal.time) - Date.parse(last.time)] : []
  })
}
