import type { Listener } from './listener.ts'

/** A backlog of more than this many times the limit ends the connection without patience. */
const AT_ONCE_FACTOR = 16
/** All backlogs together may hold this much memory. Beyond it, connections end, the one farthest behind first. */
const HELD_BOUND_BYTES = 268_435_456

/** Memory with bytes that a listener has not taken yet. */
type Piece = {
  readonly memory: ArrayBufferLike
  /** The time of the write, counted in writes to all listeners. */
  readonly writtenAt: number
  /** The listener is done with this memory when it has taken this many bytes in total. */
  end: number
}

type Backlog = {
  /** The memory of the listener's live updates, oldest first. */
  readonly pieces: Piece[]
  /** The time since which the backlog is over the limit; null if it is not. */
  overSince: number | null
}

export type BacklogBounds = { readonly maxBacklogBytes: number; readonly backlogPatienceMs: number; readonly uptime: () => number }

/** The listeners with untaken bytes. A burst must not end a good reader's connection, so a backlog may be too large for a while. */
export class Backlogs {
  readonly #options: BacklogBounds
  readonly #backlogs = new Map<Listener, Backlog>()
  /** The number of pieces that refer to each memory. Backlogs share it, so it counts once, and whole: a part cannot be freed. */
  readonly #piecesOf = new Map<ArrayBufferLike, number>()
  #heldBytes = 0
  #writes = 0

  constructor(options: BacklogBounds) {
    this.#options = options
  }

  /** The memory that live updates of all backlogs keep from being freed. */
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

  /** Holds bytes that were just written, because the listener has a backlog now. */
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
    // Starts the patience now: the check before the next write may be much later.
    this.keepsUp(listener)
  }

  /** Releases all taken memory. Call it before each delivery: only a write makes a backlog grow. */
  update(): void {
    for (const listener of this.#backlogs.keys()) this.updateOf(listener)
  }

  /** Releases the memory that a listener has taken, and the listener itself if it has no backlog, like a closed connection. */
  updateOf(listener: Listener): void {
    const backlog = this.#backlogs.get(listener)
    if (!backlog) return
    const { outlet } = listener
    if (outlet.backlog === 0) return this.#delete(listener, backlog)
    if (listener.overdueBytes() <= this.#options.maxBacklogBytes) backlog.overSince = null
    const { takenBytes } = outlet
    while (backlog.pieces[0] && backlog.pieces[0].end <= takenBytes) this.#releaseFirst(backlog)
  }

  /** Ends connections, the one farthest behind first, until the rest holds no more memory than allowed. */
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
