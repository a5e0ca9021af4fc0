import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync, StatementSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Update, UpdateType } from '../../../../src/protocol/updates.ts'
import { defineNote, Notes } from '../../../../src/relay/tape/notes.ts'
import { LOST_BOUND, lostAfter, skippedByTime } from '../../../../src/relay/tape/runs.ts'
import { type Entry, type FoundEntries, type HistoryFilter, type SeqRange, TapeError } from '../../../../src/relay/tape/tape.ts'
import { SCHEMA_VERSION } from '../../../../src/relay/tape/tape-database.ts'
import { openTapeStore } from '../../../../src/relay/tape/tape-store.ts'
import type { TestTape } from '../../../support/local-tape.ts'
import { tapeContract } from './tape-contract.ts'
import { createOwnFolder, openTapeIn, openTestTape, unboundedOptions } from './test-tape.ts'
import { apple, pause, seal, token, transfer } from './update-drafts.ts'

const head = defineNote<number>('head')
const at = Date.parse('2026-11-20T12:00:00Z')

tapeContract('the tape of one process', openTestTape)

describe('the tape of one process', () => {
  it.each<[string, number, (files: { open: string; closed: string }, dir: string) => void]>([
    ['an end', 7_999_009, () => {}],
    ['a kill', 7_999_009, ({ open }, dir) => cpSync(open, dir, { recursive: true })],
    // What was not flushed yet is gone.
    ['a power loss', 3, ({ open }, dir) => cpSync(join(open, 'tape.sqlite'), join(dir, 'tape.sqlite'))],
    ['the restore of a backup', 3, ({ closed }, dir) => cpSync(closed, dir, { recursive: true })],
  ])('never gives a number twice, and knows which were lost: after %s', async (_, knownEnd, replaceFiles) => {
    const [root, clock] = [createOwnFolder(), { now: at }]
    const [dir, files] = [join(root, 'tape'), { open: join(root, 'open'), closed: join(root, 'closed') }]
    const open = () => openTapeIn(dir, { now: () => clock.now })
    const first = open()
    await first.append([1, 2, 3].map((nth) => transfer({ at, nth })))
    await first.close()
    cpSync(dir, files.closed, { recursive: true })
    clock.now += 7_999
    const second = open()
    expect([second.end(), second.next]).toEqual([3, 7_999_000])
    for (let nth = 0; nth < 10; nth += 1) await second.append([transfer({ at, nth })])
    expect(second.end()).toBe(7_999_009)
    cpSync(dir, files.open, { recursive: true })
    await second.close()
    if (replaceFiles.length > 0) rmSync(dir, { recursive: true })
    mkdirSync(dir, { recursive: true })
    replaceFiles(files, dir)
    clock.now += 60_000
    const third = open()
    onTestFinished(() => third.close())
    expect([third.epoch, third.end(), third.next]).toEqual([first.epoch, knownEnd, 67_999_000])
    const [entry] = await third.append([transfer({ at })])
    expect(entry?.seq).toBe(67_999_000)
    const isKnown = knownEnd !== 3
    expect(
      [3, 4, 7_998_999, 7_999_000, 7_999_009, 7_999_010, 67_998_999, 67_999_000].map((seq) => lostAfter(third.runs, seq)),
    ).toEqual([null, 3, 3, isKnown ? null : 3, isKnown ? null : 3, knownEnd, knownEnd, null])
  })

  it('forgets runs that wrote nothing or are evicted, and goes on at its end if the clock is wrong', async () => {
    const [dir, clock] = [createOwnFolder(), { now: at }]
    const open = () => openTapeIn(dir, { tapeRetentionMs: 3_600_000, now: () => clock.now })
    const runsIn = () => {
      const database = new DatabaseSync(join(dir, 'tape.sqlite'))
      const runs = database.prepare('SELECT first, previous_end FROM runs').all()
      database.close()
      return runs.map(({ first, previous_end: end }) => [first, end])
    }
    const run = async (ms: number, updates: number) => {
      clock.now += ms
      const tape = open()
      for (let nth = 0; nth < updates; nth += 1) await tape.append([transfer({ at: clock.now })])
      await tape.close()
    }
    await run(0, 2)
    await run(200, 0)
    await run(200, 0)
    expect(runsIn()).toEqual([
      [1, 0],
      [400_000, 2],
    ])
    await run(1, 1)
    expect(runsIn().at(-1)).toEqual([401_000, 2])
    await run(-3_600_000, 1)
    const first = 401_001 + LOST_BOUND + skippedByTime(clock.now)
    expect(runsIn().at(-1)).toEqual([first, 401_000])
    await run(10_800_000, 2)
    await run(200, 0)
    expect(runsIn()).toEqual([
      [7_200_401_000, first],
      [7_200_601_000, 7_200_401_001],
    ])
  })

  it('reports an empty file, which begins a new epoch', async () => {
    const dir = createOwnFolder()
    const warnings: unknown[] = []
    const open = () => openTapeIn(dir, { log: (...line) => warnings.push(line) })
    await open().close()
    await open().close()
    expect(warnings).toEqual([])
    writeFileSync(join(dir, 'tape.sqlite'), '')
    await open().close()
    expect(warnings).toEqual([['tape_empty', { file: join(dir, 'tape.sqlite') }]])
  })

  it('makes an epoch from any random number', async () => {
    for (const random of [() => 0, () => 1 - 2 ** -53]) {
      const tape = openTapeIn(':memory:', { random })
      expect(tape.epoch).toMatch(/^[0-9a-z]{6}$/)
      await tape.close()
    }
  })
})

