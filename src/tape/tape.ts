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

/** The ordered, durable record of what happened. Numbers what is appended; lets anyone follow from a position. */
export interface Tape extends NoteReader {
  /** A new one begins only when continuity cannot be shown. */
  readonly epoch: string
  /** Numbers and writes, in one stroke; then tells the followers. */
  append(drafts: readonly Draft[], notes?: Notes): Promise<readonly Entry[]>
  /** Calls with what was appended and what was noted beside it, from now on; the answer stops it. */
  follow(deliver: Follower): () => void
  /** What stands after `seq`, oldest first. */
  readAfter(seq: number, limit: number): readonly Entry[] | Promise<readonly Entry[]>
  /** Reads what was appended until now without looking at much else. */
  openReader(filter: HistoryFilter): HistoryReader
  /** How much a reader would find after a number, as far as it can be said without reading, and counted until it is enough. */
  estimateCount(filter: HistoryFilter, after: number, countLimit: number): CountEstimate | Promise<CountEstimate>
  /**
   * Every kept message about an on-chain key, oldest first: what told, amended or retracted it. At once, since who hears
   * a retraction is asked in the very step in which it is delivered.
   */
  readKey(key: string): readonly Entry[]
  /** Every kept seal of a token's block, oldest first; none is gone as long as a telling that it lists is kept. */
  sealsOfToken(address: Hex, block: number): readonly Entry[]
  /** Every kept seal of a block, whichever token's, oldest first. */
  sealsOfBlock(block: number): readonly Entry[]
  /** The number after which all that was written at `time` (ms) or later stands. */
  seqBefore(time: number): number | Promise<number>
  /** The number after which nothing has been evicted. */
  oldest(): number
  /** The last number given. */
  end(): number
  close(): Promise<void>
}

/** A place that cannot hold a tape, or the failure of the place that holds it. Says what to do. */
export class TapeError extends Error {}
