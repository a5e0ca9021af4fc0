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
import type { Heard } from '../chain/source/source.ts'
import type { Hex } from '../protocol/fields.ts'
import type { Entry, Tape } from '../tape/tape.ts'
import { listedAddresses } from '../tokens/list-diff.ts'
import type { Reading } from '../tokens/list-poller.ts'
import { addressesOf, type Feed, feedsAfter } from '../tokens/price-feeds.ts'
import { together, type Unsorted } from './group-transactions.ts'
import type { Answer, Teller } from './reducer.ts'

type Options = {
  readonly lists: Observable<Reading | null>
  /** What contracts answer when they are asked: those of tokens, and the feeds. */
  readonly answers: (tokens: Observable<readonly Hex[]>) => Observable<Answer>
  readonly source: (addresses: Observable<readonly Hex[]>) => Observable<Heard>
  readonly teller: Teller
  readonly tape: Tape
  readonly clock: SchedulerLike
  /** Gathers what comes in one turn of the event loop. */
  readonly turn: SchedulerLike
}

/**
 * The whole river: lists and logs come in, are told in the order in which they came, turn by turn, and end on the tape.
 * Nothing below the tape knows of it.
 */
export const river = (options: Options): Observable<readonly Entry[]> => {
  const { lists, answers, source, teller, tape, clock, turn } = options
  return lists.pipe(
    connect((read) => {
      const tokens = listedIn(read, teller)
      return answers(tokens).pipe(
        connect((answered) =>
          merge(
            read.pipe(map((reading): Unsorted => ({ type: 'list', tokens: null, ...reading }))),
            answered,
            source(combineLatest([tokens, quotedBy(teller.feeds, answered)], (...addresses) => addresses.flat())),
          ),
        ),
      )
    }),
    together(clock),
    turns(turn),
    concatMap((arrivals) => {
      const { drafts, notes } = teller.tell(arrivals)
      return drafts.length > 0 || notes.size > 0 ? tape.append(drafts, notes) : []
    }),
  )
}

/** The tokens whose logs are to be heard: what the board knew before, then what each list says; a partial one only adds. */
function listedIn(lists: Observable<Reading | null>, teller: Teller): Observable<readonly Hex[]> {
  const known = listedAddresses(teller.board)
  return lists.pipe(
    filter((reading) => reading !== null),
    scan((before: readonly Hex[], { tokens, partial }) => {
      const listed = tokens.map((token) => token.address)
      return [...new Set(partial ? [...before, ...listed] : listed)].sort()
    }, known),
    startWith(known.sort()),
    // An empty list is news as well: after it, the same tokens have to be heard anew.
    distinctUntilChanged((before, now) => before.join() === now.join()),
    filter((addresses) => addresses.length > 0),
  )
}

/** Whose logs are the rounds of the feeds: what stands behind a proxy may be replaced. */
const quotedBy = (known: readonly Feed[], answered: Observable<Answer>): Observable<readonly Hex[]> =>
  answered.pipe(
    filter((answer) => answer.type === 'feed'),
    scan(feedsAfter, known),
    startWith(known),
    map(addressesOf),
    distinctUntilChanged((before, now) => before.join() === now.join()),
  )

/** Gathers what arrives in one turn of the event loop, so that it is written and sent in one stroke. */
const turns =
  <T>(turn: SchedulerLike) =>
  (arrivals: Observable<T>): Observable<readonly T[]> =>
    arrivals.pipe(connect((shared) => shared.pipe(buffer(shared.pipe(auditTime(0, turn))))))
