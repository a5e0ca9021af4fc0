import type { Hex } from '../../lib/hex.ts'
import type { DeferredTransaction, DevnetBlock, DevnetLog, DevnetTransaction, TransactionOutcome } from '../chain/chain-types.ts'
import type { FaultController } from '../faults/fault-controller.ts'
import type { createChances } from '../faults/recurring-faults.ts'
import type { ScriptedChain } from '../scripted-chain.ts'
import type { DevnetSockets } from './node-sockets.ts'
import type { Replica } from './replica.ts'

/** Limit of flashblocks that wait to be pushed. Above it the oldest one is lost, as from the buffer of a node. */
const DELAYED_BOUND = 10_000

type DelayedFlashblock = { blockNumber: number; newLogs: readonly DevnetLog[]; pendingLogs: readonly DevnetLog[] }

type BlockProducerInputs = {
  scriptedChain: ScriptedChain
  replica: Replica
  faultController: FaultController
  chances: ReturnType<typeof createChances>
  sockets: DevnetSockets
  onChange: () => void
}

/** Makes flashblocks, seals and reorganisations, and pushes each to the sockets. */
export const createBlockProducer = ({
  scriptedChain,
  replica,
  faultController,
  chances,
  sockets,
  onChange,
}: BlockProducerInputs) => {
  const { faults } = faultController
  const delayed: DelayedFlashblock[] = []
  let heldLogs: readonly DevnetLog[] = []

  const pushDueFlashblocks = () => {
    const newestDueBlock = scriptedChain.chain.pending.number - faults.pushDelayBlocks
    const firstNotDue = delayed.findIndex(({ blockNumber }) => blockNumber > newestDueBlock)
    const due = delayed.splice(0, firstNotDue < 0 ? delayed.length : firstNotDue)
    for (const flashblock of due) pushFlashblock(flashblock)
  }
  const pushFlashblock = ({ newLogs, pendingLogs }: DelayedFlashblock) => {
    const end = faults.holdsLastLog && newLogs.length > 0 ? -1 : undefined
    sockets.announceFlashblock([...heldLogs, ...newLogs.slice(0, end)], pendingLogs.slice(0, end))
    heldLogs = end ? newLogs.slice(end) : []
  }
  const makeFlashblock = (transactions: readonly DeferredTransaction[]) => {
    const { number, flashblocks } = scriptedChain.chain.pending
    const newLogs = scriptedChain.makeFlashblock(transactions, (index) => chances.isLate(number, flashblocks, index))
    const isLost = newLogs.length > 0 && faultController.losesFlashblock()
    const shownBlock = replica.preconfirmed
    // A pending block that no longer changes has no new logs.
    if (!isLost && shownBlock?.number === number) {
      const pendingLogs = [...shownBlock.logs]
      delayed.push({ blockNumber: shownBlock.number, newLogs: pendingLogs.slice(pendingLogs.length - newLogs.length), pendingLogs })
      if (delayed.length > DELAYED_BOUND) delayed.shift()
    }
    pushDueFlashblocks()
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
    pushDueFlashblocks()
    const keptBlocks = scriptedChain.chain.blocks.length - 1
    if (faultController.shouldReorg()) replaceBlocks(Math.min(faults.reorgDepth, keptBlocks), faultController.outcomeOf)
    const depth = chances.reorgDepthAfter(block.number)
    if (depth > 0) replaceBlocks(Math.min(depth, keptBlocks), chances.inReorg)
    onChange()
    return block
  }
  const reorg = (depth: number, dropped: readonly Hex[] = [], moved: readonly Hex[] = []) =>
    replaceBlocks(depth, ({ hash }) => (moved.includes(hash) ? 'moved' : dropped.includes(hash) ? 'dropped' : 'kept'))
  return { makeFlashblock, seal, reorg }
}
