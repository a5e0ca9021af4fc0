import { z } from 'zod'
import { BoundedMap } from '../../lib/bounded-map.ts'
import type { Hex } from '../../lib/hex.ts'
import { nextTurn } from '../../lib/turns.ts'
import { Address, Bytes32 } from '../../protocol/fields.ts'
import type { Draft } from '../../protocol/updates.ts'
import { poolOf } from '../chain/pools/pool.ts'
import type { FeedSetting } from '../config/feed-settings.ts'
import {
  headNote,
  lastTradeNotes,
  listOrderNote,
  listReadNote,
  newestSettledNote,
  quoteNotes,
  sessionNote,
  statusNote,
  tokenNotes,
  venueNotes,
} from '../notes/published-notes.ts'
import { defineNote, type NoteReader } from '../tape/notes.ts'
import type { StoredText, Tape } from '../tape/tape.ts'
import { parseUpdate } from '../tape/tape-row.ts'
import { UNKNOWN_POSITION } from '../tokens/chain-position.ts'
import { aggregatorAddresses, openFeeds, type PriceFeed } from '../tokens/price-feeds.ts'
import type { TokenQuotes } from '../tokens/quotes.ts'
import { TokenDirectory } from '../tokens/token-directory.ts'
import { Decimals } from '../tokens/token-schema.ts'
import { venuesFrom } from '../tokens/venue.ts'
import { trackToken } from './apply-to-tokens.ts'
import { restoreBook } from './bars/close-bars.ts'
import { CLAIMED_TIMES_BOUND } from './chain-time.ts'
import { isFact, replaceDraft } from './facts/fact.ts'
import { Ledger } from './facts/ledger.ts'
import type { ChainTime, IngestState, QuoteSettings } from './ingest-state.ts'

const RestartPoint = z.object({
  block: z.int(),
  hash: Bytes32.nullable(),
  settled: z.int(),
  /** Number after which a restart reads the tape. */
  seq: z.int(),
  /** Number of the block above which the first run began to settle. Older relays did not write it. */
  began: z.int().optional(),
})
type RestartPoint = Readonly<z.infer<typeof RestartPoint>>

const Aggregator = z.object({ address: Address, phase: z.int(), decimals: Decimals })

export const restartPointNote = defineNote<RestartPoint>('restart-point', RestartPoint)
export const chainTimeNote = defineNote<ChainTime>('chain-time', z.object({ number: z.int(), timestamp: z.number() }))
/** Aggregators behind the proxy of each feed, as of the last answer of that proxy. */
export const feedsNote = defineNote<readonly PriceFeed[]>(
  'feeds',
  z.array(z.object({ token: z.string(), proxy: Address, aggregators: z.array(Aggregator) })),
)

/** Number of updates that a restart reads at once. Other work of the event loop runs between two readings. */
const RESTORE_PAGE = 1_000

export type StateSettings = {
  readonly navStaleAfterMs: number
  readonly feeds: readonly FeedSetting[]
  readonly quotes: QuoteSettings
  /** Whether a registry contract says which feeds are frozen. */
  readonly hasRegistry: boolean
  readonly sessionAt: IngestState['sessionAt']
}

