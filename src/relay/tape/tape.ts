import type { Hex } from '../../lib/hex.ts'
import type { Draft, Update, UpdateType } from '../../protocol/updates.ts'
import type { NoteReader, Notes } from './notes.ts'

/** An update with its number, and with the exact text that the tape stores. */
export type Entry = { readonly seq: number; readonly update: Update; readonly text: string }

/** Called with every batch after it is written. Updates after the number `keepAfter` must not be evicted. */
export type Follower = (batch: readonly Entry[], notes: Notes, keepAfter: number) => void

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

/** Reads one page with limited work, so a page may be empty before the end of the range. */
export type HistoryReader = (range: SeqRange) => FoundEntries | Promise<FoundEntries>

/** A reader finds `least` to `most` updates. Only `most` counts the seals, retracts and amends that `followersOf` may match. */
export type CountEstimate = { readonly least: number; readonly most: number }

/** Limit of the time that a client waits for a position that this process does not have. */
export const REACH_BOUND_MS = 2_000

/** The ordered, durable log of updates, and the notes beside it. */
export interface Tape extends NoteReader {
  /** Name of the tape. A new epoch begins only if the tape cannot prove that its numbers continue. */
  readonly epoch: string
  /**
   * Numbers the updates, writes them and the notes in one transaction, then delivers both to the followers. Updates after the
   * number `keepAfter` are not evicted, unless the tape exceeds its limit by 262,144.
   */
  append(drafts: readonly Draft[], notes?: Notes, keepAfter?: number): Promise<readonly Entry[]>
  /** Delivers every later batch until the returned function is called. */
  follow(deliver: Follower): () => void
  /** Returns at most `limit` kept updates after the number `seq`, oldest first. */
  readAfter(seq: number, limit: number): readonly Entry[] | Promise<readonly Entry[]>
  /** Returns the number after which no update has been evicted. */
  oldest(): number
  /** Returns the time of the first update after `oldest`, as it says itself; null if there is none. */
  oldestTime(): string | null
  end(): number
  next(): number
  /** Returns the last number before the run that skipped `seq`, if `seq` was lost or never given; otherwise null. */
  lostAfter(seq: number): number | null
  /**
   * Waits at most two seconds for an update that another process may have written. False if this process may still receive it,
   * true if it is here or does not exist.
   */
  reach?(seq: number): Promise<boolean>
  measure(): TapeSize
  /** Whether updates that are written now outlive the process. */
  readonly isDurable: boolean
  /** Reason for which NATS does not store the tape; null while it does. A tape in a file has none. */
  readonly refusal?: string | null
  close(): Promise<void>
}

export type TapeSize = { readonly rows: number; readonly bytes: number }

export type StoredText = { readonly seq: number; readonly text: string }

export interface TapeHistory {
  /** Like `readAfter`, but does not parse the updates: for a reader of the whole tape that needs little of each update. */
  readTextsAfter(seq: number, limit: number): readonly StoredText[] | Promise<readonly StoredText[]>
  /** Opens a reader of the matching updates, which reads few others. */
  openReader(filter: HistoryFilter): HistoryReader
  /** Estimates, without reading updates, how many a reader finds after the number `after`. Stops counting at `countLimit`. */
  estimateCount(filter: HistoryFilter, after: number, countLimit: number): CountEstimate | Promise<CountEstimate>
  /** Returns every kept update of a key, oldest first. Synchronous: the hub matches a retract in the step that delivers it. */
  readKey(key: string): readonly Entry[]
  /** Returns every kept seal of a token in a block, oldest first. No seal is evicted before the publications that it lists. */
  sealsOfToken(address: Hex, block: number): readonly Entry[]
  /** Returns every kept seal of a block, for all tokens, oldest first. */
  sealsOfBlock(block: number): readonly Entry[]
  /** Returns the number after which every update was written at `time` (ms, steady) or later. */
  seqBefore(time: number): number | Promise<number>
}

export type SearchableTape = Tape & TapeHistory

/** The tape cannot be opened or written. The message names the remedy. */
export class TapeError extends Error {}

/** Another ingester writes the tape now. */
export class NotLeadingError extends Error {}

/** The tape is of another chain than the one that the relay serves. */
export class WrongTapeError extends TapeError {}
