import type { ActiveFaults } from './active-faults.ts'
import type { FaultKind } from './fault-table.ts'
import { alterTx, randomTx, type TransactionMix } from './random-transactions.ts'
import type { SeededRandom } from './seeded-random.ts'
import { hex, type SimulatedTx } from './simulated-block.ts'

type SealInput = {
  readonly random: SeededRandom
  readonly activeFaults: ActiveFaults
  readonly transactionMix: TransactionMix
  readonly shown: readonly SimulatedTx[]
  readonly slot: number
}

/** What becomes of a block's transactions when it is sealed: by itself each one stays as it was shown. */
type SealResult = {
  readonly txs: readonly SimulatedTx[]
  /** Those that wait for a later block, shown there again or not. */
  readonly deferred: readonly { readonly tx: SimulatedTx; readonly shown: boolean }[]
}

/** Seals what was shown, as the weather allows. */
export function sealTransactions({ random, activeFaults, transactionMix, shown, slot }: SealInput): SealResult {
  const isStruck = (kind: FaultKind) => random.chance(activeFaults.amount(kind) ?? 0)
  const deferred: { tx: SimulatedTx; shown: boolean }[] = []
  const txs: SimulatedTx[] = []
  for (const tx of shown) {
    // Each is rolled for whether or not it strikes, so that one fault less leaves the others where they were.
    const [inserted, dropped, moved, movedSilently] = [
      isStruck('insert'),
      isStruck('drop'),
      isStruck('move'),
      isStruck('silentMove'),
    ]
    const [changed, shifted, swapped] = [isStruck('change'), isStruck('shift'), isStruck('swap')]
    const unseen = randomTx(random, hex(64, 0x7b_0000_0000 + slot * 100 + txs.length), transactionMix)
    const changedVersion = alterTx(random, tx)
    if (inserted) txs.push(unseen)
    if (dropped) continue
    if (moved || movedSilently) {
      deferred.push({ tx, shown: moved })
      continue
    }
    const sealed = changed ? changedVersion : shifted ? { ...tx, logs: tx.logs.slice(1) } : tx
    if (swapped && txs.length > 0) txs.splice(-1, 0, sealed)
    else txs.push(sealed)
  }
  return { txs, deferred }
}
