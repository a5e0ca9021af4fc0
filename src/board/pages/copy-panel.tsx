import { useState } from 'preact/hooks'
import type { BoardFilter } from '../shared/board-route.ts'
import { CodeBlock } from '../shared/code-block.tsx'
import { type ProgramKind, programFor, programKinds } from './copy-as.ts'

const COPIED_MS = 1_500

/** The same selection as a command or a program. */
export function CopyPanel({ filter }: { readonly filter: BoardFilter }) {
  const [kind, setKind] = useState<ProgramKind>('curl')
  const [isCopied, setCopied] = useState(false)
  const text = programFor(kind, filter, new URL('.', location.href))
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setCopied(true)
      setTimeout(() => setCopied(false), COPIED_MS)
    } catch {
      // Pages over plain HTTP have no clipboard: the text can be marked by hand.
      getSelection()?.selectAllChildren(document.querySelector('.copy-panel pre') ?? document.body)
    }
  }
  return (
    <section class="copy-panel" aria-label="Copy as">
      <fieldset class="tabs" aria-label="Copy as">
        {programKinds.map((name) => (
          <button type="button" key={name} aria-pressed={name === kind} onClick={() => setKind(name)}>
            {name}
          </button>
        ))}
        <button type="button" class="primary" onClick={copy}>
          {isCopied ? 'Copied' : 'Copy'}
        </button>
      </fieldset>
      <CodeBlock text={text} />
    </section>
  )
}
