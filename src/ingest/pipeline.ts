import {
  auditTime,
  buffer,
  combineLatest,
  concatMap,
  connect,
  distinctUntilChanged,
  filter,
  map,
  merge,
  type Observable,
  type SchedulerLike,
  scan,
  startWith,
} from 'rxjs'
import type { ChainEvent } from '../chain/source/source.ts'
import type { Hex } from '../protocol/fields.ts'
import type { Entry, Tape } from '../tape/tape.ts'
import { listedAddresses } from '../tokens/list-diff.ts'
import type { PolledList } from '../tokens/list-poller.ts'
import { aggregatorAddresses, applyFeedCall, type PriceFeed } from '../tokens/price-feeds.ts'
import { groupTransactions, type UngroupedEvent } from './group-transactions.ts'
import type { Reducer, TokenOrFeedAnswer } from './reducer.ts'

type Options = {
  readonly lists: Observable<PolledList | null>
  /** The answers of token and feed contracts. */
  readonly answers: (tokens: Observable<readonly Hex[]>) => Observable<TokenOrFeedAnswer>
  readonly source: (addresses: Observable<readonly Hex[]>) => Observable<ChainEvent>
  readonly reducer: Reducer
  readonly tape: Pick<Tape, 'append'>
  readonly clock: SchedulerLike
  /** Ends a batch with each turn of the event loop. */
  readonly tickScheduler: SchedulerLike
}

/** Everything that happens to a token, in order of arrival, batch by batch, onto the tape. */
export const buildPipeline = (options: Options): Observable<readonly Entry[]> => {
  const { lists, answers, source, reducer, tape, clock, tickScheduler } = options
  return lists.pipe(
    connect((sharedLists) => {
      const tokens = listedAddressesIn(sharedLists, reducer)
      return answers(tokens).pipe(
        connect((sharedAnswers) =>
          merge(
            sharedLists.pipe(map((list): UngroupedEvent => ({ type: 'list', tokens: null, ...list }))),
            sharedAnswers,
            source(combineLatest([tokens, feedAddresses(reducer.feeds, sharedAnswers)], (...addresses) => addresses.flat())),
          ),
        ),
      )
    }),
    groupTransactions(clock),
    batchByTick(tickScheduler),
    concatMap((batch) => {
      const { drafts, notes } = reducer.reduce(batch)
      return drafts.length > 0 || notes.size > 0 ? tape.append(drafts, notes) : []
    }),
  )
}

/** The tokens whose logs to subscribe to: first those of the previous run, then those of each list. A partial list only adds. */
function listedAddressesIn(lists: Observable<PolledList | null>, reducer: Reducer): Observable<readonly Hex[]> {
  const knownAddresses = listedAddresses(reducer.tokens)
  return lists.pipe(
    // Of a list in parts the last one names all tokens.
    filter((list): list is PolledList => list !== null && !list.more),
    scan((before: readonly Hex[], { tokens, partial, earlier = [] }) => {
      const listed = [...earlier, ...tokens.map((token) => token.address)]
      return [...new Set(partial ? [...before, ...listed] : listed)].sort()
    }, knownAddresses),
    startWith(knownAddresses.sort()),
    // An empty list counts as a change: after it, the same tokens need a new subscription.
    distinctUntilChanged((before, now) => before.join() === now.join()),
    filter((addresses) => addresses.length > 0),
  )
}

/** The aggregators whose logs are feed rounds. A proxy may replace its aggregator. */
const feedAddresses = (known: readonly PriceFeed[], answered: Observable<TokenOrFeedAnswer>): Observable<readonly Hex[]> =>
  answered.pipe(
    filter((answer) => answer.type === 'feed'),
    scan(applyFeedCall, known),
    startWith(known),
    map(aggregatorAddresses),
    distinctUntilChanged((before, now) => before.join() === now.join()),
  )

/** Collects the events of one turn of the event loop, so that they are written and sent together. */
const batchByTick =
  <T>(tickScheduler: SchedulerLike) =>
  (events: Observable<T>): Observable<readonly T[]> =>
    events.pipe(connect((sharedEvents) => sharedEvents.pipe(buffer(sharedEvents.pipe(auditTime(0, tickScheduler))))))
