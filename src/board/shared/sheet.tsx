import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

type SheetProps = {
  readonly title: string
  readonly note?: ComponentChildren
  /** Buttons before the one that closes it, which has the focus first. */
  readonly tools?: ComponentChildren
  readonly onClose: () => void
  /** Acts on a key, which the page does not do under a panel. */
  readonly onKey?: (key: string) => void
  readonly children: ComponentChildren
}

/** A panel over the page. The browser keeps the focus in it and closes it with Esc. */
export function Sheet({ title, note, tools, onClose, onKey, children }: SheetProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  return (
    <dialog
      class="sheet"
      ref={dialog}
      aria-label={title}
      onClose={onClose}
      onKeyDown={({ key, ctrlKey, metaKey, altKey }) => !(ctrlKey || metaKey || altKey) && onKey?.(key)}
      onClick={({ target, currentTarget }) => target === currentTarget && onClose()}
    >
      <div class="sheet-body">
        <header class="sheet-head">
          <h2>
            {title} {note}
          </h2>
          <span class="sheet-tools">
            <button type="button" aria-label="Close" onClick={onClose}>
              ✕
            </button>
            {tools}
          </span>
        </header>
        {children}
      </div>
    </dialog>
  )
}
