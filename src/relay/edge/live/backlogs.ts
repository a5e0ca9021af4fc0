import type { Listener } from './listener.ts'

/** A backlog of more than this many times MAX_BACKLOG ends the connection at once, without BACKLOG_PATIENCE. */
const AT_ONCE_FACTOR = 16
/** Limit of the memory that all backlogs hold together. Beyond it connections end: first the one with the oldest untaken write. */
const HELD_BOUND_BYTES = 268_435_456

/** Memory with bytes that a listener has not taken yet. */
type Piece = {
  readonly memory: ArrayBufferLike
  /** Number of the write. Writes that the kernel did not take at once are counted over all listeners. */
  readonly writtenAt: number
  /** The listener no longer needs this memory when it has taken this many bytes in total. */
  end: number
}

type Backlog = {
  /** The memory of the listener's live updates, oldest first. */
  readonly pieces: Piece[]
  /** Uptime at which the backlog exceeded the limit; null if it does not exceed it. */
  overSince: number | null
}

export type BacklogBounds = { readonly maxBacklogBytes: number; readonly backlogPatienceMs: number; readonly uptime: () => number }

/** Keeps the listeners with untaken bytes. A backlog may be too large for a while, so that a burst disconnects no good reader. */
export class Backlogs {
  readonly #options: BacklogBounds
  readonly #backlogs = new Map<Listener, Backlog>()
  /** Number of pieces that refer to each memory. Memory that backlogs share counts once, and whole: no part of it can be freed. */
  readonly #piecesOf = new Map<ArrayBufferLike, number>()
  #heldBytes = 0
  #writes = 0

  constructor(options: BacklogBounds) {
    this.#options = options
  }

  /** Bytes of memory that cannot be freed, because backlogs contain live updates in it. */
  get heldBytes(): number {
    return this.#heldBytes
  }

  readonly isHeld = (memory: ArrayBufferLike): boolean => this.#piecesOf.has(memory)

  /** Whether a listener is fast enough for another write. */
  keepsUp(listener: Listener): boolean {
    const { maxBacklogBytes, backlogPatienceMs, uptime } = this.#options
    const overdue = listener.overdueBytes()
    if (overdue <= maxBacklogBytes) {
      const backlog = this.#backlogs.get(listener)
      if (backlog) backlog.overSince = null
      return true
    }
    if (overdue > AT_ONCE_FACTOR * maxBacklogBytes) return false
    const backlog = this.#backlogOf(listener)
    const now = uptime()
    backlog.overSince ??= now
    return now - backlog.overSince < backlogPatienceMs
  }

  /** Keeps the memory of bytes that were just written, because the listener now has a backlog. */
  hold(listener: Listener, { buffer: memory }: Buffer): void {
    const { pieces } = this.#backlogOf(listener)
    const { takenBytes, backlog } = listener.outlet
    const end = takenBytes + backlog
    const last = pieces.at(-1)
    this.#writes += 1
    if (last?.memory === memory) last.end = end
    else {
      const count = this.#piecesOf.get(memory) ?? 0
      if (count === 0) this.#heldBytes += memory.byteLength
      this.#piecesOf.set(memory, count + 1)
      pieces.push({ memory, writtenAt: this.#writes, end })
    }
    // The time of BACKLOG_PATIENCE begins now, because the check before the next write may be much later.
    this.keepsUp(listener)
  }

  /** Releases the memory of bytes that the kernel has taken. Call it before each delivery: only deliveries add held memory. */
  update(): void {
    for (const listener of this.#backlogs.keys()) this.updateOf(listener)
  }

  /** Releases the memory of bytes that the kernel has taken. Forgets a listener without a backlog, such as a disconnected one. */
  updateOf(listener: Listener): void {
    const backlog = this.#backlogs.get(listener)
    if (!backlog) return
    const { outlet } = listener
    if (outlet.backlog === 0) return this.#delete(listener, backlog)
    if (listener.overdueBytes() <= this.#options.maxBacklogBytes) backlog.overSince = null
    const { takenBytes } = outlet
    while (backlog.pieces[0] && backlog.pieces[0].end <= takenBytes) this.#releaseFirst(backlog)
  }

  /** Ends connections until the others hold no more memory than allowed. First ends the one with the oldest untaken write. */
  enforceHeldBound(cut: (listener: Listener) => void, heldBoundBytes = HELD_BOUND_BYTES): void {
    if (this.heldBytes <= heldBoundBytes) return
    const waitsSince = ([, { pieces }]: [Listener, Backlog]) => pieces[0]?.writtenAt ?? Number.POSITIVE_INFINITY
    for (const [listener, backlog] of [...this.#backlogs].sort((one, other) => waitsSince(one) - waitsSince(other))) {
      if (this.heldBytes <= heldBoundBytes) return
      cut(listener)
      this.#delete(listener, backlog)
    }
  }

  #backlogOf(listener: Listener): Backlog {
    let backlog = this.#backlogs.get(listener)
    if (!backlog) {
      backlog = { pieces: [], overSince: null }
      this.#backlogs.set(listener, backlog)
    }
    return backlog
  }

  #delete(listener: Listener, backlog: Backlog): void {
    while (backlog.pieces.length > 0) this.#releaseFirst(backlog)
    this.#backlogs.delete(listener)
  }

  #releaseFirst({ pieces }: Backlog): void {
    const memory = pieces.shift()?.memory
    if (!memory) return
    const count = this.#piecesOf.get(memory) ?? 0
    if (count > 1) return void this.#piecesOf.set(memory, count - 1)
    this.#piecesOf.delete(memory)
    this.#heldBytes -= memory.byteLength
  }
}
