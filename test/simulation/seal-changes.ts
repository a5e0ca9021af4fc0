import type { Weather } from './active-faults.ts'
import type { Kind } from './fault-table.ts'
import { changedTx, drawTx, type Market } from './random-transactions.ts'
import type { Dice } from './seeded-random.ts'
import { hex, type Tx } from './simulated-block.ts'

type Shown = {
  readonly dice: Dice
  readonly weather: Weather
  readonly market: Market
  readonly shown: readonly Tx[]
  readonly slot: number
}

/** What becomes of a block's transactions when it is sealed: by itself each one stays as it was shown. */
type Fate = {
  readonly txs: readonly Tx[]
  /** Those that wait for a later block, shown there again or not. */
  readonly held: readonly { readonly tx: Tx; readonly shown: boolean }[]
}

/** Seals what was shown, as the weather allows. */
export function sealedFate({ dice, weather, market, shown, slot }: Shown): Fate {
  const strikes = (kind: Kind) => dice.chance(weather.amount(kind) ?? 0)
  const held: { tx: Tx; shown: boolean }[] = []
  const txs: Tx[] = []
  for (const tx of shown) {
    // Each is rolled for whether or not it strikes, so that one fault less leaves the others where they were.
    const [inserted, dropped, moved, movedSilently] = [
      strikes('insert'),
      strikes('drop'),
      strikes('move'),
      strikes('silentMove'),
    ]
    const [changed, shifted, swapped] = [strikes('change'), strikes('shift'), strikes('swap')]
    const unseen = drawTx(dice, hex(64, 0x7b_0000_0000 + slot * 100 + txs.length), market)
    const other = changedTx(dice, tx)
    if (inserted) txs.push(unseen)
    if (dropped) continue
    if (moved || movedSilently) {
      held.push({ tx, shown: moved })
      continue
    }
    const sealed = changed ? other : shifted ? { ...tx, logs: tx.logs.slice(1) } : tx
    if (swapped && txs.length > 0) txs.splice(-1, 0, sealed)
    else txs.push(sealed)
  }
  return { txs, held }
}
