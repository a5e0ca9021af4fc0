import type { IncomingMessage, ServerResponse } from 'node:http'
import type { CloseReason } from '../../../protocol/close-codes.ts'
import { Client } from '../clients/client.ts'
import { limitRefusals } from '../limits/refusals.ts'
import { acceptsGzip, GzipChunks, varyHeaders } from '../transport/gzip.ts'
import { publicHeaders } from '../transport/shared-headers.ts'
import { drainedOrClosed, SocketOutlet } from '../transport/socket-outlet.ts'
import type { EdgeContext } from './edge-context.ts'

/** Headers of an answer of many lines. */
export const lineHeaders = (contentType: string, isGzipped: boolean): Record<string, string> => ({
  'content-type': contentType,
  ...(isGzipped && { 'content-encoding': 'gzip' }),
  ...varyHeaders,
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
  ...publicHeaders,
})

type LineExport = {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly headersOf: (isGzipped: boolean) => Record<string, string>
  /** Yields the lines that are written at once. `isGone` says whether the client has left. */
  readonly lines: (isGone: () => boolean) => AsyncIterable<readonly string[]>
  readonly onFailure: (failure: unknown) => void
}

/** Sends lines at the reader's pace. Cuts the connection after a failure, to show that the end is missing. */
export function openLineExport(
  { clients, uptime, clientAddressOf }: EdgeContext,
  { incoming, outgoing, headersOf, lines, onFailure }: LineExport,
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
  outgoing.writeHead(200, headersOf(isGzipped)).flushHeaders()
  outgoing.once('close', () => clients.remove(client))
  const send = async () => {
    for await (const texts of lines(() => client.isGone)) await outlet.send(texts, () => client.countSent(texts.length))
    await outlet.finish()
  }
  clients.replaySlots.run(client, send).catch((failure: unknown) => {
    onFailure(failure)
    outlet.end()
  })
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
