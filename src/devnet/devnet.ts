import type { DevnetBlock, DevnetLog, EmittedLog } from './chain/block.ts'
import { runOnSchedule } from './chain/block-timer.ts'
import type { Chain } from './chain/chain.ts'
import type { DeferredTransaction } from './chain/deferred-tx.ts'
import { digest, type HexString, toLowerHex } from './chain/hex.ts'
import { buildFundedTransfer, buildLogsTransaction, senderOf, type TokenTransfer } from './chain/transactions.ts'
import { createFaultController } from './faults/apply.ts'
import type { Faults, SubscriptionKind } from './faults/faults.ts'
import { createIssuer, type IssuerActions, type RoundRequest } from './life/issuer.ts'
import { createNavCurve, withFeedFaults } from './life/nav-curve.ts'
import { createBlockProducer } from './node/announce.ts'
import type { CallMethod } from './node/json-rpc.ts'
import { createListedTokenReader } from './node/list-record.ts'
import { createMethods } from './node/methods.ts'
import { createLaggingReplica, createUpToDateReplica } from './node/replica.ts'
import { type CountedRequest, createRequestCounts } from './node/request-counts.ts'
import { closeServer, openServer, portOf } from './node/server.ts'
import { DevnetSockets } from './node/sockets.ts'
import { createStockList, type StockList } from './node/stock-list.ts'
import { type FeedState, feeds, readFeedState } from './tokens/feeds.ts'
import { type DevnetToken, lateToken, tokens } from './tokens/listed.ts'
import { openWorld } from './world.ts'

/** How the devnet is to be; every field has a default. */
export type DevnetOptions = {
  /** 0, the default, for any that is free. */
  port?: number
  host?: string
  seed?: string
  chainId?: number
  blockMs?: number
  flashblockMs?: number
  now?: () => number
  /** `clock`: blocks come by themselves, with a market. `manual`: nothing happens unless it is asked for. */
  pace?: 'clock' | 'manual'
  /** How many transactions the market makes per flashblock, on average; 0 closes it. */
  transactionsPerFlashblock?: number
  /**
   * Whether the tokens have a corporate life and their feeds publish: at the clock's pace, where the market is open. By
   * default they do, unless blocks are so fast that there would be little else.
   */
  calendar?: boolean
  /** Whether `eth_getBlockReceipts` is answered; public endpoints refuse it with 403. */
  receipts?: boolean
  /** Whether `eth_call` is answered; otherwise it is refused like that too. */
  calls?: boolean
  /** How many blocks the tags `safe` and `finalized` trail the newest. */
  safeDepth?: number
  finalizedDepth?: number
}

/** What is transferred: from the zero address it is a mint, to it a burn. The custodian stands in for an end that is not named. */
type TransferRequest = { symbol?: string; address?: string; from?: string; to?: string; raw: bigint }

/** A devnet that runs. */
export type Devnet = {
  url: string
  rpcUrl: string
  wsUrl: string
  stocksUrl: string
  chainId: number
  faults: Faults
  /** The truth, to compare with what a relay says. */
  chain: Pick<Chain, 'head' | 'pending' | 'oldest' | 'block' | 'blockOfHash' | 'valueAt'>
  /** Those listed at the start. */
  tokens: readonly DevnetToken[]
  list: StockList
  /** Who holds plenty of every token. */
  custodian: HexString
  /** Puts a transfer into the next flashblock; the hash that its transaction will have. Whoever holds too little is given it first. */
  transfer: (transfer: TransferRequest) => HexString
  /** Puts a transaction with these logs into the next flashblock. */
  emit: (...logs: EmittedLog[]) => HexString
  /** What a test asks of the issuer. */
  issuer: IssuerActions
  /** Puts a round of a token's feed into the next flashblock. */
  publishRound: (round: RoundRequest) => HexString
  /** Puts another aggregator behind the proxy of a token's feed, in the next phase. */
  swapAggregator: (symbol: string) => HexString
  /** What stands behind the proxy of each feed, as pre-confirmed, by the symbol that its token was issued under. */
  readonly feeds: Readonly<Record<string, FeedState>>
  /** Makes the next flashblock now; its logs. At manual pace only, as are the next two. */
  makeFlashblock: () => readonly DevnetLog[]
  /** Seals the block now. */
  seal: () => DevnetBlock
  /** Replaces the newest blocks, without some of their transactions; those in `later` come back in the next flashblock. */
  reorg: (depth: number, dropped?: readonly HexString[], moved?: readonly HexString[]) => readonly DevnetBlock[]
  /** How many requests were heard. */
  requests: Readonly<Record<CountedRequest, number>>
  /** How many subscriptions are open. */
  subscriptions: () => Record<SubscriptionKind, number>
  /** How many sockets are open. */
  sockets: () => number
  /** Resolves once a condition holds; it is looked at whenever something was asked, connected, made or sealed. */
  until: (condition: () => boolean) => Promise<void>
  stop: () => Promise<void>
}

/** With faster blocks there is no calendar by default: a tide would be over in a minute or two. */
const CALENDAR_BLOCK_MS = 1_000

/** How many transactions may wait for the next flashblock. */
const QUEUED_BOUND = 10_000

