import type {
  DevnetBlock,
  DevnetLog,
  DevnetTransaction,
  TransactionOutcome,
  UnsignedTransaction,
} from './chain/block.ts'
import { type BlockTiming, nextStepDueMs } from './chain/block-timer.ts'
import { Chain, GENESIS_MS } from './chain/chain.ts'
import { type DeferredTransaction, resolveTransaction } from './chain/deferred-tx.ts'
import { digest, type HexString } from './chain/hex.ts'
import type { StateValues } from './chain/state.ts'
import { createCalendar } from './life/calendar.ts'
import { mintPausedSymbols, NAME_DELAY_BLOCKS } from './life/corporate-actions.ts'
import { createFeedPublisher, feedValuesAt } from './life/feed-rounds.ts'
import { createNavCurve, withFeedFaults } from './life/nav-curve.ts'
import { actorAddress, CYCLE_BLOCKS, createMarket, cycleOf } from './life/trading.ts'
import { type DevnetToken, tokens } from './tokens/listed.ts'

/** How many whole tides lie behind a chain that is opened: some hundred blocks of history. */
const PAST_CYCLES = 2

/** How many past transactions are worth building at the start: with a busy market the history is shorter. */
const PAST_TRANSACTIONS_BOUND = 20_000

/** What a world is a function of. */
export type WorldSettings = {
  seed: string
  chainId: number
  blockMs: number
  flashblockMs: number
  transactionsPerFlashblock: number
  /** Whether the tokens have a corporate life and the feeds publish, or nothing but the market goes on. */
  calendar: boolean
}

/** A chain with its market, and where it stands between two seals. */
export type World = {
  chain: Chain
  custodian: HexString
  /** Who acts for the issuer. */
  operator: HexString
  /** Whether a token is on the list at a block. */
  isListed: (token: DevnetToken, block: number) => boolean
  /** How many blocks after the chain the list says a new name. */
  nameDelayBlocks: number
  /** Makes the next flashblock: what the market does, and then these. */
  makeFlashblock: (transactions?: readonly (UnsignedTransaction | DeferredTransaction)[]) => readonly DevnetLog[]
  seal: (outcomeOf?: (transaction: DevnetTransaction) => TransactionOutcome) => DevnetBlock
  /** When the next flashblock or seal is due, by the clock. */
  nextStepDueMs: () => number
  /** Whether a seal is due next. */
  isSealNext: () => boolean
}

/** Opens the world at the beginning of a tide some hundred blocks ago, and lets it come to where it stands by now. */
export const openWorld = (settings: WorldSettings, nowMs: number): World => {
  const { seed, blockMs, flashblockMs, transactionsPerFlashblock } = settings
  const timing: BlockTiming = {
    blockMs,
    flashblockMs,
    flashblocksPerBlock: Math.max(1, Math.floor(blockMs / flashblockMs)),
  }
  const { flashblocksPerBlock } = timing
  const operator = actorAddress(seed, 'operator')
  const market = createMarket(seed, tokens, {
    flashblocksPerBlock,
    transactionsPerFlashblock,
    transferOnlySymbols: mintPausedSymbols,
  })
  const events = settings.calendar ? createEvents(settings, market.custodian, operator) : createQuietEvents(seed, nowMs)
  const initialStateOf = (cycle: number): StateValues =>
    new Map([...market.stateAtStart(cycle), ...events.stateAtStart(cycle)])
  const transactionsOf = (block: number, flashblock: number) => [
    ...market.transactions(block, flashblock),
    ...(flashblock === 0 ? events.transactions(block) : []),
  ]

  const salt = digest(
    'devnet',
    seed,
    settings.chainId,
    blockMs,
    flashblockMs,
    transactionsPerFlashblock,
    String(settings.calendar),
  )
  const headNumber = Math.max(0, Math.floor((nowMs - GENESIS_MS) / blockMs))
  const transactionsPerCycle = Math.max(1, CYCLE_BLOCKS * flashblocksPerBlock * transactionsPerFlashblock)
  const pastCycles = Math.min(PAST_CYCLES, Math.floor(PAST_TRANSACTIONS_BOUND / transactionsPerCycle))
  const firstCycle = Math.max(0, cycleOf(headNumber) - pastCycles)
  const firstBlock = firstCycle * CYCLE_BLOCKS
  const initialState = initialStateOf(firstCycle)
  const initialContext = { readState: (key: string) => initialState.get(key) ?? 0n, timestamp: 0 }
  const firstTransactions = Array.from({ length: flashblocksPerBlock }, (_, flashblock) =>
    transactionsOf(firstBlock, flashblock),
  ).flat()
  const from = {
    number: firstBlock,
    transactions: firstTransactions.map((one) => resolveTransaction(one, initialContext)),
    initialState,
  }
  const chain = new Chain({ salt, blockMs, initialState: initialStateOf(0) }, from)

  let flashblocksMade = 0
  const makeFlashblock = (injectedTransactions: readonly (UnsignedTransaction | DeferredTransaction)[] = []) => {
    const logs = chain.makeFlashblock([
      ...transactionsOf(chain.pending.number, flashblocksMade),
      ...injectedTransactions,
    ])
    flashblocksMade += 1
    return logs
  }
  const seal = (outcomeOf?: (transaction: DevnetTransaction) => TransactionOutcome) => {
    flashblocksMade = 0
    return chain.seal(outcomeOf)
  }
  const isSealNext = () => flashblocksMade >= flashblocksPerBlock
  const dueMs = () => nextStepDueMs(timing, { blockNumber: chain.pending.number, flashblocksMade })

  while (chain.head.number < headNumber) isSealNext() ? seal() : makeFlashblock()
  const { isListed, nameDelayBlocks } = events
  return {
    chain,
    custodian: market.custodian,
    operator,
    isListed,
    nameDelayBlocks,
    makeFlashblock,
    seal,
    nextStepDueMs: dueMs,
    isSealNext,
  }
}

/** What goes on beside the market. */
type ScheduledEvents = Pick<World, 'isListed' | 'nameDelayBlocks'> & {
  stateAtStart: (cycle: number) => StateValues
  transactions: (block: number) => readonly DeferredTransaction[]
}

const createEvents = ({ seed, blockMs }: WorldSettings, custodian: HexString, operator: HexString): ScheduledEvents => {
  const calendar = createCalendar(seed, blockMs, custodian, operator)
  const feedPublisher = createFeedPublisher(seed, blockMs, withFeedFaults(createNavCurve(seed)))
  return {
    isListed: calendar.isListed,
    nameDelayBlocks: NAME_DELAY_BLOCKS,
    stateAtStart: (cycle) =>
      new Map([...calendar.stateAtStart(cycle), ...feedPublisher.stateAfter(cycle * CYCLE_BLOCKS)]),
    transactions: (block) => [...feedPublisher.transactions(block), ...calendar.transactions(block)],
  }
}

const createQuietEvents = (seed: string, nowMs: number): ScheduledEvents => {
  const feedValues = feedValuesAt(createNavCurve(seed), nowMs)
  return {
    isListed: (token) => tokens.includes(token),
    nameDelayBlocks: 0,
    stateAtStart: () => feedValues,
    transactions: () => [],
  }
}
