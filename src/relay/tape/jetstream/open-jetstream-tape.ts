import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { decodeBatch } from '../batch-message.ts'
import { TapeError } from '../tape.ts'
import { openTapeFile, type TapeOrigin } from '../tape-file.ts'
import { TAPE_FILE_NAME } from '../tape-schema.ts'
import { JetStreamTape, type JetStreamTapeOptions } from './jetstream-tape.ts'
import { NatsStream, RefusedError, type StreamExtent, type StreamMessage, type StreamSettings } from './nats-stream.ts'
import { readMessage } from './readable-batch.ts'
import { RENEW_MS } from './stream-writer.ts'

/** How long a start waits for NATS before it goes on with what its own file has. */
const CONNECT_WAIT_MS = 3_000
/** A leader that was not heard for this long is gone. */
const LEASE_MS = 2_000
const LEASE_CHECK_MS = 100
const RETRY_MS = 250
/** A process without a checkpoint asks the leader for one, this often. */
const [CHECKPOINT_TOPIC, ASK_MS] = ['checkpoint', 1_000]
/** An ingester that gets none in this time, and hears no leader, begins a new epoch. Others that have the tape lead before. */
const CHECKPOINT_WAIT_MS = 5_000
/** The stream keeps messages longer than the tape does, so that it always holds a checkpoint. */
const [EXTRA_AGE_PART, EXTRA_AGE_MS] = [1.25, 900_000]
const WRITER_ID_BYTES = 6

type Options = Omit<JetStreamTapeOptions, 'origin' | 'stream' | 'writerId' | 'start'> & {
  readonly nats: Pick<StreamSettings, 'natsUrl' | 'natsCredentials' | 'natsStream' | 'natsReplicas'>
  /** Whether this process may write. An edge only reads. */
  readonly mayLead: boolean
  /** Called when the tape does not continue with the stream any more. It has to be closed and opened again. */
  readonly onReset: (why: string) => void
}

/** Connects to NATS, and brings the file of this process up to the end of the stream. Without NATS the tape is what the file has. */
export async function openJetStreamTape(options: Options): Promise<JetStreamTape> {
  const { nats, tapeRetentionMs, tapeMaxMessages, warn } = options
  const maxAgeMs = Math.ceil(tapeRetentionMs * EXTRA_AGE_PART) + EXTRA_AGE_MS
  const maxMessages = 2 * tapeMaxMessages + Math.ceil(maxAgeMs / RENEW_MS)
  const stream = new NatsStream({ ...nats, maxAgeMs, maxMessages }, warn)
  const file = new CopyFile(options, stream)
  try {
    const isInTime = await stream.whenConnected(CONNECT_WAIT_MS)
    if (isInTime) await synchronize(file, stream, options).catch(orWarn(warn))
    void follow(file.tape, stream, options)
    return file.tape
  } catch (failure) {
    await file.tape.close()
    throw failure
  }
}

/** The file of this process, which is begun anew where it does not continue with the stream. */
class CopyFile {
  readonly #options: Options
  readonly #stream: NatsStream
  readonly #writerId = randomBytes(WRITER_ID_BYTES).toString('hex')
  tape: JetStreamTape

  constructor(options: Options, stream: NatsStream) {
    this.#options = options
    this.#stream = stream
    this.tape = this.#open(null, { seq: 0, id: '', isComplete: true, hasResigned: true })
  }

  /** Begins a tape after a message of the stream: one of elsewhere from its origin on, or the first of a new epoch. */
  async beginAnew(origin: TapeOrigin | null, seq: number): Promise<void> {
    const { dataDir } = this.#options
    await this.tape.closeFile()
    if (dataDir !== ':memory:')
      for (const end of ['', '-wal', '-shm']) rmSync(join(dataDir, `${TAPE_FILE_NAME}${end}`), { force: true })
    this.tape = this.#open(origin, { seq, id: '', isComplete: origin === null, hasResigned: origin === null })
  }

  #open(origin: TapeOrigin | null, start: JetStreamTape['point']): JetStreamTape {
    const options = { ...this.#options, origin, start, stream: this.#stream, writerId: this.#writerId }
    return openTapeFile(options, (database) => new JetStreamTape(database, options))
  }
}

/** Reads the stream up to its end, and begins the file anew where it does not continue. */
async function synchronize(file: CopyFile, stream: NatsStream, { mayLead, warn, uptime }: Options): Promise<void> {
  if (mayLead) {
    await ensure(stream, file.tape)
    if (stream.limitFault) throw new TapeError(stream.limitFault)
  }
  const { extent, why } = await check(file.tape, stream)
  // An edge waits for the ingester that creates it.
  if (!extent) return
  if (why && file.tape.point.id !== '') warn(`the tape is read from the stream anew: ${why.text}`, {})
  if (why?.isLoss && mayLead && !(await hasNewerEpoch(file.tape, extent, stream))) return file.beginAnew(null, extent.last)
  await readUpTo(extent, file, stream, why !== null)
  if (mayLead) await waitForCheckpoint(file, stream, uptime)
}

