import { BehaviorSubject, distinctUntilChanged, EMPTY, filter, map, merge, type Observable, tap } from 'rxjs'
import { wait } from '../../lib/async-loop.ts'
import type { Hex } from '../../lib/hex.ts'
import type { Cursor, OpenKey, OpenKeys } from '../chain/blocks/sealed-block.ts'
import { ContractPoller } from '../chain/contracts/contract-poller.ts'
import type { ReadFilter } from '../chain/logs/log-filter.ts'
import { LogMemory } from '../chain/logs/log-memory.ts'
import type { FindLog } from '../chain/logs/log-parser.ts'
import { PoolPoller } from '../chain/pools/pool-poller.ts'
import type { RequestBatchFn } from '../chain/rpc/endpoint-pool.ts'
import { type ChainEvent, type SourceOptions, source } from '../chain/source/source.ts'
import type { Config } from '../config/config.ts'
import type { Host } from '../host.ts'
import type { Entry, Tape, TapeWriter } from '../tape/tape.ts'
import { listedAddresses } from '../tokens/list/list-diff.ts'
import type { PolledList } from '../tokens/list/list-poller.ts'
import { aggregatorAddresses } from '../tokens/price-feeds.ts'
import { filtersOf, isSameFilters, originOf, type Venue, venuesOfPool } from '../tokens/venue.ts'
import type { IngestState } from './ingest-state.ts'
import { openRoundsAt } from './nav-rounds.ts'
import { type PipelineInputs, pipeline } from './pipeline.ts'
import { findNamedPools } from './pools/named-pools.ts'
import { PoolsToRead } from './pools/pools-to-read.ts'
import { restoreState } from './restore-state.ts'

/** How long a first run waits for the state of pools and contracts before it begins in the past without. */
const FIRST_STATE_MS = 10_000

/** The inputs of the ingest. It has no clock, random numbers or sockets of its own, and depends on these inputs only. */
export type IngestInputs = Pick<PipelineInputs, 'clock' | 'wallTime' | 'tick' | 'count'> &
  Pick<SourceOptions, 'request' | 'confirmChain' | 'link' | 'linkCount' | 'leaveEndpoint' | 'log' | 'onUnreadable'> & {
    readonly tape: Tape
    readonly writer: TapeWriter
    readonly requestBatch: RequestBatchFn
    /** The pre-confirmed logs that other ingesters received. */
    readonly peerLogs?: Observable<ChainEvent>
    /** Receives every chain event before the ingest publishes it. Must not block. */
    readonly onChainEvent: (event: ChainEvent) => void
    /** Emits each polled list, or null if it cannot be read. `known` are the tokens that the previous run had listed. */
    readonly lists: (known: readonly Hex[]) => Observable<PolledList | null>
    readonly settings: Pick<
      SourceOptions,
      'pendingPollMs' | 'silenceMs' | 'finalityPollMs' | 'backfillLimitMs' | 'backfillFirstMs'
    > &
      Pick<
        Config['tokens'],
        'navStaleAfterMs' | 'feeds' | 'stocksRefreshMs' | 'pools' | 'mainCurrency' | 'poolMinDepth' | 'oracleRegistry'
      > &
      Pick<IngestState, 'sessionAt'>
  }

/** Restores the state from the tape. The returned pipeline runs and writes while it has a subscriber. */
export async function openIngest(inputs: IngestInputs): Promise<Observable<readonly Entry[]>> {
  const { tape, request, confirmChain, link, linkCount, leaveEndpoint, lists, clock, settings, log } = inputs
  const { stocksRefreshMs, pools, mainCurrency, oracleRegistry } = settings
  const quotes = { pools, mainCurrency, poolMinDepth: { units: BigInt(settings.poolMinDepth), scale: 0 } }
  const state = await restoreState(tape, { ...settings, quotes, hasRegistry: oracleRegistry !== null })
  const memory = new LogMemory()
  const findLog: FindLog = (block, transaction, logIndex) => memory.find(block, transaction, logIndex)
  const contracts = new ContractPoller({
    request,
    requestBatch: inputs.requestBatch,
    feeds: settings.feeds.map(({ proxy }) => proxy),
    registry: oracleRegistry && { address: oracleRegistry, stocksRefreshMs },
    // Contracts are read as of the last settled block, because a log above it may be missing or be retracted.
    head: () => state.cursor,
    clock,
    log,
  })
  const poller = new PoolPoller({
    requestBatch: inputs.requestBatch,
    stocksRefreshMs,
    tag: () => (state.status?.source === 'sealed' ? 'latest' : 'pending'),
    sealedHead: () => state.head.sealed,
    clock,
    log,
  })
  const poolsToRead = new PoolsToRead({ state, poller, log })
  const readFirstState = async (block: Cursor, signal: AbortSignal): Promise<void> => {
    const inTime = new AbortController()
    const bounded = AbortSignal.any([signal, inTime.signal])
    const read = async () => {
      await poller.readFirst([...findNamedPools(state).values()], bounded)
      await contracts.readAt(block, bounded)
    }
    // A later answer would count as one about the present.
    await Promise.race([read(), wait(FIRST_STATE_MS, clock, bounded)]).finally(() => inTime.abort())
  }
  const { cursor, began, head } = state
  const observe = (event: ChainEvent): void => {
    inputs.onChainEvent(event)
    readAgainAfter(event, contracts, poller)
    if (event.type === 'refusal') logRefusal(log, event, state.venues.values())
  }
  // Up to its cursor the run before settled all: what a lagging node says of these blocks is old.
  const tellCursor = () => cursor && inputs.onChainEvent({ type: 'cursor', cursor, timestamp: null })
  const chainEvents = (followed: Observable<Followed>) =>
    source({
      ...{ ...settings, request, confirmChain, link, linkCount, leaveEndpoint, onUnreadable: inputs.onUnreadable },
      ...{ openKeys: openKeysOf(state), findLog, cursor, began, head, readFirstState, clock, log },
      leftOut: refusedFilters(state),
      outdated: blocksWithOpenTrades(state),
      filters: followed.pipe(
        tap(({ tokens }) => contracts.setTokens(tokens)),
        map(({ filters }) => filters),
      ),
    }).pipe(tap({ subscribe: tellCursor, next: observe }))
  const published = connectPipeline({
    ...inputs,
    memory,
    state,
    lists: lists(listedAddresses(state.tokens)),
    contractReads: contracts.answers(),
    chainEvents: (followed) => (inputs.peerLogs ? merge(chainEvents(followed), inputs.peerLogs) : chainEvents(followed)),
    poolReads: pools.length > 0 ? poller.answers() : EMPTY,
  })
  return published.pipe(tap((entries) => poolsToRead.observe(entries)))
}

