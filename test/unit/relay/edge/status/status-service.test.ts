import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { StatusService } from '../../../../../src/relay/edge/status/status-service.ts'
import { saveTimePerSource } from '../../../../../src/relay/ingest/save-time-per-source.ts'
import { listOrderNote, listReadNote, newestSettledNote, statusNote } from '../../../../../src/relay/notes/published-notes.ts'
import { HOUR_MS, TimePerSource, timePerSourceNote } from '../../../../../src/relay/notes/time-per-source.ts'
import { Notes } from '../../../../../src/relay/tape/notes.ts'
import { advanceClock } from '../../../../support/virtual-time.ts'
import { navChange, otherLog, status as statusDraft } from '../../tape/update-drafts.ts'
import { openTestEdge } from '../edge-fixture.ts'

const noon = Date.parse('2026-11-20T12:00:00Z')
const secondsBySource = (given: Partial<Record<'pendingLogs' | 'poll' | 'sealed' | 'down', number>>) => ({
  ...{ pendingLogs: 0, poll: 0, sealed: 0, down: 0 },
  ...given,
})

describe('the source uptime', () => {
  it('counts the time in each source, hour by hour', () => {
    const uptime = new TimePerSource([], 'pendingLogs', noon + HOUR_MS - 30_000)
    uptime.setSource('poll', noon + HOUR_MS - 500)
    uptime.setSource('pendingLogs', noon + HOUR_MS + 1_250)
    expect(uptime.seconds(noon, noon + HOUR_MS + 2_000)).toEqual(secondsBySource({ pendingLogs: 29.5, poll: 0.5 }))
    expect(uptime.seconds(noon + HOUR_MS, noon + HOUR_MS + 2_000)).toEqual(secondsBySource({ pendingLogs: 0.75, poll: 1.25 }))
    expect(uptime.seconds(noon - HOUR_MS, noon + HOUR_MS + 2_000)).toEqual(secondsBySource({}))
  })

  const upTo = (from: number, to: number) => Array.from({ length: (to - from) / 10_000 }, (_, turn) => from + turn * 10_000)

  it.each<[what: string, notedAt: readonly number[], readAt: number, seconds: number]>([
    ['does not count time in which the process slept', [10_000, 200_000], 201_000, 11],
    ['counts no time twice when the clock goes back', [10_000, 5_000], 12_000, 12],
    [
      'never counts more than an hour in one hour, with the clock set far back',
      [...upTo(0, 3_500_000), ...upTo(1_700_000, HOUR_MS)],
      HOUR_MS,
      3_600,
    ],
  ])('%s', (_, notedAt, readAt, seconds) => {
    const uptime = new TimePerSource([], 'poll', noon)
    for (const at of notedAt) uptime.note(noon + at)
    expect(uptime.seconds(noon, noon + readAt)).toEqual(secondsBySource({ poll: seconds }))
  })

  it('adds up to a full hour when it is read often', () => {
    const uptime = new TimePerSource([], 'poll', noon)
    for (const at of upTo(0, HOUR_MS + 10_000)) uptime.seconds(noon, noon + at)
    expect(uptime.seconds(noon, noon + HOUR_MS + 10_000)).toEqual(secondsBySource({ poll: 3_600 }))
  })

  it('counts an hour again from its start when the clock goes back to one before', () => {
    const uptime = new TimePerSource([], 'poll', noon)
    uptime.note(noon + 10_000)
    uptime.note(noon - HOUR_MS)
    expect(uptime.seconds(noon - HOUR_MS, noon - HOUR_MS + 3_000)).toEqual(secondsBySource({ poll: 3 }))
  })

  it('keeps only the hours that are shown', () => {
    let note = new TimePerSource([], 'poll', noon).note(noon)
    for (let hour = 0; hour < 100; hour += 1)
      note = new TimePerSource(note, 'poll', noon + hour * HOUR_MS).note(noon + hour * HOUR_MS + 1)
    expect(note.map(({ hour }) => hour)).toEqual(Array.from({ length: 25 }, (_, index) => noon + (75 + index) * HOUR_MS))
    expect(new TimePerSource(note, 'poll', noon).note(noon)).toEqual([])
  })
})

