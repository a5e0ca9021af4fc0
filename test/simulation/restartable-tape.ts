import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteTape } from '../../src/tape/sqlite.ts'
import type { SearchableTape } from '../../src/tape/tape.ts'

/** A folder in memory, where there is one: these tapes live for a moment. */
const SHM = '/dev/shm'

/** Nothing is evicted: no simulated downtime is as long as the retention. */
const RETENTION_MS = 86_400_000
const UPDATES_BOUND = 1_000_000

type Options = {
  readonly survivesRestart: boolean
  /** How many updates it keeps; more than a simulation writes where it is not named. */
  readonly bound: number | undefined
  readonly now: () => number
  readonly random: () => number
}

/** A real tape that survives when the relay stops or is killed. */
export class RestartableTape {
  readonly #options: Options
  readonly #root: string | null
  #copyCount = 0
  #closed = false
  tape: SearchableTape

  /** The tape stays in memory where the relay never restarts, because that is faster. */
  constructor(options: Options) {
    this.#options = options
    this.#root = options.survivesRestart ? mkdtempSync(join(existsSync(SHM) ? SHM : tmpdir(), 'stocktape-simulation-')) : null
    this.tape = this.#open()
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    void this.tape.close()
  }

  /** A killed process leaves what the disk holds at that moment. */
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
    const { bound = UPDATES_BOUND, now, random } = this.#options
    return openSqliteTape({ dir: this.#dir, retentionMs: RETENTION_MS, bound, now, random })
  }
}
