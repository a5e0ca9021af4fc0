import type { DatabaseSync, StatementSync } from 'node:sqlite'

/** Size at which the write-ahead log is flushed and copied into the file. */
const CHECKPOINT_BYTES = 4 * 1_048_576
/** Every transaction changes some pages, and a page holds more than the text. */
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

  /** When it returns, every committed transaction is on the disk. Throws if the disk fails. */
  complete(): void {
    this.#completions += 1
    this.#run(this.#complete)
  }

  /** Completes the file and leaves it unchanged until the returned function is called. That returns whether it stayed so. */
  hold(): () => boolean {
    this.complete()
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
