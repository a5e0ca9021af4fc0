import { createHash } from 'node:crypto'
import type { Draft, DraftOf, Update } from '../../src/protocol/updates.ts'
import type { TapeWriter } from '../../src/relay/tape/tape.ts'
import { listedTokens } from './simulated-tokens.ts'
import type { ModifyInputs } from './simulation.ts'
import { alterAppends, wrap } from './tape-wrappers.ts'

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

/** Loses the second trade of a transaction that sells in a pool of a manager as much of a token as it bought in another one. */
const loseNettedRoutes: ModifyInputs = (inputs) => {
  const first = new Map<string, Trade>()
  const isSecond = (draft: Draft): boolean => {
    if (!isTrade(draft) || draft.venue.kind !== 'uniswap_v4') return false
    const route = `${draft.tx.hash} ${draft.address} ${draft.raw}`
    const other = first.get(route)
    if (!other) first.set(route, draft)
    return other !== undefined && other.side !== draft.side
  }
  return { ...inputs, writer: alterAppends(inputs, (drafts) => drafts.filter((draft) => !isSecond(draft))) }
}

/** Retracts the open trades of pools whose manager is refused, where a block is settled without them. */
const retractRefused: ModifyInputs = (inputs) => {
  const open = new Map<string, Extract<Update, { type: 'trade' }>>()
  const refused = new Set<string>()
  const append: TapeWriter['append'] = async (batch) => {
    const entries = await inputs.writer.append(batch)
    for (const { update } of entries) {
      if (update.type === 'trade' && update.stage === 'preconfirmed') open.set(update.key, update)
      if (update.type === 'seal') for (const key of update.keys) open.delete(key)
      if (update.type === 'retract') open.delete(update.key)
    }
    return entries
  }
  const retractsBefore = (draft: Draft): readonly Draft[] => {
    if (draft.type === 'venue') refused[draft.reason === 'refused' ? 'add' : 'delete'](draft.venue.pool)
    if (!('block' in draft) || !draft.block?.hash) return []
    const { block } = draft
    const isGone = (trade: DraftOf<'trade'>) => refused.has(trade.venue.pool) && trade.block.number === block.number
    const gone = [...open.values()].filter(isGone)
    for (const { key } of gone) open.delete(key)
    return gone.map(({ symbol, address, time, key, type: fact_type, id: fact_id }) => {
      const retract = { symbol, address, time, key, fact_type, fact_id, block }
      return { type: 'retract', ...retract, reason: 'not_sealed', replaced_by: null, restored: null }
    })
  }
  const alter = (drafts: readonly Draft[]) => drafts.flatMap((draft) => [...retractsBefore(draft), draft])
  return { ...inputs, writer: alterAppends({ ...inputs, writer: wrap(inputs.writer, { append }) }, alter) }
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
  'a route that nets out is lost': loseNettedRoutes,
  'an open trade of a refused manager is retracted': retractRefused,
  'a pool that is dropped is not announced': alterWrites((drafts) =>
    drafts.filter((draft) => draft.type !== 'venue' || draft.change !== 'dropped'),
  ),
  'a price is rounded twice': alterTrades((trade) => ({ ...trade, price: roundedTwice(trade) })),
}