/** Without a checkpoint nobody can know what came before the first message. A leader that lives writes one. */
async function waitForCheckpoint(file: CopyFile, stream: NatsStream, uptime: () => number): Promise<void> {
  const endsAt = uptime() + CHECKPOINT_WAIT_MS
  for (;;) {
    const extent = await stream.extent()
    if (!extent || isWhole(file.tape, extent)) return
    await readUpTo(extent, file, stream, file.tape.point.id === '')
    if (isWhole(file.tape, extent)) return
    if (uptime() >= endsAt) return file.tape.leaderlessMs < LEASE_MS ? undefined : file.beginAnew(null, extent.last)
    askForCheckpoint(stream)
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
}

/** Whether the tape lacks nothing of what the stream holds and of what came before. */
const isWhole = ({ point: { seq, id, isComplete } }: JetStreamTape, { last }: StreamExtent): boolean =>
  isComplete && (id !== '' || seq === last)

const askForCheckpoint = (stream: NatsStream): void => void stream.send(CHECKPOINT_TOPIC, new Uint8Array())

/** A stream whose settings NATS refuses is read all the same. */
async function ensure(stream: NatsStream, tape: JetStreamTape): Promise<void> {
  try {
    await stream.ensure()
  } catch (failure) {
    if (!(failure instanceof RefusedError)) throw failure
    tape.onRefusal(failure.message)
  }
}

/** Whether another process has begun a new epoch since the stream lost messages: one is enough. */
async function hasNewerEpoch({ epochBeganAt }: JetStreamTape, { last }: StreamExtent, stream: NatsStream): Promise<boolean> {
  const message = last === 0 ? null : await stream.stored(last)
  const read = message && readMessage(message.bytes)
  return read?.kind === 'batch' && read.batch.epochBeganAt > epochBeganAt
}

async function readUpTo({ first, last }: StreamExtent, file: CopyFile, stream: NatsStream, isAnew: boolean): Promise<void> {
  let beginsAnew = isAnew
  let seen = isAnew ? first - 1 : file.tape.point.seq
  while (seen < last) {
    let refused: StreamMessage | null = null as StreamMessage | null
    const receive = (message: StreamMessage) => {
      seen = message.seq
      // Anew the tape begins with the first batch that can be read.
      if (beginsAnew ? file.tape.read(message) : !file.tape.receive(message)) refused = message
      return refused === null && seen < last
    }
    await stream.follow(seen, receive, file.tape.closing)
    const batch = refused?.bytes && decodeBatch(refused.bytes)
    if (!refused || !batch) continue
    const { epoch, epochBeganAt, after: end } = batch
    await file.beginAnew({ epoch, epochBeganAt, end }, refused.seq - 1)
    file.tape.receive(refused)
    beginsAnew = false
  }
}

/** Follows the stream, and tries to lead where no leader is heard. */
async function follow(tape: JetStreamTape, stream: NatsStream, options: Options): Promise<void> {
  const { mayLead } = options
  const reset = Promise.withResolvers<string>()
  const asking = setInterval(() => tape.point.isComplete || askForCheckpoint(stream), ASK_MS)
  const candidacy = mayLead ? setInterval(() => void applyForLead(tape, stream, reset.resolve), LEASE_CHECK_MS) : undefined
  if (mayLead) {
    void applyForLead(tape, stream, reset.resolve)
    void stream.listen(CHECKPOINT_TOPIC, () => tape.offerCheckpoint()).catch(() => {})
  }
  tape.closing.addEventListener('abort', () => {
    clearInterval(asking)
    clearInterval(candidacy)
  })
  while (!tape.closing.aborted) {
    const why = await Promise.race([reset.promise, followOnce(tape, stream, mayLead).catch(() => null)])
    if (tape.closing.aborted) return
    if (why) return options.onReset(why)
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
}

/** Follows the stream until the connection is lost. Returns why the tape does not continue with it; null if it does. */
async function followOnce(tape: JetStreamTape, stream: NatsStream, mayLead: boolean): Promise<string | null> {
  if (mayLead) await ensure(stream, tape)
  const checked = await check(tape, stream)
  if (!checked.extent) return null
  // An edge keeps its clients until an ingester has written what it can read instead.
  const { first, last } = checked.extent
  if (checked.why) return mayLead || (last > 0 && first <= last) ? checked.why.text : null
  let isContinued = true
  const receive = (message: StreamMessage) => {
    isContinued = tape.receive(message)
    return isContinued
  }
  await stream.follow(tape.point.seq, receive, tape.closing)
  return isContinued ? null : 'another epoch began'
}

async function applyForLead(tape: JetStreamTape, stream: NatsStream, reset: (why: string) => void): Promise<void> {
  if (!stream.isConnected || tape.leaderlessMs < LEASE_MS) return
  // Nobody answers what this process asks: at the next start it begins a new epoch.
  if (!tape.point.isComplete && tape.leaderlessMs > CHECKPOINT_WAIT_MS) reset('no ingester is heard that has the tape')
  // A server that cannot be reached now is asked again.
  await tape.lead().catch(() => {})
}

/** What the stream holds, and why the tape does not continue with it: null if it does. */
async function check(tape: JetStreamTape, stream: NatsStream) {
  for (;;) {
    const { point } = tape
    const extent = await stream.extent()
    const why = extent && (await discontinuity(point, extent, stream))
    // This process may have written meanwhile.
    if (tape.point.seq === point.seq) return { extent, why }
  }
}

type Discontinuity = { readonly text: string; readonly isLoss: boolean }

/** Why a tape with this last message does not continue with the stream. Null if it does. */
async function discontinuity(
  { seq, id }: JetStreamTape['point'],
  { first, last }: StreamExtent,
  stream: NatsStream,
): Promise<Discontinuity | null> {
  if (last < seq) return { text: 'the stream has lost messages', isLoss: true }
  if (id === '') return last === seq ? null : { text: 'the file is new', isLoss: false }
  if (first > seq + 1) return { text: 'the stream does not keep the next message any more', isLoss: false }
  if (first === seq + 1 || (await stream.stored(seq))?.id === id) return null
  return { text: 'the stream has other messages', isLoss: false }
}

/** A tape that cannot be opened ends the start. Where NATS does not answer, it goes on with the file. */
const orWarn = (warn: Options['warn']) => (failure: unknown) => {
  if (failure instanceof TapeError) throw failure
  warn('NATS does not answer', { detail: failure instanceof Error ? failure.message : failure })
}
