import { setTimeout as delay } from 'node:timers/promises'
import { messageOf } from '../../../lib/http-fetch.ts'
import { decodeBatch, readMessage } from '../batch-message.ts'
import { TapeError } from '../tape.ts'
import { BarCopy } from './bar-copy.ts'
import { BarStream } from './bar-stream.ts'
import { type LinkSettings, NatsLink } from './nats-link.ts'
import { NatsStream, RefusedError, type StreamExtent, type StreamMessage, type StreamSettings } from './nats-stream.ts'
import { StreamCopy, type StreamCopyOptions } from './stream-copy.ts'
import { RENEW_MS, StreamWriter } from './stream-writer.ts'

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
/** How long the stream keeps bars if the settings do not say it: 400 days. */
const DEFAULT_BARS_MS = 34_560_000_000
/** Interval of the check whether updates arrive. */
const CUT_CHECK_MS = 1_000

type Options = Omit<StreamCopyOptions, 'origin' | 'stream'> & {
  readonly nats: Pick<StreamSettings & LinkSettings, 'natsUrl' | 'natsCredentials' | 'natsStream' | 'natsReplicas'>
  readonly mayLead: boolean
  /** Called when the tape does not continue the stream. The tape has to be closed and opened again. */
  readonly onReset: (why: string) => void
}

/** The parts that follow the stream until `closing` aborts. */
type Parts = {
  readonly stream: NatsStream
  readonly copy: StreamCopy
  readonly writer: StreamWriter
  readonly closing: AbortSignal
  readonly options: Options
}

/** Connects to NATS, and reads the stream into the file of this process. If NATS does not answer, only the file is read. */
export async function openJetStreamTape(options: Options) {
  const { nats, tapeRetentionMs, tapeMaxMessages, barsRetentionMs = DEFAULT_BARS_MS, log } = options
  const maxAgeMs = Math.ceil(tapeRetentionMs * EXTRA_AGE_PART) + EXTRA_AGE_MS
  const maxMessages = 2 * tapeMaxMessages + Math.ceil(maxAgeMs / RENEW_MS)
  const link = new NatsLink({ ...nats, topicPrefix: nats.natsStream.toLowerCase() }, log)
  const stream = new NatsStream({ ...nats, maxAgeMs, maxMessages }, link)
  const copy = new StreamCopy({ ...options, stream })
  const writer = new StreamWriter({ ...options, stream, copy })
  const closing = new AbortController()
  const parts = { stream, copy, writer, closing: closing.signal, options }
  const bars = new BarCopy(new BarStream({ ...nats, barsRetentionMs }, link), () => copy.store, { log, closing: closing.signal })
  const closeAll = async () => {
    closing.abort()
    await writer.close()
    await bars.close()
    await stream.link.close()
    copy.store.close()
  }
  let closed: Promise<void> | null = null
  const close = () => {
    closed ??= closeAll()
    return closed
  }
  try {
    if (await stream.link.whenConnected(CONNECT_WAIT_MS))
      await synchronize(parts).catch((failure: unknown) => {
        if (failure instanceof TapeError) throw failure
        log('nats_silent', { reason: messageOf(failure) })
      })
    followBars(parts, bars)
    void follow(parts)
    return { stream, copy, writer, close }
  } catch (failure) {
    await close()
    throw failure
  }
}

/** Writes the bars of each batch to their own stream while this process leads, and reads those that a new file lacks. */
function followBars({ copy, writer }: Parts, bars: BarCopy): void {
  writer.onLead = (isLeading) => bars.setLeading(isLeading)
  copy.onBars = (rows) => bars.onRows(rows)
  if (!copy.point.hasBars) void bars.readAll(() => copy.completeBars())
}

async function synchronize(parts: Parts): Promise<void> {
  const { stream, copy, options } = parts
  const { mayLead, log } = options
  if (mayLead) {
    await ensure(stream, copy)
    if (stream.limitFault) throw new TapeError(stream.limitFault)
  }
  const { extent, why } = await check(copy, stream)
  // Without a stream, an edge waits for the ingester that creates it.
  if (!extent) return
  if (why && copy.point.id !== '') log('tape_read_again', { reason: why.text })
  if (why?.isLoss && mayLead && !(await hasNewerEpoch(copy, extent, stream))) return copy.replace(null, extent.last)
  await readUpTo(extent, parts, why !== null)
  if (mayLead) await waitForCheckpoint(parts)
}

/** Waits for a running leader to write a checkpoint: nothing else contains the notes from before the first message. */
async function waitForCheckpoint(parts: Parts): Promise<void> {
  const { stream, copy } = parts
  const { uptime } = parts.options
  const endsAt = uptime() + CHECKPOINT_WAIT_MS
  for (;;) {
    const extent = await stream.extent()
    if (!extent || isWhole(copy, extent)) return
    await readUpTo(extent, parts, copy.point.id === '')
    if (isWhole(copy, extent)) return
    if (uptime() >= endsAt) return copy.leaderlessMs < LEASE_MS ? undefined : copy.replace(null, extent.last)
    askForCheckpoint(stream)
    await delay(RETRY_MS)
  }
}

/** Whether the tape has all notes, and contains a message of the stream if the stream has any after the tape's beginning. */
const isWhole = ({ point: { seq, id, isComplete } }: StreamCopy, { last }: StreamExtent): boolean =>
  isComplete && (id !== '' || seq === last)

