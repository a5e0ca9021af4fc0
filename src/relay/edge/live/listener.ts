import type { CloseReason } from '../../../protocol/close-codes.ts'
import type { Notice } from '../../../protocol/notices.ts'
import type { TapePosition } from '../../../protocol/position.ts'
import type { Transport } from '../../../protocol/transports.ts'
import { Client, type ClientInit } from '../clients/client.ts'
import type { Selection } from '../select/compiled-selection.ts'
import type { Compression } from '../transport/deflate-offer.ts'
import { encode } from '../transport/encode-message.ts'

/** Live listeners that share one buffer. They are counted together, so that a delivery does not write a count for each of them. */
export type LiveGroup = { readonly name: 'live'; readonly sent: number }

/** `opening`: nothing was sent. `greeted`: `hello` was sent, and nothing is selected yet. */
type Phase =
  | { readonly name: 'opening' | 'greeted' | 'gone' }
  /** All updates up to a position were sent, or did not match. `n` is the place of the last key that was sent of the seal at `seq`. */
  | { readonly name: 'replaying'; readonly at: TapePosition }
  | LiveGroup

const [OPENING, GREETED, GONE] = [{ name: 'opening' }, { name: 'greeted' }, { name: 'gone' }] as const

/** The hub, which knows the position of all live listeners. */
export interface ListenerHost {
  heartbeat(listener: Listener): CloseReason | null
  /** Returns the position from which a listener would resume; null before its stream has started. */
  positionOf(listener: Listener): string | null
  leave(listener: Listener): void
}

export type ListenerInit = Omit<ClientInit, 'transport'> &
  Pick<Listener, 'id' | 'transport' | 'selection'> & { readonly compression?: Compression; readonly host: ListenerHost }

/** The client of a stream. */
export class Listener extends Client {
  declare readonly transport: Transport
  readonly id: string
  /** Compression of live updates. Notices and replays are for one listener only, so to compress them is not worth the time. */
  readonly compression: Compression
  selection: Selection
  /** Continues a live stream with a replay; null in the default view, which never needs a second replay. */
  replayAgain: (() => void) | null = null
  readonly #host: ListenerHost
  #phase: Phase = OPENING

  constructor(init: ListenerInit) {
    super(init)
    this.id = init.id
    this.compression = init.compression ?? 'none'
    this.selection = init.selection
    this.#host = init.host
  }

  get phase(): Phase {
    return this.#phase
  }

  setHeartbeat(ms: number, uptime: number): void {
    this.heartbeatMs = ms
    this.heartbeatDueAt = uptime + ms
  }

  sendNotice(notice: Notice): void {
    if (!this.isGone) this.outlet.write(encode(this.transport, notice, JSON.stringify(notice)))
  }

  /** Call it after `hello`, which must be the first message. */
  greet(): void {
    if (this.#phase === OPENING) this.#phase = GREETED
  }

  /** Continues with a replay, after all updates up to this position were sent or did not match. */
  replayFrom(at: TapePosition): void {
    if (!this.isGone) this.#enter({ name: 'replaying', at })
  }

  /** Sends `count` updates of a replay up to a position. The bytes must be encoded for the transport of the listener. */
  send(bytes: Buffer, { seq, n }: TapePosition, count: number): void {
    this.outlet.write(bytes)
    this.countSent(count)
    this.replayFrom({ seq, n })
  }

  /** Counts the later updates with a group. */
  goLive(group: LiveGroup): void {
    if (!this.isGone) this.#enter(group)
  }

  override heartbeat(): CloseReason | null {
    return this.#host.heartbeat(this)
  }

  override sayGoodbye(reason: CloseReason, retryMs: number): string | null {
    const id = this.#host.positionOf(this)
    this.sendNotice({ type: 'bye', id, reason, retry_ms: retryMs })
    return id
  }

  override onGone(): void {
    this.#host.leave(this)
    this.#enter(GONE)
  }

  override get sent(): number {
    return super.sent + sentBy(this.#phase)
  }

  /** The bytes of a replay do not count, because a replay waits for the reader. */
  override get overdueBytes(): number {
    return this.#phase.name === 'replaying' ? 0 : super.overdueBytes
  }

  #enter(phase: Phase): void {
    // The group may have sent updates before the listener joined it.
    this.countSent(sentBy(this.#phase) - sentBy(phase))
    this.#phase = phase
  }
}

const sentBy = (phase: Phase): number => (phase.name === 'live' ? phase.sent : 0)
