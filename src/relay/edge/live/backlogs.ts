import type { Listener } from './listener.ts'

/** A backlog of more than this many times the bound is too much at once. */
const AT_ONCE_FACTOR = 16
/** All backlogs together may hold this much memory. Beyond it, connections end: the one farthest behind first. */
const HELD_BOUND_BYTES = 268_435_456

/** Memory that a listener has not taken yet. */
type Piece = {
  readonly memory: ArrayBufferLike
  /** When this was written, in writes to all listeners. */
  readonly writtenAt: number
  /** The listener has taken it when it has taken this many bytes. */
  end: number
}

type Backlog = {
  /** The memory of its live updates, oldest first. */
  readonly pieces: Piece[]
  /** Since when it is over the bound. */
  overSince: number | null
}

type Options = {
  readonly maxBacklogBytes: number
  readonly backlogPatienceMs: number
  /** Monotonic milliseconds. */
  readonly uptime: () => number
}

/**
 * The listeners that have not taken all bytes yet. A burst or a busy moment of a good reader is no reason to disconnect it, so a
 * backlog may be over the bound for a while. Meanwhile its live updates are held once for all listeners that wait for them.
 */
export class Backlogs {
  readonly #options: Options
  readonly #backlogs = new Map<Listener, Backlog>()
  readonly #held = new HeldMemory()
  #writes = 0

  constructor(options: Options) {
    this.#options = options
  }

  /** The memory that live updates of all backlogs hold. */
  get heldBytes(): number {
    return this.#held.bytes
  }

  /** Whether a backlog still refers to this memory. */
  readonly isHeld = (memory: ArrayBufferLike): boolean => this.#held.isHeld(memory)

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
      this.#held.hold(memory)
      pieces.push({ memory, writtenAt: this.#writes, end })
    }
    // The test before the next write may be much later.
    this.keepsUp(listener)
  }

  /** Releases what was taken. Before each delivery, since the backlog of a listener grows by a write alone. */
  update(): void {
    for (const listener of this.#backlogs.keys()) this.updateOf(listener)
  }

  /** Releases what a listener has taken, and the listener itself if it has no backlog: a closed connection has none. */
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
    const first = pieces.shift()
    if (first) this.#held.release(first.memory)
  }
}

/** The memory that backlogs refer to. Many backlogs share it, so it is counted once, and whole: a part cannot be freed. */
class HeldMemory {
  readonly #readersOf = new Map<ArrayBufferLike, number>()
  #bytes = 0

  /** The bytes of memory that cannot be freed yet. */
  get bytes(): number {
    return this.#bytes
  }

  isHeld(memory: ArrayBufferLike): boolean {
    return this.#readersOf.has(memory)
  }

  hold(memory: ArrayBufferLike): void {
    const readers = this.#readersOf.get(memory) ?? 0
    if (readers === 0) this.#bytes += memory.byteLength
    this.#readersOf.set(memory, readers + 1)
  }

  release(memory: ArrayBufferLike): void {
    const readers = this.#readersOf.get(memory) ?? 0
    if (readers > 1) return void this.#readersOf.set(memory, readers - 1)
    this.#readersOf.delete(memory)
    this.#bytes -= memory.byteLength
  }
}
