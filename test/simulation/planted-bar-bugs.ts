import type { Hex } from '../../src/lib/hex.ts'
import type { Draft, DraftOf } from '../../src/protocol/updates.ts'
import { type BarRow, barRowOf, minuteBarOf } from '../../src/relay/tape/bars/bar-row.ts'
import type { TapeBatch, TapeWriter } from '../../src/relay/tape/tape.ts'
import type { NotedTrade } from '../../src/relay/tokens/minute-bars.ts'
import { barFieldsOfMinute, minuteOf, poolMinutesOf } from '../../src/relay/tokens/minute-bars.ts'
import type { ModifyInputs } from './simulation.ts'
import { alterAppends, wrap } from './tape-wrappers.ts'

/** Planted bugs about bars. The checker has to find every one. */

type Bar = DraftOf<'bar'>
const nameOf = ({ address, start }: Pick<Bar, 'address' | 'start'>): string => `${address} ${start}`

/** Changes bars, each with the one that was written before of the same minute. Null writes none. */
const alterBars =
  (alter: (bar: Bar, before: Bar | undefined) => Bar | null): ModifyInputs =>
  (inputs) => {
    const last = new Map<string, Bar>()
    const alterDraft = (draft: Draft): readonly Draft[] => {
      if (draft.type !== 'bar') return [draft]
      const altered = alter(draft, last.get(nameOf(draft)))
      if (altered) last.set(nameOf(draft), altered)
      return altered ? [altered] : []
    }
    return { ...inputs, writer: alterAppends(inputs, (drafts) => drafts.flatMap(alterDraft)) }
  }

const alterRows =
  (alter: (rows: readonly BarRow[]) => readonly BarRow[]): ModifyInputs =>
  (inputs) => {
    const append: TapeWriter['append'] = (batch: TapeBatch) => inputs.writer.append({ ...batch, bars: alter(batch.bars ?? []) })
    return { ...inputs, writer: wrap(inputs.writer, { append }) }
  }

const isRevised = (row: BarRow): boolean => minuteBarOf(row).edition > 1

/** The last block of a minute, if the chain is punctual. */
const isLastOfMinute = (second: number, blockMs: number): boolean =>
  minuteOf(second) !== minuteOf(second + Math.ceil(blockMs / 1_000))

type KnownTrade = NotedTrade & { readonly address: Hex; readonly second: number | null }

/** Publishes a bar with the seal of the last block of its minute, and none when the minute is over. */
const closeEarly: ModifyInputs = (inputs, { chain, settings }) => {
  const trades = new Map<string, KnownTrade>()
  const early = new Set<string>()
  const put = ({ address, key, block, tx, venue, side, amount, ...rest }: Omit<DraftOf<'trade'>, 'type' | 'symbol' | 'time'>) => {
    const { shares, currency_amount: currencyAmount, price, basis_bps: basisBps, basis, nav, stage } = rest
    const second = block.timestamp === null ? null : Date.parse(block.timestamp) / 1_000
    if (amount === null) return
    const numbers = { amount, shares, currencyAmount, price, basisBps, basis, nav }
    const place = { block: block.number, logIndex: tx.log_index, pool: venue.pool, key, address, second, side }
    trades.set(key, { ...place, ...numbers, isMain: true, isSealed: stage === 'sealed' })
  }
  const barOf = ({ address, symbol, time, block }: DraftOf<'seal'>): readonly Draft[] => {
    const second = Date.parse(block.timestamp ?? '') / 1_000
    if (!isLastOfMinute(second, chain.blockMs)) return []
    const start = minuteOf(second)
    const isWithin = (trade: KnownTrade) =>
      trade.isSealed && trade.address === address && trade.second !== null && minuteOf(trade.second) === start
    const pools = poolMinutesOf([...trades.values()].filter(isWithin))
    const row = { address, start, edition: 1, revision: 1, partial: null, closedBy: block.number, pools }
    const fields = barFieldsOfMinute(row, settings.staleMs / 1_000)
    const name = nameOf({ address, start: fields.start })
    if (pools.length === 0 || early.has(name)) return []
    early.add(name)
    return [{ type: 'bar', symbol, address, time, ...fields }]
  }
  const alterDraft = (draft: Draft): readonly Draft[] => {
    if (draft.type === 'trade') put(draft)
    if (draft.type === 'retract') trades.delete(draft.key)
    if (draft.type === 'bar' && draft.revision === 1 && early.has(nameOf(draft))) return []
    if (draft.type !== 'seal') return [draft]
    for (const key of draft.keys) {
      const trade = trades.get(key)
      const second = Date.parse(draft.block.timestamp ?? '') / 1_000
      if (trade) trades.set(key, { ...trade, isSealed: true, second })
    }
    return [draft, ...barOf(draft)]
  }
  return { ...inputs, writer: alterAppends(inputs, (drafts) => drafts.flatMap(alterDraft)) }
}

export const plantedBarBugs: Readonly<Record<string, ModifyInputs>> = {
  'a retracted trade stays in its bar': alterBars((bar, before) => (before && before.trades > bar.trades ? null : bar)),
  'a late trade gives its bar no new revision': alterBars((bar, before) => (before ? { ...bar, revision: before.revision } : bar)),
  'a bar is published one block early': closeEarly,
  'a bar does not say that a hole is in it': alterBars((bar) => ({ ...bar, partial: null })),
  'a changed bar is not stored': alterRows((rows) => rows.filter((row) => !isRevised(row))),
  'a stored bar lacks a pool': alterRows((rows) =>
    rows.map(minuteBarOf).map((bar) => barRowOf(bar.pools.length > 1 ? { ...bar, pools: bar.pools.slice(1) } : bar)),
  ),
  'the last trade of a minute is not in its bar': alterBars((bar) => (bar.trades > 1 ? { ...bar, trades: bar.trades - 1 } : bar)),
  'a bar opens with the close of the one before': (inputs, simulation) => {
    const closes = new Map<string, string | null>()
    return alterBars((bar) => {
      const open = closes.get(bar.address) ?? bar.open
      closes.set(bar.address, bar.close)
      return { ...bar, open }
    })(inputs, simulation)
  },
}