const askForCheckpoint = (stream: NatsStream): void => void stream.link.send(CHECKPOINT_TOPIC, new Uint8Array())

/** Creates or updates the stream. If NATS refuses its settings, the tape reports the refusal and still reads the stream. */
async function ensure(stream: NatsStream, copy: StreamCopy): Promise<void> {
  try {
    await stream.ensure()
  } catch (failure) {
    if (!(failure instanceof RefusedError)) throw failure
    copy.onRefusal(failure.message)
  }
}

/** Whether another process has already begun a new epoch after the stream lost messages. */
async function hasNewerEpoch({ store }: StreamCopy, { last }: StreamExtent, stream: NatsStream): Promise<boolean> {
  const message = last === 0 ? null : await stream.stored(last)
  const read = message && readMessage(message.bytes)
  return read?.batch ? read.batch.epochBeganAt > store.epochBeganAt : false
}

async function readUpTo({ first, last }: StreamExtent, { stream, copy, closing }: Parts, replaces: boolean): Promise<void> {
  let isReplaceDue = replaces
  let seen = replaces ? first - 1 : copy.point.seq
  while (seen < last) {
    let refused: StreamMessage | null = null as StreamMessage | null
    const receive = (message: StreamMessage) => {
      seen = message.seq
      // A new file begins with the first readable batch.
      if (isReplaceDue ? copy.read(message) : !copy.receive(message)) refused = message
      return refused === null && seen < last
    }
    await stream.follow(seen, receive, closing)
    const batch = refused?.bytes && decodeBatch(refused.bytes)
    if (!refused || !batch) continue
    const { epoch, epochBeganAt, after: end } = batch
    copy.replace({ epoch, epochBeganAt, end }, refused.seq - 1)
    copy.receive(refused)
    isReplaceDue = false
  }
}

/** Follows the stream until the tape closes or needs a reset. An ingester tries to lead when it hears no leader. */
async function follow(parts: Parts): Promise<void> {
  const { stream, copy, writer, closing, options } = parts
  const reset = Promise.withResolvers<string>()
  let isCut = false
  const tellCut = () => {
    if (copy.isCut !== isCut) options.log(isCut ? 'updates_arrive' : 'updates_missing')
    isCut = copy.isCut
  }
  const timers = [setInterval(() => copy.point.isComplete || askForCheckpoint(stream), ASK_MS), setInterval(tellCut, CUT_CHECK_MS)]
  if (options.mayLead) {
    const apply = () => void applyForLead(parts, reset.resolve)
    apply()
    timers.push(setInterval(apply, LEASE_CHECK_MS))
    void stream.link.listen(CHECKPOINT_TOPIC, () => writer.offerCheckpoint()).catch(() => {})
  }
  closing.addEventListener('abort', () => timers.forEach(clearInterval))
  while (!closing.aborted) {
    const why = await Promise.race([reset.promise, followOnce(parts).catch(() => null)])
    if (closing.aborted) return
    if (why) return options.onReset(why)
    await delay(RETRY_MS)
  }
}

/** Follows the stream while the connection lasts and the tape can continue. Returns the reason if it cannot; otherwise null. */
async function followOnce({ stream, copy, closing, options: { mayLead } }: Parts): Promise<string | null> {
  if (mayLead) await ensure(stream, copy)
  const { extent, why } = await check(copy, stream)
  if (!extent) return null
  // An edge keeps its tape and its clients while the stream has no messages that can replace the tape.
  const { first, last } = extent
  if (why) return mayLead || (last > 0 && first <= last) ? why.text : null
  let isContinued = true
  const receive = (message: StreamMessage) => {
    isContinued = copy.receive(message)
    return isContinued
  }
  await stream.follow(copy.point.seq, receive, closing)
  return isContinued ? null : 'another epoch began'
}

async function applyForLead({ stream, copy, writer }: Parts, reset: (why: string) => void): Promise<void> {
  if (!stream.link.isConnected || copy.leaderlessMs < LEASE_MS) return
  // No leader has answered the requests for a checkpoint. After the reset, this process begins a new epoch.
  if (!copy.point.isComplete && copy.leaderlessMs > CHECKPOINT_WAIT_MS) reset('no ingester is heard that has the tape')
  // If NATS cannot be reached, the next check tries again.
  await writer.lead().catch(() => {})
}

async function check(copy: StreamCopy, stream: NatsStream) {
  for (;;) {
    const { point } = copy
    const extent = await stream.extent()
    const why = extent && (await discontinuity(point, extent, stream))
    // If this process wrote meanwhile, the result is outdated, and the check is repeated.
    if (copy.point.seq === point.seq) return { extent, why }
  }
}

/** Returns the reason if the stream does not continue a tape with this last message; otherwise null. */
async function discontinuity({ seq, id }: StreamCopy['point'], { first, last }: StreamExtent, stream: NatsStream) {
  if (last < seq) return { text: 'the stream has lost messages', isLoss: true }
  if (id === '') return last === seq ? null : { text: 'the file is new', isLoss: false }
  if (first > seq + 1) return { text: 'the stream has deleted the next message', isLoss: false }
  if (first === seq + 1 || (await stream.stored(seq))?.id === id) return null
  return { text: 'the stream has other messages', isLoss: false }
}
