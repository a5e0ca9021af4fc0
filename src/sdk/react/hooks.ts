import { createContext, createElement, type ReactElement, type ReactNode, useContext, useMemo, useSyncExternalStore } from 'react'
import { type ConnectOptions, connect, type StockState, type Update } from '../client/index.ts'
import { SharedTape } from './shared-tape.ts'
import { selectsStock, type TapeSelection, type TapeUnion, unionOf } from './tape-selection.ts'
import { initialFeed, type TapeFeed, type TapeState } from './tape-state.ts'
import { emptyView, type TapeView, viewOf } from './tape-view.ts'

export type StocktapeProviderProps = {
  /** URL of the relay. By default the relay that served the page. */
  readonly url?: string
  readonly options?: ConnectOptions
  readonly children?: ReactNode
}

/** URL and options of a relay as text, so that components with equal values share one tape. */
const RelayContext = createContext('{}')

/** Sets the relay for the components inside it. Opens no connection. */
export function StocktapeProvider({ url, options, children }: StocktapeProviderProps): ReactElement {
  return createElement(RelayContext.Provider, { value: JSON.stringify({ url, options }) }, children)
}

/** The state of one stock; undefined while it is loading, and if the relay does not know it. */
export function useStock(symbol: string): StockState | undefined {
  const union = useMemo(() => unionOf({ symbols: symbol }), [symbol])
  return useTapeState(union, ({ stocks }) => stocks.find((stock) => selectsStock([symbol], stock)), undefined)
}

/** The stocks of a selection with their newest movements and updates, and the state of the feed. */
export function useTape<Type extends Update['type'] = Update['type']>(
  selection: TapeSelection<Type> | string | readonly string[],
): TapeView<Type> {
  const text = JSON.stringify(typeof selection === 'object' && 'symbols' in selection ? selection : { symbols: selection })
  const [union, read] = useMemo(() => {
    const selected: TapeSelection<Type> = JSON.parse(text)
    let view: TapeView<Type> = emptyView
    const read = (state: TapeState) => {
      view = viewOf(state, selected, view)
      return view
    }
    return [unionOf(selected), read] as const
  }, [text])
  return useTapeState<TapeView<Type>>(union, read, emptyView)
}

/** State of the connection to the relay, with its gaps. Opens no connection itself. */
export function useFeed(): TapeFeed {
  return useTapeState(null, ({ feed }) => feed, initialFeed)
}

function useTapeState<Part>(union: TapeUnion | null, read: (state: TapeState) => Part, onServer: Part): Part {
  const relay = useContext(RelayContext)
  const subscribe = useMemo(() => (onChange: () => void) => tapeOf(relay).watch(union, onChange), [relay, union])
  return useSyncExternalStore(
    subscribe,
    () => read(tapeOf(relay).state),
    () => onServer,
  )
}

/** One tape for each relay. No entry is removed, since a tape that no component watches is empty. */
const tapes = new Map<string, SharedTape>()

function tapeOf(relay: string): SharedTape {
  const known = tapes.get(relay)
  if (known) return known
  const { url = '/', options }: StocktapeProviderProps = JSON.parse(relay)
  const { href } = new URL(url, Reflect.get(globalThis, 'location')?.href)
  const tape = new SharedTape(`stocktape 1 ${href} ${JSON.stringify(options ?? {})}`, connect(href, options))
  tapes.set(relay, tape)
  return tape
}
