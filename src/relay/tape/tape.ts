import type { Hex } from '../../lib/hex.ts'
import type { Draft, Update, UpdateType } from '../../protocol/updates.ts'
import type { NoteReader, Notes } from './notes.ts'

/** An update with its number, and the exact text for every listener. */
export type Entry = { readonly seq: number; readonly update: Update; readonly text: string }

/** `keepAfter`: updates after this number must not be evicted. */
export type Follower = (batch: readonly Entry[], notes: Notes, keepAfter: number) => void

/** Matches updates of these types and tokens (null for all), and updates that concern all tokens. */
export type HistoryFilter = {
  readonly tokens: ReadonlySet<Hex> | null
  readonly types: ReadonlySet<UpdateType>
  /** Also matches seals, retracts and amends of keys that were published as these types, or that may have been evicted. */
  readonly followersOf?: ReadonlySet<UpdateType>
}

/** A range of numbers, both ends exclusive. One page holds at most `limit` updates. */
export type SeqRange = { readonly after: number; readonly before: number; readonly order: 'asc' | 'desc'; readonly limit: number }

/** One page in the order of the range. `reached` is a given number at which the reader stopped; null at the end of the range. */
export type FoundEntries = { readonly entries: readonly Entry[]; readonly reached: number | null }

/** Reads one page with bounded work: a page may be empty before the end of the range. */
export type HistoryReader = (range: SeqRange) => FoundEntries | Promise<FoundEntries>

/** A reader finds `least` to `most` updates: `least` counts the types alone, `most` also possible followers of their keys. */
export type CountEstimate = { readonly least: number; readonly most: number }

/** The ordered, durable log of updates, and the notes beside it. */
export interface Tape extends NoteReader {
  /** A new epoch begins only if the tape cannot prove that its numbers continue. */
  readonly epoch: string
  /**
   * Writes the numbered updates and the notes in one transaction, then delivers both to the followers. Updates after the
   * number `keepAfter` are not evicted, unless the tape exceeds its limit by 262,144.
   */
  append(drafts: readonly Draft[], notes?: Notes, keepAfter?: number): Promise<readonly Entry[]>
  /** Delivers every later batch until the returned function is called. */
  follow(deliver: Follower): () => void
  /** The kept updates after `seq`, oldest first. */
  readAfter(seq: number, limit: number): readonly Entry[] | Promise<readonly Entry[]>
  /** No update after this number has been evicted. */
  oldest(): number
  end(): number
  next(): number
  /** For a number that was lost or never given: the end of the run before it. Null for any other number. */
  lostAfter(seq: number): number | null
  /** Waits a while for a number that another process writes. Rejects if this process no longer receives the tape. */
  reach?(seq: number): Promise<void>
  /** Whether positions that are given now survive the process. */
  readonly isDurable: boolean
  /** The reason for which the system that stores the tape refuses it, in that system's words; null while it stores. */
  readonly refusal?: string | null
  close(): Promise<void>
}

export type StoredText = { readonly seq: number; readonly text: string }

export interface TapeHistory {
  /** Like `readAfter`, for a reader of the whole tape that needs little of each update. */
  readTextsAfter(seq: number, limit: number): readonly StoredText[] | Promise<readonly StoredText[]>
  /** Reads the matching updates in pages, and few others. */
  openReader(filter: HistoryFilter): HistoryReader
  /** Estimates, without reading updates, how many a reader finds after a number. Stops counting at `countLimit`. */
  estimateCount(filter: HistoryFilter, after: number, countLimit: number): CountEstimate | Promise<CountEstimate>
  /** Every kept update about a key, oldest first. Synchronous, because the hub matches a retract in the step that delivers it. */
  readKey(key: string): readonly Entry[]
  /** Every kept seal of a token's block, oldest first. None is evicted before the publications that it lists. */
  sealsOfToken(address: Hex, block: number): readonly Entry[]
  /** Every kept seal of a block, of all tokens, oldest first. */
  sealsOfBlock(block: number): readonly Entry[]
  /** The number after which every update was written at `time` (ms, steady) or later. */
  seqBefore(time: number): number | Promise<number>
}

/** A tape that can also be searched, for replay and history. */
export type SearchableTape = Tape & TapeHistory

/** The tape cannot be opened or written. The message names the remedy. */
export class TapeError extends Error {}

/** Another process gave a client a later position than this process has. */
export class TapeBehindError extends Error {}

/** Another ingester writes the tape now. */
export class NotLeadingError extends Error {}

/** The tape is of another chain than the one that the relay serves. */
export class WrongTapeError extends TapeError {}
