import { execFile, execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Command } from '../../../../src/lib/exit-codes.ts'
import { openControlSocket } from '../../../../src/relay/tape/control-socket.ts'
import { backup } from '../../../../src/tools/backup/backup.ts'
import { restore } from '../../../../src/tools/backup/restore.ts'
import { openLocalTape } from '../../../support/local-tape.ts'
import { createOwnFolder, unboundedOptions } from '../../relay/tape/test-tape.ts'
import { transfer } from '../../relay/tape/update-drafts.ts'

const at = Date.parse('2026-11-20T12:00:00Z')
const BATCH = 50
const [MESSAGES, ALL] = [5_000, 1_000_000]
const BATCHES_IN_LOG = (4 * 1_048_576) / 16_384

const openTape = (dataDir: string) => openLocalTape({ ...unboundedOptions, dataDir, now: () => at })
const batch = () => Array.from({ length: BATCH }, (_, nth) => transfer({ at, nth }))

/** A relay's tape in this process, with the socket of a relay. */
function openRelayTape(dataDir: string) {
  const tape = openTape(dataDir)
  const log = vi.fn()
  const closeSocket = openControlSocket({ tape, dataDir, log })
  const close = async () => {
    await closeSocket()
    await tape.close()
  }
  return { tape, log, close }
}

/** Runs the program: in this process, a copy of the file would end the lock of the tape. */
const stocktape = (...args: readonly string[]) => promisify(execFile)(process.execPath, ['src/main.ts', ...args])

it('a backup of a tape that is being written is its history up to an end, and another start continues it', async () => {
  const root = createOwnFolder()
  const [dir, restored, file] = [join(root, 'data'), join(root, 'restored'), join(root, 'tape.backup')]
  const { tape, log, close } = openRelayTape(dir)
  expect(statSync(join(dir, 'control')).isSocket()).toBe(true)
  await vi.waitFor(() => expect(statSync(join(dir, 'control')).mode & 0o777).toBe(0o600))
  while (tape.end() < MESSAGES) await tape.append(batch())
  const hold = tape.holdForCopy.bind(tape)
  let endOfCopy = 0
  vi.spyOn(tape, 'holdForCopy').mockImplementationOnce((...args) => {
    const held = hold(...args)
    endOfCopy = tape.end()
    // More than the write-ahead log takes before it is copied into the file.
    for (let nth = 0; nth < 2 * BATCHES_IN_LOG; nth += 1) void tape.append(batch())
    return held
  })
  const { stdout } = await stocktape('backup', file, '--data-dir', dir)
  expect(log.mock.calls).toEqual([['backup_copied']])
  expect(stdout).toMatch(new RegExp(`^${file} has \\d+ messages up to ${tape.epoch}\\.\\d+\\n$`))
  expect(statSync(file).mode & 0o777).toBe(0o600)
  await stocktape('restore', file, '--data-dir', restored)
  const texts = tape.readTexts(0, ALL)
  await close()
  expect(readdirSync(dir).toSorted()).toEqual(['tape.sqlite'])
  const copy = openTape(restored)
  onTestFinished(() => copy.close())
  expect(copy.epoch).toBe(tape.epoch)
  expect([copy.end(), copy.end() < tape.end()]).toEqual([endOfCopy, true])
  expect(copy.readTexts(0, ALL)).toEqual(texts.slice(0, copy.end()))
})

it('a copy for a worker and a backup at a time do not spoil each other', async () => {
  const dir = createOwnFolder()
  const { tape, close } = openRelayTape(dir)
  onTestFinished(close)
  const held = tape.holdForCopy('')
  await tape.append(batch())
  await stocktape('backup', join(dir, 'file'), '--data-dir', dir)
  expect(held?.release()).toBe(true)
})

it('a copy that finds no room fails with the reason, and leaves nothing', async () => {
  const dir = createOwnFolder()
  const { tape, log, close } = openRelayTape(dir)
  onTestFinished(close)
  while (tape.end() < MESSAGES) await tape.append(batch())
  const [file, bounded] = [join(dir, 'file'), ['-c', 'ulimit -f 64; exec "$@"', 'bash', process.execPath, 'src/main.ts']]
  const failure = await promisify(execFile)('bash', [...bounded, 'backup', file, '--data-dir', dir]).catch((error) => error)
  expect([failure.code, failure.stderr]).toEqual([1, expect.stringMatching(/^stocktape backup: EFBIG: [^\n]*\n$/)])
  expect(readdirSync(dir).filter((name) => name.startsWith('file'))).toEqual([])
  expect(log).not.toHaveBeenCalled()
  await stocktape('backup', file, '--data-dir', dir)
})

/** Runs a command in this process. */
async function run(command: Command, ...args: readonly string[]) {
  const printed: string[] = []
  for (const stream of [process.stdout, process.stderr]) {
    const spy = vi.spyOn(stream, 'write').mockImplementation((text) => printed.push(String(text)) > 0)
    onTestFinished(() => spy.mockRestore())
  }
  return [await command(args), printed.join('')] as const
}

/** A socket of a relay on a folder, with a tape that need not be one. */
const openSocket = (dataDir: string, tape: { isInFile: boolean; isUnchanged?: boolean }) => {
  writeFileSync(join(dataDir, 'tape.sqlite'), '')
  const held = { source: dataDir, release: () => tape.isUnchanged ?? true }
  onTestFinished(openControlSocket({ tape: { holdForCopy: () => (tape.isInFile ? held : null) }, dataDir, log: () => {} }))
}

/** A backup of some messages; `change` spoils it. */
async function makeTapeFile(root: string, change: (file: string) => void = () => {}): Promise<string> {
  const dir = join(root, 'other')
  const tape = openTape(dir)
  for (let nth = 0; nth < 20; nth += 1) await tape.append(batch())
  await tape.close()
  change(join(dir, 'tape.sqlite'))
  return join(dir, 'tape.sqlite')
}