/** The history of apple with these types, and the followers of keys published as `followersOf`. */
const historyOf = async (tape: TestTape, types: readonly UpdateType[], followersOf?: readonly UpdateType[]) => {
  const followed = followersOf && { followersOf: new Set(followersOf) }
  const filter = { tokens: new Set([apple]), types: new Set(types), ...followed }
  const found: Entry[] = []
  for (let after: number | null = 0; after !== null; ) {
    const page: FoundEntries = tape.read(filter, { after, before: tape.end() + 1, order: 'asc', limit: 100 })
    found.push(...page.entries)
    after = page.reached
  }
  return found
}

it('a batch of updates and notes is one transaction', async () => {
  const { tape, close } = await openTestTape({ tapeMaxMessages: 50 })
  onTestFinished(close)
  await tape.append(Array.from({ length: 60 }, (_, nth) => transfer({ at, nth })))
  const run = vi.spyOn(StatementSync.prototype, 'run')
  onTestFinished(() => run.mockRestore())
  // It evicts as well.
  await tape.append(
    [...Array.from({ length: 100 }, (_, nth) => transfer({ at, nth: 60 + nth })), seal({ at, nth: 1 })],
    new Notes().set(head, 1),
  )
  const texts = run.mock.contexts.map((statement) => (statement as StatementSync).sourceSQL)
  expect(texts.filter((text) => /^(BEGIN|COMMIT)/.test(text))).toEqual(['BEGIN IMMEDIATE', 'COMMIT'])
})

