import { useState } from 'preact/hooks'

const COPIED_MS = 1_500

type CopyProps = { readonly label: string; readonly text: () => string; readonly children: string }

/** Copies a text. A page over plain HTTP has no clipboard, and no button either. */
export function CopyButton({ label, text, children }: CopyProps) {
  const [isCopied, setCopied] = useState(false)
  if (!navigator.clipboard) return null
  const copy = async () => {
    await navigator.clipboard.writeText(text())
    setCopied(true)
    setTimeout(() => setCopied(false), COPIED_MS)
  }
  return (
    <button type="button" class="copy" aria-label={label} onClick={() => void copy().catch(() => {})}>
      {isCopied ? 'Copied' : children}
    </button>
  )
}