/** Contracts are read again after a hole, because no log reports its changes, and after a reorg, which makes answers void. */
function readAgainAfter(event: ChainEvent, contracts: ContractPoller, poller: PoolPoller): void {
  if (event.type === 'reorg') {
    contracts.refreshTokens(event.from)
    poller.readAgainFrom(event.from)
  }
  if (event.type === 'sealed' && event.holes.length > 0) contracts.refreshTokens(0)
}

/** The tokens that are not delisted, and what the relay reads: the logs of these tokens and of the feeds' aggregators, and swaps. */
type Followed = { readonly tokens: readonly Hex[]; readonly filters: readonly ReadFilter[] }

type ConnectedInputs = Omit<PipelineInputs, 'tokenLists' | 'chainEvents' | 'onReduced'> & {
  readonly lists: Observable<PolledList | null>
  readonly chainEvents: (followed: Observable<Followed>) => Observable<ChainEvent>
}

/** Connects the inputs: the state, after lists and feed contracts changed it, names the addresses whose logs are received. */
export function connectPipeline({ lists, chainEvents, ...inputs }: ConnectedInputs): Observable<readonly Entry[]> {
  const { state } = inputs
  const followed = new BehaviorSubject(followedBy(state))
  let { listOrder, feeds, venues } = state
  return pipeline({
    ...inputs,
    tokenLists: lists.pipe(map((list) => ({ type: 'list', list }))),
    chainEvents: chainEvents(
      followed.pipe(
        // An empty list counts as a change, so that the tokens of the next list are subscribed again.
        distinctUntilChanged((before, now) => isSameFilters(before.filters, now.filters)),
        filter(({ tokens }) => tokens.length > 0),
      ),
    ),
    onReduced: () => {
      if (state.listOrder === listOrder && state.feeds === feeds && state.venues === venues) return
      listOrder = state.listOrder
      feeds = state.feeds
      venues = state.venues
      followed.next(followedBy(state))
    },
  })
}

function followedBy({ tokens: table, feeds, venues }: IngestState): Followed {
  const tokens = listedAddresses(table).sort()
  const aggregators = aggregatorAddresses(feeds)
  return { tokens, filters: filtersOf(aggregators.length > 0 ? [...tokens, ...aggregators] : tokens, venues.values()) }
}

/** The filters of the pool managers that the node refused in the previous run. */
const refusedFilters = ({ venues }: IngestState): readonly ReadFilter[] =>
  filtersOf(
    [],
    [...venues.values()].filter(({ droppedFor }) => droppedFor === 'refused'),
  ).slice(1)

/** Settled blocks with open trades of a pool manager: the node refused them, and the relay stopped before it read them again. */
function blocksWithOpenTrades({ ledger, venues, cursor }: IngestState): readonly number[] {
  const blocks = [...venues.values()].flatMap(({ pool: { token, id, manager } }) =>
    manager === null
      ? []
      : ledger.factsOf(token).flatMap(({ published: { state, draft } }) => {
          const isOpen = state === 'open' && draft.type === 'trade' && draft.venue.pool === id
          return isOpen && draft.block.number <= (cursor?.number ?? -1) ? [draft.block.number] : []
        }),
  )
  return [...new Set(blocks)]
}

function logRefusal(
  log: Host['log'],
  { contract, isOver }: Extract<ChainEvent, { type: 'refusal' }>,
  venues: Iterable<Venue>,
): void {
  const concerned = isOver ? 'refused' : null
  const pools = [...venues].flatMap(({ pool: { manager, id }, droppedFor }) =>
    manager === contract && droppedFor === concerned ? [id] : [],
  )
  log(isOver ? 'pools_answered' : 'pools_refused', {
    pool_manager: contract,
    pools: pools.slice(0, LOGGED_POOLS_BOUND),
    count: pools.length,
  })
}
const LOGGED_POOLS_BOUND = 10

const openKeysOf = (state: IngestState): OpenKeys => ({
  at: (block) => [...keysOf(state, block), ...openRoundsAt(state, block)],
  publishedBlocksBetween: (from, to) => state.ledger.publishedBlocksBetween(from, to),
  sealedInPreviousRun: state.ledger.sealedInPreviousRun,
})

/** The published keys of a block. Those of a pool of Uniswap v4 name its manager, whatever the settings say by now. */
const keysOf = ({ ledger, venues }: IngestState, block: number): readonly OpenKey[] =>
  ledger.at(block).map((key) => {
    const [venue] = venuesOfPool(venues, key.address)
    return venue ? { ...key, ...originOf(venue.pool) } : key
  })
