import type { Listener } from './listener.ts'

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

/** The memory of live updates that some listener has not taken yet. */
export class Backlogs {
  readonly #uptime: () => number
  /** The pieces of each listener with a backlog, oldest first. */
  readonly #backlogs = new Map<Listener, Piece[]>()
  /** Number of pieces that refer to each memory. Memory that backlogs share counts once, and whole: no part of it can be freed. */
  readonly #piecesOf = new Map<ArrayBufferLike, number>()
  #heldBytes = 0
  #writes = 0

  constructor(uptime: () => number) {
    this.#uptime = uptime
  }

  /** Bytes of memory that cannot be freed, because backlogs contain live updates in it. */
  get heldBytes(): number {
    return this.#heldBytes
  }

  readonly isHeld = (memory: ArrayBufferLike): boolean => this.#piecesOf.has(memory)

  /** Keeps the memory of bytes that were just written, because the listener now has a backlog. */
  readonly hold = (listener: Listener, { buffer: memory }: Buffer): void => {
    const pieces = this.#backlogs.get(listener) ?? []
    this.#backlogs.set(listener, pieces)
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
    // The patience with the listener begins now, because the check before the next write may be much later.
    listener.keepsUp(this.#uptime)
  }

  /** Releases the memory of bytes that the kernel has taken. Call it before each delivery: only deliveries add held memory. */
  update(): void {
    for (const listener of this.#backlogs.keys()) this.updateOf(listener)
  }

  /** Releases the memory of bytes that the kernel has taken. Forgets a listener without a backlog, such as a disconnected one. */
  updateOf(listener: Listener): void {
    const pieces = this.#backlogs.get(listener)
    if (!pieces) return
    // The patience ends as soon as the backlog is short, also for a moment.
    listener.keepsUp(this.#uptime)
    const { backlog, takenBytes } = listener.outlet
    if (backlog === 0) return this.#delete(listener, pieces)
    while (pieces[0] && pieces[0].end <= takenBytes) this.#releaseFirst(pieces)
  }

  /** Ends connections until the others hold no more memory than allowed. First ends the one with the oldest untaken write. */
  enforceHeldBound(cut: (listener: Listener) => void, heldBoundBytes = HELD_BOUND_BYTES): void {
    if (this.heldBytes <= heldBoundBytes) return
    const waitsSince = ([, pieces]: [Listener, Piece[]]) => pieces[0]?.writtenAt ?? Number.POSITIVE_INFINITY
    for (const [listener, pieces] of [...this.#backlogs].sort((one, other) => waitsSince(one) - waitsSince(other))) {
      if (this.heldBytes <= heldBoundBytes) return
      cut(listener)
      this.#delete(listener, pieces)
    }
  }

  #delete(listener: Listener, pieces: Piece[]): void {
    while (pieces.length > 0) this.#releaseFirst(pieces)
    this.#backlogs.delete(listener)
  }

  #releaseFirst(pieces: Piece[]): void {
    const memory = pieces.shift()?.memory
    if (!memory) return
    const count = this.#piecesOf.get(memory) ?? 0
    if (count > 1) return void this.#piecesOf.set(memory, count - 1)
    this.#piecesOf.delete(memory)
    this.#heldBytes -= memory.byteLength
  }
}
