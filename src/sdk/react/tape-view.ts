import type { MovementState, StockState, TradeState, Update } from '../client/index.ts'
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
  /** The newest trades of the stocks, newest first, each with its present stage. */
  readonly trades: readonly TradeState[]
  /** The newest updates as they were published, newest first. */
  readonly updates: readonly Extract<Update, { type: Type }>[]
}

export type TapeView<Type extends Update['type'] = Update['type']> = TapeResult<TapeData<Type>>

export const emptyView = { status: 'loading', error: null, data: { stocks: [], movements: [], trades: [], updates: [] } } as const

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
  const { types, stage, minValue, minShares, account, pools, limit = DEFAULT_LIMIT } = selection
  const hasType = ({ type }: Pick<Update, 'type'>) => types === '*' || (types ?? defaultTypes).includes(type as Type)
  const stocks = kept(
    before.stocks,
    tape.stocks.filter((stock) => selectsStock(symbols, stock)),
  )
  const isOf = (given: string | readonly string[] | undefined, words: readonly (string | null)[]) =>
    !given || words.some((word) => word && `${given}`.toLowerCase().includes(word))
  const hasValues = (fact: FactValues) =>
    ('memo' in fact
      ? isAtLeast(fact.reference_value, minValue) && isOf(account, [fact.from, fact.to])
      : isAtLeast(fact.currency_amount, minValue) &&
        isOf(account, [fact.sender, fact.recipient]) &&
        isOf(pools, [fact.venue.pool])) && isAtLeast(fact.shares, minShares)
  const matching = <Fact extends FactValues & { stage: string }>(facts: readonly Fact[]) =>
    facts.filter((fact) => (stage !== 'sealed' || fact.stage === stage) && hasValues(fact))
  const newest = <Fact extends Pick<Update, 'type' | 'time'>>(ofStocks: readonly (readonly Fact[])[]) =>
    ofStocks
      .flatMap((ofStock) => ofStock.filter(hasType).slice(0, limit))
      .sort((a, b) => b.time.localeCompare(a.time))
      .slice(0, limit)
  const [moved, traded] = [stocks.map(({ movements }) => matching(movements)), stocks.map(({ trades }) => matching(trades))]
  const addresses = new Set<string | null>([null, ...stocks.map(({ address }) => address)])
  const isFiltered = stage === 'sealed' || (minValue ?? minShares ?? account ?? pools) !== undefined
  const keys = isFiltered && new Set([...moved, ...traded].flat().map(({ key }) => key))
  // The tape may have forgotten updates that the view shows.
  const updates = inOrder([...before.updates.toReversed(), ...tape.recent])
    .filter((update): update is Extract<Update, { type: Type }> => {
      const followed = followedKeys(update)
      const isSelected =
        !keys ||
        // The value of a fact may have changed since this update, by an amend.
        ('shares' in update && 'key' in update
          ? keys.has(update.key) && hasValues(update)
          : followed.length === 0 || followed.some((key) => keys.has(key)))
      const isOfPools = update.type !== 'quote' || isOf(pools, [update.venue.pool])
      return isSelected && isOfPools && hasType(update) && addresses.has(update.address)
    })
    .reverse()
    .slice(0, limit)
  const data = {
    stocks,
    movements: kept(before.movements, newest(moved)),
    trades: kept(before.trades, newest(traded)),
    updates: kept(before.updates, updates),
  }
  return stocks === before.stocks && data.updates === before.updates ? before : data
}

type FactValues =
  | Pick<MovementState, 'memo' | 'from' | 'to' | 'reference_value' | 'shares'>
  | Pick<TradeState, 'venue' | 'sender' | 'recipient' | 'currency_amount' | 'shares'>

const kept = <Item>(before: readonly Item[], now: readonly Item[]): readonly Item[] =>
  before.length === now.length && before.every((item, at) => item === now[at]) ? before : now

const isAtLeast = (value: string | null, least: string | number | undefined): boolean =>
  least === undefined || (value !== null && Number(value) >= Number(least))
