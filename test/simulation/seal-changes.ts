import type { ActiveFaults } from './active-faults.ts'
import type { FaultKind } from './fault-table.ts'
import { alterTx, randomTx, type TransactionMix } from './random-transactions.ts'
import type { SeededRandom } from './seeded-random.ts'
import { hex, type SimulatedTx, simulatedTx } from './simulated-transactions.ts'

type SealInput = {
  readonly random: SeededRandom
  readonly activeFaults: ActiveFaults
  readonly transactionMix: TransactionMix
  readonly shown: readonly SimulatedTx[]
  readonly slot: number
}

/** What happens to a block's transactions when it is sealed. Without faults each stays as it was shown. */
type SealResult = {
  readonly txs: readonly SimulatedTx[]
  /** Transactions that wait for a later block, shown there again or not. */
  readonly deferred: readonly { readonly tx: SimulatedTx; readonly shown: boolean }[]
}

/** Seals what was shown, with the changes that the active faults make. */
export function sealTransactions({ random, activeFaults, transactionMix, shown, slot }: SealInput): SealResult {
  const isStruck = (kind: FaultKind) => random.chance(activeFaults.amount(kind) ?? 0)
  const deferred: { tx: SimulatedTx; shown: boolean }[] = []
  const txs: SimulatedTx[] = []
  for (const tx of shown) {
    // Every fault draws its number even if it is inactive, so that removing one fault leaves the others as they were.
    const [inserted, dropped, moved, movedSilently] = [
      isStruck('txInserted'),
      isStruck('txDropped'),
      isStruck('txMoved'),
      isStruck('txMovedUnseen'),
    ]
    const [changed, shifted, swapped] = [isStruck('txChanged'), isStruck('txLosesLog'), isStruck('txSwapped')]
    const insertedTx = randomTx(random, hex(64, 0x7b_0000_0000 + slot * 100 + txs.length), transactionMix)
    const changedVersion = alterTx(random, tx)
    if (inserted) txs.push(insertedTx)
    if (dropped) continue
    if (moved || movedSilently) {
      deferred.push({ tx, shown: moved })
      continue
    }
    const sealed = changed ? changedVersion : shifted ? simulatedTx(tx.hash, tx.steps.slice(1)) : tx
    if (swapped && txs.length > 0) txs.splice(-1, 0, sealed)
    else txs.push(sealed)
  }
  return { txs, deferred }
}
