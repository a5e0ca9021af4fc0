import type { IncomingMessage, ServerResponse } from 'node:http'
import type { CloseReason } from '../../../protocol/close-codes.ts'
import { resumeAfter } from '../../../protocol/position.ts'
import { contentTypeOf } from '../../../protocol/transports.ts'
import type { Tape } from '../../tape/tape.ts'
import { Client } from '../clients/client.ts'
import type { LongWorkQueue } from '../limits/long-work-queue.ts'
import { limitRefusals } from '../limits/refusals.ts'
import type { EdgeContext } from '../live/edge-context.ts'
import type { Frame } from '../select/frame.ts'
import { justBefore, type MatchedContext, type MatchedRange, openMatchedReader } from '../select/matched-reader.ts'
import { acceptsGzip, GzipChunks, varyHeaders } from '../transport/gzip.ts'
import { publicHeaders } from '../transport/shared-headers.ts'
import { drainedOrClosed, SocketOutlet } from '../transport/socket-outlet.ts'
import { EvictedError, guardEviction } from './eviction-guard.ts'
import { ExportReceipt } from './export-receipt.ts'
import { collect, keptSinceHeaders } from './history-page.ts'
import type { HistoryQuery } from './history-query.ts'

/** Limits of the lines that are written at once. A client that does not read has no more of them in the buffers of its connection. */
const PART_BOUNDS = { messages: 100, chars: 131_072 }
/** Limits of the part at the oldest position. It is large and read first, because eviction removes its updates next. */
const OLDEST_PART_BOUNDS = { messages: 1_000, chars: 1_048_576 }

export const exportHeaders = (tape: Pick<Tape, 'epoch' | 'oldest' | 'oldestTime'>, isGzipped: boolean): Record<string, string> => ({
  'content-type': contentTypeOf('ndjson'),
  ...(isGzipped && { 'content-encoding': 'gzip' }),
  ...varyHeaders,
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
  ...publicHeaders,
  ...keptSinceHeaders(tape),
})

/** Sends the range as NDJSON, at the reader's pace. Cuts the connection after a failure, to show that the end is missing. */
export function openExport(
  { clients, tape, uptime, clientAddressOf, log }: EdgeContext,
  workQueue: LongWorkQueue,
  { incoming, outgoing, query }: { incoming: IncomingMessage; outgoing: ServerResponse; query: HistoryQuery },
): void {
  const { patience } = clients
  if (outgoing.destroyed) return
  const address = clientAddressOf(incoming)
  const refused = clients.refusal(address)
  if (refused) throw refused
  const isGzipped = acceptsGzip(incoming.headers['accept-encoding'])
  const outlet = new ExportOutlet(incoming, outgoing, isGzipped ? new GzipChunks() : null)
  const client = new Client({ transport: 'ndjson', address, outlet, heartbeatMs: null, patience, uptime: uptime() })
  // Since the test, another process may have accepted the last client that the limit allows.
  const exceeded = clients.add(client)
  if (exceeded) throw limitRefusals[exceeded]
  outgoing.writeHead(200, exportHeaders(tape, isGzipped)).flushHeaders()
  outgoing.once('close', () => clients.remove(client))
  const send = async () => {
    const receipt = query.hasReceipt ? new ExportReceipt(tape.epoch, query) : null
    for await (const frames of readAll({ tape, pause: workQueue.nextSlice, isGone: () => client.isGone }, query)) {
      receipt?.add(frames)
      await outlet.send(
        frames.map(({ entry }) => entry.text),
        () => client.countSent(frames.length),
      )
    }
    if (receipt) await outlet.send([receipt.line()])
    await outlet.finish()
  }
  clients.replaySlots.run(client, send).catch((failure: unknown) => {
    if (!(failure instanceof EvictedError)) log('history_unreadable', { reason: String(failure) })
    outlet.end()
  })
}

type ExportContext = MatchedContext & { readonly tape: Tape; readonly pause: () => Promise<unknown> }

