import { createHash } from 'node:crypto'
import type { Draft, DraftOf } from '../../src/protocol/updates.ts'
import { listedTokens } from './simulated-tokens.ts'
import type { ModifyInputs } from './simulation.ts'
import { alterAppends } from './tape-wrappers.ts'

/** Planted bugs about trades. The checker has to find every one. */

type Trade = DraftOf<'trade'>
const isTrade = (draft: Draft): draft is Trade => draft.type === 'trade'

const alterWrites =
  (alter: (drafts: readonly Draft[]) => readonly Draft[]): ModifyInputs =>
  (inputs) => ({ ...inputs, writer: alterAppends(inputs, alter) })
const alterTrades = (alter: (trade: Trade) => Trade): ModifyInputs =>
  alterWrites((drafts) => drafts.map((draft) => (isTrade(draft) ? alter(draft) : draft)))

const otherToken = ({ address }: Trade) => listedTokens.find((token) => token.address !== address)?.address ?? address

function withoutTrades(seal: DraftOf<'seal'>): readonly Draft[] {
  const isKept = (nth: number) => seal.types[nth] !== 'trade'
  const keys = seal.keys.filter((_, nth) => isKept(nth))
  const digest = createHash('sha256').update(keys.join('\n')).digest('hex').slice(0, 32)
  const late_keys = seal.late_keys.filter((key) => keys.includes(key))
  const types = seal.types.filter((_, nth) => isKept(nth))
  return keys.length > 0 ? [{ ...seal, keys, types, late_keys, count: keys.length, digest }] : []
}

/** Units of the last of some places, rounded to fewer: a half upwards. */
const rounded = (units: bigint, places: number): bigint => (units + 5n * 10n ** BigInt(places - 1)) / 10n ** BigInt(places)

/** The price from its two amounts, rounded to nine places and then to eight. */
function roundedTwice({ price, amount, currency_amount }: Trade): string | null {
  if (price === null || amount === null) return price
  const [paid, sold] = [currency_amount, amount].map((text) => unitsOf(text, 36)) as [bigint, bigint]
  const digits = rounded(rounded((paid * 10n ** 12n) / sold, 3), 1)
    .toString()
    .padStart(9, '0')
  return `${digits.slice(0, -8)}.${digits.slice(-8)}`.replace(/\.?0+$/, '') || price
}

function unitsOf(text: string, places: number): bigint {
  const [whole = '', fraction = ''] = text.split('.')
  return BigInt(whole + fraction.padEnd(places, '0'))
}

export const plantedTradeBugs: Readonly<Record<string, ModifyInputs>> = {
  'a trade has the wrong sign': alterTrades((trade) =>
    trade.side === null ? trade : { ...trade, side: trade.side === 'buy' ? 'sell' : 'buy' },
  ),
  'a trade is of the wrong token': alterTrades((trade) => ({ ...trade, address: otherToken(trade) })),
  'a seal lacks its trades': alterWrites((drafts) =>
    drafts.flatMap((draft) => (draft.type === 'seal' ? withoutTrades(draft) : [draft])),
  ),
  'a trade without a transfer is lost': alterWrites((drafts) => {
    const moved = new Set(drafts.flatMap((draft) => ('memo' in draft ? [`${draft.tx.hash} ${draft.address}`] : [])))
    return drafts.filter((draft) => !isTrade(draft) || moved.has(`${draft.tx.hash} ${draft.address}`))
  }),
  'a pool that is dropped is not announced': alterWrites((drafts) =>
    drafts.filter((draft) => draft.type !== 'venue' || draft.change !== 'dropped'),
  ),
  'a price is rounded twice': alterTrades((trade) => ({ ...trade, price: roundedTwice(trade) })),
}
