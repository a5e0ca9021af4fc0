import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLocalTape, type TestTape } from '../support/local-tape.ts'

/** A folder in memory, where there is one: these tapes live for a moment. */
const SHM = '/dev/shm'
const LOG_FILE = 'tape.sqlite-wal'
/** Nothing is evicted by age: no simulated downtime, and no step of the wall clock, is as long as the retention. */
const RETENTION_MS = 172_800_000
const UPDATES_BOUND = 1_000_000

type Options = {
  readonly survivesRestart: boolean
  /** How many updates it keeps; more than a simulation writes where it is not named. */
  readonly bound: number | undefined
  /** The steady clock of a run of the relay, which begins when the tape is opened. */
  readonly openClock: () => () => number
  readonly wallTime: () => number
  readonly random: () => number
}

/** A real tape that survives when the relay stops, is killed, or loses its power. */
export class RestartableTape {
  readonly #options: Options
  readonly #root: string | null
  #copyCount = 0
  #closed = false
  now: () => number
  tape: TestTape

  /** The tape stays in memory where the relay never restarts, because that is faster. */
  constructor(options: Options) {
    this.#options = options
    this.#root = options.survivesRestart ? mkdtempSync(join(existsSync(SHM) ? SHM : tmpdir(), 'stocktape-simulation-')) : null
    this.now = options.openClock()
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
    rmSync(before, { recursive: true, force: true })
  }

  /** A machine without power leaves what was written durably: the file itself, without the log of what was written since. */
  losePower(): void {
    this.kill()
    rmSync(join(this.#dir, LOG_FILE), { force: true })
  }

  /** Copies the closed tape. The returned function puts the copy in the place of the tape, which is closed again then. */
  backUp(): () => void {
    const copy = `${this.#dir}-backup`
    cpSync(this.#dir, copy, { recursive: true })
    return () => {
      rmSync(this.#dir, { recursive: true, force: true })
      cpSync(copy, this.#dir, { recursive: true })
    }
  }

  reopen(): void {
    this.now = this.#options.openClock()
    this.tape = this.#open()
    this.#closed = false
  }

  removeFiles(): void {
    if (this.#root !== null) rmSync(this.#root, { recursive: true, force: true })
  }

  get #dir(): string {
    return this.#root === null ? ':memory:' : join(this.#root, `tape-${this.#copyCount}`)
  }

  #open(): TestTape {
    const { bound = UPDATES_BOUND, wallTime, random } = this.#options
    return openLocalTape({
      dataDir: this.#dir,
      tapeRetentionMs: RETENTION_MS,
      tapeMaxMessages: bound,
      now: this.now,
      wallTime,
      random,
    })
  }
}
