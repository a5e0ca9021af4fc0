import { ConditionWatchers } from '../lib/condition-watchers.ts'
import { isWithin, type RequestedFaults, windowEndMs } from '../lib/fault-settings.ts'
import type { Hex } from '../lib/hex.ts'
import { type Method, methods } from '../protocol/json-rpc-methods.ts'
import type { Chain } from './chain/chain.ts'
import type { DeferredTransaction } from './chain/chain-types.ts'
import { digest } from './chain/hashes.ts'
import { createFaultController, type FaultController } from './faults/fault-controller.ts'
import { createChances, runFaultWindows } from './faults/recurring-faults.ts'
import { createCalendarNav } from './life/calendar-nav.ts'
import { createNavCurve } from './life/nav-curve.ts'
import { createBlockProducer } from './node/block-producer.ts'
import type { RpcHandler } from './node/json-rpc.ts'
import { closeServer, openServer, portOf } from './node/node-server.ts'
import { DevnetSockets } from './node/node-sockets.ts'
import { createLaggingReplica, createUpToDateReplica } from './node/replica.ts'
import { createMethods } from './node/rpc-methods.ts'
import { createRecordReader, createStockList } from './node/stock-list.ts'
import { openScriptedChain, type ScriptedChain } from './scripted-chain.ts'
import { createTestActions } from './test-actions.ts'
import { pools, poolsTextOf, quoteTokens, testPool } from './tokens/devnet-pools.ts'
import { type FeedState, feeds, readFeedState, testFeed } from './tokens/feeds.ts'
import { lateToken, testToken, tokens } from './tokens/issued-tokens.ts'
import { oracleRegistry } from './tokens/oracle-registry.ts'

/** Least time between blocks for a calendar by default. With less, a cycle would last at most some minutes. */
const CALENDAR_BLOCK_MS = 1_000
/** Limit of the blocks of a past that is asked for. */
const PAST_BLOCKS_BOUND = 16_384
const QUEUED_BOUND = 10_000
/** Limit of due steps that run in one turn of the event loop. After the machine slept, thousands may be due. */
const STEPS_PER_TURN_BOUND = 1_000

const defaults = {
  /** 0 takes any free port. */
  port: 0,
  host: '127.0.0.1',
  seed: 'stocktape',
  chainId: 84_532_001,
  blockMs: 2_000,
  flashblockMs: 200,
  now: (): number => Date.now(),
  /** `clock`: blocks are made on time, with trading. `manual`: the devnet does nothing without a call. */
  pace: 'clock' as 'clock' | 'manual',
  /** Average number of market transactions per flashblock; 0 closes the market. */
  transactionsPerFlashblock: 2,
  /** How far back the chain has blocks, beyond the some hundred that it replays at the start. */
  pastMs: 0,
  /** Whether the node answers `eth_getBlockReceipts`, and with `calls` also `eth_call`. Public endpoints refuse both with 403. */
  receipts: false,
  calls: false,
  /** Number of blocks from the tag `safe` to the newest block, and with `finalizedDepth` from the tag `finalized`. */
  safeDepth: 30,
  finalizedDepth: 100,
  /** Faults that happen by chance or by the clock. A test sets the fields of `Devnet.faults` instead. */
  requestedFaults: {} as RequestedFaults,
}

/** Contracts of a devnet. `poolsText` and `quoteTokens` are values of the relay's settings POOLS and QUOTE_TOKENS. */
const fixturesOf = ({ calendar }: DevnetSettings) => {
  const followed = calendar ? [...pools, testPool] : pools
  return { tokens, pools: followed, poolsText: poolsTextOf(followed), quoteTokens, oracleRegistry }
}

export type DevnetOptions = Partial<typeof defaults> & {
  /** Whether corporate actions happen, feeds publish and the test token is listed. */
  calendar?: boolean
}

export type Devnet = Awaited<ReturnType<typeof startDevnet>>

