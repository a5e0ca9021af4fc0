import { CopyButton } from './copy-button.tsx'
import { shortHex } from './number-text.ts'
import { pageSetting } from './page-settings.ts'

const explorer = pageSetting('explorer-url')

type HexProps = { readonly kind: 'address' | 'tx'; readonly label: string; readonly hex: string; readonly isWhole?: boolean }

export function HexLink({ kind, label, hex, isWhole = false }: HexProps) {
  const link = /^https?:\/\//.test(explorer) ? `${explorer}/${kind}/${encodeURIComponent(hex)}` : null
  const code = <code title={hex}>{isWhole ? hex : shortHex(hex)}</code>
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
      <CopyButton label={`Copy ${label || 'address'}`} text={() => hex}>
        Copy
      </CopyButton>
    </span>
  )
}
