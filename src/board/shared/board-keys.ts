import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { type BoardView, toggled } from './board-route.ts'
import { changeView, openPage } from './page-route.tsx'

type KeyActions = Readonly<Record<string, () => void>>

type KeyInputs = {
  readonly view: BoardView
  readonly symbols: () => readonly string[]
  readonly search: RefObject<HTMLInputElement | null>
  readonly others: KeyActions
}

/** Binds the keys of the page. Returns the symbol that the reader has selected by key. */
export function useBoardKeys({ view, symbols, search, others }: KeyInputs): string | null {
  // Keeps the newest selection, because several keys may be pressed between two drawings.
  const reached = useRef<string | null>(null)
  const [selected, setSelected] = useState<string | null>(null)
  const step = (distance: number) => {
    const all = symbols()
    const next = all[Math.max(0, Math.min(all.length - 1, all.indexOf(reached.current ?? '') + distance))] ?? null
    reached.current = next
    setSelected(next)
    document.querySelector(`[data-symbol="${CSS.escape(next ?? '')}"]`)?.scrollIntoView({ block: 'nearest' })
  }
  useKeyboard({
    '/': () => search.current?.focus(),
    j: () => step(1),
    k: () => step(-1),
    Enter: () => reached.current !== null && openPage({ name: 'symbol', symbol: reached.current }),
    Escape: () => openPage({ name: 'symbols' }),
    f: () => reached.current !== null && changeView({ pins: toggled(view.pins, reached.current) }),
    ...others,
  })
  return selected
}

/** Acts on single keys, unless the reader types into a field or holds a modifier. */
function useKeyboard(actions: KeyActions): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const { target, key } = event
      const isTyping = target instanceof HTMLElement && target.matches('input, textarea, select')
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return
      if (isTyping && key === 'Escape') return target.blur()
      // A focused link or button handles Enter itself.
      if (isTyping || (key === 'Enter' && target instanceof HTMLElement && target.matches('a, button, summary'))) return
      const action = actions[key]
      if (!action) return
      event.preventDefault()
      action()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  })
}
