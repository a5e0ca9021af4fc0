import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { decodeBatch, readMessage } from '../batch-message.ts'
import { openStoredTape, type TapeOrigin } from '../stored-tape.ts'
import { TapeError } from '../tape.ts'
import { TAPE_FILE_NAME } from '../tape-database.ts'
import { JetStreamTape, type JetStreamTapeOptions } from './jetstream-tape.ts'
import { NatsStream, RefusedError, reasonOf, type StreamExtent, type StreamMessage, type StreamSettings } from './nats-stream.ts'
import { RENEW_MS } from './stream-writer.ts'

/** Limit of the time that a start waits for NATS. After it, the process serves the file that it has. */
const CONNECT_WAIT_MS = 3_000
const LEASE_MS = 2_000
const LEASE_CHECK_MS = 100
const RETRY_MS = 250
/** Topic and interval of the requests by which a process without a checkpoint asks the leader for one. */
const [CHECKPOINT_TOPIC, ASK_MS] = ['checkpoint', 1_000]
/** Time without checkpoint and leader after which an ingester begins a new epoch. An ingester that has the tape leads sooner. */
const CHECKPOINT_WAIT_MS = 5_000
/** Factor and addition by which the stream keeps messages longer than the tape does, so that it always contains a checkpoint. */
const [EXTRA_AGE_PART, EXTRA_AGE_MS] = [1.25, 900_000]
/** Interval of the check whether updates arrive. */
const CUT_CHECK_MS = 1_000
const WRITER_ID_BYTES = 6

type Options = Omit<JetStreamTapeOptions, 'origin' | 'stream' | 'writerId' | 'start'> & {
  readonly nats: Pick<StreamSettings, 'natsUrl' | 'natsCredentials' | 'natsStream' | 'natsReplicas'>
  readonly mayLead: boolean
  /** Called when the tape does not continue the stream. The tape has to be closed and opened again. */
  readonly onReset: (why: string) => void
}

/** Connects to NATS, and reads the stream into the file of this process. If NATS does not answer, only the file is read. */
export async function openJetStreamTape(options: Options): Promise<JetStreamTape> {
  const { nats, tapeRetentionMs, tapeMaxMessages, log } = options
  const maxAgeMs = Math.ceil(tapeRetentionMs * EXTRA_AGE_PART) + EXTRA_AGE_MS
  const maxMessages = 2 * tapeMaxMessages + Math.ceil(maxAgeMs / RENEW_MS)
  const stream = new NatsStream({ ...nats, maxAgeMs, maxMessages }, log)
  const file = new CopyFile(options, stream)
  try {
    if (await stream.whenConnected(CONNECT_WAIT_MS))
      await synchronize(file, stream, options).catch((failure: unknown) => {
        if (failure instanceof TapeError) throw failure
        log('nats_silent', { reason: reasonOf(failure) })
      })
    void follow(file.tape, stream, options)
    return file.tape
  } catch (failure) {
    await file.tape.close()
    throw failure
  }
}

/** The copy of the tape in a file of this process. If it does not continue the stream, a new file replaces it. */
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

  /** Replaces the file by one that begins after message `seq` of the stream: at `origin` or, if that is null, with a new epoch. */
  async replace(origin: TapeOrigin | null, seq: number): Promise<void> {
    const { dataDir } = this.#options
    await this.tape.closeFile()
    if (dataDir !== ':memory:')
      for (const end of ['', '-wal', '-shm']) rmSync(join(dataDir, `${TAPE_FILE_NAME}${end}`), { force: true })
    this.tape = this.#open(origin, { seq, id: '', isComplete: origin === null, hasResigned: origin === null })
  }

  #open(origin: TapeOrigin | null, start: JetStreamTape['point']): JetStreamTape {
    const options = { ...this.#options, origin, start, stream: this.#stream, writerId: this.#writerId }
    return openStoredTape(options, (database) => new JetStreamTape(database, options))
  }
}

async function synchronize(file: CopyFile, stream: NatsStream, { mayLead, log, uptime }: Options): Promise<void> {
  if (mayLead) {
    await ensure(stream, file.tape)
    if (stream.limitFault) throw new TapeError(stream.limitFault)
  }
  const { extent, why } = await check(file.tape, stream)
  // Without a stream, an edge waits for the ingester that creates it.
  if (!extent) return
  if (why && file.tape.point.id !== '') log('tape_read_again', { reason: why.text })
  if (why?.isLoss && mayLead && !(await hasNewerEpoch(file.tape, extent, stream))) return file.replace(null, extent.last)
  await readUpTo(extent, file, stream, why !== null)
  if (mayLead) await waitForCheckpoint(file, stream, uptime)
}

/** Waits for a running leader to write a checkpoint: nothing else contains the notes from before the first message. */
async function waitForCheckpoint(file: CopyFile, stream: NatsStream, uptime: () => number): Promise<void> {
  const endsAt = uptime() + CHECKPOINT_WAIT_MS
  for (;;) {
    const extent = await stream.extent()
    if (!extent || isWhole(file.tape, extent)) return
    await readUpTo(extent, file, stream, file.tape.point.id === '')
    if (isWhole(file.tape, extent)) return
    if (uptime() >= endsAt) return file.tape.leaderlessMs < LEASE_MS ? undefined : file.replace(null, extent.last)
    askForCheckpoint(stream)
    await delay(RETRY_MS)
  }
}

