import type { IncomingMessage, ServerResponse } from 'node:http'
import type { CloseReason } from '../../../protocol/close-codes.ts'
import { defaultSelectionOptions } from '../../../protocol/parameters/selection.ts'
import { resumeAfter } from '../../../protocol/position.ts'
import { contentTypeOf } from '../../../protocol/transports.ts'
import type { Tape } from '../../tape/tape.ts'
import type { LongWorkQueue } from '../limits/long-work-queue.ts'
import type { StreamServices } from '../live/edge-context.ts'
import { Listener } from '../live/listener.ts'
import type { Frame } from '../select/frame.ts'
import { acceptsGzip, GzipChunks, varyHeaders } from '../transport/gzip.ts'
import { publicHeaders } from '../transport/shared-headers.ts'
import { internalError } from '../transport/shared-refusals.ts'
import { drainedOrClosed, SocketOutlet } from '../transport/socket-outlet.ts'
import { EvictedError, guardEviction } from './eviction-guard.ts'
import { ExportReceipt } from './export-receipt.ts'
import { keptSinceHeaders, type ReadContext, readChunk } from './history-page.ts'
import { type HistoryQuery, justBefore } from './history-query.ts'

/** Limits of one chunk. For a client that does not read, the relay holds little more than one chunk in memory. */
const CHUNK_BOUNDS = { messages: 100, chars: 131_072 }
/** Limits of the chunk at the oldest position. It is large and read first, because eviction removes its updates next. */
const OLDEST_CHUNK_BOUNDS = { messages: 1_000, chars: 1_048_576 }

/** Time that a client has to take the last lines of an export that is cut. */
const CUT_BOUND_MS = 5_000

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
  { edge, createConnectionId, clientAddressOf, warn }: StreamServices,
  workQueue: LongWorkQueue,
  { incoming, outgoing, query }: { incoming: IncomingMessage; outgoing: ServerResponse; query: HistoryQuery },
): void {
  const { hub, tape, uptime } = edge
  if (outgoing.destroyed) return
  const address = clientAddressOf(incoming)
  const { tokens, options } = query.selection
  // Tests the default options, because the limit of selections with value filters is for live streams only.
  const refusal = () => hub.refusal({ tokens, options: defaultSelectionOptions }, address)
  const refused = refusal()
  if (refused) throw refused
  const isGzipped = acceptsGzip(incoming.headers['accept-encoding'])
  const outlet = new ExportOutlet(incoming, outgoing, isGzipped ? new GzipChunks() : null)
  const listener = new Listener({
    ...{ id: createConnectionId(), transport: 'ndjson', address, outlet, heartbeatMs: null, options },
    uptime: uptime(),
  })
  // Since the test, another process may have accepted the last client that the limit allows.
  if (hub.add(listener)) throw refusal() ?? internalError
  outgoing.writeHead(200, exportHeaders(tape, isGzipped)).flushHeaders()
  outgoing.once('close', () => hub.remove(listener))
  const isGone = () => listener.state === 'disconnected'
  const send = async () => {
    const release = await hub.connectionLimits.acquireReplaySlot(listener)
    try {
      const receipt = query.hasReceipt ? new ExportReceipt(tape.epoch, query) : null
      for await (const frames of readAll({ tape, workQueue, isGone }, query)) {
        receipt?.add(frames)
        await outlet.send(frames.map(({ entry }) => entry.text))
        listener.countSent(frames.length)
      }
      if (receipt) await outlet.send([receipt.line()])
      await outlet.finish()
    } finally {
      release()
    }
  }
  send().catch((failure: unknown) => {
    if (!(failure instanceof EvictedError)) warn('history_unreadable', { reason: String(failure) })
    outlet.end()
  })
}

type ExportContext = ReadContext & { readonly tape: Tape }

/** Reads each chunk after the reader has taken the previous one. Throws an EvictedError if eviction is faster than the reader. */
export async function* readAll(context: ExportContext, query: HistoryQuery): AsyncGenerator<readonly Frame[]> {
  let remaining = query.limit ?? Number.POSITIVE_INFINITY
  for await (const frames of readKept(context, query)) {
    yield frames.slice(0, remaining)
    remaining -= frames.length
    if (remaining <= 0) return
  }
}

async function* readKept({ tape, workQueue, isGone }: ExportContext, query: HistoryQuery): AsyncGenerator<readonly Frame[]> {
  await workQueue.nextSlice()
  const oldest = tape.oldest()
  const context = { tape: guardEviction(tape, query.selection.options.stage), workQueue, isGone }
  const hasSparedOlder = query.order === 'asc' && resumeAfter(query.after) < oldest && oldest + 1 < query.before.seq
  if (!hasSparedOlder) return yield* readChunks(context, query)
  const oldestChunk = await readChunk(context, { ...query, after: { seq: oldest, n: null } }, OLDEST_CHUNK_BOUNDS)
  yield* readChunks(context, { ...query, before: justBefore(oldest + 1, query.selection.options.stage) })
  yield oldestChunk.frames
  if (oldestChunk.next) yield* readChunks(context, { ...query, after: oldestChunk.next })
}

async function* readChunks(context: ReadContext, query: HistoryQuery): AsyncGenerator<readonly Frame[]> {
  for (let remaining: HistoryQuery | null = query; remaining !== null && !context.isGone(); ) {
    await context.workQueue.nextSlice()
    const { frames, next } = await readChunk(context, remaining, CHUNK_BOUNDS)
    yield frames
    remaining = next && { ...remaining, [remaining.order === 'asc' ? 'after' : 'before']: next }
  }
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

  async send(texts: readonly string[]): Promise<void> {
    if (texts.length === 0 || this.#isEnded) return
    const lines = Buffer.from(texts.map((text) => `${text}\n`).join(''))
    const bytes = this.#gzip ? await this.#gzip.compress(lines) : lines
    if (!this.#isEnded && !this.#outgoing.write(bytes)) await this.drained()
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

  ping(): boolean {
    return false
  }

  /**
   * Ends the connection after the lines that are already written, without the final chunk of HTTP/1.1: the client sees that the end
   * is missing. HTTP/1.0, which some proxies use, has no final chunk: only a reset shows it.
   */
  end(reason?: CloseReason): void {
    this.#isCut = true
    const { socket } = this.#outgoing
    if (!socket || !this.#isChunked || reason === 'too_slow') return this.cut()
    socket.end()
    const cutTimer = setTimeout(() => this.cut(), CUT_BOUND_MS)
    socket.once('close', () => clearTimeout(cutTimer))
  }

  override cut(): void {
    this.#isCut = true
    if (this.#isChunked) this.#outgoing.destroy()
    else this.#outgoing.socket?.resetAndDestroy()
  }
}
