import type { Hex } from '../../../lib/hex.ts'
import type { Head, SourceName, SourceReason } from '../../../protocol/fields.ts'
import type { NoticeOf } from '../../../protocol/notices.ts'
import type { TradeFields } from '../../../protocol/updates.ts'
import {
  headNote,
  lastTradeNotes,
  listOrderNote,
  listReadNote,
  newestSettledNote,
  quoteNotes,
  type SealedBlockTime,
  type SourceStatusNote,
  sessionNote,
  statusNote,
  tokenNotes,
  venueNotes,
} from '../../notes/published-notes.ts'
import type { NoteReader } from '../../tape/notes.ts'
import type { SharedTapeLink } from '../../tape/tape.ts'
import type { TokenQuotes } from '../../tokens/quotes.ts'
import type { Token } from '../../tokens/token.ts'
import { TokenDirectory } from '../../tokens/token-directory.ts'
import { TokenWarnings } from '../../tokens/token-warnings.ts'
import type { TokenVenues } from '../../tokens/venue.ts'

type ReportedStatus = Omit<SourceStatusNote, 'started_at'> & { readonly started_at: string | null }

/** Place of a token in the sorted list. A new state of the token replaces the old state there. */
type TokenSlot = { token: Token }

/** The current tokens, chain head and source, from the notes of the tape. */
export class CurrentState {
  readonly directory = new TokenDirectory()
  readonly warnings = new TokenWarnings()
  /** Sorted by symbol, unless tokens were added or renamed since the last sort. */
  readonly #slots: TokenSlot[] = []
  readonly #slotByAddress = new Map<Hex, TokenSlot>()
  #isSorted = true
  /** The steady time of the last read of the list. */
  listReadAt: number | null = null
  #listOrder: readonly Hex[] | null = null
  #listed: readonly Token[] | null = null
  head: Head = { pending: null, sealed: null, safe: null, finalized: null }
  /** The newest settled block whose time is known. */
  newestSettled: SealedBlockTime | null = null
  #status: ReportedStatus = { source: 'down', reason: 'unreachable', started_at: null }
  readonly #quotes = new Map<string, TokenQuotes>()
  readonly #venues = new Map<string, TokenVenues>()
  readonly #lastTrades = new Map<string, TradeFields | null>()
  marketSession: NoticeOf<'snapshot'>['session'] = null
  readonly #shared: Pick<SharedTapeLink, 'isCut'> | null

  /** While a shared tape is cut, it does not receive current updates: the source is then unknown, and counts as down. */
  constructor(notes: NoteReader, shared: Pick<SharedTapeLink, 'isCut'> | null = null) {
    this.#shared = shared
    this.apply(notes)
  }

  apply(notes: NoteReader): void {
    const tokens = notes.notes(tokenNotes)
    const order = notes.note(listOrderNote)
    for (const token of tokens.values()) this.#set(token)
    if (tokens.size > 0 || order) this.#listed = null
    this.#listOrder = order ?? this.#listOrder
    this.listReadAt = notes.note(listReadNote) ?? this.listReadAt
    this.head = notes.note(headNote) ?? this.head
    this.#status = notes.note(statusNote) ?? this.#status
    this.newestSettled = notes.note(newestSettledNote) ?? this.newestSettled
    for (const [address, quotes] of notes.notes(quoteNotes)) this.#quotes.set(address, quotes)
    for (const [address, venues] of notes.notes(venueNotes)) this.#venues.set(address, venues)
    for (const [address, { trade }] of notes.notes(lastTradeNotes)) this.#lastTrades.set(address, trade)
    const note = notes.note(sessionNote)
    if (note) this.marketSession = note.session
  }

  get isCut(): boolean {
    return this.#shared?.isCut ?? false
  }

  get source(): SourceName {
    return this.isCut ? 'down' : this.#status.source
  }

  get reason(): SourceReason {
    return this.isCut ? 'unreachable' : this.#status.reason
  }

  /** The time of the last change of the source or its reason; null before the first status. */
  get startedAt(): string | null {
    return this.#status.started_at
  }

  /** Every token, sorted by symbol, including delisted ones: clients can still select those. */
  get tokens(): readonly Token[] {
    if (!this.#isSorted) this.#slots.sort((a, b) => (a.token.symbol < b.token.symbol ? -1 : 1))
    this.#isSorted = true
    return this.#slots.map(({ token }) => token)
  }

  get hasTokens(): boolean {
    return this.#slots.length > 0
  }

  token(address: Hex): Token | undefined {
    return this.#slotByAddress.get(address)?.token
  }

  /** The tokens on the current list, in its order; null before the first list. */
  get listed(): readonly Token[] | null {
    if (this.#listOrder === null) return null
    this.#listed ??= this.#listOrder.flatMap((address) => this.token(address) ?? [])
    return this.#listed
  }

  quotesOf(address: Hex): TokenQuotes {
    return this.#quotes.get(address) ?? []
  }

  lastTradeOf(address: Hex): TradeFields | null {
    return this.#lastTrades.get(address) ?? null
  }

  venuesOf(address: Hex): TokenVenues {
    return this.#venues.get(address) ?? []
  }

  isListed(address: Hex): boolean {
    const token = this.token(address)
    return token !== undefined && token.state !== 'delisted'
  }

  #set(token: Token): void {
    this.directory.set(token)
    const slot = this.#slotByAddress.get(token.address)
    this.warnings.replace(slot?.token, token)
    if (slot?.token.symbol !== token.symbol) this.#isSorted = false
    if (slot) slot.token = token
    else {
      const added = { token }
      this.#slots.push(added)
      this.#slotByAddress.set(token.address, added)
    }
  }
}
