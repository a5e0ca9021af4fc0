import type { Hex } from '../../lib/hex.ts'
import type { DeferredTransaction, DevnetBlock, DevnetTransaction, TransactionOutcome } from '../chain/chain-types.ts'
import type { FaultController } from '../faults/fault-controller.ts'
import type { createChances } from '../faults/recurring-faults.ts'
import type { ScriptedChain } from '../scripted-chain.ts'
import type { DevnetSockets } from './node-sockets.ts'
import type { Replica } from './replica.ts'

type BlockProducerInputs = {
  scriptedChain: ScriptedChain
  replica: Replica
  faultController: FaultController
  chances: ReturnType<typeof createChances>
  sockets: DevnetSockets
  onChange: () => void
}

/** Makes flashblocks, seals and reorganisations, and pushes each to the sockets. */
export const createBlockProducer = (inputs: BlockProducerInputs) => {
  const { scriptedChain, replica, faultController, chances, sockets, onChange } = inputs
  /** Returns the new logs. */
  const makeFlashblock = (transactions: readonly DeferredTransaction[]) => {
    const { number, flashblocks } = scriptedChain.chain.pending
    const newLogs = scriptedChain.makeFlashblock(transactions, (index) => chances.isLate(number, flashblocks, index))
    const isLost = newLogs.length > 0 && faultController.consume('lostFlashes')
    const shownBlock = replica.preconfirmed
    // A pending block that no longer changes has no new logs.
    if (!isLost && shownBlock?.number === number)
      sockets.announceFlashblock(shownBlock.logs.slice(shownBlock.logs.length - newLogs.length), shownBlock.logs)
    onChange()
    return newLogs
  }
  const replaceBlocks = (depth: number, outcomeOf: (transaction: DevnetTransaction) => TransactionOutcome) => {
    const { removed, blocks } = scriptedChain.reorg(depth, outcomeOf)
    sockets.announceLogs(removed)
    for (const block of blocks) sockets.announceBlock(block)
    onChange()
    return blocks
  }
  const seal = (): DevnetBlock => {
    const block = scriptedChain.seal((transaction) => {
      const outcome = faultController.outcomeOf(transaction)
      return outcome === 'kept' ? chances.atSeal(transaction) : outcome
    })
    sockets.announceBlock(block)
    const depth = Math.min(chances.reorgDepthAfter(block.number), scriptedChain.chain.blocks.length - 1)
    if (depth > 0) replaceBlocks(depth, chances.inReorg)
    onChange()
    return block
  }
  /** Replaces the `depth` newest blocks, without the `dropped` transactions. The next flashblock contains the `moved` ones. */
  const reorg = (depth: number, dropped: readonly Hex[] = [], moved: readonly Hex[] = []) =>
    replaceBlocks(depth, ({ hash }) => (moved.includes(hash) ? 'moved' : dropped.includes(hash) ? 'dropped' : 'kept'))
  return { makeFlashblock, seal, reorg }
}
