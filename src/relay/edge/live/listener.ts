import type { Hex } from '../../../lib/hex.ts'
import type { Notice } from '../../../protocol/notices.ts'
import type { SelectionOptions } from '../../../protocol/selection/selection.ts'
import type { Transport } from '../../../protocol/transports.ts'
import type { Compression } from '../transport/deflate-offer.ts'
import { encode } from '../transport/encode-message.ts'
import type { Outlet } from '../transport/socket-outlet.ts'

/** A listener with a backlog that takes no bytes for this long counts as gone. */
const STUCK_AFTER_MS = 60_000

/** Counts the updates that every member of an audience was sent. */
type SentCounter = { readonly sent: number }

/** A listener's connection, its position on the tape, and its backlog. */
export class Listener {
  readonly id: string
  readonly transport: Transport
  /** The compression of live updates. Notices and replays go to one listener alone, which is not worth the time. */
  readonly compression: Compression
  /** The address or API key that the client is counted under. A WebSocket may send the key as its first message. */
  address: string
  readonly outlet: Outlet
  heartbeatMs: number | null
  heartbeatDueAt: number
  /** The last sequence number that was sent or did not match; null before the stream starts. */
  seq: number | null = null
  /** While the sealed view replays the seal at `seq`: index of the last update sent ahead of that seal. */
  n: number | null = null
  state: 'opening' | 'replaying' | 'live' | 'disconnected' = 'opening'
  /** `hello` must be the first message. */
  hasSentHello = false
  options: SelectionOptions
  /** Continues a live stream with a replay. Null in the default view, which never needs that. */
  replayAgain: (() => void) | null = null
  /** The tokens selected by name, or null for all. */
  tokens: ReadonlySet<Hex> | null = new Set()
  /** Updates sent outside of the current audience. */
  #sent = 0
  #audience: SentCounter = { sent: 0 }
  /** The number of bytes written up to the end of the replay. */
  #replayEnd = 0
  #takenBytes = 0
  #lastProgressAt: number

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
    this.#lastProgressAt = init.uptime
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

  /** Takes the listener out of its audience, after all updates up to this position were sent or did not match. */
  leaveLive(seq: number, n: number | null): void {
    this.countWith({ sent: 0 })
    this.state = 'replaying'
    this.advance(seq, n)
  }

  /** A live listener has no count of its own, because each delivery would have to write it. */
  countWith(audience: SentCounter): void {
    this.#sent = this.sent - audience.sent
    this.#audience = audience
  }

  /** The backlog without replay bytes, which do not count because a replay waits for the reader. */
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

  /** Ends the replay. Its unread rest does not count as overdue. */
  markCaughtUp(): void {
    const { backlog, takenBytes } = this.outlet
    this.#replayEnd = takenBytes + backlog
  }

  /** Sends updates up to a position. The bytes are encoded for the listener's transport. */
  send(bytes: Buffer, seq: number, count: number, n: number | null = null): void {
    this.outlet.write(bytes)
    this.#sent += count
    this.advance(seq, n)
  }

  /** Records that all updates up to this position were sent or did not match. */
  advance(seq: number, n: number | null = null): void {
    this.seq = seq
    this.n = n
  }
}
