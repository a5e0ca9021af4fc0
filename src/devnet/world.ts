import type { Block, Deed, Fate, Log, Transaction } from './chain/block.ts'
import { dueMs, type Rhythm } from './chain/block-timer.ts'
import { Chain, GENESIS_MS } from './chain/chain.ts'
import { made, type Plan } from './chain/deferred-tx.ts'
import { digest, type Hex } from './chain/hex.ts'
import type { Values } from './chain/state.ts'
import { createCalendar } from './life/calendar.ts'
import { NAMING_BLOCKS, pausing } from './life/corporate-actions.ts'
import { createOracle, feedsHolding } from './life/feed-rounds.ts'
import { createNav, troubled } from './life/nav-curve.ts'
import { accountOf, createMarket, TIDE_BLOCKS, tideOf } from './life/trading.ts'
import { type Token, tokens } from './tokens/listed.ts'

/** How many whole tides lie behind a chain that is opened: some hundred blocks of history. */
const PAST_TIDES = 2

/** How many past transactions are worth building at the start: with a busy market the history is shorter. */
const PAST_TRANSACTIONS_BOUND = 20_000

/** What a world is a function of. */
export type Laws = {
  seed: string
  chainId: number
  blockMs: number
  flashMs: number
  transactionsPerFlash: number
  /** Whether the tokens have a corporate life and the feeds publish, or nothing but the market goes on. */
  calendar: boolean
}

/** A chain with its market, and where it stands between two seals. */
export type World = {
  chain: Chain
  custodian: Hex
  /** Who acts for the issuer. */
  operator: Hex
  /** Whether a token is on the list at a block. */
  lists: (token: Token, block: number) => boolean
  /** How many blocks after the chain the list says a new name. */
  namingBlocks: number
  /** Makes the next flashblock: what the market does, and then these. */
  flash: (deeds?: readonly (Deed | Plan)[]) => readonly Log[]
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
  const { flashes } = rhythm
  const operator = accountOf(seed, 'operator')
  const market = createMarket(seed, tokens, { flashes, transactionsPerFlash, steady: pausing })
  const life = laws.calendar ? eventful(laws, market.custodian, operator) : uneventful(seed, nowMs)
  const openingOf = (tide: number): Values => new Map([...market.opening(tide), ...life.opening(tide)])
  const deedsOf = (block: number, flash: number) => [
    ...market.deeds(block, flash),
    ...(flash === 0 ? life.plans(block) : []),
  ]

  const salt = digest('devnet', seed, laws.chainId, blockMs, flashMs, transactionsPerFlash, String(laws.calendar))
  const head = Math.max(0, Math.floor((nowMs - GENESIS_MS) / blockMs))
  const tideTransactions = Math.max(1, TIDE_BLOCKS * flashes * transactionsPerFlash)
  const past = Math.min(PAST_TIDES, Math.floor(PAST_TRANSACTIONS_BOUND / tideTransactions))
  const tide = Math.max(0, tideOf(head) - past)
  const number = tide * TIDE_BLOCKS
  const opening = openingOf(tide)
  const atOpening = { held: (key: string) => opening.get(key) ?? 0n, timestamp: 0 }
  const deeds = Array.from({ length: flashes }, (_, flash) => deedsOf(number, flash)).flat()
  const from = { number, deeds: deeds.map((one) => made(one, atOpening)), opening }
  const chain = new Chain({ salt, blockMs, opening: openingOf(0) }, from)

  let done = 0
  const flash = (injected: readonly (Deed | Plan)[] = []) => {
    const logs = chain.flash([...deedsOf(chain.pending.number, done), ...injected])
    done += 1
    return logs
  }
  const seal = (fateOf?: (transaction: Transaction) => Fate) => {
    done = 0
    return chain.seal(fateOf)
  }
  const sealsNext = () => done >= flashes
  const due = () => dueMs(rhythm, { number: chain.pending.number, made: done })

  while (chain.head.number < head) sealsNext() ? seal() : flash()
  const { lists, namingBlocks } = life
  return { chain, custodian: market.custodian, operator, lists, namingBlocks, flash, seal, dueMs: due, sealsNext }
}

/** What goes on beside the market. */
type Life = Pick<World, 'lists' | 'namingBlocks'> & {
  opening: (tide: number) => Values
  plans: (block: number) => readonly Plan[]
}

const eventful = ({ seed, blockMs }: Laws, custodian: Hex, operator: Hex): Life => {
  const calendar = createCalendar(seed, blockMs, custodian, operator)
  const oracle = createOracle(seed, blockMs, troubled(createNav(seed)))
  return {
    lists: calendar.lists,
    namingBlocks: NAMING_BLOCKS,
    opening: (tide) => new Map([...calendar.opening(tide), ...oracle.opening(tide * TIDE_BLOCKS)]),
    plans: (block) => [...oracle.plans(block), ...calendar.plans(block)],
  }
}

const uneventful = (seed: string, nowMs: number): Life => {
  const opening = feedsHolding(createNav(seed), nowMs)
  return {
    lists: (token) => tokens.includes(token),
    namingBlocks: 0,
    opening: () => opening,
    plans: () => [],
  }
}