/** Starts a devnet with some hundred blocks of history, and serves it. */
export const startDevnet = async (options: DevnetOptions = {}) => {
  const settings = withDefaults(options)
  const { host, port, chainId, isManual, now, requestedFaults } = settings
  const startedMs = now()
  const scriptedChain = openScriptedChain(settings, startedMs)
  const requestCounts = createRequestCounts()
  const { requests, countRequest, changed: onChange, until } = requestCounts
  const faultController = createFaultController(() => sockets.closeAll())
  const { faults } = faultController
  const { replica, sockets, selectNode } = createNode(settings, scriptedChain, faultController, requestCounts)
  faults.lagBlocks = requestedFaults.lag ?? 0
  const chances = createChances(requestedFaults, settings.seed)
  const blockProducer = createBlockProducer({ scriptedChain, replica, faultController, chances, sockets, onChange })
  const list = createList(settings, scriptedChain, startedMs)
  const { inject, takeQueued } = createTransactionQueue(settings.seed, scriptedChain)
  const steps = { ...blockProducer, makeFlashblock: () => blockProducer.makeFlashblock(takeQueued()) }

  const server = await openServer({ readListBody: list.body, selectNode, sockets, faults, onRequest: countRequest }, host, port)
  const takeStep = () => (scriptedChain.isSealNext() ? steps.seal() : steps.makeFlashblock())
  const stopTimer = isManual ? () => {} : runOnSchedule(now, nextStepAfterStall(scriptedChain, requestedFaults), takeStep)
  const stopWindows = runFaultWindows(requestedFaults, faults, now)
  const stop = () => {
    stopTimer()
    stopWindows()
    sockets.closeAll()
    return closeServer(server)
  }
  let stopped: Promise<void> | undefined

  return {
    ...urlsOf(`${host}:${portOf(server)}`),
    ...fixturesOf(settings),
    chainId,
    faults,
    list,
    custodian: scriptedChain.custodian,
    requests,
    until,
    ...createTestActions({ ...scriptedChain, addressOf: list.addressOf, inject }),
    ...(isManual ? steps : refusedSteps),
    /** The chain as it is now, so that a test can compare it with the messages of a relay. */
    get chain() {
      return scriptedChain.chain
    },
    /** Pre-confirmed state of each feed, by the symbol under which its token was issued. */
    get feeds() {
      return readFeeds(scriptedChain.chain, settings.calendar ? [...feeds, testFeed] : feeds)
    },
    subscriptions: () => sockets.countSubscriptions(),
    sockets: () => sockets.size,
    stop: () => (stopped ??= stop()),
  }
}

/** Starts the built-in chain as the upstream of a relay that reads so far back, with the settings that the relay needs for it. */
export async function startBuiltInChain(requestedFaults: RequestedFaults = {}, pastMs = 0) {
  // Answers `eth_call`, as the node of a provider may. The relay also works without these answers.
  const devnet = await startDevnet({ calls: true, pastMs, requestedFaults })
  const { rpcUrl, wsUrl, url, feeds, pools, oracleRegistry } = devnet
  return {
    upstream: {
      chain: { upstreamRpcUrl: [rpcUrl], upstreamWsUrl: [wsUrl], isBuiltIn: true },
      tokens: {
        stocksApiUrl: url,
        feeds: Object.entries(feeds).map(([token, { proxy }]) => ({ token, proxy })),
        ...{ pools, mainCurrency: null, oracleRegistry },
      },
    },
    stop: () => devnet.stop(),
  }
}

/** At the pace of the clock, a test that made blocks would make others than those of the seed. */
const refuseStep = (): never => {
  throw new Error('the clock sets the pace here')
}
const refusedSteps = { makeFlashblock: refuseStep, seal: refuseStep, reorg: refuseStep }

type DevnetSettings = ReturnType<typeof withDefaults>

const withDefaults = (options: DevnetOptions) => {
  const settings = { ...defaults, ...options }
  const isManual = settings.pace === 'manual'
  const transactionsPerFlashblock = isManual ? 0 : settings.transactionsPerFlashblock
  const calendar = options.calendar ?? (transactionsPerFlashblock > 0 && settings.blockMs >= CALENDAR_BLOCK_MS)
  const pastMs = Math.min(settings.pastMs, PAST_BLOCKS_BOUND * settings.blockMs)
  return { ...settings, isManual, transactionsPerFlashblock, calendar, pastMs }
}

/** Runs each step when it is due. Returns a function that ends the schedule. */
const runOnSchedule = (now: () => number, nextDueMs: () => number, takeStep: () => void): (() => void) => {
  let timer: NodeJS.Timeout | undefined
  const runDueSteps = () => {
    for (let steps = 0; steps < STEPS_PER_TURN_BOUND && nextDueMs() <= now(); steps++) takeStep()
    timer = setTimeout(runDueSteps, Math.max(0, nextDueMs() - now()))
  }
  runDueSteps()
  return () => clearTimeout(timer)
}

