import type { Entry, TapeBatch, TapeWriter } from './tape.ts'
import type { TapeStore } from './tape-store.ts'

/** Writes the tape of a process that shares it with no other writer: each batch is one transaction of its store. */
export class LocalWriter implements TapeWriter {
  readonly #store: TapeStore

  constructor(store: TapeStore) {
    store.beginRun()
    this.#store = store
  }

  async append(batch: TapeBatch): Promise<readonly Entry[]> {
    const entries = this.#store.number([batch])
    this.#store.write({ ...batch, entries })
    return entries
  }
}
