// Tells frameworks with server components to run this module in the browser.
'use client'

import { useContext, useMemo, useSyncExternalStore } from 'react'
import type { Bar, BarsOptions, RelayClient } from '../client/index.ts'
import { clientOf, type ProvidedRelay, RelayContext } from './hooks.ts'
import { SharedBars } from './shared-bars.ts'
import type { TapeResult } from './tape-view.ts'

export type BarsSelection = Pick<BarsOptions, 'interval' | 'pools' | 'since'> & {
  /** Limit on the number of bars; default 500. The newest ones are kept. */
  readonly limit?: number
  /** By default true. `false` selects nothing, and opens no connection. */
  readonly enabled?: boolean
}

/** `data` has the bars in the order of their start. The last one may be open. It is the same object until a bar changes. */
export type BarsView = TapeResult<readonly Bar[]>

const DEFAULT_LIMIT = 500

/** The bars of one token, up to the one that is open. */
export function useBars(symbol: string, { enabled = true, limit = DEFAULT_LIMIT, ...options }: BarsSelection = {}): BarsView {
  const relay = useContext(RelayContext)
  // A Date that is made at each rendering is another one each minute, and not each time.
  const text = JSON.stringify({ symbol, limit, ...options }).replace(/\d\d\.\d{3}Z/, '00Z')
  const subscribe = useMemo(
    () => (onChange: () => void) => (enabled ? watch(relay, text, onChange) : () => {}),
    [relay, text, enabled],
  )
  const empty = enabled ? loading : disabled
  return useSyncExternalStore(
    subscribe,
    () => (enabled && charts.get(relay)?.shown.get(text)?.view) || empty,
    () => empty,
  )
}

const loading: BarsView = { status: 'loading', error: null, data: [] }
const disabled: BarsView = { ...loading, status: 'disabled' }

/** The bars that components show, by their selection. Components with equal selections share a stream. */
type Charts = { readonly client: RelayClient; readonly shown: Map<string, SharedBars> }

const charts = new WeakMap<ProvidedRelay, Charts>()

function watch(relay: ProvidedRelay, text: string, onChange: () => void): () => void {
  const { client, shown } = charts.get(relay) ?? { client: clientOf(relay), shown: new Map<string, SharedBars>() }
  charts.set(relay, { client, shown })
  const bars = shown.get(text) ?? new SharedBars(client, JSON.parse(text), loading, () => shown.delete(text))
  shown.set(text, bars)
  return bars.watch(onChange)
}