describe('the index', () => {
  const shelvesIn = (dir: string) => {
    const database = new DatabaseSync(join(dir, 'tape.sqlite'))
    const shelves = database.prepare('SELECT shelf FROM shelves ORDER BY shelf').all()
    database.close()
    return shelves.map(({ shelf }) => shelf)
  }
  const manyTransfers = (count: number) => Array.from({ length: count }, (_, nth) => transfer({ at, nth }))

  it('finds the same after eviction, a restart and a crash', async () => {
    const fixture = await openTestTape({ tapeMaxMessages: 3_000 })
    onTestFinished(() => fixture.close())
    const rare = [pause({ at, nth: 1 }), seal({ at, nth: 1, types: ['pause', 'transfer'] })]
    const spared = await fixture.tape.append([pause({ at, nth: 1 }), transfer({ at, nth: 1 }), ...rare.slice(1)])
    for (let nth = 0; nth < 12; nth += 1) await fixture.tape.append(manyTransfers(500))
    const [late] = await fixture.tape.append([pause({ at, nth: 2 })])
    const expected = [spared[0], spared[2], late]
    expect(await historyOf(fixture.tape, ['pause'], ['pause'])).toEqual(expected)
    const reopened = await fixture.reopen()
    expect(await historyOf(reopened, ['pause'], ['pause'])).toEqual(expected)
    const transfers = (await reopened.readAfter(0, 10_000)).filter(({ update }) => update.type === 'transfer').length
    const filter = { tokens: null, types: new Set<UpdateType>(['transfer']) }
    expect(reopened.count(filter, 0, 10_000)).toEqual({ least: transfers, most: transfers })
    const tape = await fixture.crash()
    expect(await historyOf(tape, ['pause'], ['pause'])).toEqual(expected)
    const kept = (await tape.readAfter(0, 10_000)).filter(({ update }) => update.type === 'transfer')
    expect(await historyOf(tape, ['transfer'])).toEqual(kept)
  })

  it('writes each full shelf once and deletes it once all its updates are evicted', async () => {
    const dir = createOwnFolder()
    let now = at
    const open = () => openTapeIn(dir, { tapeRetentionMs: 3_600_000, now: () => now })
    const tape = open()
    for (let nth = 0; nth < 5; nth += 1) await tape.append(manyTransfers(1_000))
    await tape.append([])
    await tape.close()
    expect(shelvesIn(dir)).toEqual([0, 1, 2, 3])
    now += 7_200_000
    const later = open()
    for (let nth = 0; nth < 7; nth += 1) await later.append([])
    expect(await historyOf(later, ['transfer'])).toEqual([])
    await later.close()
    expect(shelvesIn(dir)).toEqual([])
  })

  it('reads updates that are nested more deeply than the JSON functions of SQLite allow', async () => {
    const fixture = await openTestTape()
    onTestFinished(() => fixture.close())
    const record = JSON.parse(`${'['.repeat(1_400)}${']'.repeat(1_400)}`)
    const [deep] = await fixture.tape.append([{ ...token({ at }), token: { symbol: 'AAPLc', record } }])
    for (const open of [fixture.crash, fixture.reopen]) expect(await historyOf(await open(), ['token'])).toEqual([deep])
    const [next] = await fixture.tape.append([token({ at })])
    expect(next?.update.prev).toBe(deep?.update.id)
  })

  it.each(['asc', 'desc'] as const)('is searched in parts that end at a number that was given: %s', async (order) => {
    const store = openTapeStore({ ...unboundedOptions, dataDir: ':memory:' })
    // One update in each of 600 shelves, which is more than two searches read.
    const given = Array.from({ length: 600 }, (_, nth) => 1_024 * (nth + 1) + nth)
    const entries = given.map((seq) => {
      const update = { ...transfer({ at }), id: `${store.epoch}.${seq}`, prev: null } as Update
      return { seq, update, text: JSON.stringify(update) }
    })
    store.write({ entries, notes: new Notes(), keepAfter: 0 })
    const ends: number[] = []
    let range: SeqRange = { after: 0, before: store.end() + 1, order, limit: 100 }
    const filter: HistoryFilter = { tokens: null, types: new Set(['pause']) }
    for (let { reached } = store.read(filter, range); reached !== null; { reached } = store.read(filter, range)) {
      ends.push(reached)
      range = { ...range, [order === 'asc' ? 'after' : 'before']: reached }
    }
    store.close()
    expect(ends).toEqual((order === 'asc' ? [255, 510] : [344, 89]).map((nth) => given[nth]))
  })

  it('does not contain a failed append', async () => {
    const tape = openRefusing("INSERT ON notes WHEN NEW.name = 'head'")
    await expect(tape.append([pause({ at, nth: 4 })], new Notes().set(head, 1))).rejects.toThrow(TapeError)
    // The tape holds no publication of the key, so its seal may match any type.
    const [sealed] = await tape.append([seal({ at, nth: 4, types: ['pause'] })])
    expect(await historyOf(tape, ['pause'], ['transfer'])).toEqual([sealed])
  })
})

