import type { DatabaseSync, StatementSync } from 'node:sqlite'

/** So much of the write-ahead log is flushed and copied into the file at once. */
const CHECKPOINT_BYTES = 4 * 1_048_576
/** A transaction changes some pages in any case, and a page holds more than the text. */
const [TRANSACTION_BYTES, BYTES_PER_CHAR] = [16_384, 1.25]

/**
 * Flushes the write-ahead log to the disk. The checkpoints that SQLite starts by itself hide a failure, and then nothing is
 * durable and the log grows.
 */
export class Checkpoints {
  readonly #passive: StatementSync
  readonly #complete: StatementSync
  #bytes = 0
  #holds = 0
  #completions = 0

  constructor(database: DatabaseSync) {
    database.exec('PRAGMA wal_autocheckpoint = 0')
    this.#passive = database.prepare('PRAGMA wal_checkpoint(PASSIVE)')
    this.#complete = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)')
  }

  /** A transaction with this much text was committed. */
  onCommit(chars: number): void {
    this.#bytes += TRANSACTION_BYTES + chars * BYTES_PER_CHAR
    if (this.#bytes >= CHECKPOINT_BYTES && this.#holds === 0) this.#run(this.#passive)
  }

  /** Afterwards all that was committed is on the disk, unless a failure was reported. */
  complete(): void {
    this.#completions += 1
    this.#run(this.#complete)
  }

  /**
   * Writes all into the file, and then nothing more until the result is called, so that the file can be copied. The result says
   * whether that held: what must be on the disk at once is written all the same.
   */
  hold(): () => boolean {
    this.complete()
    const completions = this.#completions
    this.#holds += 1
    let isHeld = true
    return () => {
      if (isHeld) this.#holds -= 1
      isHeld = false
      return this.#completions === completions
    }
  }

  #run(checkpoint: StatementSync): void {
    checkpoint.get()
    this.#bytes = 0
  }
}
