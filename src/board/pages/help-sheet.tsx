import { PageLink } from '../shared/navigation.tsx'
import { Sheet } from '../shared/sheet.tsx'

const signs = [
  ['preconfirmed', 'Pre-confirmed', 'The node has seen it, and no block contains it yet. It can still disappear.'],
  ['sealed', 'Sealed', 'A block with a hash contains it.'],
  ['safe', 'Safe, then final', 'The sign disappears: the more certain, the quieter.'],
  ['retracted', 'Retracted', 'It did not happen. The line stays, struck through.'],
] as const

const words = [
  ['NAV', 'The reference value of one token in dollars, with its age. Not a price to trade at.'],
  ['Held', 'The NAV is older than its limit, or frozen for a corporate action. This is normal while the market is closed.'],
  ['Price', 'Price in the deepest pool on the chain. Thin: too little depth for a price.'],
  ['Change', 'Since the last close of the market, or since the end of the first hour that the relay has of the day.'],
  [
    'Premium',
    'Price against NAV in basis points, with the currency of the pool taken as 1 USD. It is a drift while the NAV is held: the market may have moved. Coloured from 5 bps beyond the fee of the pool, while the market is not closed.',
  ],
  ['Shares per token', 'A split or a dividend changes it. The NAV is of one token, so it already includes it.'],
  ['Volume', 'Dollars of the trades of the last 24 hours, as the relay adds them up: the same for every reader.'],
  ['Late', 'First published when its block was already sealed: the relay did not see it before.'],
  ['≈', 'Rounded, or valued at the NAV. A trade has the currency that was paid for it.'],
  ['Dashes', 'Under a NAV that is frozen for a corporate action.'],
  ['Off NAV', 'A trade 500 basis points or more away from the NAV.'],
  ['–', 'Not known. It is never shown as 0.'],
] as const

const keys = [
  ['/', 'search'],
  ['j k', 'next, previous symbol, or line of the tape'],
  ['Enter', 'open it'],
  ['Esc', 'back'],
  ['p', 'pause the tape'],
  ['f', 'pin the symbol'],
  ['t', 'light or dark'],
  ['?', 'this help'],
] as const

export function HelpSheet({ onClose }: { readonly onClose: () => void }) {
  return (
    <Sheet title="What you see" onClose={onClose}>
      <p>
        stocktape publishes what happens to tokenized stocks before it is in a block, and says for each number how far it can be
        trusted. Every pre-confirmation ends sealed or retracted.
      </p>
      <ul class="signs">
        {signs.map(([stage, name, meaning]) => (
          <li key={stage} data-stage={stage}>
            <span class="line-dot" aria-hidden="true" />
            <b>{name}</b> <span>{meaning}</span>
          </li>
        ))}
      </ul>
      <dl class="words">
        {words.map(([word, meaning]) => (
          <div key={word}>
            <dt>{word}</dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <ul class="keys">
        {keys.map(([key, action]) => (
          <li key={key}>
            <kbd>{key}</kbd> {action}
          </li>
        ))}
      </ul>
      <p>
        <PageLink page={{ name: 'play' }}>Connect a bot</PageLink> · <a href="/docs">Documentation</a> ·{' '}
        <a href="/docs/contract">The contract</a>
      </p>
    </Sheet>
  )
}
