import { useEffect } from 'preact/hooks'

/** What each key does, by its name. */
export type KeyActions = Readonly<Record<string, () => void>>

/** Single keys, unless the reader types into a field or holds a modifier. */
export function useKeyboard(actions: KeyActions): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const { target, key } = event
      const isTyping = target instanceof HTMLElement && target.matches('input, textarea, select')
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return
      if (isTyping && key === 'Escape') return target.blur()
      // A focused link or button takes Enter itself.
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
