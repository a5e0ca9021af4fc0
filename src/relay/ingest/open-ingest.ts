import {
  combineLatest,
  connect,
  distinctUntilChanged,
  EMPTY,
  filter,
  map,
  merge,
  type Observable,
  of,
  Subject,
  scan,
  startWith,
  tap,
} from 'rxjs'
import type { Hex } from '../../lib/hex.ts'
import type { OpenKeys } from '../chain/blocks/sealed-block.ts'
import { type ContractAnswer, pollContracts } from '../chain/contracts/contract-poller.ts'
import { LogMemory } from '../chain/logs/log-memory.ts'
import type { FindLog } from '../chain/logs/log-parser.ts'
import { PoolPoller } from '../chain/pools/pool-poller.ts'
import type { RequestBatchFn } from '../chain/rpc/endpoint-pool.ts'
import { type ChainEvent, type SourceOptions, source } from '../chain/source/source.ts'
import type { Config } from '../config/config.ts'
import type { Entry, Tape, TapeWriter } from '../tape/tape.ts'
import { isSameList, listedAddresses } from '../tokens/list/list-diff.ts'
import type { PolledList } from '../tokens/list/list-poller.ts'
import { aggregatorAddresses, applyFeedCall, type PriceFeed } from '../tokens/price-feeds.ts'
import type { IngestState } from './ingest-state.ts'
import { openRoundsAt } from './nav-rounds.ts'
import { type PipelineInputs, pipeline } from './pipeline.ts'
import { PoolsToRead } from './pools-to-read.ts'
import { restoreState } from './restore-state.ts'

/** The inputs of the ingest. It has no clock, random numbers or sockets of its own, and depends on these inputs only. */
export type IngestInputs = Pick<PipelineInputs, 'clock' | 'wallTime' | 'tick' | 'count'> &
  Pick<SourceOptions, 'request' | 'confirmChain' | 'link' | 'linkCount' | 'leaveEndpoint' | 'warn' | 'onUnreadable'> & {
    readonly tape: Tape
    readonly writer: TapeWriter
    readonly requestBatch: RequestBatchFn
    /** The pre-confirmed logs that other ingesters received. */
    readonly peerLogs?: Observable<ChainEvent>
    /** Receives every chain event before the ingest publishes it. Must not block. */
    readonly onChainEvent: (event: ChainEvent) => void
    /** Emits each polled list, or null if it cannot be read. `known` are the tokens that the previous run had listed. */
    readonly lists: (known: readonly Hex[]) => Observable<PolledList | null>
    readonly settings: Pick<SourceOptions, 'pendingPollMs' | 'silenceMs' | 'finalityPollMs' | 'backfillLimitMs'> &
      Pick<Config['tokens'], 'navStaleAfterMs' | 'feeds' | 'stocksRefreshMs' | 'pools' | 'poolMinDepth' | 'oracleRegistry'> &
      Pick<IngestState, 'sessionAt'>
  }

/** Restores the state from the tape. The returned pipeline runs and writes while it has a subscriber. */
export async function openIngest(inputs: IngestInputs): Promise<Observable<readonly Entry[]>> {
  const { tape, request, confirmChain, link, linkCount, leaveEndpoint, lists, clock, settings, warn } = inputs
  const { stocksRefreshMs, pools, oracleRegistry } = settings
  const poolMinDepth = { units: BigInt(settings.poolMinDepth), scale: 0 }
  const state = await restoreState(tape, { ...settings, quotes: { pools, poolMinDepth }, hasRegistry: oracleRegistry !== null })
  const memory = new LogMemory()
  const findLog: FindLog = (block, transaction, logIndex) => memory.find(block, transaction, logIndex)
  /** Contract answers as of these blocks and later ones are in doubt. */
  const doubts = new Subject<number>()
  const contractReads = (tokens: Observable<readonly Hex[]>) =>
    pollContracts({
      request,
      tokens,
      feeds: of(settings.feeds.map(({ proxy }) => proxy)),
      registry: oracleRegistry && { address: oracleRegistry, stocksRefreshMs },
      // Contracts are read as of the last settled block, because a log above it may be missing or be retracted.
      head: () => state.cursor,
      // Contracts are read again after a hole, because no log reports its changes, and after a reorg, which makes answers void.
      refreshFrom: doubts,
      clock,
      warn,
    })
  const poller = new PoolPoller({
    requestBatch: inputs.requestBatch,
    stocksRefreshMs,
    tag: () => (state.status?.source === 'sealed' ? 'latest' : 'pending'),
    sealedHead: () => state.head.sealed,
    clock,
    warn,
  })
  const poolsToRead = new PoolsToRead({ state, settings: pools, poller, warn })
  const { cursor, began, head } = state
  const upstream = { request, confirmChain, link, linkCount, leaveEndpoint, onUnreadable: inputs.onUnreadable }
  const chainEvents = (addresses: Observable<readonly Hex[]>) =>
    source({ ...settings, ...upstream, addresses, openKeys: openKeysOf(state), findLog, cursor, began, head, clock, warn }).pipe(
      tap((event) => {
        inputs.onChainEvent(event)
        if (event.type === 'reorg') {
          doubts.next(event.from)
          poller.readAgainFrom(event.from)
        }
        if (event.type === 'sealed' && event.holes.length > 0) doubts.next(0)
      }),
    )
  const published = connectPipeline({
    ...inputs,
    memory,
    state,
    lists: lists(listedAddresses(state.tokens)),
    contractReads,
    chainEvents: (addresses) => (inputs.peerLogs ? merge(chainEvents(addresses), inputs.peerLogs) : chainEvents(addresses)),
    poolReads: pools.length > 0 ? poller.answers() : EMPTY,
  })
  return published.pipe(tap((entries) => poolsToRead.observe(entries)))
}

