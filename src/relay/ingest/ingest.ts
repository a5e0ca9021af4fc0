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
import { chunk, inTurns } from '../../lib/turns.ts'
import { type ContractAnswer, pollContracts } from '../chain/contracts/call-poller.ts'
import { LogFolder } from '../chain/logs/log-folder.ts'
import type { FindLog } from '../chain/logs/read-logs.ts'
import { PoolPoller } from '../chain/pools/pool-poller.ts'
import type { ConfirmChain, RequestBatchFn, RequestFn } from '../chain/rpc/endpoint-pool.ts'
import type { OpenKeys } from '../chain/sealed/block-logs.ts'
import { type ChainEvent, type SourceOptions, source } from '../chain/source/source.ts'
import type { FeedSetting } from '../config/feeds.ts'
import type { PoolSetting } from '../config/pools.ts'
import type { Entry, Tape } from '../tape/tape.ts'
import { isSameList, listedAddresses } from '../tokens/list/list-diff.ts'
import type { PolledList } from '../tokens/list/list-poller.ts'
import { aggregatorAddresses, applyFeedCall, type PriceFeed } from '../tokens/price-feeds.ts'
import type { IngestEvent } from './fold-transactions.ts'
import type { IngestState } from './ingest-state.ts'
import { ListedPools } from './listed-pools.ts'
import { openRoundsAt } from './nav-rounds.ts'
import { type PipelineInputs, pipeline } from './pipeline.ts'
import { restoreState } from './restore.ts'

/** A newly listed token is three updates, which are delivered in the same turn. */
const TOKENS_PER_TURN = 66

/** All that ingest depends on: it has no clock, random numbers or sockets of its own. */
export type IngestInputs = Pick<PipelineInputs, 'clock' | 'wallTime' | 'tick' | 'count'> & {
  readonly tape: Tape
  /** How a batch is written; by default as the tape writes it. */
  readonly append?: Tape['append']
  readonly request: RequestFn
  readonly requestBatch: RequestBatchFn
  readonly confirmChain: ConfirmChain
  readonly link: SourceOptions['link']
  readonly linkCount?: number
  readonly leaveEndpoint?: () => void
  /** The pre-confirmed logs that other ingesters received. */
  readonly peerLogs?: Observable<ChainEvent>
  /** Receives every chain event before it is published. Must not block. */
  readonly onChainEvent: (event: ChainEvent) => void
  /** The lists as they are polled. `known` are the tokens listed in the previous run. */
  readonly lists: (known: readonly Hex[]) => Observable<PolledList | null>
  readonly settings: {
    readonly pendingPollMs: number
    readonly silenceMs: number
    readonly finalityPollMs: number
    readonly backfillLimitMs: number
    readonly navStaleAfterMs: number
    /** The price feeds that publish NAVs on chain. */
    readonly feeds: readonly FeedSetting[]
    readonly stocksRefreshMs: number
    readonly pools: readonly PoolSetting[]
    readonly poolMinDepth: number
    readonly oracleRegistry: Hex | null
    /** The calendar of the market, by chain time in seconds. */
    readonly sessionAt: IngestState['sessionAt']
  }
  readonly warn: (kind: string, detail: unknown) => void
}

