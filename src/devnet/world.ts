import type { Block, Deed, Fate, Log, Transaction } from './block.ts'
import { Chain, GENESIS_MS } from './chain.ts'
import { digest, type Hex } from './hex.ts'
import { createMarket, TIDE_BLOCKS, tideOf } from './market.ts'
import { dueMs, type Rhythm } from './pace.ts'
import { tokens } from './tokens.ts'

/** How many whole tides lie behind a chain that is opened: some hundred blocks of history. */
const PAST_TIDES = 2

/** How many past transactions are worth building at the start: with a busy market the history is shorter. */
const PAST_TRANSACTIONS_BOUND = 20_000

/** What a world is a function of. */
export type Laws = { seed: string; chainId: number; blockMs: number; flashMs: number; transactionsPerFlash: number }

/** A chain with its market, and where it stands between two seals. */
export type World = {
  chain: Chain
  custodian: Hex
  /** Makes the next flashblock: what the market does, and then these. */
  flash: (deeds?: readonly Deed[]) => readonly Log[]
  seal: (fateOf?: (transaction: Transaction) => Fate) => Block
  /** When the next flashblock or seal is due, by the clock. */
  dueMs: () => number
  /** Whether a seal is due next. */
  sealsNext: () => boolean
}

/** Opens the world at the beginning of a tide some hundred blocks ago, and lets it come to where it stands by now. */
export const openWorld = (laws: Laws, nowMs: number): World => {
  const { seed, blockMs, flashMs, transactionsPerFlash } = laws
  const rhythm: Rhythm = { blockMs, flashMs, flashes: Math.max(1, Math.floor(blockMs / flashMs)) }
  const market = createMarket(seed, tokens, { flashes: rhythm.flashes, transactionsPerFlash })
  const salt = digest('devnet', seed, laws.chainId, blockMs, flashMs, transactionsPerFlash)
  const head = Math.max(0, Math.floor((nowMs - GENESIS_MS) / blockMs))
  const tideTransactions = Math.max(1, TIDE_BLOCKS * rhythm.flashes * transactionsPerFlash)
  const past = Math.min(PAST_TIDES, Math.floor(PAST_TRANSACTIONS_BOUND / tideTransactions))
  const tide = Math.max(0, tideOf(head) - past)
  const number = tide * TIDE_BLOCKS
  const deeds = Array.from({ length: rhythm.flashes }, (_, flash) => market.deeds(number, flash)).flat()
  const genesis = { salt, blockMs, opening: market.opening(0) }
  const chain = new Chain(genesis, { number, deeds, opening: market.opening(tide) })

  let made = 0
  const flash = (injected: readonly Deed[] = []) => {
    const logs = chain.flash([...market.deeds(chain.pending.number, made), ...injected])
    made += 1
    return logs
  }
  const seal = (fateOf?: (transaction: Transaction) => Fate) => {
    made = 0
    return chain.seal(fateOf)
  }
  const sealsNext = () => made >= rhythm.flashes
  const due = () => dueMs(rhythm, { number: chain.pending.number, made })

  while (chain.head.number < head) sealsNext() ? seal() : flash()
  return { chain, custodian: market.custodian, flash, seal, dueMs: due, sealsNext }
}
