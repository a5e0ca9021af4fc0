import type { Block, Deed, Fate, Log, Transaction } from '../chain/block.ts'
import type { Plan } from '../chain/deferred-tx.ts'
import type { Hex } from '../chain/hex.ts'
import type { Skies } from '../faults/apply.ts'
import type { World } from '../world.ts'
import type { Replica } from './replica.ts'
import type { Sockets } from './sockets.ts'

/** How many flashblocks may be on their way to the sockets; beyond it the oldest are lost, as from a node's own buffer. */
const LATE_BOUND = 10_000

/** A flashblock on its way: what it adds, and all that is pending with it. */
type Late = { number: number; newest: readonly Log[]; all: readonly Log[] }

/** Where things happen, who hears of them, and the weather between. */
type Scene = { world: World; replica: Replica; skies: Skies; sockets: Sockets; changed: () => void }

/** Makes flashblocks, seals and reorganisations, and announces each to the sockets. */
export const createHerald = ({ world, replica, skies, sockets, changed }: Scene) => {
  const { chain } = world
  const { weather } = skies
  const late: Late[] = []

  const pushDue = () => {
    const newest = chain.pending.number - weather.pushDelayBlocks
    const early = late.findIndex(({ number }) => number > newest)
    const due = late.splice(0, early < 0 ? late.length : early)
    for (const flash of due) sockets.announceFlash(flash.newest, flash.all)
  }
  const flash = (deeds: readonly (Deed | Plan)[]) => {
    const made = world.flash(deeds)
    const lost = made.length > 0 && skies.losesFlash()
    const shown = replica.preconfirmed
    // A pending state that got stuck adds nothing.
    if (!lost && shown?.number === chain.pending.number) {
      const all = [...shown.logs]
      late.push({ number: shown.number, newest: all.slice(all.length - made.length), all })
      if (late.length > LATE_BOUND) late.shift()
    }
    pushDue()
    changed()
    return made
  }
  const replace = (depth: number, fateOf: (transaction: Transaction) => Fate) => {
    const { removed, blocks } = chain.reorg(depth, fateOf)
    sockets.announceLogs(removed)
    for (const block of blocks) sockets.announceBlock(block)
    changed()
    return blocks
  }
  const seal = (): Block => {
    const block = world.seal(skies.fateOf)
    sockets.announceBlock(block)
    pushDue()
    const kept = chain.head.number - chain.oldest + 1
    if (skies.reorganises()) replace(Math.min(weather.reorgDepth, kept), skies.fateOf)
    changed()
    return block
  }
  const reorg = (depth: number, without: readonly Hex[] = [], later: readonly Hex[] = []) => {
    const fates = new Map<Hex, Fate>()
    for (const hash of without) fates.set(hash, 'dropped')
    for (const hash of later) fates.set(hash, 'moved')
    return replace(depth, ({ hash }) => fates.get(hash) ?? 'kept')
  }
  return { flash, seal, reorg }
}
