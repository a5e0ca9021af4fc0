import { describe, expect, it, onTestFinished } from 'vitest'
import { HOUR_MS } from '../../../../src/edge/status/hourly-score.ts'
import { SourceUptime } from '../../../../src/edge/status/source-uptime.ts'
import { StatusService } from '../../../../src/edge/status/status-answer.ts'
import { listNote, Notes, newestSealedNote, statusNote } from '../../../../src/tape/notes.ts'
import { openSqliteTape } from '../../../../src/tape/sqlite.ts'
import type { SearchableTape } from '../../../../src/tape/tape.ts'
import { status as told } from '../../tape/update-drafts.ts'
import { openTestEdge } from '../edge-fixture.ts'
import { sealOf, transferAt } from '../fact-drafts.ts'

const random = () => 0.5
const noon = Date.parse('2026-11-20T12:00:00Z')
const secondsBySource = (given: Partial<Record<'pendingLogs' | 'poll' | 'sealed' | 'down', number>>) => ({
  ...{ pendingLogs: 0, poll: 0, sealed: 0, down: 0 },
  ...given,
})

describe('a watch', () => {
  it('says how long it was listened in which way, hour by hour', () => {
    const watch = new SourceUptime([], 'pendingLogs', noon + HOUR_MS - 30_000)
    watch.setSource('poll', noon + HOUR_MS - 500)
    watch.setSource('pendingLogs', noon + HOUR_MS + 1_250)
    expect(watch.seconds(noon, noon + HOUR_MS + 2_000)).toEqual(secondsBySource({ pendingLogs: 29.5, poll: 0.5 }))
    expect(watch.seconds(noon + HOUR_MS, noon + HOUR_MS + 2_000)).toEqual(
      secondsBySource({ pendingLogs: 0.75, poll: 1.25 }),
    )
    expect(watch.seconds(noon - HOUR_MS, noon + HOUR_MS + 2_000)).toEqual(secondsBySource({}))
  })

  it('fills an hour, however often it is asked', () => {
    const watch = new SourceUptime([], 'poll', noon)
    for (let at = noon; at <= noon + HOUR_MS + 10_000; at += 10_000) watch.seconds(noon, at)
    expect(watch.seconds(noon, noon + HOUR_MS + 10_000)).toEqual(secondsBySource({ poll: 3_600 }))
  })

  it('counts for nobody what was slept through', () => {
    const watch = new SourceUptime([], 'poll', noon)
    watch.note(noon + 10_000)
    watch.note(noon + 200_000)
    expect(watch.seconds(noon, noon + 201_000)).toEqual(secondsBySource({ poll: 11 }))
  })

  it('counts no time twice where the clock went back', () => {
    const watch = new SourceUptime([], 'poll', noon)
    watch.note(noon + 10_000)
    watch.note(noon + 5_000)
    expect(watch.seconds(noon, noon + 12_000)).toEqual(secondsBySource({ poll: 12 }))
    watch.note(noon - HOUR_MS)
    expect(watch.seconds(noon - HOUR_MS, noon - HOUR_MS + 3_000)).toEqual(secondsBySource({ poll: 3 }))
  })

  it('gives an hour no more than its own time, however far the clock is set back', () => {
    const watch = new SourceUptime([], 'poll', noon)
    let at = noon
    for (; at < noon + 3_500_000; at += 10_000) watch.note(at)
    for (at -= 1_800_000; at < noon + HOUR_MS; at += 10_000) watch.note(at)
    expect(watch.seconds(noon, at)).toEqual(secondsBySource({ poll: 3_600 }))
  })

  it('keeps the hours that are shown and no more', () => {
    let note = new SourceUptime([], 'poll', noon).note(noon)
    for (let hour = 0; hour < 100; hour += 1)
      note = new SourceUptime(note, 'poll', noon + hour * HOUR_MS).note(noon + hour * HOUR_MS + 1)
    expect(note.map(({ hour }) => hour)).toEqual(
      Array.from({ length: 25 }, (_, index) => noon + (75 + index) * HOUR_MS),
    )
    expect(new SourceUptime(note, 'poll', noon).note(noon)).toEqual([])
  })
})