export async function restoreState(tape: Tape, settings: StateSettings): Promise<IngestState> {
  const { notes } = tape
  const { navStaleAfterMs, feeds: feedSettings, quotes: quoteSettings, hasRegistry, sessionAt } = settings
  const restartPoint = notes.note(restartPointNote)
  const cursor = restartPoint ? { number: restartPoint.block, hash: restartPoint.hash } : null
  const newestSettled = notes.note(newestSettledNote) ?? null
  const tokens = [...notes.notes(tokenNotes).values()].map((token) => (hasRegistry ? token : { ...token, frozen: null }))
  const feeds = openFeeds(feedSettings, notes.note(feedsNote))
  const directory = feeds.length > 0 || quoteSettings.pools.length > 0 ? new TokenDirectory(tokens) : null
  const [scheduled, changedByLogs] = [new Set<Hex>(), new Set<Hex>()]
  for (const token of tokens) trackToken({ scheduled, changedByLogs }, token)
  return {
    epoch: tape.epoch,
    nextSeq: tape.next,
    tapeEnd: tape.end(),
    navStaleAfterMs,
    ledger: await restoreLedger(tape, restartPoint),
    head: notes.note(headNote) ?? { pending: null, sealed: null, safe: null, finalized: null },
    newestSettled,
    status: notes.note(statusNote) ?? null,
    cursor,
    restartCursor: cursor,
    began: restartPoint?.began ?? null,
    chainTime: notes.note(chainTimeNote) ?? newestSettled,
    claimedTimes: new BoundedMap(CLAIMED_TIMES_BOUND),
    aheadBlock: null,
    tokens: new Map(tokens.map((token) => [token.address, token])),
    directory,
    changedTokens: new Set(),
    scheduled,
    changedByLogs,
    listReadAt: notes.note(listReadNote) ?? null,
    listOrder: notes.note(listOrderNote) ?? null,
    position: restartPoint ? UNKNOWN_POSITION : { block: 0, logIndex: Number.MAX_SAFE_INTEGER },
    chainSeenAt: null,
    feeds,
    feedAddresses: new Set(aggregatorAddresses(feeds)),
    tokenByFeed: new Map(),
    quoteSettings,
    namedPools: new Map(),
    ...restoreQuotes(notes, quoteSettings, directory),
    ...restoreVenues(notes),
    received: [],
    quotedTrades: new Map(),
    lastTrades: new Map([...notes.notes(lastTradeNotes)].map(([address, { trade }]) => [address as Hex, trade])),
    changedTrades: new Set(),
    bars: restoreBook(notes),
    sessionAt,
    session: notes.note(sessionNote)?.session ?? null,
  }
}

function restoreVenues(notes: NoteReader): Pick<IngestState, 'venues' | 'refusedManagers'> {
  const venues = venuesFrom(notes.notes(venueNotes).values())
  const refused = [...venues.values()].flatMap(({ pool, droppedFor }) => (droppedFor === 'refused' ? (pool.manager ?? []) : []))
  return { venues, refusedManagers: new Set(refused) }
}

/** Restores the quotes of pools whose settings have not changed since the previous run. */
function restoreQuotes(
  notes: NoteReader,
  { pools }: QuoteSettings,
  directory: TokenDirectory | null,
): Pick<IngestState, 'quotes' | 'changedQuotes'> {
  const [quotes, changedQuotes] = [new Map<Hex, TokenQuotes>(), new Set<Hex>()]
  for (const [key, stored] of notes.notes(quoteNotes)) {
    const address = key as Hex
    const ofToken = pools.flatMap((setting) => {
      const found = directory?.find(setting.token)
      return found?.kind === 'found' && found.token.address === address ? [poolOf(setting, address)] : []
    })
    const isKept = ({ venue: { pool, kind, currency } }: TokenQuotes[number]) =>
      ofToken.some((own) => own.id === pool && own.kind === kind && own.currency.address === currency.address)
    const kept = stored.filter(isKept)
    if (kept.length < stored.length) changedQuotes.add(address)
    if (kept.length > 0) quotes.set(address, kept)
  }
  return { quotes, changedQuotes }
}

async function restoreLedger(tape: Tape, restartPoint: RestartPoint | undefined): Promise<Ledger> {
  const ledger = new Ledger()
  let seq = restartPoint?.seq ?? tape.oldest()
  for (;;) {
    const page = tape.readTexts(seq, RESTORE_PAGE)
    for (const stored of page) restoreEntry(ledger, stored)
    seq = page.at(-1)?.seq ?? seq
    if (page.length < RESTORE_PAGE) break
    await nextTurn()
  }
  if (restartPoint) ledger.setSettled(restartPoint.settled, restartPoint.block)
  return ledger
}

/** Applies an update to the ledger. A pre-confirmed key is open until a seal lists it or a retract names it. */
function restoreEntry(ledger: Ledger, { seq, text }: StoredText): void {
  const update = parseUpdate(text)
  if (update.type === 'retract') return ledger.retract(update.block.number, update.key)
  if (update.type === 'seal' && update.block.hash !== null)
    return ledger.restoreSeal({ ...update.block, hash: update.block.hash }, update)
  const { id: _id, prev: _prev, ...rest } = update
  const draft: Draft = update.type === 'amend' ? { ...update.update, time: update.time } : rest
  if (!isFact(draft)) return
  const published =
    update.type === 'amend'
      ? ledger.find(draft.block.number, draft.key)
      : ledger.add(draft, draft.stage === 'preconfirmed' ? 'open' : 'sealed', seq - 1, Date.parse(draft.time))
  if (!published) return
  if (update.type === 'amend') replaceDraft(published, draft)
  published.seq = seq
}