/** Starts the chain in the box, with some hundred blocks behind it, and serves it. */
export const startDevnet = async (options: DevnetOptions = {}): Promise<Devnet> => {
  const { port = 0, host = '127.0.0.1', seed = 'stocktape', chainId = 84_532_001 } = options
  const { receipts = false, calls = false } = options
  const { blockMs = 2_000, flashblockMs = 200, safeDepth = 30, finalizedDepth = 100, now = Date.now } = options
  const manual = options.pace === 'manual'
  const transactionsPerFlashblock = manual ? 0 : (options.transactionsPerFlashblock ?? 2)
  const startedMs = now()
  const calendar = transactionsPerFlashblock > 0 && (options.calendar ?? blockMs >= CALENDAR_BLOCK_MS)
  const world = openWorld({ seed, chainId, blockMs, flashblockMs, transactionsPerFlashblock, calendar }, startedMs)
  const { chain } = world

  const { requests, countRequest, changed: onChange, until } = createRequestCounts()
  const faultController = createFaultController(() => sockets.closeAll())
  const { faults } = faultController
  const replica = createUpToDateReplica(chain, faults)
  const node = { replica, faultController, chainId, receipts, calls, safeDepth, finalizedDepth }
  const [upToDateMethods, laggingMethods] = [
    createMethods(node),
    createMethods({ ...node, replica: createLaggingReplica(chain, faults) }),
  ]
  const sockets = new DevnetSockets({ call: upToDateMethods, faults, countRequest, onChange })
  const blockProducer = createBlockProducer({ world, replica, faultController, sockets, onChange })
  const readNav = calendar ? withFeedFaults(createNavCurve(seed)) : createNavCurve(seed)
  const readListedToken = createListedTokenReader(world, (token) => readNav(token, manual ? startedMs : now()))
  const list = createStockList([...tokens, lateToken], readListedToken)

  const queued: DeferredTransaction[] = []
  let injectedCount = 0
  const inject = (deferred: DeferredTransaction): HexString => {
    if (queued.length >= QUEUED_BOUND) throw new Error(`only ${QUEUED_BOUND} transactions can wait for a flashblock`)
    injectedCount += 1
    const hash = digest(seed, 'injected', chain.pending.number, injectedCount)
    queued.push((context) => ({ ...deferred(context), injectedHash: hash }))
    return hash
  }
  const { custodian, operator } = world
  const issuerActions = createIssuer({ inject, addressOf: list.addressOf, custodian, operator })
  const makeFlashblock = () => blockProducer.makeFlashblock(queued.splice(0))

  const selectNode = (): CallMethod => {
    const callMethod = faultController.isForLaggingReplica() ? laggingMethods : upToDateMethods
    return (method, params) => {
      countRequest(method)
      return callMethod(method, params)
    }
  }
  const server = await openServer(
    { readListBody: list.body, selectNode, sockets, faults, onRequest: countRequest },
    host,
    port,
  )
  const stopTimer = manual
    ? () => {}
    : runOnSchedule(now, world.nextStepDueMs, () => (world.isSealNext() ? blockProducer.seal() : makeFlashblock()))
  const stop = () => {
    stopTimer()
    sockets.closeAll()
    return closeServer(server)
  }
  let stopped: Promise<void> | undefined
  const address = `${host}:${portOf(server)}`

  return {
    url: `http://${address}`,
    rpcUrl: `http://${address}/rpc`,
    wsUrl: `ws://${address}/`,
    stocksUrl: `http://${address}/v1/tokenized-stocks`,
    chainId,
    faults,
    chain,
    tokens,
    list,
    custodian,
    transfer: (transfer) => {
      const tokenTransfer = toTokenTransfer(transfer, list, custodian)
      return inject(() => buildFundedTransfer(tokenTransfer, senderOf(tokenTransfer, custodian)))
    },
    emit: (...logs) => inject(() => buildLogsTransaction(custodian, logs)),
    ...issuerActions,
    get feeds() {
      const readState = (key: string) => chain.valueAt(key, 'pending')
      return Object.fromEntries(feeds.map(({ token, proxy }) => [token.symbol, readFeedState(readState, proxy)]))
    },
    makeFlashblock: manualOnly(manual, makeFlashblock),
    seal: manualOnly(manual, blockProducer.seal),
    reorg: manualOnly(manual, blockProducer.reorg),
    requests,
    subscriptions: () => sockets.countSubscriptions(),
    sockets: () => sockets.size,
    until,
    stop: () => {
      stopped ??= stop()
      return stopped
    },
  }
}

const toTokenTransfer = (
  { symbol, address, from, to, raw }: TransferRequest,
  list: StockList,
  custodian: HexString,
): TokenTransfer => {
  if (symbol === undefined && address === undefined) throw new Error('a transfer needs a symbol or an address')
  return {
    token: address === undefined ? list.addressOf(symbol ?? '') : toLowerHex(address),
    from: from === undefined ? custodian : toLowerHex(from),
    to: to === undefined ? custodian : toLowerHex(to),
    raw,
  }
}

/** At the clock's pace nobody else makes blocks: they would not be those that the seed tells. */
const manualOnly =
  <A extends unknown[], R>(manual: boolean, action: (...args: A) => R) =>
  (...args: A): R => {
    if (!manual) throw new Error('the clock sets the pace here')
    return action(...args)
  }
