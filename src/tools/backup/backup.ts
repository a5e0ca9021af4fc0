import { once } from 'node:events'
import { constants, existsSync } from 'node:fs'
import { chmod, copyFile, open, rename, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Command, EXIT_FAILED, EXIT_OK, UsageError } from '../../lib/exit-codes.ts'
import { type CommandFlags, commonFlags, readFlags, textFlag } from '../../lib/flags.ts'
import { flagTerms, helpText } from '../../lib/help.ts'
import { messageOf } from '../../lib/http-fetch.ts'
import { CONTROL_NAME, type ControlMessage } from '../../relay/tape/control-socket.ts'
import { TAPE_FILE_NAME } from '../../relay/tape/tape-database.ts'
import { BackupError, checkTapeFile, sync, syncFolder } from './tape-file.ts'

/** Number of times that the file is copied before the command fails. A copy is repeated if the relay completed the file meanwhile. */
const ATTEMPTS_BOUND = 3
/** Limit of the wait for an answer of the relay, which flushes the tape to the disk before it. */
const ANSWER_BOUND_MS = 30_000

export const backupFlags = {
  'data-dir': textFlag('the DATA_DIR of the relay (./data, or DATA_DIR)'),
  ...commonFlags,
} as const satisfies CommandFlags

const help = helpText(
  'stocktape backup FILE [--data-dir DIR]',
  'Copies the tape of a relay that runs on this machine into a new file, which stocktape restore puts in place. Run it as the user of the relay.',
  flagTerms(backupFlags),
  'Exit codes: 0 the file is complete, 1 there is no backup, 2 a mistake in the arguments.',
)

export const backup: Command = async (args) => {
  const { values, positionals } = readFlags(backupFlags, args, { help, allowsWords: true })
  const { file, dir } = placesOf(positionals, values['data-dir'])
  return reportFailure('backup', async () => {
    if (existsSync(file)) throw new BackupError(`${file} exists: name another file`)
    const part = `${file}.part`
    await claim(part)
    try {
      await copyUnchanged(dir, part)
      const tape = checkTapeFile(part, file)
      await chmod(part, 0o600)
      await sync(part)
      await rename(part, file)
      await syncFolder(dirname(file))
      return `${file} has ${tape}`
    } finally {
      await rm(part, { force: true })
    }
  })
}

/** Returns the file that a command names, and the folder of the relay. */
export function placesOf([file, ...others]: readonly string[], dir = process.env.DATA_DIR || './data') {
  if (file === undefined || others.length > 0) throw new UsageError('name one file. Try --help.')
  return { file, dir }
}

/** Runs a command, prints what it returns or why it fails, and returns the exit code. */
export async function reportFailure(command: string, run: () => Promise<string>): Promise<number> {
  try {
    process.stdout.write(`${await run()}\n`)
    return EXIT_OK
  } catch (failure) {
    const isExpected = failure instanceof BackupError || (failure instanceof Error && 'code' in failure)
    if (!isExpected) throw failure
    process.stderr.write(`stocktape ${command}: ${messageOf(failure)}\n`)
    return EXIT_FAILED
  }
}

/** Creates the file that the copy goes into, so that no other backup writes it. */
async function claim(part: string): Promise<void> {
  try {
    await (await open(part, 'wx', 0o600)).close()
  } catch (failure) {
    if ((failure as NodeJS.ErrnoException).code !== 'EEXIST') throw failure
    throw new BackupError(`${part} exists: another backup writes it, or was killed; then remove it`)
  }
}

async function copyUnchanged(dir: string, part: string): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS_BOUND; attempt += 1) {
    const relay = await openControl(dir)
    try {
      await relay.ask('copy')
      await copyFile(join(dir, TAPE_FILE_NAME), part, constants.COPYFILE_FICLONE)
      if ((await relay.ask('copied')).isUnchanged) return
    } finally {
      relay.close()
    }
  }
  throw new BackupError(
    `the tape was completed during each of ${ATTEMPTS_BOUND} copies: the relay stops, or starts workers; try again`,
  )
}

const refusals: Readonly<Record<string, string>> = {
  ENOENT: 'no relay runs on it; the built-in chain has its tape in the folder demo inside',
  ECONNREFUSED: 'no relay runs on it: the socket there is from one that was killed',
  EACCES: 'only the user of the relay may do this',
}

/** Connects to the socket of a relay that runs. */
async function openControl(dir: string) {
  const socket = connect(join(dir, CONTROL_NAME))
  // A connection that is lost later ends the lines.
  socket.on('error', () => {})
  await once(socket, 'connect').catch((failure: NodeJS.ErrnoException) => {
    throw new BackupError(`${dir}: ${refusals[failure.code ?? ''] ?? failure.message}`)
  })
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]()
  const close = () => void socket.destroy()
  /** Sends a line, and resolves with the answer. */
  const ask = async <Say extends ControlMessage['say']>(say: Say): Promise<Extract<ControlMessage, { say: Say }>> => {
    socket.write(`${say}\n`)
    const deadline = setTimeout(close, ANSWER_BOUND_MS)
    const { value, done } = await lines.next()
    clearTimeout(deadline)
    if (done) throw new BackupError('the relay does not answer: it stops or hangs, or the copy took too long')
    const message = JSON.parse(value) as ControlMessage
    if (message.say === 'refused') throw new BackupError(message.reason)
    return message as Extract<ControlMessage, { say: Say }>
  }
  return { ask, close }
}

/** Resolves to true if a relay runs on a folder. */
export const isRelayRunning = (dir: string): Promise<boolean> =>
  openControl(dir).then(
    ({ close }) => {
      close()
      return true
    },
    () => false,
  )