type ConnectedInputs = Pick<PipelineInputs, 'memory' | 'state' | 'writer' | 'clock' | 'wallTime' | 'tick' | 'count'> & {
  readonly lists: Observable<PolledList | null>
  readonly contractReads: (tokens: Observable<readonly Hex[]>) => Observable<ContractAnswer>
  readonly chainEvents: (addresses: Observable<readonly Hex[]>) => Observable<ChainEvent>
  readonly poolReads: PipelineInputs['poolReads']
}

/** Connects the inputs. Lists name the contracts to read; lists and feed contracts name the addresses whose logs are received. */
export function connectPipeline({ lists, contractReads, chainEvents, ...inputs }: ConnectedInputs): Observable<readonly Entry[]> {
  const known = listedAddresses(inputs.state.tokens).sort()
  return lists.pipe(
    withAddresses(known),
    connect((sharedLists) => {
      const tokens = addressesIn(sharedLists, known)
      return contractReads(tokens).pipe(
        connect((sharedReads) =>
          pipeline({
            ...inputs,
            tokenLists: sharedLists.pipe(map(({ list }) => ({ type: 'list', list }))),
            contractReads: sharedReads,
            chainEvents: chainEvents(
              combineLatest([tokens, feedAddresses(sharedReads, inputs.state.feeds)], (listed, feeds) =>
                feeds.length > 0 ? [...listed, ...feeds] : listed,
              ),
            ),
          }),
        ),
      )
    }),
  )
}

type AddressedList = { readonly list: PolledList | null; readonly addresses: readonly Hex[] }

/** Adds to each list the tokens whose logs the relay receives from then on. A partial list only adds tokens. */
const withAddresses = (known: readonly Hex[]) => (lists: Observable<PolledList | null>) =>
  lists.pipe(
    scan(
      ({ addresses: before }: AddressedList, list): AddressedList => {
        // A long list is in parts, and only the last part names all tokens.
        if (!list?.order) return { list, addresses: before }
        const addresses = (list.partial ? [...new Set([...before, ...list.order])] : [...list.order]).sort()
        return { list, addresses: isSameList(before, addresses) ? before : addresses }
      },
      { list: null, addresses: known },
    ),
  )

/** Emits the tokens whose logs the relay receives: first those of the previous run, then those of each list. */
const addressesIn = (lists: Observable<AddressedList>, known: readonly Hex[]): Observable<readonly Hex[]> =>
  lists.pipe(
    map(({ addresses }) => addresses),
    startWith(known),
    // An empty list counts as a change, so that the tokens of the next list are subscribed again.
    distinctUntilChanged(isSameList),
    filter((addresses) => addresses.length > 0),
  )

/** Emits the aggregators whose logs are rounds of feeds. A proxy may replace its aggregator. */
const feedAddresses = (reads: Observable<ContractAnswer>, known: readonly PriceFeed[]): Observable<readonly Hex[]> =>
  reads.pipe(
    filter((answer) => answer.type === 'feed'),
    scan(applyFeedCall, known),
    startWith(known),
    map(aggregatorAddresses),
    distinctUntilChanged((before, now) => before.join() === now.join()),
  )

const openKeysOf = (state: IngestState): OpenKeys => ({
  at: (block) => [...state.ledger.at(block), ...openRoundsAt(state, block)],
  publishedBlocksBetween: (from, to) => state.ledger.publishedBlocksBetween(from, to),
  sealedInPreviousRun: state.ledger.sealedInPreviousRun,
})