/** A tape whose file refuses a statement, because a test cannot fill the disk on time. */
function openRefusing(when: string, how = 'ABORT', options: { readonly tapeMaxMessages?: number } = {}) {
  const dir = createOwnFolder()
  void openTapeIn(dir).close()
  inDatabase(dir, `CREATE TRIGGER refusal BEFORE ${when} BEGIN SELECT RAISE(${how}, 'disk is full'); END`)
  const tape = openTapeIn(dir, options)
  onTestFinished(() => tape.close())
  return tape
}

/** Runs SQL on the file of a closed tape. */
function inDatabase(dir: string, sql: string): void {
  const database = new DatabaseSync(join(dir, 'tape.sqlite'))
  database.exec(sql)
  database.close()
}

/** The error of opening a folder, which must be one readable line. */
function openErrorOf(dir: string): string {
  let tape: TestTape
  try {
    tape = openTapeIn(dir)
  } catch (failure) {
    expect(failure).toBeInstanceOf(TapeError)
    const { message } = failure as TapeError
    expect(message).toContain(dir)
    expect(message).not.toMatch(/\n| at .*:\d+/)
    return message
  }
  void tape.close()
  throw new Error('the tape opened')
}

describe('opening fails with one clear line', () => {
  it('when this process has the tape open', async () => {
    const dir = createOwnFolder()
    const tape = openTapeIn(dir)
    expect(openErrorOf(dir)).toMatch(/in use by another stocktape/)
    await tape.append([transfer({ at })])
    await tape.close()
    const next = openTapeIn(dir)
    expect(next.end()).toBe(1)
    await next.close()
  })

  const otherSchema = (version: number) => (file: string) => inDatabase(dirname(file), `PRAGMA user_version = ${version}`)
  const schemaLine = (version: number) =>
    new RegExp(
      `^DATA_DIR /\\S+ holds a tape of schema ${version}, this stocktape reads schema ${SCHEMA_VERSION}: name another DATA_DIR or delete the folder$`,
    )
  const replaceBy = (write: (path: string) => void) => (path: string) => {
    rmSync(path, { recursive: true })
    write(path)
  }

  // Under the second, creating folders recursively never returns.
  it.each(['/sys/stocktape', '/proc/stocktape/tape'])('when the folder cannot be created: %s', (dir) => {
    expect(openErrorOf(dir)).toMatch(/cannot hold the tape/)
  })

  it.each<[string, (file: string) => void, RegExp]>([
    [
      'when the folder is a file',
      (file) => replaceBy((dir) => writeFileSync(dir, 'a file'))(dirname(file)),
      /cannot hold the tape/,
    ],
    ['when the file is a folder', replaceBy(mkdirSync), /cannot hold the tape/],
    ['when the tape has an older schema', otherSchema(SCHEMA_VERSION - 1), schemaLine(SCHEMA_VERSION - 1)],
    ['when the tape has a newer schema', otherSchema(SCHEMA_VERSION + 1), schemaLine(SCHEMA_VERSION + 1)],
    ['when the file is not a database', (file) => writeFileSync(file, 'no database '.repeat(100)), /is damaged .*put a backup in/],
    ['when the file is truncated', (file) => writeFileSync(file, readFileSync(file).subarray(0, 6_000)), /is damaged/],
    [
      'when the file is of another program',
      replaceBy((file) => inDatabase(dirname(file), 'CREATE TABLE tape (id INTEGER PRIMARY KEY, artist TEXT)')),
      /cannot hold the tape/,
    ],
    ['when its pages are garbage', (file) => writeFileSync(file, readFileSync(file).fill(0xa5, 4_096)), /is damaged/],
    [
      'when a note is no longer JSON',
      (file) => inDatabase(dirname(file), "UPDATE notes SET value = '{'"),
      /holds a tape that cannot be read/,
    ],
  ])('%s', async (_, spoil, line) => {
    const dir = createOwnFolder()
    const tape = openTapeIn(dir)
    await tape.append(
      Array.from({ length: 50 }, (_each, nth) => transfer({ at, nth })),
      new Notes().set(head, 1),
    )
    await tape.close()
    spoil(join(dir, 'tape.sqlite'))
    expect(openErrorOf(dir)).toMatch(line)
  })
})

