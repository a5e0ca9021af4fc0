import type { DatabaseSync, StatementSync } from 'node:sqlite'

/** Estimated size of the write-ahead log at which it is flushed, and copied into the tape's file. */
const CHECKPOINT_BYTES = 4 * 1_048_576
/** Estimated bytes in the write-ahead log for each transaction and for each character: SQLite logs whole pages. */
const [TRANSACTION_BYTES, BYTES_PER_CHAR] = [16_384, 1.25]

/** Flushes the write-ahead log to the disk. SQLite's automatic checkpoints hide a failure, so the log would grow unflushed. */
export class WalCheckpoints {
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

  onCommit(chars: number): void {
    this.#bytes += TRANSACTION_BYTES + chars * BYTES_PER_CHAR
    if (this.#bytes >= CHECKPOINT_BYTES && this.#holds === 0) this.#run(this.#passive)
  }

  /** Flushes every committed transaction to the disk. Throws if the disk fails. */
  complete(): void {
    this.#completions += 1
    this.#run(this.#complete)
  }

  /**
   * Flushes the log, then leaves the file unchanged until you call the returned function: it returns whether that succeeded. With
   * `mayShare`, a file that is held already is not flushed again, because that would spoil the other copy.
   */
  hold(mayShare: boolean): () => boolean {
    if (!mayShare || this.#holds === 0) this.complete()
    const completions = this.#completions
    this.#holds += 1
    return () => {
      this.#holds -= 1
      return this.#completions === completions
    }
  }

  #run(checkpoint: StatementSync): void {
    checkpoint.get()
    this.#bytes = 0
  }
}
