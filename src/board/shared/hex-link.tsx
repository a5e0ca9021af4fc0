import { shortHex } from './number-text.ts'
import { pageSetting } from './page-settings.ts'

const explorer = pageSetting('explorer-url')

export function HexLink({ kind, label, hex }: { readonly kind: 'address' | 'tx'; readonly label: string; readonly hex: string }) {
  const link = /^https?:\/\//.test(explorer) ? `${explorer}/${kind}/${encodeURIComponent(hex)}` : null
  const code = <code title={hex}>{shortHex(hex)}</code>
  const copy = () => navigator.clipboard?.writeText(hex).catch(() => {})
  return (
    <span class="hex">
      {label}{' '}
      {link === null ? (
        code
      ) : (
        <a href={link} target="_blank" rel="noreferrer noopener">
          {code}
        </a>
      )}
      <button type="button" class="copy-hex" aria-label={`Copy ${label}`} onClick={copy}>
        copy
      </button>
    </span>
  )
}
