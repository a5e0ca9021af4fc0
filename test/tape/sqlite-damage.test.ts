import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openSqliteTape } from '../../src/tape/sqlite.ts'
import { type Tape, TapeError } from '../../src/tape/tape.ts'
import { transfer } from './drafts.ts'

const folder = (): string => mkdtempSync(join(tmpdir(), 'stocktape-tape-'))
const at = Date.parse('2026-11-20T12:00:00Z')
const unbounded = { retentionMs: 365 * 86_400_000, bound: 1_000_000, now: () => at, dice: () => 0.5 }

/** A folder that goes with the test. */
const ownFolder = (): string => {
  const dir = folder()
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** What opening says when it fails; it is one readable line and no more. */
function complaint(dir: string): string {
  let tape: Tape
  try {
    tape = openSqliteTape({ ...unbounded, dir })
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
  it.each<[string, (file: string) => void]>([
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
    const dir = ownFolder()
    const tape = openSqliteTape({ ...unbounded, dir })
    await tape.append(
      Array.from({ length: 50 }, (_each, nth) => transfer({ at, nth })),
      new Map([['head', 1]]),
    )
    await tape.close()
    spoil(join(dir, 'tape.sqlite'))
    expect(complaint(dir)).toMatch(/cannot hold the tape|cannot be read/)
  })
})

describe('a stroke that the disk refuses', () => {
  /** Makes the file refuse to have this done to it, which no full disk can be asked to do on time. */
  const refusing = (when: string, how: string) => {
    const dir = ownFolder()
    const place = openSqliteTape({ ...unbounded, dir })
    void place.close()
    const database = new DatabaseSync(join(dir, 'tape.sqlite'))
    database.exec(`CREATE TRIGGER refusal BEFORE ${when} BEGIN SELECT RAISE(${how}, 'disk is full'); END`)
    database.close()
    return dir
  }

  it.each(['ABORT', 'ROLLBACK'])('is a TapeError and undone when it ends in %s', async (how) => {
    const dir = refusing("INSERT ON notes WHEN NEW.name = 'head'", how)
    const tape = openSqliteTape({ ...unbounded, dir })
    const failure = await tape.append([transfer({ at })], new Map([['head', 1]])).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(TapeError)
    expect(String(failure)).toContain('disk is full')
    expect(tape.end()).toBe(0)
    const [entry] = await tape.append([transfer({ at })])
    expect(entry?.seq).toBe(1)
    await tape.close()
  })

  it('does not move oldest', async () => {
    const dir = refusing("INSERT ON meta WHEN NEW.name = 'oldest'", 'ABORT')
    const tape = openSqliteTape({ ...unbounded, dir, bound: 1 })
    await tape.append([transfer({ at })])
    await expect(tape.append([transfer({ at })])).rejects.toThrow(TapeError)
    expect(await tape.since(0, 10)).toHaveLength(1)
    expect(tape.oldest()).toBe(0)
    await tape.close()
  })
})

describe('a clock that goes back', () => {
  it('does not hide what was written before it did', async () => {
    const tape = openSqliteTape({ ...unbounded, dir: ':memory:' })
    await tape.append([transfer({ at: at + 5_000 })])
    await tape.append([transfer({ at })])
    await tape.append([transfer({ at: at + 2_000 })])
    expect(await tape.before(at + 1_000)).toBe(0)
    await tape.close()
  })
})
