import type { Draft } from '../../src/protocol/updates.ts'
import { LocalWriter } from '../../src/relay/tape/local-writer.ts'
import { Notes } from '../../src/relay/tape/notes.ts'
import type { Entry, Tape, TapeWriter } from '../../src/relay/tape/tape.ts'
import { entryOf } from '../../src/relay/tape/tape-row.ts'
import { openTapeStore, type TapeStore, type TapeStoreOptions } from '../../src/relay/tape/tape-store.ts'

/** A tape and its writer as one, with the short forms in which tests write and read. */
export type TestTape = Tape &
  Pick<TapeStore, 'isInFile' | 'holdForCopy' | 'mergeBars'> & {
    readonly writer: TapeWriter
    /** Appends with the number that the tape expects next. */
    append(updates: readonly Draft[], notes?: Notes, keepAfter?: number): Promise<readonly Entry[]>
    readAfter(seq: number, limit: number): readonly Entry[]
    close(): Promise<void>
  }

/** Adds to a store what tests use: by default with the writer of a relay that runs alone. */
export function withWriter(store: TapeStore, writer: TapeWriter = new LocalWriter(store), close?: () => Promise<void>): TestTape {
  /** The number after the last append, which may wait to be written. */
  let next = 0
  const append: TestTape['append'] = async (updates, notes = new Notes(), keepAfter = Number.POSITIVE_INFINITY) => {
    const first = Math.max(store.next, next)
    next = first + updates.length
    return writer.append({ first, updates, notes, keepAfter }).catch((failure: unknown) => {
      next = 0
      throw failure
    })
  }
  const closeAll = async () => {
    // The store itself is closed by its own method.
    Reflect.deleteProperty(store, 'close')
    await (close ? close() : store.close())
  }
  return Object.assign(store, {
    writer,
    append,
    readAfter: (seq: number, limit: number) => store.readTexts(seq, limit).map(({ seq, text }) => entryOf([seq, text])),
    close: closeAll,
  }) as unknown as TestTape
}

/** Opens the tape of a relay that runs alone. */
export const openLocalTape = (options: TapeStoreOptions): TestTape => withWriter(openTapeStore(options))
