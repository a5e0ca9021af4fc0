import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { type DatabaseSync, StatementSync } from 'node:sqlite'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Draft } from '../../../../src/protocol/updates.ts'
import { defineNote, Notes } from '../../../../src/relay/tape/notes.ts'
import { LOST_BOUND, lostAfter } from '../../../../src/relay/tape/runs.ts'
import { type Entry, type HistoryFilter, TapeError } from '../../../../src/relay/tape/tape.ts'
import { openTapeDatabase } from '../../../../src/relay/tape/tape-database.ts'
import { TapeStore, type TapeStoreOptions } from '../../../../src/relay/tape/tape-store.ts'
import { type TestTape, withWriter } from '../../../support/local-tape.ts'
import { batchesOf, TapeActions } from '../edge/arbitrary-tape.ts'
import { createOwnFolder, openTapeIn, unboundedOptions } from './test-tape.ts'
import { apple, navChange, otherLog, transfer } from './update-drafts.ts'

const at = Date.parse('2026-11-20T12:00:00Z')
const head = defineNote<number>('head')
/** SQLite's code for a flush that failed. */
const IOERR_FSYNC = 1_034
/** SQLite's own default. */
const UNBOUNDED_PAGES = 4_294_967_294

/** A tape whose disk is full at will: SQLite gives the same error for a file that may not grow. */
function openOnSmallDisk() {
  const root = createOwnFolder()
  const dir = join(root, 'tape')
  // The wall clock may be set while the steady one goes on.
  const [clock, warnings] = [{ now: at, stepMs: 0 }, [] as string[]]
  const wallTime = () => clock.now + clock.stepMs
  const options = {
    ...unboundedOptions,
    dataDir: dir,
    now: () => clock.now,
    wallTime,
    log: (kind: string) => void warnings.push(kind),
  }
  let database: DatabaseSync | null = null
  const open = () =>
    openWith((opened) => {
      database = opened
    }, options)
  const allowPages = (count: number) => database?.exec(`PRAGMA main.max_page_count = ${count}`)
  return {
    ...{ root, dir, clock, warnings, open },
    /** As it is on the disk now. */
    openCopy: () => {
      const copy = join(root, `copy-${Math.random()}`)
      cpSync(dir, copy, { recursive: true })
      return openTapeIn(copy, { now: () => clock.now })
    },
    // Below its size a file keeps the pages that it has.
    fill: () => allowPages(1),
    free: () => allowPages(UNBOUNDED_PAGES),
  }
}

/** Opens a tape whose database is handed to the test first. */
function openWith(use: (database: DatabaseSync) => void, options: TapeStoreOptions): TestTape {
  const database = openTapeDatabase(options.dataDir, options.log)
  use(database)
  return withWriter(new TapeStore(database, options))
}

/** Lets every flush of the whole log fail until the test ends. */
function failFlushes(): void {
  const get = StatementSync.prototype.get
  const failing = vi.spyOn(StatementSync.prototype, 'get').mockImplementation(function (this: StatementSync, ...given) {
    if (!this.sourceSQL.includes('TRUNCATE')) return get.apply(this, given)
    throw Object.assign(new Error('disk I/O error'), { code: 'ERR_SQLITE_ERROR', errcode: IOERR_FSYNC })
  })
  onTestFinished(() => failing.mockRestore())
}

/** Appends until the disk is full, and returns all that was written. */
async function appendUntilFull(tape: TestTape): Promise<readonly Entry[]> {
  const entries: Entry[] = []
  for (let nth = 1; tape.isDurable; nth += 1)
    entries.push(...(await tape.append([transfer({ at, nth })], new Notes().set(head, nth))))
  return entries
}

const textsOf = (entries: readonly Entry[]) => entries.map(({ text }) => text)
const allOf = (tape: TestTape) => textsOf(tape.readAfter(0, 100_000))

it('two starts while the disk fails give different numbers, even if the clock is behind the tape', async () => {
  const { open, clock } = openOnSmallDisk()
  const first = open()
  clock.stepMs = 3_600_000
  await first.close()
  const ahead = open()
  await ahead.append([transfer({ at })])
  const end = ahead.end()
  await ahead.close()
  clock.stepMs = 0
  failFlushes()
  const starts = [0, 1].map(() => {
    clock.now += 100
    const tape = open()
    const start = tape.next
    expect([tape.end(), tape.isDurable]).toEqual([end, false])
    void tape.close().catch(() => {})
    return start
  })
  expect((starts[1] ?? 0) - (starts[0] ?? 0)).toBe(200_000)
  expect(starts[0]).toBeGreaterThanOrEqual(end + 1 + LOST_BOUND)
})

it('a copy for a backup is refused when the flush before it fails, and the tape goes on in memory', async () => {
  const { open, warnings } = openOnSmallDisk()
  const tape = open()
  await tape.append([transfer({ at })])
  failFlushes()
  expect(tape.holdForCopy('')).toBe(null)
  expect([tape.isInFile, warnings]).toEqual([false, ['tape_unflushed']])
  await tape.append([transfer({ at })])
  expect(allOf(tape).length).toBe(2)
  await tape.close().catch(() => {})
})

