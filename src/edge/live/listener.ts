import type { Hex } from '../../protocol/fields.ts'
import type { Notice } from '../../protocol/notices.ts'
import type { SelectionOptions } from '../../protocol/selection.ts'
import { encode, type Transport } from '../transport/encode.ts'
import type { Outlet } from '../transport/outlet.ts'

/** A listener to whom bytes are owed and who takes none for this long is gone, or as good as gone. */
const STUCK_AFTER_MS = 60_000

/** One of those who listen: where it stands on the tape, and what it is owed. */
export class Listener {
  readonly id: string
  readonly transport: Transport
  /** Whom it is counted for. */
  readonly address: string
  readonly outlet: Outlet
  /** Milliseconds between heartbeats; null where none are wanted. */
  heartbeatMs: number | null
  heartbeatDueAt: number
  /** The last number sent or passed over as not concerning it; null before its stream starts. */
  seq: number | null = null
  /** While a seal of the sealed view is replayed: the last of those sent that are given before it, `seq` being its number. */
  n: number | null = null
  /** Tape messages sent so far. */
  sent = 0
  state: 'opening' | 'replaying' | 'live' | 'parted' = 'opening'
  /** Whether it has been said hello; before that nothing else may come. */
  hasSentHello = false
  options: SelectionOptions
  /** The tokens selected by name, or null for all. */
  tokens: ReadonlySet<Hex> | null = new Set()
  #replayBytes = 0
  #takenBytes = 0
  #lastProgressAt: number

  constructor(init: {
    readonly id: string
    readonly transport: Transport
    readonly address: string
    readonly outlet: Outlet
    readonly heartbeatMs: number | null
    readonly options: SelectionOptions
    readonly uptime: number
  }) {
    this.id = init.id
    this.transport = init.transport
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
    if (this.state !== 'parted') this.outlet.write(encode(this.transport, notice, JSON.stringify(notice)))
  }

  /** Bytes that it should have read by now. What a replay left behind does not count: replays wait for the reader. */
  overdueBytes(): number {
    const { backlog } = this.outlet
    if (backlog === 0 || this.state === 'replaying') {
      if (backlog === 0) this.#replayBytes = 0
      return 0
    }
    this.#replayBytes = Math.min(this.#replayBytes, backlog)
    return backlog - this.#replayBytes
  }

  /** Whether it has taken nothing of what it is owed for too long. Asked now and then. */
  isStuck(uptime: number): boolean {
    const { backlog, takenBytes } = this.outlet
    if (backlog === 0 || takenBytes !== this.#takenBytes) {
      this.#takenBytes = takenBytes
      this.#lastProgressAt = uptime
    }
    return uptime - this.#lastProgressAt >= STUCK_AFTER_MS
  }

  /** The replay is over; what is still unread of it is forgiven. */
  markCaughtUp(): void {
    this.#replayBytes = this.outlet.backlog
  }

  /** Takes tape messages up to a place, already in the bytes of its carrier. */
  send(bytes: Buffer, seq: number, count: number, n: number | null = null): void {
    this.outlet.write(bytes)
    this.sent += count
    this.advance(seq, n)
  }

  /** What stands up to this place has been sent, or does not concern it. */
  advance(seq: number, n: number | null = null): void {
    this.seq = seq
    this.n = n
  }
}
