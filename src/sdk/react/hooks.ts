import { createContext, createElement, type ReactElement, type ReactNode, useContext, useMemo, useSyncExternalStore } from 'react'
import { type ConnectOptions, connect, type RelayClient, type SnapshotCut, type StockState, type Update } from '../client/index.ts'
import { SharedTape } from './shared-tape.ts'
import { TabGroup } from './tab-group.ts'
import { type TapeSelection, type TapeUnion, unionOf } from './tape-selection.ts'
import { emptyState, type TapeFeed, type TapeState } from './tape-state.ts'
import { emptyView, type TapeResult, type TapeView, viewOf } from './tape-view.ts'

export type StocktapeProviderProps = {
  /** The client of the relay. Without it, `url` and `options` are those of `connect`. */
  readonly client?: RelayClient
  /** URL of the relay. By default the relay that served the page. */
  readonly url?: string
  /** The functions in it are those of the first provider with the same URL and the same other options. */
  readonly options?: ConnectOptions
  /** The answer of `client.snapshots(…)`: what a server renders, and what the page shows before it is connected. */
  readonly initialSnapshots?: SnapshotCut
  readonly children?: ReactNode
}

export type ProvidedRelay = Omit<StocktapeProviderProps, 'children'>

export type StockView = TapeResult<StockState | undefined>

export const RelayContext = createContext<ProvidedRelay>({})

/** Sets the relay for the components inside it. Opens no connection. */
export function StocktapeProvider({ children, ...given }: StocktapeProviderProps): ReactElement {
  // A provider that renders again with equal values, as with an object literal, is the same relay.
  const value = useMemo(() => given, [given.client, nameOf(given), given.initialSnapshots])
  return createElement(RelayContext.Provider, { value }, children)
}

/** The state of one stock: `data` is defined once `status` is `ready`. */
export function useStock(symbol: string, options: Pick<TapeSelection, 'enabled'> = {}): StockView {
  const { status, error, data } = useTape({ ...options, symbols: symbol, limit: 0 })
  const [stock] = data.stocks
  return { status: status === 'ready' && !stock ? 'unknown' : status, error, data: stock }
}

/** The stocks of a selection with their newest movements and updates. */
export function useTape<Type extends Update['type'] = Update['type']>(
  selection: TapeSelection<Type> | string | readonly string[],
): TapeView<Type> {
  // A Date that is made at each rendering is another one each minute, and not each time.
  const text = JSON.stringify((selection as TapeSelection).symbols ? selection : { symbols: selection }).replace(
    /\d\d\.\d{3}Z/,
    '00Z',
  )
  const [union, read] = useMemo(() => {
    const selected: TapeSelection<Type> = JSON.parse(text)
    const union = unionOf(selected)
    let view: TapeView<Type> = emptyView
    const read = (state: TapeState) => {
      view = viewOf(state, selected, union, view)
      return view
    }
    return [union, read] as const
  }, [text])
  return useTapeState(union, read)
}

/** State of the connection to the relay, with its position and its gaps. Opens no connection itself. */
export function useFeed(): TapeFeed {
  return useTapeState(emptyState.union, readFeed)
}

const readFeed = ({ feed }: TapeState): TapeFeed => feed

function useTapeState<Part>(union: TapeUnion, read: (state: TapeState) => Part): Part {
  const relay = useContext(RelayContext)
  const subscribe = useMemo(() => (onChange: () => void) => tapeOf(relay).watch(union, onChange), [relay, union])
  const rendered = useMemo(() => newTape(relay), [relay])
  return useSyncExternalStore(
    subscribe,
    () => read(tapeOf(relay).state),
    () => read(rendered.state),
  )
}

/** One tape for each relay. No entry is removed, since a tape that no component watches is empty. */
const tapes = new Map<string | RelayClient, SharedTape>()

function tapeOf(relay: ProvidedRelay): SharedTape {
  const name = relay.client ?? nameOf(relay)
  const tape = tapes.get(name) ?? newTape(relay)
  tapes.set(name, tape)
  return tape
}

function newTape(relay: ProvidedRelay): SharedTape {
  const client = clientOf(relay)
  return new SharedTape(
    (tape) => new TabGroup(`stocktape 2 ${relay.client?.url ?? urlOf(relay)} ${nameOf(relay)}`, tape, client),
    relay.initialSnapshots?.snapshots,
  )
}

export const clientOf = (relay: ProvidedRelay): RelayClient => relay.client ?? connect(urlOf(relay), relay.options)

/** A server has no location, and sends nothing. */
const urlOf = ({ url = '/' }: ProvidedRelay): URL =>
  new URL(url, (globalThis as { readonly location?: URL }).location?.href ?? 'http://page')

/** URL and options as text, so that components with equal values share one tape. */
const nameOf = ({ url, options }: ProvidedRelay): string => JSON.stringify({ url, options })