const inDatabase = (sql: string) => (file: string) => {
  const database = new DatabaseSync(file)
  database.exec(sql)
  database.close()
}

describe('no backup is made', () => {
  it.each<[string, (dir: string, file: string) => unknown, RegExp]>([
    ['if no relay runs', () => {}, /: no relay runs on it; /],
    [
      'if the socket is from a relay that was killed',
      (dir) => {
        const listen = `require('net').createServer().listen(${JSON.stringify(join(dir, 'control'))}, () => process.kill(process.pid, 'SIGKILL'))`
        expect(() => execFileSync(process.execPath, ['-e', listen])).toThrow()
      },
      /: no relay runs on it: the socket there is from one that was killed/,
    ],
    ['if the file exists', (_, file) => writeFileSync(file, ''), /exists: name another file/],
    [
      'if another backup writes the file',
      (_, file) => writeFileSync(`${file}.part`, ''),
      /\.part exists: another backup writes it/,
    ],
    ['while the disk of the tape fails', (dir) => openSocket(dir, { isInFile: false }), /the disk of DATA_DIR fails/],
    ['if the file changes during each copy', (dir) => openSocket(dir, { isInFile: true, isUnchanged: false }), /of 3 copies/],
    [
      'if the relay stops during the copy',
      (dir) => {
        const server = createServer((socket) => socket.once('data', () => socket.destroy())).listen(join(dir, 'control'))
        onTestFinished(() => void server.close())
      },
      /the relay does not answer/,
    ],
    ['if the copy is no tape', (dir) => openSocket(dir, { isInFile: true }), /is no tape/],
  ])('%s', async (_, arrange, message) => {
    const dir = createOwnFolder()
    const file = join(dir, 'file')
    await arrange(dir, file)
    const before = readdirSync(dir)
    const [code, printed] = await run(backup, file, '--data-dir', dir)
    expect([code, printed]).toEqual([1, expect.stringMatching(new RegExp(`^stocktape backup: [^\n]*${message.source}[^\n]*\n$`))])
    expect(readdirSync(dir)).toEqual(before.includes('file.part') ? before : before.filter((name) => name !== 'file.part'))
  })
})

describe('nothing is restored', () => {
  const damage = (file: string) => {
    const bytes = readFileSync(file)
    writeFileSync(file, bytes.fill(7, bytes.length / 2, bytes.length / 2 + 20_000))
  }
  it.each<[string, (root: string, dir: string) => Promise<string>, RegExp]>([
    ['from a file that is missing', async (root) => join(root, 'nowhere'), /ENOENT: no such file/],
    [
      'from a file that is no database',
      (root) => makeTapeFile(root, (file) => writeFileSync(file, 'no database '.repeat(100))),
      /cannot be read as a tape \(file is not a database\)/,
    ],
    ['from a damaged tape', (root) => makeTapeFile(root, damage), /is damaged|cannot be read as a tape/],
    ['from another database', (root) => makeTapeFile(root, inDatabase('DROP TABLE meta')), /is no tape/],
    [
      'from a tape of another schema',
      (root) => makeTapeFile(root, inDatabase('PRAGMA user_version = 4')),
      /holds a tape of schema 4, and this stocktape reads schema \d+/,
    ],
    ['from a tape without an epoch', (root) => makeTapeFile(root, inDatabase('DELETE FROM meta')), /without an epoch/],
    [
      'into a folder that holds a tape',
      (root, dir) => {
        writeFileSync(join(dir, 'tape.sqlite'), 'precious')
        return makeTapeFile(root)
      },
      /holds a tape: move it away, name another folder, or replace it with --force/,
    ],
    [
      'while a relay runs on the folder',
      (root, dir) => {
        openSocket(dir, { isInFile: true })
        return makeTapeFile(root)
      },
      /a relay runs on .*: stop it first/,
    ],
  ])('%s', async (_, arrange, message) => {
    const root = createOwnFolder()
    const dir = join(root, 'data')
    mkdirSync(dir)
    const file = await arrange(root, dir)
    const before = readdirSync(dir)
    const [code, printed] = await run(restore, file, '--data-dir', dir)
    expect([code, printed]).toEqual([
      1,
      expect.stringMatching(new RegExp(`^stocktape restore: [^\n]*(${message.source})[^\n]*\n$`)),
    ])
    expect(readdirSync(dir)).toEqual(before)
  })

  it('with --force while a relay has locked the tape, and has no socket', async () => {
    const [dir, root] = [createOwnFolder(), createOwnFolder()]
    const tape = openTape(dir)
    onTestFinished(() => tape.close())
    const failure = await stocktape('restore', await makeTapeFile(root), '--data-dir', dir, '--force').catch((error) => error)
    expect([failure.code, failure.stderr]).toEqual([1, expect.stringMatching(/a relay runs on .*: stop it first/)])
  })
})

it('--force replaces a tape, even a damaged one, and what is left of its log', async () => {
  const [dir, root] = [createOwnFolder(), createOwnFolder()]
  cpSync(await makeTapeFile(root), join(dir, 'tape.sqlite'))
  for (const name of ['tape.sqlite', 'tape.sqlite-wal', 'tape.sqlite-shm']) writeFileSync(join(dir, name), 'damaged '.repeat(1_000))
  expect((await run(restore, join(root, 'other', 'tape.sqlite'), '--data-dir', dir, '--force'))[0]).toBe(0)
  expect(existsSync(join(dir, 'tape.sqlite-wal'))).toBe(false)
  const tape = openTape(dir)
  onTestFinished(() => tape.close())
  expect(tape.end()).toBe(20 * BATCH)
})
