import {
  asapScheduler,
  auditTime,
  buffer,
  concatMap,
  connect,
  distinctUntilChanged,
  filter,
  map,
  merge,
  type Observable,
  type SchedulerLike,
  startWith,
} from 'rxjs'
import type { Heard } from '../chain/source.ts'
import type { Hex } from '../protocol/parts.ts'
import type { Listed } from '../stocks/list.ts'
import type { Entry, Tape } from '../tape/tape.ts'
import type { Arrival, Teller } from './teller.ts'

type Options = {
  readonly lists: Observable<readonly Listed[] | null>
  readonly source: (addresses: Observable<readonly Hex[]>) => Observable<Heard>
  readonly teller: Teller
  readonly tape: Tape
}

/**
 * The whole river: lists and logs come in, are told in the order in which they came, turn by turn, and end on the tape.
 * Nothing below the tape knows of it.
 */
export const river = ({ lists, source, teller, tape }: Options): Observable<readonly Entry[]> =>
  lists.pipe(
    connect((shared) =>
      merge(shared.pipe(map((tokens): Arrival => ({ type: 'list', tokens }))), source(listedAddresses(shared, teller))),
    ),
    turns(),
    concatMap((turn) => {
      const { drafts, notes } = teller.tell(turn)
      return drafts.length > 0 || notes.size > 0 ? tape.append(drafts, notes) : []
    }),
  )

/** Whose logs are to be heard: what the board knew before, then what each list says. */
const listedAddresses = (lists: Observable<readonly Listed[] | null>, teller: Teller): Observable<readonly Hex[]> =>
  lists.pipe(
    filter((tokens) => tokens !== null),
    map((tokens) => tokens.map((token) => token.address).sort()),
    startWith(
      [...teller.board.values()].flatMap((token) => (token.state === 'delisted' ? [] : [token.address])).sort(),
    ),
    filter((addresses) => addresses.length > 0),
    distinctUntilChanged((before, now) => before.join() === now.join()),
  )

/** Gathers what arrives in one turn of the event loop, so that it is written and sent in one stroke. */
const turns =
  <T>(turn: SchedulerLike = asapScheduler) =>
  (arrivals: Observable<T>): Observable<readonly T[]> =>
    arrivals.pipe(connect((shared) => shared.pipe(buffer(shared.pipe(auditTime(0, turn))))))