describe('a tape whose disk is full', () => {
  it('says so once, tries to return to the file once a minute, and says that too', async () => {
    const disk = openOnSmallDisk()
    const tape = disk.open()
    onTestFinished(() => tape.close())
    disk.fill()
    await appendUntilFull(tape)
    const isDurableAfter = async (ms: number) => {
      disk.clock.now += ms
      await tape.append([navChange({ at })])
      return tape.isDurable
    }
    expect(await isDurableAfter(60_000)).toBe(false)
    disk.free()
    expect([await isDurableAfter(0), await isDurableAfter(60_000)]).toEqual([false, true])
    expect(disk.warnings).toEqual(['tape_unwritable', 'tape_writable'])
  })

  it.each([
    ['', 1_000],
    [', also where the clock went back meanwhile', -3_600_000],
    [', also where the clock went back a little', -1],
  ])('gives no number twice after a kill: what was in memory is known as lost%s', async (_, stepMs) => {
    const disk = openOnSmallDisk()
    const tape = disk.open()
    disk.fill()
    const entries = await appendUntilFull(tape)
    disk.clock.now += stepMs
    const next = disk.openCopy()
    const lost = entries.at(-1)?.seq ?? 0
    expect(next.end()).toBe(entries.at(-2)?.seq)
    expect(lostAfter(next.runs, lost)).toBe(entries.at(-2)?.seq)
    expect((await next.append([navChange({ at })]))[0]?.seq).toBeGreaterThan(lost)
    await next.close()
    await expect(tape.close()).rejects.toThrow(/1 updates are in memory only/)
  })

  it.each([
    ['', 0],
    [', also where its clock was set', 60_000],
  ])('starts with the file as it is, and goes on in memory%s', async (_, stepMs) => {
    const disk = openOnSmallDisk()
    const tape = disk.open()
    disk.clock.stepMs = stepMs
    const written = await tape.append([transfer({ at: at + stepMs, nth: 1 })])
    await tape.close()
    disk.clock.now += 1_000 + stepMs
    const options = { ...unboundedOptions, dataDir: disk.dir, now: () => disk.clock.now }
    // A smaller file than it has: even what a start writes has no room.
    const restarted = openWith((database) => database.exec('PRAGMA main.max_page_count = 1; PRAGMA main.cache_size = 1'), options)
    onTestFinished(() => restarted.close().catch(() => {}))
    const more = await appendUntilFull(restarted)
    expect(allOf(restarted)).toEqual(textsOf([...written, ...more]))
  })

  it('ends with one clear line when memory is full too', async () => {
    const disk = openOnSmallDisk()
    const tape = disk.open()
    disk.fill()
    await appendUntilFull(tape)
    const large = Array.from({ length: 40 }, (_, nth): Draft => ({ ...otherLog({ at, nth }), data: `0x${'00'.repeat(500_000)}` }))
    await tape.append(large)
    const refused = tape.append([navChange({ at })])
    await expect(refused).rejects.toThrow(TapeError)
    await expect(refused).rejects.toThrow(/cannot be written to the disk \(.*full.*\): 41 updates are in memory only/)
    await tape.close().catch(() => {})
  })

  it('is the tape that it would be on a disk with room, however often the disk is full', async () => {
    await fc.assert(
      fc.asyncProperty(TapeActions, fc.array(fc.nat({ max: 20 }), { maxLength: 6 }), async (actions, changes) => {
        const disk = openOnSmallDisk()
        const [tape, sound] = [disk.open(), openTapeIn(':memory:', { now: () => disk.clock.now })]
        const filter: HistoryFilter = { tokens: new Set([apple]), types: new Set(['transfer', 'log']) }
        const range = { after: 0, before: Number.MAX_SAFE_INTEGER, limit: 10_000, order: 'desc' } as const
        const read = async (tape: TestTape) => ({
          texts: allOf(tape),
          newestFirst: textsOf(tape.read(filter, range).entries),
          keys: [0, 1].map((nth) => textsOf(tape.find({ key: otherLog({ at, nth }).key }))),
          ...{ note: tape.notes.note(head), end: tape.end() },
        })
        let isFull = false
        for (const [index, batch] of batchesOf(actions).entries()) {
          if (changes.includes(index)) {
            isFull = !isFull
            isFull ? disk.fill() : disk.free()
          }
          disk.clock.now += 5_000
          const filling = Array.from({ length: 20 }, (_, nth) => otherLog({ at, nth }))
          const notes = new Notes().set(head, index)
          for (const drafts of [batch, filling])
            expect(textsOf(await tape.append(drafts, notes))).toEqual(textsOf(await sound.append(drafts, notes)))
        }
        expect(await read(tape)).toEqual(await read(sound))
        disk.free()
        disk.clock.now += 60_000
        await tape.append([])
        const copy = disk.openCopy()
        expect(await read(copy)).toEqual(await read(sound))
        for (const opened of [copy, tape, sound]) await opened.close()
      }),
      { numRuns: 20 },
    )
  })
})
