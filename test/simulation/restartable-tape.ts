import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteTape } from '../../src/tape/sqlite.ts'
import type { SearchableTape } from '../../src/tape/tape.ts'

/** Memory that looks like a disk, where there is such a thing: these tapes live for a moment. */
const SHM = '/dev/shm'

/** Nothing is evicted: no absence here is as long as what a tape keeps. */
const RETENTION_MS = 86_400_000
const UPDATES_BOUND = 1_000_000

type Options = {
  readonly survivesRestart: boolean
  readonly now: () => number
  readonly random: () => number
}

/** Where the real tape lies, and what is left of it when its relay leaves or is killed. */
export class RestartableTape {
  readonly #options: Options
  readonly #root: string | null
  #copyCount = 0
  #closed = false
  tape: SearchableTape

  /** Nothing is kept where nobody comes back: that is faster. */
  constructor(options: Options) {
    this.#options = options
    this.#root = options.survivesRestart
      ? mkdtempSync(join(existsSync(SHM) ? SHM : tmpdir(), 'stocktape-world-'))
      : null
    this.tape = this.#open()
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    void this.tape.close()
  }

  /** What a killed process leaves is what the disk holds at that moment. */
  kill(): void {
    const before = this.#dir
    this.#copyCount += 1
    cpSync(before, this.#dir, { recursive: true })
    this.close()
    if (before !== this.#dir) rmSync(before, { recursive: true, force: true })
  }

  reopen(): void {
    this.tape = this.#open()
    this.#closed = false
  }

  removeFiles(): void {
    if (this.#root !== null) rmSync(this.#root, { recursive: true, force: true })
  }

  get #dir(): string {
    return this.#root === null ? ':memory:' : join(this.#root, `tape-${this.#copyCount}`)
  }

  #open(): SearchableTape {
    const { now, random } = this.#options
    return openSqliteTape({ dir: this.#dir, retentionMs: RETENTION_MS, bound: UPDATES_BOUND, now, random })
  }
}