/** Restores the state from the tape. The returned pipeline runs and writes while it is subscribed to. */
export async function openIngest(inputs: IngestInputs): Promise<Observable<readonly Entry[]>> {
  const { tape, request, confirmChain, link, linkCount = 1, leaveEndpoint = () => {}, lists, clock, settings, warn } = inputs
  const { stocksRefreshMs, pools, oracleRegistry } = settings
  const poolMinDepth = { units: BigInt(settings.poolMinDepth), scale: 0 }
  const state = await restoreState(tape, { ...settings, quotes: { pools, poolMinDepth }, hasRegistry: oracleRegistry !== null })
  const folder = new LogFolder()
  const findLog: FindLog = (block, transaction, logIndex) => folder.find(block, transaction, logIndex)
  /** The block from which on the contracts' answers are in doubt. */
  const doubts = new Subject<number>()
  const contractReads = (tokens: Observable<readonly Hex[]>) =>
    pollContracts({
      request,
      tokens,
      feeds: of(settings.feeds.map(({ proxy }) => proxy)),
      registry: oracleRegistry && { address: oracleRegistry, stocksRefreshMs },
      // Read as of the settled block: above it a log may report the same change later, or be retracted.
      head: () => state.cursor,
      // A hole may contain changes that no log will report, and what was read of a replaced block does not hold.
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
  const listedPools = new ListedPools({ state, settings: pools, poller, warn })
  const { cursor, began, head } = state
  const upstream = { request, confirmChain, link, linkCount, leaveEndpoint }
  const chainEvents = (addresses: Observable<readonly Hex[]>) =>
    source({ ...settings, ...upstream, addresses, openKeys: openKeysOf(state), findLog, cursor, began, head, clock, warn }).pipe(
      tap((event) => {
        inputs.onChainEvent(event)
        if (event.type === 'reorg') {
          doubts.next(event.from)
          poller.readAgainFrom(event.from)
        }
        if (event.type === 'hole') doubts.next(0)
      }),
      inTurns(partsOf),
    )
  const published = connectPipeline({
    ...inputs,
    tape: inputs.append ? { append: inputs.append } : tape,
    folder,
    state,
    lists: lists(listedAddresses(state.tokens)),
    contractReads,
    chainEvents: (addresses) => (inputs.peerLogs ? merge(chainEvents(addresses), inputs.peerLogs) : chainEvents(addresses)),
    poolReads: pools.length > 0 ? poller.answers() : EMPTY,
  })
  return published.pipe(tap((entries) => listedPools.observe(entries)))
}

/** Many new tokens are listed in parts, since each is an update. What comes after them waits. */
function partsOf(event: ChainEvent): readonly ChainEvent[] {
  if (event.type !== 'subscribed' || event.addresses.length <= TOKENS_PER_TURN) return [event]
  return chunk(event.addresses, TOKENS_PER_TURN).map((addresses) => ({ type: 'subscribed', addresses }))
}

type ConnectedInputs = Pick<PipelineInputs, 'folder' | 'state' | 'tape' | 'clock' | 'wallTime' | 'tick' | 'count'> & {
  readonly lists: Observable<PolledList | null>
  readonly contractReads: (tokens: Observable<readonly Hex[]>) => Observable<ContractAnswer>
  readonly chainEvents: (addresses: Observable<readonly Hex[]>) => Observable<ChainEvent>
  readonly poolReads: PipelineInputs['poolReads']
}

/** Where the list could not be read, the NAVs of all tokens grow older. */
const readingsOf = (list: PolledList | null, { tokens }: IngestState): readonly IngestEvent[] =>
  list
    ? [{ type: 'list', ...list }]
    : chunk(listedAddresses(tokens), TOKENS_PER_TURN).map((unread) => ({ type: 'list', tokens: null, unread }))

/** The lists name the contracts to read. Lists and feed contracts name the addresses whose logs to receive. */
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
            tokenLists: sharedLists.pipe(inTurns(({ list }) => readingsOf(list, inputs.state))),
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

/** Each list with the tokens whose logs to receive from then on. A partial list only adds. */
const withAddresses = (known: readonly Hex[]) => (lists: Observable<PolledList | null>) =>
  lists.pipe(
    scan(
      ({ addresses: before }: AddressedList, list): AddressedList => {
        // Of a list in parts the last one names all tokens.
        if (!list || list.more) return { list, addresses: before }
        const listed = list.all?.order ?? list.tokens.map(({ address }) => address)
        const addresses = (list.partial ? [...new Set([...before, ...listed])] : [...listed]).sort()
        return { list, addresses: isSameList(before, addresses) ? before : addresses }
      },
      { list: null, addresses: known },
    ),
  )

/** The tokens whose logs to receive: first those of the previous run, then those of each list. */
const addressesIn = (lists: Observable<AddressedList>, known: readonly Hex[]): Observable<readonly Hex[]> =>
  lists.pipe(
    map(({ addresses }) => addresses),
    startWith(known),
    // An empty list counts as a change: after it, the same tokens need a new subscription.
    distinctUntilChanged(isSameList),
    filter((addresses) => addresses.length > 0),
  )

/** The aggregators whose logs are feed rounds. A proxy may replace its aggregator. */
const feedAddresses = (reads: Observable<ContractAnswer>, known: readonly PriceFeed[]): Observable<readonly Hex[]> =>
  reads.pipe(
    filter((answer) => answer.type === 'feed'),
    scan(applyFeedCall, known),
    startWith(known),
    map(aggregatorAddresses),
    distinctUntilChanged((before, now) => before.join() === now.join()),
  )

/** Open keys and unsealed feed rounds. */
const openKeysOf = (state: IngestState): OpenKeys => ({
  at: (block) => [...state.ledger.at(block), ...openRoundsAt(state, block)],
  publishedBlocksBetween: (from, to) => state.ledger.publishedBlocksBetween(from, to),
  sealedInPreviousRun: state.ledger.sealedInPreviousRun,
})
