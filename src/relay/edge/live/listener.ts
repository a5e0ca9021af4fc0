import type { Hex } from '../../../lib/hex.ts'
import type { Notice } from '../../../protocol/notices.ts'
import type { SelectionOptions } from '../../../protocol/parameters/selection.ts'
import type { Transport } from '../../../protocol/transports.ts'
import type { Compression } from '../transport/deflate-offer.ts'
import { encode } from '../transport/encode-message.ts'
import type { Outlet } from '../transport/socket-outlet.ts'

/** A listener with a backlog that takes no bytes for this long counts as gone. */
const STUCK_AFTER_MS = 60_000

/** Number of updates that were sent to an audience. */
type SentCounter = { readonly sent: number }

/** A listener's connection, its position on the tape, and its backlog. */
export class Listener {
  readonly id: string
  readonly transport: Transport
  /** Compression of live updates. Notices and replays are for one listener only, so to compress them is not worth the time. */
  readonly compression: Compression
  /** Name under which the client is counted. It changes if a WebSocket sends its API key as the first message. */
  address: string
  readonly outlet: Outlet
  readonly openedAt: number
  heartbeatMs: number | null
  heartbeatDueAt: number
  /** Sequence number up to which all updates were sent or did not match; null before the stream starts. */
  seq: number | null = null
  /** While the sealed view replays the updates before the seal at `seq`: place, in that seal, of the key that was sent last. */
  n: number | null = null
  state: 'opening' | 'replaying' | 'live' | 'disconnected' = 'opening'
  /** Whether `hello` was sent, which must be the first message. */
  hasSentHello = false
  options: SelectionOptions
  /** Continues a live stream with a replay; null in the default view, which never needs a second replay. */
  replayAgain: (() => void) | null = null
  /** The tokens selected by name, or null for all. */
  tokens: ReadonlySet<Hex> | null = new Set()
  /** Number of updates sent, minus the count of the current audience, which may have begun before the listener joined. */
  #sent = 0
  #audience: SentCounter = { sent: 0 }
  /** The number of bytes written up to the end of the replay. */
  #replayEnd = 0
  #takenBytes = 0
  #lastProgressAt: number
  /** Bytes that the socket had taken before, for earlier answers. */
  readonly #bytesBefore: number

  constructor(
    init: Pick<Listener, 'id' | 'transport' | 'address' | 'outlet' | 'heartbeatMs' | 'options'> & {
      readonly compression?: Compression
      readonly uptime: number
    },
  ) {
    this.id = init.id
    this.transport = init.transport
    this.compression = init.compression ?? 'none'
    this.address = init.address
    this.outlet = init.outlet
    this.heartbeatMs = init.heartbeatMs
    this.options = init.options
    this.heartbeatDueAt = init.uptime + (init.heartbeatMs ?? 0)
    this.openedAt = init.uptime
    this.#lastProgressAt = init.uptime
    this.#bytesBefore = init.outlet.takenBytes
  }

  setHeartbeat(ms: number, uptime: number): void {
    this.heartbeatMs = ms
    this.heartbeatDueAt = uptime + ms
  }

  sendNotice(notice: Notice): void {
    if (notice.type === 'hello') this.hasSentHello = true
    if (this.state !== 'disconnected') this.outlet.write(encode(this.transport, notice, JSON.stringify(notice)))
  }

  get sent(): number {
    return this.#sent + this.#audience.sent
  }

  get sentBytes(): number {
    return this.outlet.takenBytes - this.#bytesBefore
  }

  /** Takes the listener out of its audience, after all updates up to this position were sent or did not match. */
  leaveLive(seq: number, n: number | null): void {
    this.countWith({ sent: 0 })
    this.state = 'replaying'
    this.advance(seq, n)
  }

  /** Counts the later updates with an audience, so that a delivery does not write a count for each listener. */
  countWith(audience: SentCounter): void {
    this.#sent = this.sent - audience.sent
    this.#audience = audience
  }

  /** Returns the backlog without the bytes of a replay. They do not count, because a replay waits for the reader. */
  overdueBytes(): number {
    const { backlog } = this.outlet
    if (backlog === 0 || this.state === 'replaying') return 0
    return Math.min(backlog, this.outlet.takenBytes + backlog - this.#replayEnd)
  }

  /** Whether the client has taken no byte of its backlog for too long. Needs a call every few seconds. */
  isStuck(uptime: number): boolean {
    const { backlog, takenBytes } = this.outlet
    if (backlog === 0 || takenBytes !== this.#takenBytes) {
      this.#takenBytes = takenBytes
      this.#lastProgressAt = uptime
    }
    return uptime - this.#lastProgressAt >= STUCK_AFTER_MS
  }

  /** Marks the end of a replay: the bytes that were written before it do not count as overdue. */
  markCaughtUp(): void {
    const { backlog, takenBytes } = this.outlet
    this.#replayEnd = takenBytes + backlog
  }

  /** Sends `count` updates up to a position. The bytes must be encoded for the transport of the listener. */
  send(bytes: Buffer, seq: number, count: number, n: number | null = null): void {
    this.outlet.write(bytes)
    this.countSent(count)
    this.advance(seq, n)
  }

  countSent(count: number): void {
    this.#sent += count
  }

  /** Records that all updates up to this position were sent or did not match. */
  advance(seq: number, n: number | null = null): void {
    this.seq = seq
    this.n = n
  }
}
