import { chownSync, constants, existsSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { copyFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Command } from '../../lib/exit-codes.ts'
import { type CommandFlags, readFlags, switchFlag } from '../../lib/flags.ts'
import { flagTerms, helpText } from '../../lib/help.ts'
import { messageOf } from '../../lib/http-fetch.ts'
import { TAPE_FILE_NAME } from '../../relay/tape/tape-database.ts'
import { backupFlags, isRelayRunning, placesOf, reportFailure } from './backup.ts'
import { BackupError, checkTapeFile, sync, syncFolder } from './tape-file.ts'

export const restoreFlags = {
  force: switchFlag('replace the tape that the folder holds'),
  ...backupFlags,
} as const satisfies CommandFlags

const help = helpText(
  'stocktape restore FILE [--data-dir DIR] [--force]',
  'Checks a backup of the tape and puts it into DATA_DIR, where no relay may run. Clients that are ahead of it get a gap.',
  flagTerms(restoreFlags),
  'Exit codes: 0 the next start continues the tape, 1 nothing was changed, 2 a mistake in the arguments.',
)

export const restore: Command = async (args) => {
  const { values, positionals } = readFlags(restoreFlags, args, { help, allowsWords: true })
  const { file, dir } = placesOf(positionals, values['data-dir'])
  return reportFailure('restore', async () => {
    await checkFolder(dir, values.force === true)
    mkdirSync(dir, { recursive: true })
    const [place, part] = [join(dir, TAPE_FILE_NAME), join(dir, `${TAPE_FILE_NAME}.part`)]
    try {
      await copyFile(file, part, constants.COPYFILE_FICLONE)
      const tape = checkTapeFile(part, file)
      giveToOwnerOf(dir, part)
      await sync(part)
      // A relay may have started during the copy.
      await checkFolder(dir, values.force === true)
      // These belong to the replaced tape.
      for (const end of ['-wal', '-shm']) rmSync(`${place}${end}`, { force: true })
      await rename(part, place)
      await syncFolder(dir)
      return `${place} has ${tape}`
    } finally {
      await rm(part, { force: true })
    }
  })
}

/** Throws if a relay runs on the folder, or if it holds a tape that must not be replaced. */
async function checkFolder(dir: string, mayReplace: boolean): Promise<void> {
  const inUse = new BackupError(`a relay runs on ${dir}: stop it first`)
  if (await isRelayRunning(dir)) throw inUse
  const place = join(dir, TAPE_FILE_NAME)
  if (!existsSync(place)) return
  if (!mayReplace) throw new BackupError(`${dir} holds a tape: move it away, name another folder, or replace it with --force`)
  const database = new DatabaseSync(place)
  try {
    database.exec('BEGIN IMMEDIATE; ROLLBACK')
  } catch (failure) {
    // A damaged tape may be replaced.
    if (messageOf(failure).includes('locked')) throw inUse
  } finally {
    database.close()
  }
}

/** A restore by root leaves a file that the user of the relay may write to. */
function giveToOwnerOf(dir: string, path: string): void {
  const { uid, gid } = statSync(dir)
  if (process.getuid?.() === 0) chownSync(path, uid, gid)
}