it('a copy that begins in the middle of another tape still knows its beginning after a restart', async () => {
  const dataDir = createOwnFolder()
  const origin = { epoch: 'k3f9a1', epochBeganAt: at, end: 7 }
  await openTapeIn(dataDir, { origin }).close()
  const again = openTapeIn(dataDir)
  expect([again.epoch, again.oldest(), again.end()]).toEqual(['k3f9a1', 7, 7])
  expect(again.oldestTime).toBeNull()
  const [first] = await again.append([transfer({ at }), transfer({ at: at + 1_000 })])
  expect(again.oldestTime).toBe(first?.update.time)
  await again.close()
})

describe('an append that the disk refuses', () => {
  it.each(['ABORT', 'ROLLBACK'])('is undone and throws a TapeError when it ends in %s', async (how) => {
    const tape = openRefusing("INSERT ON notes WHEN NEW.name = 'head'", how)
    const failure = await tape.append([transfer({ at })], new Notes().set(head, 1)).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(TapeError)
    expect(String(failure)).toContain('disk is full')
    expect(tape.end()).toBe(0)
    const [entry] = await tape.append([transfer({ at })])
    expect(entry?.seq).toBe(1 + LOST_BOUND + skippedByTime(at))
  })

  it('does not move oldest', async () => {
    const tape = openRefusing("INSERT ON meta WHEN NEW.name = 'oldest'", 'ABORT', { tapeMaxMessages: 1 })
    await tape.append([transfer({ at })])
    await expect(tape.append([transfer({ at })])).rejects.toThrow(TapeError)
    expect(await tape.readAfter(0, 10)).toHaveLength(1)
    expect(tape.oldest()).toBe(0)
  })
})

describe('a clock that is set back', () => {
  it('does not hide earlier updates from a search by time', async () => {
    const tape = openTapeIn(':memory:')
    await tape.append([transfer({ at: at + 5_000 })])
    await tape.append([transfer({ at })])
    await tape.append([transfer({ at: at + 2_000 })])
    expect(await tape.seqBefore(at + 1_000)).toBe(0)
    await tape.close()
  })
})

it('an update of a run whose clock was set to the right time is as old after a restart as it is', async () => {
  const [dir, clock] = [createOwnFolder(), { now: at, wall: at }]
  const open = () => openTapeIn(dir, { tapeRetentionMs: 3_600_000, now: () => clock.now, wallTime: () => clock.wall })
  const first = open()
  await first.append([transfer({ at: clock.wall })])
  clock.now += 60_000
  clock.wall = clock.now + 30 * 3_600_000
  const [entry] = await first.append([transfer({ at: clock.wall })])
  await first.close()
  clock.wall += 60_000
  clock.now = clock.wall
  const second = open()
  const [last] = await second.append([transfer({ at: clock.wall })])
  expect([(await second.readAfter(0, 10)).length, second.oldest()]).toEqual([3, 0])
  const seqsBefore = [second.seqBefore(clock.now - 90_000), second.seqBefore(clock.now - 30_000)]
  expect(seqsBefore).toEqual([entry?.seq, last?.seq].map((seq = 0) => seq - 1))
  await second.close()
})

it('the first run of a tape that continues an epoch begins at the clock’s number, because others may have been given', async () => {
  const origin = { epoch: 'abc123', epochBeganAt: at - 5_000, end: 0 }
  const tape = openTapeIn(':memory:', { now: () => at, origin })
  const [entry] = await tape.append([transfer({ at })])
  expect(entry?.seq).toBeGreaterThanOrEqual(5_000_000)
})