describe('the service status', () => {
  async function openStatus(settings: Parameters<typeof openTestEdge>[0] = {}) {
    const { context, clock, tape } = openTestEdge(settings)
    clock.now = noon
    const opened: StatusService[] = []
    const open = async () => {
      const status = await StatusService.open(context, (failure) => expect.unreachable(String(failure)))
      opened.push(status)
      return status
    }
    onTestFinished(() => {
      for (const status of opened) status.close()
    })
    const timers = new VirtualTimeScheduler()
    /** Saves beside the tape as the process does that writes it. The returned function ends that. */
    const write = () => {
      const saving = saveTimePerSource({ tape, writer: tape.writer, clock: timers, wallTime: () => clock.now }).subscribe()
      return () => saving.unsubscribe()
    }
    const advance = async (ms: number) => {
      clock.now += ms
      await advanceClock(timers, ms)
    }
    const secondsNow = (status: StatusService) => status.read().score?.at(-1)?.seconds
    const appendStatus = (source: 'pendingLogs' | 'poll') => {
      const draft = { ...statusDraft({ at: clock.now }), source }
      return tape.append([draft], new Notes().set(statusNote, draft))
    }
    return { clock, tape, edge: context, open, write, advance, appendStatus, secondsNow }
  }

  it('is unknown on an empty tape', async () => {
    const { open, tape } = await openStatus()
    const { score, ...rest } = (await open()).read()
    expect(rest).toEqual({
      ...{ chain_id: 1, demo: false, source: 'down', reason: 'no_list', started_at: null },
      head: { pending: null, sealed: null, safe: null, finalized: null },
      lag_ms: null,
      stocks: { read_at: null, age_s: null, count: null },
      tape: {
        ...{ epoch: tape.epoch, oldest: `${tape.epoch}.0`, oldest_time: null, end: `${tape.epoch}.0`, messages: 0 },
        ...{ bytes: tape.size.bytes, durable: true },
      },
      clients: { ws: 0, sse: 0, ndjson: 0, text: 0, rpc: 0 },
    })
    expect(score).toHaveLength(1)
  })

  it('reports the lag of the newest sealed block, never negative, and the age of the list in whole seconds', async () => {
    const { open, tape, clock } = await openStatus()
    const status = await open()
    const notes = new Notes().set(newestSettledNote, { number: 7, timestamp: noon / 1_000 + 2 })
    await tape.append([], notes.set(listReadNote, noon).set(listOrderNote, []))
    expect(status.read().lag_ms).toBe(0)
    clock.now = noon + 2_999
    const { lag_ms, stocks } = status.read()
    expect([lag_ms, stocks]).toEqual([999, { read_at: '2026-11-20T12:00:00.000Z', age_s: 2, count: 0 }])
  })

  it('continues from the saved uptime and does not count an outage', async () => {
    const { open, write, appendStatus, clock, secondsNow } = await openStatus()
    const stop = write()
    await appendStatus('pendingLogs')
    clock.now += 10_000
    await appendStatus('poll')
    clock.now += 2_000
    stop()
    clock.now += 600_000
    const again = await open()
    clock.now += 1_000
    expect(secondsNow(again)).toEqual(secondsBySource({ pendingLogs: 10, poll: 3 }))
  })

  it('loses the unsaved uptime of a run that crashed', async () => {
    const { open, write, advance, appendStatus, secondsNow } = await openStatus()
    write()
    await appendStatus('poll')
    await advance(10_000)
    await advance(9_999)
    const again = await open()
    expect(secondsNow(again)).toEqual(secondsBySource({ poll: 10 }))
  })

  it('takes over the earlier hours that another process saved after this one began', async () => {
    const { open, tape, clock } = await openStatus()
    const status = await open()
    await tape.append([navChange({ at: noon - 30_000 })])
    clock.now += 1_000
    const ms = { pendingLogs: 1_000, poll: 0, sealed: 0, down: 0 }
    const saved = [noon - HOUR_MS, noon].map((hour) => ({ hour, ms }))
    await tape.append([], new Notes().set(timePerSourceNote, saved))
    expect(status.read().score?.map(({ seconds }) => seconds)).toEqual([
      secondsBySource({ pendingLogs: 1 }),
      secondsBySource({ down: 1 }),
    ])
  })

  it('is saved without evicting what the ingest keeps', async () => {
    const { write, advance, tape } = await openStatus({ bound: 1 })
    const stop = write()
    await tape.append(
      [1, 2, 3].map((nth) => otherLog({ at: noon, nth })),
      new Notes(),
      0,
    )
    await advance(20_000)
    stop()
    expect(tape.readAfter(0, 10)).toHaveLength(3)
  })
})