/** Whether the tape has all notes, and contains a message of the stream if the stream has any after the tape's beginning. */
const isWhole = ({ point: { seq, id, isComplete } }: JetStreamTape, { last }: StreamExtent): boolean =>
  isComplete && (id !== '' || seq === last)

const askForCheckpoint = (stream: NatsStream): void => void stream.send(CHECKPOINT_TOPIC, new Uint8Array())

/** Creates or updates the stream. If NATS refuses its settings, the tape reports the refusal and still reads the stream. */
async function ensure(stream: NatsStream, tape: JetStreamTape): Promise<void> {
  try {
    await stream.ensure()
  } catch (failure) {
    if (!(failure instanceof RefusedError)) throw failure
    tape.onRefusal(failure.message)
  }
}

/** Whether another process has already begun a new epoch after the stream lost messages. */
async function hasNewerEpoch({ epochBeganAt }: JetStreamTape, { last }: StreamExtent, stream: NatsStream): Promise<boolean> {
  const message = last === 0 ? null : await stream.stored(last)
  const read = message && readMessage(message.bytes)
  return read?.batch ? read.batch.epochBeganAt > epochBeganAt : false
}

async function readUpTo({ first, last }: StreamExtent, file: CopyFile, stream: NatsStream, replaces: boolean): Promise<void> {
  let isReplaceDue = replaces
  let seen = replaces ? first - 1 : file.tape.point.seq
  while (seen < last) {
    let refused: StreamMessage | null = null as StreamMessage | null
    const receive = (message: StreamMessage) => {
      seen = message.seq
      // A new file begins with the first readable batch.
      if (isReplaceDue ? file.tape.read(message) : !file.tape.receive(message)) refused = message
      return refused === null && seen < last
    }
    await stream.follow(seen, receive, file.tape.closing)
    const batch = refused?.bytes && decodeBatch(refused.bytes)
    if (!refused || !batch) continue
    const { epoch, epochBeganAt, after: end } = batch
    await file.replace({ epoch, epochBeganAt, end }, refused.seq - 1)
    file.tape.receive(refused)
    isReplaceDue = false
  }
}

/** Follows the stream until the tape closes or needs a reset. An ingester tries to lead when it hears no leader. */
async function follow(tape: JetStreamTape, stream: NatsStream, options: Options): Promise<void> {
  const { mayLead } = options
  const reset = Promise.withResolvers<string>()
  let isCut = false
  const tellCut = () => {
    if (tape.isCut !== isCut) options.log(isCut ? 'updates_arrive' : 'updates_missing')
    isCut = tape.isCut
  }
  const timers = [setInterval(() => tape.point.isComplete || askForCheckpoint(stream), ASK_MS), setInterval(tellCut, CUT_CHECK_MS)]
  if (mayLead) {
    const apply = () => void applyForLead(tape, stream, reset.resolve)
    apply()
    timers.push(setInterval(apply, LEASE_CHECK_MS))
    void stream.listen(CHECKPOINT_TOPIC, () => tape.offerCheckpoint()).catch(() => {})
  }
  tape.closing.addEventListener('abort', () => timers.forEach(clearInterval))
  while (!tape.closing.aborted) {
    const why = await Promise.race([reset.promise, followOnce(tape, stream, mayLead).catch(() => null)])
    if (tape.closing.aborted) return
    if (why) return options.onReset(why)
    await delay(RETRY_MS)
  }
}

/** Follows the stream while the connection lasts and the tape can continue. Returns the reason if it cannot; otherwise null. */
async function followOnce(tape: JetStreamTape, stream: NatsStream, mayLead: boolean): Promise<string | null> {
  if (mayLead) await ensure(stream, tape)
  const checked = await check(tape, stream)
  if (!checked.extent) return null
  // An edge keeps its tape and its clients while the stream has no messages that can replace the tape.
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
  // No leader has answered the requests for a checkpoint. After the reset, this process begins a new epoch.
  if (!tape.point.isComplete && tape.leaderlessMs > CHECKPOINT_WAIT_MS) reset('no ingester is heard that has the tape')
  // If NATS cannot be reached, the next check tries again.
  await tape.lead().catch(() => {})
}

async function check(tape: JetStreamTape, stream: NatsStream) {
  for (;;) {
    const { point } = tape
    const extent = await stream.extent()
    const why = extent && (await discontinuity(point, extent, stream))
    // If this process wrote meanwhile, the result is outdated, and the check is repeated.
    if (tape.point.seq === point.seq) return { extent, why }
  }
}

/** Returns the reason if the stream does not continue a tape with this last message; otherwise null. */
async function discontinuity({ seq, id }: JetStreamTape['point'], { first, last }: StreamExtent, stream: NatsStream) {
  if (last < seq) return { text: 'the stream has lost messages', isLoss: true }
  if (id === '') return last === seq ? null : { text: 'the file is new', isLoss: false }
  if (first > seq + 1) return { text: 'the stream has deleted the next message', isLoss: false }
  if (first === seq + 1 || (await stream.stored(seq))?.id === id) return null
  return { text: 'the stream has other messages', isLoss: false }
}