/** Reads each part after the reader has taken the previous one. Throws an EvictedError if eviction is faster than the reader. */
export async function* readAll(context: ExportContext, query: HistoryQuery): AsyncGenerator<readonly Frame[]> {
  let remaining = query.limit ?? Number.POSITIVE_INFINITY
  for await (const frames of readKept(context, query)) {
    yield* partsOf(frames.slice(0, remaining))
    remaining -= frames.length
    if (remaining <= 0) return
  }
}

function* partsOf(frames: readonly Frame[]): Generator<readonly Frame[]> {
  let [part, chars] = [[] as Frame[], 0]
  for (const frame of frames) {
    part.push(frame)
    chars += frame.entry.text.length
    if (part.length < PART_BOUNDS.messages && chars <= PART_BOUNDS.chars) continue
    yield part
    ;[part, chars] = [[], 0]
  }
  if (part.length > 0) yield part
}

async function* readKept({ tape, ...context }: ExportContext, query: HistoryQuery): AsyncGenerator<readonly Frame[]> {
  const { selection, after, before, order } = query
  const { stage } = selection.options
  await context.pause()
  const oldest = tape.oldest()
  const reader = openMatchedReader({ ...context, tape: guardEviction(tape, stage) }, selection)
  const read = async function* (range: Partial<MatchedRange>) {
    for await (const { frames } of reader.readPages({ after, before, order, ...range })) yield frames
  }
  const hasSparedOlder = order === 'asc' && resumeAfter(after) < oldest && oldest + 1 < before.seq
  if (!hasSparedOlder) return yield* read({})
  const oldestPart = await collect(reader.readPages({ after: { seq: oldest, n: null }, before, order }), OLDEST_PART_BOUNDS)
  yield* read({ before: justBefore(oldest + 1, stage) })
  yield oldestPart.frames
  if (oldestPart.next) yield* read({ after: oldestPart.next })
}

/** An export as an outlet. Notices are not part of history, so `write` drops them. */
class ExportOutlet extends SocketOutlet {
  readonly #outgoing: ServerResponse
  readonly #isChunked: boolean
  readonly #gzip: GzipChunks | null
  #isCut = false

  constructor({ socket, httpVersion }: IncomingMessage, outgoing: ServerResponse, gzip: GzipChunks | null) {
    super(socket)
    this.#outgoing = outgoing
    this.#isChunked = httpVersion !== '1.0'
    this.#gzip = gzip
    outgoing.once('close', () => gzip?.close())
  }

  /** Writes lines, calls `onWritten`, and waits until the reader has taken most of them. */
  async send(texts: readonly string[], onWritten = () => {}): Promise<void> {
    if (texts.length === 0 || this.#isEnded) return
    const lines = Buffer.from(texts.map((text) => `${text}\n`).join(''))
    const bytes = this.#gzip ? await this.#gzip.compress(lines) : lines
    if (this.#isEnded) return
    const hasRoom = this.#outgoing.write(bytes)
    onWritten()
    if (!hasRoom) await this.drained()
  }

  async finish(): Promise<void> {
    if (this.#isEnded) return
    const bytes = await this.#gzip?.finish()
    if (!this.#isEnded) this.#outgoing.end(bytes)
  }

  get #isEnded(): boolean {
    return this.#isCut || this.#outgoing.destroyed
  }

  override write(): void {}

  override get backlog(): number {
    return this.#outgoing.writableLength
  }

  override drained(): Promise<void> {
    return drainedOrClosed(this.#outgoing)
  }

  /**
   * Ends the connection after the lines that are already written, without the final chunk of HTTP/1.1: the client sees that the end
   * is missing. HTTP/1.0, which some proxies use, has no final chunk: only a reset shows it.
   */
  override end(reason?: CloseReason): void {
    this.#isCut = true
    if (!this.#outgoing.socket || !this.#isChunked || reason === 'too_slow') this.cut()
    else super.end()
  }

  override cut(): void {
    this.#isCut = true
    if (this.#isChunked) this.#outgoing.destroy()
    else this.#outgoing.socket?.resetAndDestroy()
  }
}
