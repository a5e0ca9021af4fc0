import { useEffect, useState } from 'preact/hooks'
import type { StockState, Update } from '../../sdk/client/index.ts'
import { navStateOf } from '../shared/state-words.ts'
import type { BoardFeed } from './board-feed.ts'

/** Limit on the NAVs that are read for one symbol; EVENTS_BOUND is the limit on other messages. */
const READINGS_BOUND = 1_000
const EVENTS_BOUND = 200

type SymbolHistory = { readonly readings: readonly Update[]; readonly events: readonly Update[] }

/** Returns the messages of a symbol on the tape, oldest first. Reads them again when the state of the symbol changes. */
export function useHistory({ address, multiplier, scheduled, paused, nav, session }: StockState, feed: BoardFeed): SymbolHistory {
  const [history, setHistory] = useState<SymbolHistory>({ readings: [], events: [] })
  const state = JSON.stringify([multiplier, scheduled, paused, navStateOf(nav), session?.state])
  useEffect(() => {
    const abort = new AbortController()
    const read = async (types: readonly Update['type'][], limit: number) => {
      const newestFirst = feed.client.history(address, { types, limit, order: 'desc', signal: abort.signal })
      return (await Array.fromAsync(newestFirst)).reverse()
    }
    const load = async () => {
      const events = await read(['multiplier', 'pause', 'action', 'session'], EVENTS_BOUND)
      setHistory((now) => ({ ...now, events }))
      const readings = await read(['nav'], READINGS_BOUND)
      setHistory((now) => ({ ...now, readings }))
    }
    load().catch(() => {})
    return () => abort.abort()
  }, [address, feed, state])
  return history
}
