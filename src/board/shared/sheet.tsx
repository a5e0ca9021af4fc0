import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

type SheetProps = {
  readonly title: string
  readonly note?: ComponentChildren
  readonly onClose: () => void
  readonly children: ComponentChildren
}

/** A panel over the page. The browser keeps the focus in it and closes it with Esc. */
export function Sheet({ title, note, onClose, children }: SheetProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a click beside the panel closes it, and the dialog handles Esc itself
    <dialog
      class="sheet"
      ref={dialog}
      aria-label={title}
      onClose={onClose}
      onClick={({ target, currentTarget }) => target === currentTarget && onClose()}
    >
      <div class="sheet-body">
        <header class="sheet-head">
          <h2>
            {title} {note}
          </h2>
          <button type="button" aria-label="Close" onClick={onClose}>
            ✕
          </button>
        </header>
        {children}
      </div>
    </dialog>
  )
}
