import type { Hex } from '../lib/hex.ts'
import type { StateValues } from './chain/account-state.ts'
import type { Chain } from './chain/chain.ts'
import { ChainBuilder, GENESIS_MS } from './chain/chain-builder.ts'
import type { DeferredTransaction, DevnetLog } from './chain/chain-types.ts'
import { addressFrom, digest } from './chain/hashes.ts'
import { createCalendarNav } from './life/calendar-nav.ts'
import { createCalendar, mintPausedSymbols, NAME_DELAY_BLOCKS } from './life/corporate-actions.ts'
import { createFeedPublisher, feedValuesAt } from './life/feed-publisher.ts'
import { createNavCurve } from './life/nav-curve.ts'
import { createPoolPrice } from './life/pool-price.ts'
import { createQuietSwaps, createSwaps, swappableSupplyOf, traderOf } from './life/swaps.ts'
import { createTestTokenLife } from './life/test-token-life.ts'
import { CYCLE_BLOCKS, createMarket, cycleOf } from './life/trading-cycle.ts'
import { activityAt } from './life/trading-week.ts'
import { type DevnetToken, tokens } from './tokens/issued-tokens.ts'
import { registryValues } from './tokens/oracle-registry.ts'

/** Least number of blocks that a new chain replays, from the start of a cycle: two runs of the test token. */
const REPLAYED_BLOCKS = 600
/** Limit of past transactions that are replayed at the start. With a busy market, this makes the history shorter. */
const REPLAYED_TRANSACTIONS_BOUND = 20_000
/** With a past, the market's transfers emit their logs in this many blocks before the head: one minute. */
const MARKET_LOG_BLOCKS = 30

type Transactions = readonly DeferredTransaction[]

export type ScriptedChainSettings = {
  seed: string
  chainId: number
  blockMs: number
  flashblockMs: number
  transactionsPerFlashblock: number
  /**
   * How far back the past reaches. What is older than the replayed cycles has some swaps and all rounds of feeds. The market
   * begins with the present cycle, and at first emits no logs, because a relay that reads the past would take long for them.
   */
  pastMs: number
  /** Whether corporate actions happen and feeds publish. Without them there is only the market, always as busy as at its open. */
  calendar: boolean
}

/** Opens the chain at the start of a cycle some hundred blocks ago, and replays it up to now. An older past is outlined before. */
export const openScriptedChain = (settings: ScriptedChainSettings, nowMs: number) => {
  const { blockMs, flashblockMs } = settings
  const flashblocksPerBlock = Math.max(1, Math.floor(blockMs / flashblockMs))
  const headNumber = Math.max(0, Math.floor((nowMs - GENESIS_MS) / blockMs))
  const { script, actors } = createScript(settings, flashblocksPerBlock, nowMs, headNumber)
  const builder = openChain(settings, script, flashblocksPerBlock, headNumber)

  let flashblocksMade = 0
  const late: DeferredTransaction[] = []
  /** Executes the scripted transactions and the injected ones. A late trade of the market is executed when the block is sealed. */
  const makeFlashblock = (injected: Transactions = [], isLate: (index: number) => boolean = () => false): readonly DevnetLog[] => {
    const { trades, events, last } = script.transactionsOf(builder.chain.pending.number, flashblocksMade)
    late.push(...trades.filter((_, index) => isLate(index)))
    const timely = trades.filter((_, index) => !isLate(index))
    const logs = builder.makeFlashblock([...timely, ...events, ...injected, ...last])
    flashblocksMade += 1
    return logs
  }
  const seal = (outcomeOf?: Parameters<typeof builder.seal>[0]) => {
    flashblocksMade = 0
    if (late.length > 0) builder.makeFlashblock(late.splice(0))
    return builder.seal(outcomeOf)
  }
  const isSealNext = () => flashblocksMade >= flashblocksPerBlock

  while (builder.chain.head.number < headNumber) isSealNext() ? seal() : makeFlashblock()
  return {
    ...actors,
    get chain(): Chain {
      return builder.chain
    },
    makeFlashblock,
    seal,
    reorg: builder.reorg.bind(builder),
    nextStepDueMs: (): number => {
      const { number } = builder.chain.pending
      const dueMs = isSealNext() ? number * blockMs : (number - 1) * blockMs + flashblocksMade * flashblockMs
      return GENESIS_MS + dueMs
    },
    isSealNext,
  }
}
export type ScriptedChain = ReturnType<typeof openScriptedChain>

/** Transactions that the seed determines, and the state that they leave at the start of a cycle. */
type Life = { stateAtStart: (cycle: number) => StateValues; transactions: (block: number, flashblock: number) => Transactions }

/** Everything but the market. Its transactions are in the first flashblock of a block, those of `last` at the end of the block. */
type Events = {
  /** The rounds of the feeds in a past that is only outlined. */
  outline: (block: number) => Transactions
  isListed: (token: DevnetToken, block: number) => boolean
  nameDelayBlocks: number
  lives: readonly Life[]
  last: (block: number) => Transactions
}

type Script = ReturnType<typeof createScript>['script']