/** Returns when the next step is due. A step that would be due during a stall is due at the end of the stall. */
const nextStepAfterStall =
  ({ nextStepDueMs }: ScriptedChain, { stall }: RequestedFaults) =>
  (): number => {
    const dueMs = nextStepDueMs()
    return stall && isWithin(stall, dueMs) ? windowEndMs(stall, dueMs) : dueMs
  }

/** Makes the node behind HTTP and sockets. With the fault `lagBlocks`, HTTP requests reach a replica that lags. */
const createNode = (settings: DevnetSettings, chain: ScriptedChain, faultController: FaultController, counts: RequestCounts) => {
  const { countRequest, changed: onChange } = counts
  const { faults } = faultController
  const replica = createUpToDateReplica(chain, faults)
  const node = { ...settings, replica, faultController }
  const upToDateMethods = createMethods(node)
  const laggingMethods = createMethods({ ...node, replica: createLaggingReplica(chain, faults) })
  const sockets = new DevnetSockets({ call: upToDateMethods, faults, countRequest, onChange })
  const selectNode = (): RpcHandler => {
    const callMethod = faultController.isForLaggingReplica() ? laggingMethods : upToDateMethods
    return (method, params) => {
      countRequest(method)
      return callMethod(method, params)
    }
  }
  return { replica, sockets, selectNode }
}

const createList = ({ seed, blockMs, calendar, isManual, now }: DevnetSettings, chain: ScriptedChain, startedMs: number) => {
  const readNav = calendar ? createCalendarNav(seed, blockMs) : createNavCurve(seed)
  const readRecord = createRecordReader(chain, (token) => readNav(token, isManual ? startedMs : now()))
  return createStockList([...tokens, lateToken, testToken], readRecord)
}

const countedRequests = [
  ...(Object.keys(methods) as Method[]),
  ...(['eth_call', 'eth_subscribe', 'eth_unsubscribe', 'unknown', 'list', 'post', 'socket'] as const),
]
type CountedRequest = (typeof countedRequests)[number]
type RequestCounts = ReturnType<typeof createRequestCounts>

/** Makes the counters of requests, and a function by which a test waits for a condition without polling. */
const createRequestCounts = () => {
  const watchers = new ConditionWatchers()
  const changed = () => watchers.notify()
  /** Number of requests by method and by kind. Refused requests count too. */
  const requests = Object.fromEntries(countedRequests.map((name) => [name, 0])) as Record<CountedRequest, number>
  const countRequest = (name: string) => {
    requests[countedRequests.find((counted) => counted === name) ?? 'unknown'] += 1
    changed()
  }
  /** Resolves once the condition is true. Checks it after every request, connection, flashblock and seal. */
  const until = (condition: () => boolean) => watchers.until(condition)
  return { requests, countRequest, changed, until }
}

/** Makes the queue of the transactions that wait for the next flashblock. */
const createTransactionQueue = (seed: string, scriptedChain: ScriptedChain) => {
  const queued: DeferredTransaction[] = []
  let injectedCount = 0
  const inject = (deferred: DeferredTransaction): Hex => {
    if (queued.length >= QUEUED_BOUND) throw new Error(`only ${QUEUED_BOUND} transactions can wait for a flashblock`)
    injectedCount += 1
    const hash = digest(seed, 'injected', scriptedChain.chain.pending.number, injectedCount)
    queued.push((context) => ({ ...deferred(context), injectedHash: hash }))
    return hash
  }
  return { inject, takeQueued: () => queued.splice(0) }
}

const urlsOf = (address: string) => ({
  url: `http://${address}`,
  rpcUrl: `http://${address}/rpc`,
  wsUrl: `ws://${address}/`,
  stocksUrl: `http://${address}/v1/tokenized-stocks`,
})

const readFeeds = (chain: Chain, known: typeof feeds): Record<string, FeedState> => {
  const readState = (key: string) => chain.valueAt(key, 'pending')
  return Object.fromEntries(known.map(({ token, proxy }) => [token.symbol, readFeedState(readState, proxy)]))
}
