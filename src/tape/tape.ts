import type { Hex } from '../protocol/fields.ts'
import type { Draft, Update, UpdateType } from '../protocol/updates.ts'
import type { NoteReader, Notes } from './notes.ts'

/** An update with its number and the very text that every listener gets. */
export type Entry = { readonly seq: number; readonly update: Update; readonly text: string }

export type Follower = (batch: readonly Entry[], notes: Notes) => void

/** Of what history is read: of these tokens (null for all) and of what concerns all of them, these types. */
export type HistoryFilter = {
  readonly tokens: ReadonlySet<Hex> | null
  readonly types: ReadonlySet<UpdateType>
  /**
   * And every `seal`, `retract` and `amend` that follows a key which was told as one of these, or of which the telling may
   * be gone. More of them may be found than that.
   */
  readonly followersOf?: ReadonlySet<UpdateType>
}

/** Which stretch is read, both numbers exclusive, from which end, and how many messages at once at most. */
export type SeqRange = {
  readonly after: number
  readonly before: number
  readonly order: 'asc' | 'desc'
  readonly limit: number
}

/** What was found, in the order that was asked for, and up to which number: null where the stretch is through. */
export type FoundEntries = { readonly entries: readonly Entry[]; readonly reached: number | null }

/** Reads some of a stretch, with bounded work: it may find nothing and still not be through. */
export type HistoryReader = (range: SeqRange) => FoundEntries | Promise<FoundEntries>

/** How many messages are found: at least so many of the types that are wanted, at most so many with what follows a key. */
export type CountEstimate = { readonly least: number; readonly most: number }

/** The ordered, durable log of updates, and the notes beside it. */
export interface Tape extends NoteReader {
  /** A new epoch begins only where the tape cannot prove that its numbers continue. */
  readonly epoch: string
  /** Numbers the updates and writes them with the notes in one transaction, then delivers both to the followers. */
  append(drafts: readonly Draft[], notes?: Notes): Promise<readonly Entry[]>
  /** Delivers every batch appended from now on. The returned function ends this. */
  follow(deliver: Follower): () => void
  /** The kept updates after `seq`, oldest first. */
  readAfter(seq: number, limit: number): readonly Entry[] | Promise<readonly Entry[]>
  /** No update after this number has been evicted. */
  oldest(): number
  /** The last number given. */
  end(): number
  close(): Promise<void>
}

/** Searches what a tape keeps. */
export interface TapeHistory {
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
  /** The number after which every update was written at `time` (ms) or later. */
  seqBefore(time: number): number | Promise<number>
}

/** What an embedded tape is, and what a listener with replay and history needs. */
export type SearchableTape = Tape & TapeHistory

/** The tape cannot be opened or written. The message names the remedy. */
export class TapeError extends Error {}