describe('how the service is', () => {
  async function openStatus(existingTape?: SearchableTape) {
    const { context, clock, tape } = openTestEdge(existingTape ? { existingTape } : {})
    clock.now = noon
    const lives: StatusService[] = []
    const open = async () => {
      const status = await StatusService.open(context, () => 0)
      lives.push(status)
      return status
    }
    onTestFinished(async () => {
      for (const status of lives) await status.close()
    })
    const secondsNow = (status: StatusService) => status.read().score?.at(-1)?.seconds
    const appendStatus = (source: 'pendingLogs' | 'poll') => {
      const draft = { ...told({ at: clock.now }), source }
      return tape.append([draft], new Notes().set(statusNote, draft))
    }
    return { clock, tape, house: context, open, appendStatus, secondsNow }
  }

  it('is all unknown before anything is known', async () => {
    const { open, tape } = await openStatus()
    const { score, ...rest } = (await open()).read()
    expect(rest).toEqual({
      ...{ chain_id: 1, source: 'down', reason: 'unreachable', since: null },
      head: { pending: null, sealed: null, safe: null, finalized: null },
      lag_ms: null,
      stocks: { read_at: null, age_s: null, count: null },
      tape: { epoch: tape.epoch, oldest: `${tape.epoch}.0`, end: `${tape.epoch}.0` },
      clients: { ws: 0, sse: 0, ndjson: 0, text: 0, rpc: 0 },
    })
    expect(score).toHaveLength(1)
  })

  it('says how far behind the newest sealed block is, and never less than nothing', async () => {
    const { open, tape, clock } = await openStatus()
    const status = await open()
    await tape.append([], new Notes().set(newestSealedNote, { number: 7, timestamp: noon / 1_000 + 2 }))
    expect(status.read().lag_ms).toBe(0)
    clock.now = noon + 3_500
    expect(status.read().lag_ms).toBe(1_500)
  })

  it('says when the list was read, in whole seconds, and how many tokens it names', async () => {
    const { open, tape, clock } = await openStatus()
    const status = await open()
    await tape.append([], new Notes().set(listNote, { readAt: noon, order: [] }))
    clock.now += 2_999
    expect(status.read().stocks).toEqual({ read_at: '2026-11-20T12:00:00.000Z', age_s: 2, count: 0 })
  })

  it('goes on with what was written down, and an outage counts for nobody', async () => {
    const { open, appendStatus, clock, secondsNow } = await openStatus()
    const status = await open()
    await appendStatus('pendingLogs')
    clock.now += 10_000
    await appendStatus('poll')
    clock.now += 2_000
    await status.close()
    clock.now += 600_000
    const again = await open()
    clock.now += 1_000
    expect(secondsNow(again)).toEqual(secondsBySource({ pendingLogs: 10, poll: 3 }))
  })

  it('loses of a life that ended without a word what it had not written down', async () => {
    const { open, appendStatus, clock, secondsNow } = await openStatus()
    const status = await open()
    await appendStatus('poll')
    clock.now += 10_000
    await status.save()
    clock.now += 9_999
    const again = await open()
    expect(secondsNow(again)).toEqual(secondsBySource({ poll: 10 }))
  })

  it('is said in far less than a millisecond where a day has been counted', async () => {
    const tape = openSqliteTape({ dir: ':memory:', retentionMs: 100 * HOUR_MS, bound: 10_000, now: () => noon, random })
    onTestFinished(() => tape.close())
    const { open, clock } = await openStatus(tape)
    const status = await open()
    for (let hour = 0; hour < 30; hour += 1) {
      const fact = { ...transferAt({ index: hour }), time: new Date(clock.now).toISOString() }
      await tape.append([fact])
      clock.now += hour
      await tape.append([{ ...sealOf([fact]), time: new Date(clock.now).toISOString() }])
      clock.now += HOUR_MS
    }
    const from = performance.now()
    for (let time = 0; time < 100; time += 1) JSON.stringify(status.read())
    expect((performance.now() - from) / 100).toBeLessThan(1)
    expect(status.read().score?.map(({ sealed }) => sealed)).toEqual([...Array(24).fill(1), 0])
  })
})
