import { shownError } from '../client/errors.ts'
import type { RelayClient, StreamItem, Update, Updates } from '../client/index.ts'
import { covers, type TapeUnion } from './tape-selection.ts'
import type { TabNews, TapeFeed, TapeMemory } from './tape-state.ts'

/** Components that mount within this time share one new stream. */
const GROWTH_DELAY_MS = 20
/** Time for which the stream keeps symbols that no component selects, since a component may select them again soon. */
const SHRINK_DELAY_MS = 30_000
/** Limit on the stored updates that are read for one selection. The newest ones are read. */
const PAST_BOUND = 1_000

export type SharedRelay = Pick<RelayClient, 'updates' | 'history'>

export type UnionStream = { want(union: TapeUnion): void; close(): void }

/**
 * One stream of the wanted union. When the union changes, a new stream continues at the position of the old one. `post` tells the
 * other tabs what they have to know.
 */
export function openUnionStream(relay: SharedRelay, tape: TapeMemory, post: (news: TabNews) => void): UnionStream {
  let wanted = tape.state.union
  let open: Updates<StreamItem> | null = null
  let timer: ReturnType<typeof setTimeout> | undefined

  const close = (): void => {
    clearTimeout(timer)
    void open?.close()
    open = null
  }

  const restart = (): void => {
    const { union, feed, isComplete } = tape.state
    const isKnown = covers(union, wanted)
    if (open && isKnown && covers({ ...wanted, pasts: union.pasts }, union)) return
    close()
    if (wanted.symbols.length === 0) return
    const isCovered = isKnown && isComplete
    tape.startUnion(wanted, isCovered)
    post({ state: tape.state })
    const items: Updates<StreamItem> = relay.updates(wanted.symbols, {
      types: wanted.types,
      since: feed.position ?? undefined,
      // Snapshots are needed if a symbol is new, or if not all snapshots were received yet.
      snapshot: isCovered || 'always',
      gaps: 'fill',
      onState: (state) => {
        if (items !== open) return
        tape.takeFeed(state)
        post({ feed: state })
        // A stream that is live has a position once its snapshots are taken.
        if (state.phase !== 'live' || state.position === null || tape.state.isComplete) return
        tape.change({ isComplete: true })
        post({ state: tape.state })
      },
    })
    open = items
    void read(items)
  }

  const read = async (items: Updates<StreamItem>): Promise<void> => {
    let past: readonly Update[] | null = null
    try {
      for await (const item of items) {
        // The snapshots come first. What the history has up to them is read before they are taken.
        past = item.type === 'snapshot' ? (past ?? (await readPasts(relay, tape, item.as_of))) : []
        if (items !== open) return
        tape.take(item, past)
        post({ item })
      }
    } catch {
      // The state of the stream contains the reason. The next call of `want` opens a new stream.
      if (items === open) open = null
    }
  }

  return {
    close,
    want: (union) => {
      wanted = union
      clearTimeout(timer)
      timer = setTimeout(restart, open && covers(tape.state.union, union) ? SHRINK_DELAY_MS : GROWTH_DELAY_MS)
    },
  }
}

/** Reads what the selections want from the history. Returns all recent updates, in the order of the tape. */
async function readPasts(relay: SharedRelay, tape: TapeMemory, through: string): Promise<readonly Update[]> {
  const updates: Update[] = []
  const failures: Record<string, TapeFeed['error']> = {}
  const readPast = async (past: string): Promise<void> => {
    const { symbols, ...options } = JSON.parse(past)
    try {
      const stored = relay.history(symbols, { ...options, through, order: 'desc', limit: PAST_BOUND })
      for await (const update of stored) updates.push(update)
    } catch (failure) {
      failures[past] = shownError(failure as Error)
    }
  }
  await Promise.all(tape.state.union.pasts.map(readPast))
  return tape.takePast(updates, failures)
}
