import type { IncomingMessage, ServerResponse } from 'node:http'
import { Refusal } from '../../protocol/refusal.ts'
import { defaultSelectionOptions } from '../../protocol/selection.ts'
import type { Tape } from '../../tape/tape.ts'
import type { WorkQueue } from '../limits/work-queue.ts'
import type { StreamServices } from '../live/http-stream.ts'
import { Listener } from '../live/listener.ts'
import type { Outlet } from '../transport/outlet.ts'
import { SocketOutlet } from '../transport/socket-outlet.ts'
import { EvictedError } from './eviction-guard.ts'
import { keptSinceHeaders } from './history-page.ts'
import type { HistoryQuery } from './query.ts'
import { readAll } from './whole.ts'

/** With what the lines come. */
export const exportHeaders = (tape: Tape): Record<string, string> => ({
  'content-type': 'application/x-ndjson; charset=utf-8',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
  'access-control-allow-origin': '*',
  'x-content-type-options': 'nosniff',
  ...keptSinceHeaders(tape),
})

const goingAway = new Refusal(503, 'going_away', 'This server is about to stop; come back in a moment.')
const pipelined = new Refusal(400, 'pipelined', 'Lines are asked for once the answers before them have come.')

type ExportRequest = {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly query: HistoryQuery
}

/**
 * Gives history as lines: all that was asked for, at the reader's pace. The answer ends properly or not at all, so that
 * whoever got part of it knows. A refusal is thrown before the first byte.
 */
export function openExport(
  { edge, createConnectionId, clientAddressOf, warn }: StreamServices,
  workQueue: WorkQueue,
  { incoming, outgoing, query }: ExportRequest,
): void {
  const { hub, tape, uptime } = edge
  if (outgoing.destroyed) return
  if (outgoing.socket !== incoming.socket) throw pipelined
  const address = clientAddressOf(incoming)
  const { tokens, options } = query.selection
  // Value filters are bounded where they are heard live.
  const refusal = hub.isDraining ? goingAway : hub.refusal({ tokens, options: defaultSelectionOptions }, address)
  if (refusal) throw refusal
  const outlet = new ExportOutlet(incoming, outgoing)
  const listener = new Listener({
    ...{ id: createConnectionId(), transport: 'ndjson', address, outlet, heartbeatMs: null, options },
    uptime: uptime(),
  })
  outgoing.writeHead(200, exportHeaders(tape)).flushHeaders()
  hub.add(listener)
  outgoing.once('close', () => hub.remove(listener))
  const isGone = () => listener.state === 'parted'
  const send = async () => {
    const release = await hub.acquireReplaySlot(listener)
    try {
      for await (const texts of readAll({ tape, workQueue, isGone }, query)) await outlet.send(texts)
      if (!isGone()) outgoing.end()
    } finally {
      release()
    }
  }
  send().catch((failure: unknown) => {
    if (!(failure instanceof EvictedError)) warn('history could not be read to its end', { failure: String(failure) })
    outlet.end()
  })
}

/** An answer as an outlet. A connection's words about itself have no place in it, and whoever is shown out is cut off. */
class ExportOutlet implements Outlet {
  readonly #socket: SocketOutlet
  readonly #outgoing: ServerResponse
  readonly #isChunked: boolean

  constructor({ socket, httpVersion }: IncomingMessage, outgoing: ServerResponse) {
    this.#socket = new SocketOutlet(socket)
    this.#outgoing = outgoing
    this.#isChunked = httpVersion !== '1.0'
  }

  /** Resolves when there is room for more, or nobody to give it to. */
  async send(texts: readonly string[]): Promise<void> {
    if (texts.length === 0 || this.#outgoing.destroyed) return
    if (!this.#outgoing.write(Buffer.from(texts.map((text) => `${text}\n`).join('')))) await this.drained()
  }

  write(): void {}

  get backlog(): number {
    return this.#outgoing.writableLength
  }

  get takenBytes(): number {
    return this.#socket.progress
  }

  drained(): Promise<void> {
    return new Promise((resolve) => {
      const finish = () => {
        this.#outgoing.off('drain', finish)
        this.#outgoing.off('close', finish)
        resolve()
      }
      this.#outgoing.on('drain', finish)
      this.#outgoing.on('close', finish)
    })
  }

  ping(): boolean {
    return false
  }

  /** Cuts it off so that nobody takes it for complete: where no chunk can be missing, as for most proxies, by a reset. */
  end(): void {
    if (this.#isChunked) this.#outgoing.destroy()
    else this.#outgoing.socket?.resetAndDestroy()
  }
}
