import type { RequestedFaults } from '../lib/fault-settings.ts'
import { isWithin, windowEndMs } from '../lib/fault-settings.ts'
import type { Hex } from '../lib/hex.ts'
import { type Method, methods } from '../protocol/json-rpc-methods.ts'
import type { Chain } from './chain/chain.ts'
import type { DeferredTransaction, DevnetBlock, DevnetLog } from './chain/chain-types.ts'
import { digest } from './chain/hashes.ts'
import { createFaultController, type FaultController } from './faults/fault-controller.ts'
import type { DevnetSubscriptionKind, Faults } from './faults/faults.ts'
import { createChances, runFaultWindows } from './faults/recurring-faults.ts'
import { createCalendarNav } from './life/calendar-nav.ts'
import { createNavCurve } from './life/nav-curve.ts'
import { createBlockProducer } from './node/block-producer.ts'
import type { RpcHandler } from './node/json-rpc.ts'
import { closeServer, openServer, portOf } from './node/node-server.ts'
import { DevnetSockets } from './node/node-sockets.ts'
import { createLaggingReplica, createUpToDateReplica } from './node/replica.ts'
import { createMethods } from './node/rpc-methods.ts'
import { createRecordReader, createStockList, type StockList } from './node/stock-list.ts'
import { openScriptedChain, type ScriptedChain } from './scripted-chain.ts'
import { createTestActions } from './test-actions.ts'
import { type DevnetPool, pools, poolsText, quoteTokens } from './tokens/devnet-pools.ts'
import { type FeedState, feeds, readFeedState, testFeed } from './tokens/feeds.ts'
import { type DevnetToken, lateToken, testToken, tokens } from './tokens/issued-tokens.ts'
import { oracleRegistry } from './tokens/oracle-registry.ts'

export type DevnetOptions = {
  /** 0, the default, takes any free port. */
  port?: number
  host?: string
  seed?: string
  chainId?: number
  blockMs?: number
  flashblockMs?: number
  now?: () => number
  /** `clock`: blocks are made on time, with trading. `manual`: the devnet does nothing without a call. */
  pace?: 'clock' | 'manual'
  /** Average number of market transactions per flashblock; 0 closes the market. */
  transactionsPerFlashblock?: number
  /** Whether corporate actions happen, feeds publish and the test token is listed. */
  calendar?: boolean
  /** Whether the node answers `eth_getBlockReceipts`, and with `calls` also `eth_call`. Public endpoints refuse both with 403. */
  receipts?: boolean
  calls?: boolean
  /** Number of blocks from the tag `safe` to the newest block, and with `finalizedDepth` from the tag `finalized`. */
  safeDepth?: number
  finalizedDepth?: number
  /** Faults that happen by chance or by the clock. A test sets the fields of `Devnet.faults` instead. */
  requestedFaults?: RequestedFaults
}

export type Devnet = ReturnType<typeof createTestActions> & {
  url: string
  rpcUrl: string
  wsUrl: string
  stocksUrl: string
  chainId: number
  faults: Faults
  /** The chain as it is now, so that a test can compare it with the messages of a relay. */
  readonly chain: Chain
  tokens: readonly DevnetToken[]
  list: StockList
  custodian: Hex
  /** Pre-confirmed state of each feed, by the symbol under which its token was issued. */
  readonly feeds: Readonly<Record<string, FeedState>>
  pools: readonly DevnetPool[]
  /** Value of the relay's setting POOLS for this chain; `quoteTokens` is that of QUOTE_TOKENS. */
  poolsText: string
  quoteTokens: string
  oracleRegistry: Hex
  /** Makes the next flashblock now and returns its logs. Works only at manual pace, like `seal` and `reorg`. */
  makeFlashblock: () => readonly DevnetLog[]
  seal: () => DevnetBlock
  /** Replaces the `depth` newest blocks, without the `dropped` transactions. The next flashblock contains the `moved` ones. */
  reorg: (depth: number, dropped?: readonly Hex[], moved?: readonly Hex[]) => readonly DevnetBlock[]
  /** Number of requests by method and by kind. Refused requests count too. */
  requests: Readonly<Record<CountedRequest, number>>
  subscriptions: () => Record<DevnetSubscriptionKind, number>
  sockets: () => number
  /** Resolves once the condition is true. Checks it after every request, connection, flashblock and seal. */
  until: (condition: () => boolean) => Promise<void>
  stop: () => Promise<void>
}

/** Least time between blocks for a calendar by default. With less, a cycle would last at most some minutes. */
const CALENDAR_BLOCK_MS = 1_000
const QUEUED_BOUND = 10_000
const WATCHERS_BOUND = 1_000
/** Limit of due steps that run in one turn of the event loop. After the machine slept, thousands may be due. */
const STEPS_PER_TURN_BOUND = 1_000

