import { CopyButton } from './copy-button.tsx'
import { shortHex } from './number-text.ts'
import { pageSetting } from './page-settings.ts'

const explorer = pageSetting('explorer-url')

export function HexLink({ kind, label, hex }: { readonly kind: 'address' | 'tx'; readonly label: string; readonly hex: string }) {
  const link = /^https?:\/\//.test(explorer) ? `${explorer}/${kind}/${encodeURIComponent(hex)}` : null
  const code = <code title={hex}>{shortHex(hex)}</code>
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
      <CopyButton label={`Copy ${label}`} text={() => hex}>
        copy
      </CopyButton>
    </span>
  )
}
