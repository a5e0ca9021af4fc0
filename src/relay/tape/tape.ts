import type { Observable } from 'rxjs'
import type { Hex } from '../../lib/hex.ts'
import type { Draft, Update, UpdateType } from '../../protocol/updates.ts'
import type { BarRange, BarRow } from './bars/bar-row.ts'
import type { NoteReader, Notes } from './notes.ts'

/** An update with its number, and with the exact text that the tape stores. */
export type Entry = { readonly seq: number; readonly update: Update; readonly text: string }

/** Called with every batch after it is written. Updates after the number `keepAfter` must not be evicted. */
export type Follower = (batch: readonly Entry[], notes: Notes, keepAfter: number, bars: readonly BarRow[]) => void

/** Matches updates of these types, if they are about one of these tokens (null for any) or about all tokens. */
export type HistoryFilter = {
  readonly tokens: ReadonlySet<Hex> | null
  readonly types: ReadonlySet<UpdateType>
  /** Also matches each seal, retract and amend of a fact that was published as one of these types, or that may have been. */
  readonly followersOf?: ReadonlySet<UpdateType>
}

/** A range of numbers without its ends `after` and `before`. One page contains at most `limit` updates. */
export type SeqRange = { readonly after: number; readonly before: number; readonly order: 'asc' | 'desc'; readonly limit: number }

/** One page in the order of the range. `reached` is the number at which the reader stopped; null at the end of the range. */
export type FoundEntries = { readonly entries: readonly Entry[]; readonly reached: number | null }

/** The updates of a key, the seals of a token in a block, or the seals of a block. */
export type TapeSubject = { readonly key: string } | { readonly sealsOf: number; readonly address?: Hex }

/**
 * A run of the process that writes the tape. `previous_end` is the last number that the tape had before the run. Each run begins
 * at the microseconds since the epoch began, so that no lost number is given again.
 */
export type Run = { readonly first: number; readonly previous_end: number }

/** A page has `least` to `most` updates. Only `most` counts the seals, retracts and amends that `followersOf` may match. */
export type CountEstimate = { readonly least: number; readonly most: number }

/** `oldestTimeMs`: steady time of the oldest update; null if there is none. */
export type TapeSize = { readonly rows: number; readonly bytes: number; readonly oldestTimeMs: number | null }

export type StoredText = { readonly seq: number; readonly text: string }

/** The ordered log of updates, and the notes beside it, as a process reads them from its own store. */
export interface Tape {
  /** Name of the tape. A new epoch begins only if the tape cannot prove that its numbers continue. */
  readonly epoch: string
  /** The notes as of the last batch. */
  readonly notes: NoteReader
  /** The runs that wrote the tape, oldest first. `lostAfter` finds in them the numbers that were lost or never given. */
  readonly runs: readonly Run[]
  /** Whether updates that are written now outlive the process. */
  readonly isDurable: boolean
  /** Time of the first update after `oldest`, as it says itself; null if there is none. */
  readonly oldestTime: string | null
  readonly size: TapeSize
  /** Number that the next update of this process gets. */
  readonly next: number
  /** Delivers every later batch, once it is written and can be read, until the returned function is called. */
  follow(deliver: Follower): () => void
  /** Returns the number of the last update. */
  end(): number
  /** Returns the number after which no update has been evicted. */
  oldest(): number
  /** Reads one page of the matching updates with limited work, so a page may be empty before the end of the range. */
  read(filter: HistoryFilter, range: SeqRange): FoundEntries
  /** Returns at most `limit` kept updates after a number, oldest first, without parsing them: for readers of the whole tape. */
  readTexts(after: number, limit: number): readonly StoredText[]
  /** Returns the minutes of a token in a range, or sums of them, without parsing them. They are kept longer than the updates. */
  readBars(address: Hex, range: BarRange): readonly BarRow[]
  /** Returns every kept update of a subject, oldest first. No seal is evicted before the publications that it lists. */
  find(subject: TapeSubject): readonly Entry[]
  /** Estimates, without reading updates, how many match after the number `after`. Stops counting at `countLimit`. */
  count(filter: HistoryFilter, after: number, countLimit: number): CountEstimate
  /** Returns the number after which every update was written at `time` (ms, steady) or later. */
  seqBefore(time: number): number
}

/** Updates and notes that are written in one transaction. */
export type TapeBatch = {
  /** Number of the first update. Each further update has the next number. */
  readonly first: number
  readonly updates: readonly Draft[]
  readonly notes: Notes
  /** Minutes that are new or that changed. */
  readonly bars?: readonly BarRow[]
  /** Updates after this number are not evicted, unless the tape exceeds its limit by 262,144. */
  readonly keepAfter: number
}

/** Writes the tape. A process without a writer only reads its store. */
export interface TapeWriter {
  /**
   * Writes a batch in one transaction, then delivers it to the followers of the tape. The ingest alone numbers the updates: a batch
   * that begins at another number than the tape's next one is refused, and nothing of it is written.
   */
  append(batch: TapeBatch): Promise<readonly Entry[]>
}

/** Limit of the time that a client waits for a position that this process does not have. */
export const REACH_BOUND_MS = 2_000

/** Abilities of a tape that other processes write, alone or in turn with this one. */
export interface SharedTapeLink {
  /** Whether this process does not receive current updates. */
  readonly isCut: boolean
  /** Reason for which the tape is not stored for all processes; null while it is. */
  readonly refusal: string | null
  /**
   * Waits at most two seconds for an update that another process may have written. False if this process may still receive it,
   * true if it is here or does not exist.
   */
  reach(seq: number): Promise<boolean>
}

/** The processes that may write a shared tape: one of them leads at a time, and the others hand it what they receive. */
export interface TapePeers {
  /** Whether this process writes the tape: now, and at every change. */
  readonly leadership: Observable<boolean>
  /** Sends bytes to the processes that listen now; without one they are lost. Returns false if they are too long. */
  send(bytes: Uint8Array): boolean
  listen(receive: (bytes: Uint8Array) => void): Promise<() => void>
}

/** The tape cannot be opened or written. The message names the remedy. */
export class TapeError extends Error {}

/** Another ingester writes the tape now. */
export class NotLeadingError extends Error {}

/** The tape is of another chain than the one that the relay serves. */
export class WrongTapeError extends TapeError {}
