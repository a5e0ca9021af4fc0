import type { Hex } from '../../lib/hex.ts'
import type { Draft, Update, UpdateType } from '../../protocol/updates.ts'
import type { NoteReader, Notes } from './notes.ts'

/** An update with its number, and the exact text that every listener receives. */
export type Entry = { readonly seq: number; readonly update: Update; readonly text: string }

/** `keepAfter`: updates after this number must not be evicted. */
export type Follower = (batch: readonly Entry[], notes: Notes, keepAfter: number) => void

/** Matches updates of these types and tokens (null for all), and updates that concern all tokens. */
export type HistoryFilter = {
  readonly tokens: ReadonlySet<Hex> | null
  readonly types: ReadonlySet<UpdateType>
  /**
   * Also matches every `seal`, `retract` and `amend` of a key that was published as one of these types, or whose
   * publication may be evicted. A reader may find more of them than that.
   */
  readonly followersOf?: ReadonlySet<UpdateType>
}

/** A range of numbers, both ends exclusive. One page holds at most `limit` updates. */
export type SeqRange = { readonly after: number; readonly before: number; readonly order: 'asc' | 'desc'; readonly limit: number }

/** One page in the order of the range, and the given number up to which the reader came: null at the end of the range. */
export type FoundEntries = { readonly entries: readonly Entry[]; readonly reached: number | null }

/** Reads one page with bounded work: a page may be empty before the end of the range. */
export type HistoryReader = (range: SeqRange) => FoundEntries | Promise<FoundEntries>

/** Bounds of how many updates a reader finds: `least` counts the types alone, `most` also what may follow their keys. */
export type CountEstimate = { readonly least: number; readonly most: number }

/** The ordered, durable log of updates, and the notes beside it. */
export interface Tape extends NoteReader {
  /** A new epoch begins only where the tape cannot prove that its numbers continue. */
  readonly epoch: string
  /**
   * Numbers the updates and writes them with the notes in one transaction, then delivers both to the followers. Updates
   * after the number `keepAfter` are not evicted, unless the tape exceeds its bound by 262,144.
   */
  append(drafts: readonly Draft[], notes?: Notes, keepAfter?: number): Promise<readonly Entry[]>
  /** Delivers every batch appended from now on. The returned function ends this. */
  follow(deliver: Follower): () => void
  /** The kept updates after `seq`, oldest first. */
  readAfter(seq: number, limit: number): readonly Entry[] | Promise<readonly Entry[]>
  /** No update after this number has been evicted. */
  oldest(): number
  /** The last number on the tape. */
  end(): number
  /** The number of the next update. */
  next(): number
  /** The end of the run after which this number was lost, or was never given; null for any other number. */
  lostAfter(seq: number): number | null
  /**
   * Of a tape that another process writes: resolves when it contains this number, or will not soon. Rejects if this process
   * does not receive what is written.
   */
  reach?(seq: number): Promise<void>
  /** Whether positions that are given now survive the process. */
  readonly isDurable: boolean
  /** Why the system that stores the tape stores nothing now, in its own words; null while it does. */
  readonly refusal?: string | null
  close(): Promise<void>
}

/** An update that is not parsed. */
export type StoredText = { readonly seq: number; readonly text: string }

/** Searches what a tape keeps. */
export interface TapeHistory {
  /** As `readAfter`, for a reader of the whole tape that needs little of each update. */
  readTextsAfter(seq: number, limit: number): readonly StoredText[] | Promise<readonly StoredText[]>
  /** Reads what matches the filter, in pages, and touches little else. */
  openReader(filter: HistoryFilter): HistoryReader
  /** Estimates, without reading updates, how many a reader finds after a number. Stops counting at `countLimit`. */
  estimateCount(filter: HistoryFilter, after: number, countLimit: number): CountEstimate | Promise<CountEstimate>
  /**
   * Every kept update about an on-chain key, oldest first: its publication, amendments and retraction. Synchronous,
   * because the hub matches a retraction in the step that delivers it.
   */
  readKey(key: string): readonly Entry[]
  /** Every kept seal of a token's block, oldest first. None is evicted before the publications that it lists. */
  sealsOfToken(address: Hex, block: number): readonly Entry[]
  /** Every kept seal of a block, of all tokens, oldest first. */
  sealsOfBlock(block: number): readonly Entry[]
  /** The number after which every update was written at `time` (ms, steady) or later. */
  seqBefore(time: number): number | Promise<number>
}

/** What an embedded tape is, and what a listener with replay and history needs. */
export type SearchableTape = Tape & TapeHistory

/** The tape cannot be opened or written. The message names the remedy. */
export class TapeError extends Error {}

/** The tape of this process is behind what others were given. */
export class TapeBehindError extends Error {}

/** Another ingester writes the tape now. */
export class NotLeadingError extends Error {}

/** The tape is of another chain than the one that the relay serves. */
export class WrongTapeError extends TapeError {}
