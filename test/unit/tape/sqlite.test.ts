import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { UpdateType } from '../../../src/protocol/updates.ts'
import { defineNote, Notes } from '../../../src/tape/notes.ts'
import { openSqliteTape } from '../../../src/tape/sqlite.ts'
import { type Entry, type SearchableTape, TapeError } from '../../../src/tape/tape.ts'
import { tapeContract } from './tape-contract.ts'
import { createTempFolder, openTestTape, unboundedOptions } from './test-tape.ts'
import { apple, navChange, pause, seal, status, tesla, transfer } from './update-drafts.ts'

const head = defineNote<number>('head')
const at = Date.parse('2026-11-20T12:00:00Z')
/** A folder that goes with the test. */
const createOwnFolder = (): string => {
  const dir = createTempFolder()
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

tapeContract('the embedded tape', openTestTape)

describe('the embedded tape', () => {
  it('skips ahead by 2^20 after an unclean end, each time', async () => {
    const place = await openTestTape()
    onTestFinished(() => place.close())
    await place.tape.append([transfer({ at })])
    const [second] = await (await place.crash()).append([transfer({ at })])
    await place.crash()
    const [third] = await (await place.crash()).append([transfer({ at })])
    expect(second?.seq).toBe(2 ** 20 + 2)
    expect(third?.seq).toBe(3 * 2 ** 20 + 3)
  })

  it('is still there after a process was killed', async () => {
    const dir = createOwnFolder()
    const script = `
      import { openSqliteTape } from ${JSON.stringify(join(process.cwd(), 'src/tape/sqlite.ts'))}
      import { defineNote, Notes } from ${JSON.stringify(join(process.cwd(), 'src/tape/notes.ts'))}
      const head = defineNote('head')
      const tape = openSqliteTape({ dir: ${JSON.stringify(dir)}, retentionMs: 1e12, bound: 1e6, now: Date.now, random: () => 0.5 })
      await tape.append([${JSON.stringify(transfer({ at }))}], new Notes().set(head, 9))
      process.stdout.write(tape.epoch)
      process.kill(process.pid, 'SIGKILL')
    `
    const child = spawnSync(process.execPath, ['--no-warnings', '--input-type=module', '-e', script])
    expect(child.signal).toBe('SIGKILL')
    const tape = openSqliteTape({ ...unboundedOptions, dir })
    expect(tape.epoch).toBe(String(child.stdout))
    expect(tape.note(head)).toBe(9)
    expect(await tape.readAfter(0, 10)).toHaveLength(1)
    expect(tape.end()).toBe(2 ** 20 + 1)
    await tape.close()
  })

  it('keeps nothing in memory but is a tape all the same', async () => {
    const tape = openSqliteTape({ ...unboundedOptions, dir: ':memory:' })
    const entries = await tape.append([transfer({ at }), navChange({ at })])
    expect(await tape.readAfter(0, 10)).toEqual(entries)
    await tape.close()
    const other = openSqliteTape({ ...unboundedOptions, dir: ':memory:', random: () => 0.1 })
    expect(other.end()).toBe(0)
    expect(other.epoch).not.toBe(tape.epoch)
    await other.close()
  })

  it('makes the folder it is given', async () => {
    const dir = join(createOwnFolder(), 'a', 'b')
    const tape = openSqliteTape({ ...unboundedOptions, dir })
    await tape.close()
    expect(readFileSync(join(dir, 'tape.sqlite')).subarray(0, 15).toString()).toBe('SQLite format 3')
  })

  it('takes any dice', async () => {
    for (const random of [() => 0, () => 1 - 2 ** -53]) {
      const tape = openSqliteTape({ ...unboundedOptions, dir: ':memory:', random })
      expect(tape.epoch).toMatch(/^[0-9a-z]{6}$/)
      await tape.close()
    }
  })
})

describe('a tape from before messages could be looked up', () => {
  /** The file as it was made then, with two messages on it. */
  const formerTape = async () => {
    const dir = createOwnFolder()
    const tape = openSqliteTape({ ...unboundedOptions, dir })
    const entries = await tape.append([transfer({ at, nth: 4 }), navChange({ at })], new Notes().set(head, 9))
    await tape.close()
    const database = new DatabaseSync(join(dir, 'tape.sqlite'))
    database.exec('DROP INDEX tape_subject; ALTER TABLE tape DROP COLUMN subject')
    database.close()
    return { dir, entries, epoch: tape.epoch }
  }

  it('goes on as it was, and what it holds can be looked up', async () => {
    const { dir, entries, epoch } = await formerTape()
    for (const end of [2, 3]) {
      const tape = openSqliteTape({ ...unboundedOptions, dir })
      expect(tape.epoch).toBe(epoch)
      expect(tape.end()).toBe(end)
      expect(tape.note(head)).toBe(9)
      expect((await tape.readAfter(0, 10)).slice(0, 2)).toEqual(entries)
      expect(tape.readKey(transfer({ at, nth: 4 }).key)[0]).toEqual(entries[0])
      await tape.append([transfer({ at, nth: end })])
      expect(tape.readKey(transfer({ at, nth: end }).key)).toHaveLength(1)
      await tape.close()
    }
  })
})

/** The history of a tape that is about apple and of these types, and what may follow what was told as one of them. */
const historyOf = async (tape: SearchableTape, types: readonly UpdateType[], followersOf?: readonly UpdateType[]) => {
  const followed = followersOf && { followersOf: new Set(followersOf) }
  const read = tape.openReader({ tokens: new Set([apple]), types: new Set(types), ...followed })
  const found: Entry[] = []
  for (let after: number | null = 0; after !== null; ) {
    const { entries, reached } = await read({ after, before: tape.end() + 1, order: 'asc', limit: 100 })
    found.push(...entries)
    after = reached
  }
  return found
}

describe('a tape from before its history was filed shelf by shelf', () => {
  /** The file as it was made then. */
  const formerTape = async () => {
    const dir = createOwnFolder()
    const tape = openSqliteTape({ ...unboundedOptions, dir })
    const kinds = [
      pause({ at, nth: 4 }),
      transfer({ at, nth: 4 }),
      status({ at }),
      seal({ at, nth: 4, types: ['pause'] }),
    ]
    const entries = await tape.append([...kinds, ...Array.from({ length: 3_000 }, (_, nth) => transfer({ at, nth }))])
    await tape.close()
    const database = new DatabaseSync(join(dir, 'tape.sqlite'))
    database.exec(`
      DROP TABLE channels; DROP TABLE shelves; ALTER TABLE tape RENAME TO later;
      CREATE TABLE tape (
        seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, evictable INTEGER NOT NULL, text TEXT NOT NULL, subject TEXT,
        channel INTEGER NOT NULL
      ) STRICT;
      INSERT INTO tape SELECT *, seq * 7 FROM later; DROP TABLE later;
      UPDATE tape SET subject = json_extract(text, '$.address') || ' ' || 4 WHERE json_extract(text, '$.type') = 'seal';
      CREATE INDEX tape_channel ON tape (seq / 1024, channel)
    `)
    database.close()
    return { dir, entries }
  }

  it('goes on as it was, and all that it holds is found', async () => {
    const { dir, entries } = await formerTape()
    for (const more of [1, 2]) {
      const tape = openSqliteTape({ ...unboundedOptions, dir })
      const [, appended] = await tape.append([transfer({ at, nth: 7 }), pause({ at, nth: more })])
      const found = await historyOf(tape, ['pause', 'status'], ['pause'])
      expect(found.slice(0, 3)).toEqual([entries[0], entries[2], entries[3]])
      expect(found.slice(3).at(-1)).toEqual(appended)
      expect(found).toHaveLength(3 + more)
      await tape.close()
    }
  })

  it('finds the seals of a block among those that were written since', async () => {
    const { dir, entries } = await formerTape()
    const tape = openSqliteTape({ ...unboundedOptions, dir })
    const [again, other] = await tape.append([seal({ at, nth: 4 }), seal({ at, nth: 4, address: tesla })])
    expect(tape.sealsOfToken(apple, 4)).toEqual([entries[3], again])
    expect(tape.sealsOfBlock(4)).toEqual([entries[3], again, other])
    await tape.close()
  })
})

describe('what is filed', () => {
  const shelvesIn = (dir: string) => {
    const database = new DatabaseSync(join(dir, 'tape.sqlite'))
    const shelves = database.prepare('SELECT shelf FROM shelves ORDER BY shelf').all()
    database.close()
    return shelves.map(({ shelf }) => shelf)
  }
  const manyTransfers = (count: number) => Array.from({ length: count }, (_, nth) => transfer({ at, nth }))

  it('is found again after either end, whatever went meanwhile', async () => {
    const place = await openTestTape({ bound: 3_000 })
    onTestFinished(() => place.close())
    const rare = [pause({ at, nth: 1 }), seal({ at, nth: 1, types: ['pause', 'transfer'] })]
    const spared = await place.tape.append([pause({ at, nth: 1 }), transfer({ at, nth: 1 }), ...rare.slice(1)])
    for (let nth = 0; nth < 12; nth += 1) await place.tape.append(manyTransfers(500))
    const [late] = await place.tape.append([pause({ at, nth: 2 })])
    const expected = [spared[0], spared[2], late]
    expect(await historyOf(place.tape, ['pause'], ['pause'])).toEqual(expected)
    const reopened = await place.reopen()
    expect(await historyOf(reopened, ['pause'], ['pause'])).toEqual(expected)
    const transfers = (await reopened.readAfter(0, 10_000)).filter(({ update }) => update.type === 'transfer').length
    const wanted = { tokens: null, types: new Set<UpdateType>(['transfer']) }
    expect(await reopened.estimateCount(wanted, 0, 10_000)).toEqual({ least: transfers, most: transfers })
    const tape = await place.crash()
    expect(await historyOf(tape, ['pause'], ['pause'])).toEqual(expected)
    const kept = (await tape.readAfter(0, 10_000)).filter(({ update }) => update.type === 'transfer')
    expect(await historyOf(tape, ['transfer'])).toEqual(kept)
  })

  it('is written once for each shelf that is full, and goes with the last that lay there', async () => {
    const dir = createOwnFolder()
    let now = at
    const open = () => openSqliteTape({ ...unboundedOptions, dir, retentionMs: 3_600_000, now: () => now })
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

  it('is not found where the stroke failed', async () => {
    const dir = createOwnFolder()
    await openSqliteTape({ ...unboundedOptions, dir }).close()
    const database = new DatabaseSync(join(dir, 'tape.sqlite'))
    database.exec(
      "CREATE TRIGGER refusal BEFORE INSERT ON notes WHEN NEW.name = 'head' BEGIN SELECT RAISE(ABORT, 'full'); END",
    )
    database.close()
    const tape = openSqliteTape({ ...unboundedOptions, dir })
    await expect(tape.append([pause({ at, nth: 4 })], new Notes().set(head, 1))).rejects.toThrow(TapeError)
    // The key was never told, as far as the tape knows: so its seal may concern anybody.
    const [sealed] = await tape.append([seal({ at, nth: 4, types: ['pause'] })])
    expect(await historyOf(tape, ['pause'], ['transfer'])).toEqual([sealed])
    await tape.close()
    const again = openSqliteTape({ ...unboundedOptions, dir })
    expect(await historyOf(again, ['pause'], ['transfer'])).toEqual([sealed])
    await again.close()
  })
})

/** What opening says when it fails; it is one readable line and no more. */
function openErrorOf(dir: string): string {
  let tape: SearchableTape
  try {
    tape = openSqliteTape({ ...unboundedOptions, dir })
  } catch (failure) {
    expect(failure).toBeInstanceOf(TapeError)
    const { message } = failure as TapeError
    expect(message).toContain(dir)
    expect(message).not.toMatch(/\n| at .*:\d+/)
    return message
  }
  void tape.close()
  throw new Error('it opened')
}

describe('a place that cannot hold the tape is refused with a readable sentence', () => {
  it('when another handle holds it', async () => {
    const dir = createOwnFolder()
    const tape = openSqliteTape({ ...unboundedOptions, dir })
    expect(openErrorOf(dir)).toMatch(/in use by another stocktape/)
    await tape.append([transfer({ at })])
    await tape.close()
    const next = openSqliteTape({ ...unboundedOptions, dir })
    expect(next.end()).toBe(1)
    await next.close()
  })

  it('when another process holds it', async () => {
    const dir = createOwnFolder()
    const tape = openSqliteTape({ ...unboundedOptions, dir })
    const script = `
      import { openSqliteTape } from ${JSON.stringify(join(process.cwd(), 'src/tape/sqlite.ts'))}
      try { openSqliteTape({ dir: ${JSON.stringify(dir)}, retentionMs: 1, bound: 1, now: Date.now, random: Math.random }) }
      catch (failure) { process.stdout.write(failure.message) }
    `
    const said = execFileSync(process.execPath, ['--no-warnings', '--input-type=module', '-e', script])
    expect(String(said)).toMatch(/in use by another stocktape/)
    await tape.close()
  })

  it('when a file stands in place of the folder', () => {
    const dir = join(createOwnFolder(), 'file')
    writeFileSync(dir, 'not a folder')
    expect(openErrorOf(dir)).toMatch(/cannot hold the tape/)
  })

  it('when a folder stands in place of the file', () => {
    const dir = createOwnFolder()
    mkdirSync(join(dir, 'tape.sqlite'))
    expect(openErrorOf(dir)).toMatch(/cannot hold the tape/)
  })

  // The second is one under which the recursive way of making folders never comes back.
  it.each(['/sys/stocktape', '/proc/stocktape/tape'])('when nobody may write there: %s', (dir) => {
    expect(openErrorOf(dir)).toMatch(/cannot hold the tape/)
  })

  it('when the file is something else', () => {
    const dir = createOwnFolder()
    writeFileSync(join(dir, 'tape.sqlite'), 'this is not a database, however long it goes on '.repeat(100))
    expect(openErrorOf(dir)).toMatch(/cannot hold the tape/)
  })

  it.each<[string, (file: string) => void]>([
    ['when the file was cut', (file) => writeFileSync(file, readFileSync(file).subarray(0, 6_000))],
    [
      'when it is the file of another program',
      (file) => {
        rmSync(file)
        const database = new DatabaseSync(file)
        database.exec('CREATE TABLE tape (id INTEGER PRIMARY KEY, artist TEXT)')
        database.close()
      },
    ],
    [
      'when its pages are garbage',
      (file) => {
        const bytes = readFileSync(file)
        writeFileSync(file, bytes.fill(0xa5, 4_096))
      },
    ],
    [
      'when a note is no longer JSON',
      (file) => {
        const database = new DatabaseSync(file)
        database.exec("UPDATE notes SET value = '{'")
        database.close()
      },
    ],
  ])('%s', async (_, spoil) => {
    const dir = createOwnFolder()
    const tape = openSqliteTape({ ...unboundedOptions, dir })
    await tape.append(
      Array.from({ length: 50 }, (_each, nth) => transfer({ at, nth })),
      new Notes().set(head, 1),
    )
    await tape.close()
    spoil(join(dir, 'tape.sqlite'))
    expect(openErrorOf(dir)).toMatch(/cannot hold the tape|cannot be read/)
  })
})

describe('a stroke that the disk refuses', () => {
  /** Makes the file refuse to have this done to it, which no full disk can be asked to do on time. */
  const refusing = (when: string, how: string) => {
    const dir = createOwnFolder()
    const place = openSqliteTape({ ...unboundedOptions, dir })
    void place.close()
    const database = new DatabaseSync(join(dir, 'tape.sqlite'))
    database.exec(`CREATE TRIGGER refusal BEFORE ${when} BEGIN SELECT RAISE(${how}, 'disk is full'); END`)
    database.close()
    return dir
  }

  it.each(['ABORT', 'ROLLBACK'])('is a TapeError and undone when it ends in %s', async (how) => {
    const dir = refusing("INSERT ON notes WHEN NEW.name = 'head'", how)
    const tape = openSqliteTape({ ...unboundedOptions, dir })
    const failure = await tape.append([transfer({ at })], new Notes().set(head, 1)).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(TapeError)
    expect(String(failure)).toContain('disk is full')
    expect(tape.end()).toBe(0)
    const [entry] = await tape.append([transfer({ at })])
    expect(entry?.seq).toBe(1)
    await tape.close()
  })

  it('does not move oldest', async () => {
    const dir = refusing("INSERT ON meta WHEN NEW.name = 'oldest'", 'ABORT')
    const tape = openSqliteTape({ ...unboundedOptions, dir, bound: 1 })
    await tape.append([transfer({ at })])
    await expect(tape.append([transfer({ at })])).rejects.toThrow(TapeError)
    expect(await tape.readAfter(0, 10)).toHaveLength(1)
    expect(tape.oldest()).toBe(0)
    await tape.close()
  })
})

describe('a clock that goes back', () => {
  it('does not hide what was written before it did', async () => {
    const tape = openSqliteTape({ ...unboundedOptions, dir: ':memory:' })
    await tape.append([transfer({ at: at + 5_000 })])
    await tape.append([transfer({ at })])
    await tape.append([transfer({ at: at + 2_000 })])
    expect(await tape.seqBefore(at + 1_000)).toBe(0)
    await tape.close()
  })
})
