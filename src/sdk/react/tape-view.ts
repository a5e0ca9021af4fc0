import type { MovementState, StockState, Update } from '../client/index.ts'
import { followedKeys } from '../generated/key-life.ts'
import { covers, defaultTypes, selectsStock, type TapeSelection, type TapeUnion } from './tape-selection.ts'
import { inOrder, type TapeFeed, type TapeState } from './tape-state.ts'

/**
 * The result of a hook. `loading`: the data is not complete yet. `unknown`: the relay does not know the symbols. `failed`: the
 * stream has ended. `disabled`: the selection is not enabled.
 */
export type TapeResult<Data> = {
  readonly status: 'loading' | 'ready' | 'unknown' | 'failed' | 'disabled'
  /** The last failure of the connection, until it is live again. */
  readonly error: TapeFeed['error']
  readonly data: Data
}

/** The part of a tape that a component shows. Each property is the same object until it changes. */
export type TapeData<Type extends Update['type'] = Update['type']> = {
  readonly stocks: readonly StockState[]
  /** The newest movements of the stocks, newest first, each with its present stage. */
  readonly movements: readonly MovementState[]
  /** The newest updates as they were published, newest first. */
  readonly updates: readonly Extract<Update, { type: Type }>[]
}

export type TapeView<Type extends Update['type'] = Update['type']> = TapeResult<TapeData<Type>>

export const emptyView = { status: 'loading', error: null, data: { stocks: [], movements: [], updates: [] } } as const

const DEFAULT_LIMIT = 50

/** Returns the view of a tape. Each part that did not change is the same object as in `before`. */
export function viewOf<Type extends Update['type']>(
  tape: TapeState,
  selection: TapeSelection<Type>,
  union: TapeUnion,
  before: TapeView<Type>,
): TapeView<Type> {
  const { feed, failures } = tape
  const isComplete = tape.isComplete && covers(tape.union, union)
  const failure = failures[String(union.pasts)]
  const error = failure ?? feed.error
  const isUnknown =
    feed.error?.reason === 'unknown_symbol' ||
    (union.symbols.length > 0 && union.symbols.every((name) => feed.rejected.some(({ symbol }) => symbol === name)))
  const status =
    selection.enabled === false
      ? 'disabled'
      : isUnknown
        ? 'unknown'
        : feed.phase === 'closed' || failure
          ? 'failed'
          : // Once it was ready, a view stays so while the tape gets other stocks.
            isComplete || before.status === 'ready'
            ? 'ready'
            : 'loading'
  const data = isComplete && status !== 'disabled' ? dataOf(tape, selection, union, before.data) : before.data
  const isSame = before.status === status && before.error === error && before.data === data
  return isSame ? before : { status, error, data }
}

function dataOf<Type extends Update['type']>(
  tape: TapeState,
  selection: TapeSelection<Type>,
  { symbols }: TapeUnion,
  before: TapeData<Type>,
): TapeData<Type> {
  const { types, stage, minValue, minShares, account, limit = DEFAULT_LIMIT } = selection
  const hasType = ({ type }: Pick<Update, 'type'>) => types === '*' || (types ?? defaultTypes).includes(type as Type)
  const stocks = kept(
    before.stocks,
    tape.stocks.filter((stock) => selectsStock(symbols, stock)),
  )
  const hasValues = ({ from, to, reference_value, shares }: MovementValues) =>
    isAtLeast(reference_value, minValue) &&
    isAtLeast(shares, minShares) &&
    (!account || [from, to].some((address) => `${account}`.toLowerCase().includes(address)))
  const matching = stocks.map(({ movements }) =>
    movements.filter((movement) => (stage !== 'sealed' || movement.stage === stage) && hasValues(movement)),
  )
  const movements = matching
    .flatMap((ofStock) => ofStock.filter(hasType).slice(0, limit))
    .sort((a, b) => b.time.localeCompare(a.time))
    .slice(0, limit)
  const addresses = new Set<string | null>([null, ...stocks.map(({ address }) => address)])
  const isFiltered = stage === 'sealed' || (minValue ?? minShares ?? account) !== undefined
  const keys = isFiltered && new Set(matching.flat().map(({ key }) => key))
  // The tape may have forgotten updates that the view shows.
  const updates = inOrder([...before.updates.toReversed(), ...tape.recent])
    .filter((update): update is Extract<Update, { type: Type }> => {
      const followed = followedKeys(update)
      const isSelected =
        !keys ||
        // The value of a fact may have changed since this update, by an amend.
        ('shares' in update
          ? keys.has(update.key) && hasValues(update)
          : followed.length === 0 || followed.some((key) => keys.has(key)))
      return isSelected && hasType(update) && addresses.has(update.address)
    })
    .reverse()
    .slice(0, limit)
  const data = { stocks, movements: kept(before.movements, movements), updates: kept(before.updates, updates) }
  return stocks === before.stocks && data.updates === before.updates ? before : data
}

type MovementValues = Pick<MovementState, 'from' | 'to' | 'reference_value' | 'shares'>

const kept = <Item>(before: readonly Item[], now: readonly Item[]): readonly Item[] =>
  before.length === now.length && before.every((item, at) => item === now[at]) ? before : now

const isAtLeast = (value: string | null, least: string | number | undefined): boolean =>
  least === undefined || (value !== null && Number(value) >= Number(least))
