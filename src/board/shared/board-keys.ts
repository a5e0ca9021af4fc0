import type { RefObject } from 'preact'
import { useRef, useState } from 'preact/hooks'
import type { BoardRoute, BoardView } from './board-route.ts'
import { type KeyActions, useKeyboard } from './use-keyboard.ts'

type KeyInputs = {
  readonly view: BoardView
  /** The symbols as they are listed. */
  readonly symbols: () => readonly string[]
  readonly change: (part: Partial<BoardRoute>) => void
  readonly search: RefObject<HTMLInputElement | null>
  readonly others: KeyActions
}

/** The keys of the page. Returns the symbol that they have reached. */
export function useBoardKeys({ view, symbols, change, search, others }: KeyInputs): string | null {
  // Keys come faster than the page draws, so that the newest selection is kept beside the drawn one.
  const reached = useRef<string | null>(null)
  const [selected, setSelected] = useState<string | null>(null)
  const step = (distance: number) => {
    const all = symbols()
    const next = all[Math.max(0, Math.min(all.length - 1, all.indexOf(reached.current ?? '') + distance))] ?? null
    reached.current = next
    setSelected(next)
    document.querySelector(`[data-symbol="${CSS.escape(next ?? '')}"]`)?.scrollIntoView({ block: 'nearest' })
  }
  const pin = (symbol: string) => {
    const pins = view.pins.includes(symbol) ? view.pins.filter((other) => other !== symbol) : [...view.pins, symbol]
    change({ view: { ...view, pins } })
  }
  useKeyboard({
    '/': () => search.current?.focus(),
    j: () => step(1),
    k: () => step(-1),
    Enter: () => reached.current !== null && change({ page: { name: 'symbol', symbol: reached.current } }),
    Escape: () => change({ page: { name: 'symbols' } }),
    f: () => reached.current !== null && pin(reached.current),
    ...others,
  })
  return selected
}