/** Starts a devnet with some hundred blocks of history, and serves it. */
export const startDevnet = async (options: DevnetOptions = {}): Promise<Devnet> => {
  const settings = withDefaults(options)
  const { host, port, chainId, isManual, now } = settings
  const startedMs = now()
  const scriptedChain = openScriptedChain(settings, startedMs)
  const { custodian } = scriptedChain

  const requestCounts = createRequestCounts()
  const { requests, countRequest, changed: onChange, until } = requestCounts
  const faultController = createFaultController(() => sockets.closeAll())
  const { faults } = faultController
  const { replica, sockets, selectNode } = createNode(settings, scriptedChain, faultController, requestCounts)
  const { requestedFaults } = settings
  faults.lagBlocks = requestedFaults.lag ?? 0
  const chances = createChances(requestedFaults, settings.seed)
  const blockProducer = createBlockProducer({ scriptedChain, replica, faultController, chances, sockets, onChange })
  const list = createList(settings, scriptedChain, startedMs)
  const { inject, takeQueued } = createTransactionQueue(settings.seed, scriptedChain)
  const makeFlashblock = () => blockProducer.makeFlashblock(takeQueued())

  const server = await openServer({ readListBody: list.body, selectNode, sockets, faults, onRequest: countRequest }, host, port)
  const takeStep = () => (scriptedChain.isSealNext() ? blockProducer.seal() : makeFlashblock())
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
    chainId,
    faults,
    get chain() {
      return scriptedChain.chain
    },
    tokens,
    list,
    custodian,
    ...{ pools, poolsText, quoteTokens, oracleRegistry },
    ...createTestActions({ ...scriptedChain, addressOf: list.addressOf, inject }),
    get feeds() {
      return readFeeds(scriptedChain.chain, settings.calendar ? [...feeds, testFeed] : feeds)
    },
    makeFlashblock: manualOnly(isManual, makeFlashblock),
    seal: manualOnly(isManual, blockProducer.seal),
    reorg: manualOnly(isManual, blockProducer.reorg),
    requests,
    subscriptions: () => sockets.countSubscriptions(),
    sockets: () => sockets.size,
    until,
    stop: () => (stopped ??= stop()),
  }
}

type DevnetSettings = ReturnType<typeof withDefaults>

const withDefaults = (options: DevnetOptions) => {
  const isManual = options.pace === 'manual'
  const blockMs = options.blockMs ?? 2_000
  const transactionsPerFlashblock = isManual ? 0 : (options.transactionsPerFlashblock ?? 2)
  return {
    port: options.port ?? 0,
    host: options.host ?? '127.0.0.1',
    seed: options.seed ?? 'stocktape',
    chainId: options.chainId ?? 84_532_001,
    blockMs,
    flashblockMs: options.flashblockMs ?? 200,
    now: options.now ?? Date.now,
    isManual,
    transactionsPerFlashblock,
    calendar: options.calendar ?? (transactionsPerFlashblock > 0 && blockMs >= CALENDAR_BLOCK_MS),
    receipts: options.receipts ?? false,
    calls: options.calls ?? false,
    safeDepth: options.safeDepth ?? 30,
    finalizedDepth: options.finalizedDepth ?? 100,
    requestedFaults: options.requestedFaults ?? {},
  }
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
const createNode = (
  { chainId, receipts, calls, safeDepth, finalizedDepth }: DevnetSettings,
  chain: ScriptedChain,
  faultController: FaultController,
  { countRequest, changed: onChange }: RequestCounts,
) => {
  const { faults } = faultController
  const replica = createUpToDateReplica(chain, faults)
  const node = { replica, faultController, chainId, receipts, calls, safeDepth, finalizedDepth }
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
  const requests = Object.fromEntries(countedRequests.map((name) => [name, 0])) as Record<CountedRequest, number>
  const watchers = new Set<() => void>()
  const changed = () => {
    for (const watcher of watchers) watcher()
  }
  const countRequest = (name: string) => {
    requests[countedRequests.find((counted) => counted === name) ?? 'unknown'] += 1
    changed()
  }
  const until = (condition: () => boolean) =>
    new Promise<void>((resolve) => {
      if (watchers.size >= WATCHERS_BOUND) throw new Error(`only ${WATCHERS_BOUND} can wait at a time`)
      const watcher = () => {
        if (!condition()) return
        watchers.delete(watcher)
        resolve()
      }
      watchers.add(watcher)
      watcher()
    })
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

/** Allows an action only at manual pace. At the pace of the clock, it would make blocks that differ from those of the seed. */
const manualOnly =
  <A extends unknown[], R>(isManual: boolean, action: (...args: A) => R) =>
  (...args: A): R => {
    if (!isManual) throw new Error('the clock sets the pace here')
    return action(...args)
  }
