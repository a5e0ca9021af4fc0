import type { Farewell } from '../../protocol/close-codes.ts'
import type { Hex } from '../../protocol/fields.ts'
import type { Notice } from '../../protocol/notices.ts'
import type { Options } from '../../protocol/selection.ts'
import { type Carrier, encode } from '../transport/encode.ts'

/** Where a listener's bytes go: a WebSocket or a streaming response. */
export interface Outlet {
  write(bytes: Buffer): void
  readonly backlog: number
  /** Bytes that the kernel has taken so far. */
  readonly taken: number
  drained(): Promise<void>
  /** Asks the other side for a sign of life; true if the last one was never answered. */
  ping(): boolean
  end(farewell: Farewell, position: string | null): void
}

/** A listener to whom bytes are owed and who takes none for this long is gone, or as good as gone. */
const STUCK_BOUND_MS = 60_000

/** One of those who listen: where it stands on the tape, and what it is owed. */
export class Listener {
  readonly id: string
  readonly carrier: Carrier
  /** Whom it is counted for. */
  readonly address: string
  readonly outlet: Outlet
  /** Milliseconds between heartbeats; null where none are wanted. */
  heartbeatMs: number | null
  beatAt: number
  /** The last number sent or passed over as not concerning it; null before its stream starts. */
  seq: number | null = null
  /** While a seal of the sealed view is replayed: the last of those sent that are given before it, `seq` being its number. */
  n: number | null = null
  /** Tape messages sent so far. */
  sent = 0
  state: 'opening' | 'replaying' | 'live' | 'parted' = 'opening'
  /** Whether it has been said hello; before that nothing else may come. */
  greeted = false
  options: Options
  /** The tokens selected by name, or null for all. */
  tokens: ReadonlySet<Hex> | null = new Set()
  #replayBytes = 0
  #taken = 0
  #movedAt: number

  constructor(given: {
    readonly id: string
    readonly carrier: Carrier
    readonly address: string
    readonly outlet: Outlet
    readonly heartbeatMs: number | null
    readonly options: Options
    readonly uptime: number
  }) {
    this.id = given.id
    this.carrier = given.carrier
    this.address = given.address
    this.outlet = given.outlet
    this.heartbeatMs = given.heartbeatMs
    this.options = given.options
    this.beatAt = given.uptime + (given.heartbeatMs ?? 0)
    this.#movedAt = given.uptime
  }

  setHeartbeat(ms: number, uptime: number): void {
    this.heartbeatMs = ms
    this.beatAt = uptime + ms
  }

  say(notice: Notice): void {
    if (notice.type === 'hello') this.greeted = true
    if (this.state !== 'parted') this.outlet.write(encode(this.carrier, notice, JSON.stringify(notice)))
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
    const { backlog, taken } = this.outlet
    if (backlog === 0 || taken !== this.#taken) {
      this.#taken = taken
      this.#movedAt = uptime
    }
    return uptime - this.#movedAt >= STUCK_BOUND_MS
  }

  /** The replay is over; what is still unread of it is forgiven. */
  caughtUp(): void {
    this.#replayBytes = this.outlet.backlog
  }

  /** Takes tape messages up to a place, already in the bytes of its carrier. */
  offer(bytes: Buffer, seq: number, count: number, n: number | null = null): void {
    this.outlet.write(bytes)
    this.sent += count
    this.passOver(seq, n)
  }

  /** What stands up to this place has been sent, or does not concern it. */
  passOver(seq: number, n: number | null = null): void {
    this.seq = seq
    this.n = n
  }
}
