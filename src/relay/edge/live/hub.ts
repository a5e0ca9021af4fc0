import type { CloseReason } from '../../../protocol/close-codes.ts'
import type { Stage } from '../../../protocol/fields.ts'
import type { NoticeOf } from '../../../protocol/notices.ts'
import { formatPosition, type TapePosition } from '../../../protocol/position.ts'
import type { Refusal } from '../../../protocol/refusal.ts'
import type { Host } from '../../host.ts'
import type { Metrics } from '../../metrics.ts'
import type { Tape } from '../../tape/tape.ts'
import type { Clients } from '../clients/clients.ts'
import { tooManySelections } from '../limits/refusals.ts'
import type { Selection } from '../select/compiled-selection.ts'
import type { CurrentState } from '../select/current-state.ts'
import type { BacklogCheck } from './audience.ts'
import { Audiences } from './audiences.ts'
import { Backlogs } from './backlogs.ts'
import { Delivery } from './delivery.ts'
import { Listener, type ListenerHost, type ListenerInit } from './listener.ts'

type Options = Pick<Host, 'wallTime' | 'uptime'> & {
  readonly clients: Clients
  readonly maxSelections: number
  readonly tape: Tape
  readonly current: CurrentState
  /** Limit of the time for which an update waits to share one write with later updates. */
  readonly batchDelayBoundMs: number
  readonly metrics: Pick<Metrics, 'gaps' | 'heldBytes' | 'countDelivered'>
}

/** Hands each batch of the tape to the live listeners, and knows their positions. */
export class Hub implements ListenerHost {
  readonly #options: Options
  readonly #backlogs: Backlogs
  readonly #audiences: Audiences
  readonly #backlogCheck: BacklogCheck
  readonly delivery: Delivery
  readonly #unfollow: () => void

  constructor(options: Options) {
    this.#options = options
    this.#backlogs = new Backlogs(options.uptime)
    this.#audiences = new Audiences(this.#backlogs.isHeld)
    this.#backlogCheck = { mayWrite: options.clients.mayWrite, hold: this.#backlogs.hold }
    this.delivery = new Delivery({
      tape: options.tape,
      audiences: this.#audiences,
      delayBoundMs: options.batchDelayBoundMs,
      write: (plain, sealed) => {
        this.updateBacklogs()
        for (const listener of this.#audiences.lackingEvicted(sealed)) this.#replayAgain(listener)
        this.#audiences.deliver(plain, sealed, this.#backlogCheck)
        options.metrics.countDelivered(
          plain.map(({ entry }) => entry),
          options.wallTime(),
        )
      },
    })
    this.#unfollow = options.tape.follow((batch, notes) => {
      options.current.apply(notes)
      this.delivery.add(batch)
    })
  }

  /** Every live listener has received, or did not match, all updates up to this sequence number. */
  get deliveredSeq(): number {
    return this.delivery.deliveredSeq
  }

  position(seq: number, n: number | null = null): string {
    return formatPosition(this.#options.tape.epoch, seq, n)
  }

  /** Returns the position from which a listener would resume. For a live listener, that is the end of the last delivery. */
  positionOf({ phase, selection }: Listener): string | null {
    if (phase.name === 'replaying') return this.position(phase.at.seq, phase.at.n)
    if (phase.name !== 'live') return null
    const part = selection.options.stage === 'sealed' ? this.delivery.part : null
    return part ? this.position(part.seq, part.n) : this.position(this.deliveredSeq)
  }

  countGap(reason: NoticeOf<'gap'>['reason']): void {
    this.#options.metrics.gaps.inc({ reason })
  }

  get audienceCount(): number {
    return this.#audiences.audienceCount
  }

  /** Returns a refusal if too many selections have value filters; otherwise null. Listeners rarely share such selections. */
  selectionRefusal(selection: Selection, listener?: Listener): Refusal | null {
    return this.#audiences.filteredCountWith(selection, listener) <= this.#options.maxSelections ? null : tooManySelections
  }

  /** Makes the listener of a new connection. */
  createListener(init: Omit<ListenerInit, 'host' | 'patience' | 'uptime'>): Listener {
    const { clients, uptime } = this.#options
    return new Listener({ ...init, host: this, patience: clients.patience, uptime: uptime() })
  }

  /** Makes a listener live: it receives every later update that its selection matches. */
  join(listener: Listener): void {
    const { phase, selection } = listener
    this.delivery.flush()
    if (selection.options.stage === 'sealed') this.delivery.finishPart()
    // The delivery may have disconnected the listener, or made it replay again.
    if (listener.phase === phase) this.#audiences.assign(listener)
  }

  /** Takes a listener out of its audience. */
  leave(listener: Listener): void {
    this.#backlogs.updateOf(listener)
    this.#audiences.remove(listener)
  }

  /** Takes a listener out of its audience until it has replayed the updates after a position. */
  beginReplay(listener: Listener, after: TapePosition): void {
    this.#audiences.remove(listener)
    listener.replayFrom(after)
  }

  /** Whether a listener of this view may join at a position: not if live listeners are behind it, or amid the parts of a seal. */
  isJoinable(stage: Stage, { seq }: TapePosition): boolean {
    return seq <= this.deliveredSeq && (stage === 'preconfirmed' || this.delivery.part === null)
  }

  heartbeat(listener: Listener): CloseReason | null {
    const { backlog } = listener.outlet
    if (listener.outlet.ping()) return 'no_pong'
    const position = this.positionOf(listener)
    // A listener has no position before its stream starts. While it has replay bytes to read, it needs no heartbeat.
    if (position === null || (listener.phase.name === 'replaying' && listener.outlet.backlog > 0)) return null
    if (!listener.keepsUp(this.#options.uptime)) return 'too_slow'
    const { tape, current, wallTime } = this.#options
    listener.sendNotice({
      type: 'heartbeat',
      id: position,
      end: this.position(tape.end()),
      time: new Date(wallTime()).toISOString(),
      head: current.head,
      source: current.source,
      sent: listener.sent,
      backlog,
    })
    return null
  }

  /** Releases the memory that backlogs no longer need, and ends connections that hold too much of it. */
  updateBacklogs(): void {
    const { clients, metrics } = this.#options
    this.#backlogs.update()
    this.#backlogs.enforceHeldBound((listener) => {
      clients.disconnect(listener, 'too_slow')
      listener.outlet.cut()
    })
    metrics.heldBytes.set(this.#backlogs.heldBytes)
  }

  /** Sends each client the position from which it can resume. */
  drain(): void {
    this.delivery.flush()
    this.#options.clients.drain()
  }

  close(): void {
    this.#unfollow()
    this.delivery.flush()
    this.delivery.close()
  }

  /** Makes a listener replay the next updates, because eviction removed some of them and a replay reports that with a gap. */
  #replayAgain(listener: Listener): void {
    const { part, deliveredSeq } = this.delivery
    this.beginReplay(listener, { seq: part?.seq ?? deliveredSeq, n: part?.n ?? null })
    listener.replayAgain?.()
  }
}