/** All transactions except those that a test injects: market, swaps, corporate actions and feed rounds. */
const createScript = (settings: ScriptedChainSettings, flashblocksPerBlock: number, nowMs: number, headNumber: number) => {
  const { seed, blockMs, transactionsPerFlashblock, pastMs } = settings
  const marketCycle = pastMs > 0 ? cycleOf(headNumber) : 0
  const marketLogsFrom = pastMs > 0 ? headNumber - MARKET_LOG_BLOCKS : 0
  const operator = addressFrom(seed, 'operator')
  const market = createMarket(seed, tokens, {
    flashblocksPerBlock,
    transactionsPerFlashblock,
    transferOnlySymbols: mintPausedSymbols,
    heldElsewhere: ({ address }) => swappableSupplyOf(address),
  })
  const readActivity = settings.calendar ? activityAt : () => 1
  const readPrice = createPoolPrice(seed, readActivity)
  const swaps =
    transactionsPerFlashblock === 0
      ? createQuietSwaps(seed, nowMs, readPrice)
      : createSwaps(seed, { blockMs, flashblocksPerBlock, transactionsPerFlashblock, activityAt: readActivity }, readPrice)
  const { custodian } = market
  const events = settings.calendar ? createEvents(settings, custodian, operator) : createQuietEvents(seed, nowMs)
  const trading: readonly Life[] = [
    {
      stateAtStart: (cycle) => market.stateAtStart(Math.max(cycle, marketCycle)),
      transactions: (block, flashblock) => {
        if (cycleOf(block) < marketCycle) return []
        const transactions = market.transactions(block, flashblock)
        return block < marketLogsFrom ? transactions.map(withoutLogs) : transactions
      },
    },
    swaps,
  ]
  const transactionsOf = (lives: readonly Life[], block: number, flashblock: number) =>
    lives.flatMap((life) => life.transactions(block, flashblock))
  const script = {
    initialStateOf: (cycle: number): StateValues =>
      new Map([...registryValues, ...[...trading, ...events.lives].flatMap((life) => [...life.stateAtStart(cycle)])]),
    /** Returns the transactions of a flashblock. The `last` ones are executed after the injected ones. */
    transactionsOf: (block: number, flashblock: number) => ({
      trades: transactionsOf(trading, block, flashblock),
      events: flashblock === 0 ? transactionsOf(events.lives, block, flashblock) : [],
      last: flashblock === flashblocksPerBlock - 1 ? events.last(block) : [],
    }),
    /** Returns the transactions of a block of a past that is only outlined. */
    outlineOf: (block: number): Transactions => [...swaps.outline(block), ...events.outline(block)],
  }
  const { isListed, nameDelayBlocks } = events
  return { script, actors: { custodian, operator, trader: traderOf(seed), isListed, nameDelayBlocks } }
}

const withoutLogs =
  (build: DeferredTransaction): DeferredTransaction =>
  (context) => ({ ...build(context), logs: [] })

/** Opens the chain at the start of the cycle from which the history is replayed, after an outline of what is before. */
const openChain = (
  { seed, chainId, blockMs, flashblockMs, transactionsPerFlashblock, pastMs, calendar }: ScriptedChainSettings,
  { initialStateOf, outlineOf }: Script,
  flashblocksPerBlock: number,
  headNumber: number,
): ChainBuilder => {
  const salt = digest('devnet', seed, chainId, blockMs, flashblockMs, transactionsPerFlashblock, String(calendar))
  const transactionsPerCycle = Math.max(1, CYCLE_BLOCKS * flashblocksPerBlock * transactionsPerFlashblock)
  const replayedCycles = Math.min(
    cycleOf(headNumber) - cycleOf(headNumber - REPLAYED_BLOCKS),
    Math.floor(REPLAYED_TRANSACTIONS_BOUND / transactionsPerCycle),
  )
  const replayed = Math.max(0, cycleOf(headNumber) - replayedCycles)
  const first = Math.max(0, Math.min(replayed, cycleOf(headNumber - Math.ceil(pastMs / blockMs))))
  const keptBlocks = headNumber - first * CYCLE_BLOCKS
  const start = { number: first * CYCLE_BLOCKS, state: initialStateOf(first), keptBlocks }
  const builder = new ChainBuilder({ salt, blockMs, initialState: initialStateOf(0) }, start)
  if (first < replayed) builder.outline(replayed * CYCLE_BLOCKS, outlineOf, initialStateOf(replayed))
  return builder
}

const createEvents = ({ seed, blockMs }: ScriptedChainSettings, custodian: Hex, operator: Hex): Events => {
  const calendar = createCalendar(seed, blockMs, custodian, operator)
  const feedPublisher = createFeedPublisher(seed, blockMs, createCalendarNav(seed, blockMs))
  const testToken = createTestTokenLife(seed, blockMs)
  const lives = [feedPublisher, calendar, testToken]
  return {
    isListed: calendar.isListed,
    nameDelayBlocks: NAME_DELAY_BLOCKS,
    lives,
    outline: feedPublisher.outline,
    last: testToken.lastTransactions,
  }
}

const createQuietEvents = (seed: string, nowMs: number): Events => {
  const feedValues = feedValuesAt(createNavCurve(seed), nowMs)
  const quiet: Life = { stateAtStart: () => feedValues, transactions: () => [] }
  return { isListed: (token) => tokens.includes(token), nameDelayBlocks: 0, lives: [quiet], outline: () => [], last: () => [] }
}
