import type { BareLog, Block, Log } from './chain/block.ts'
import { keepPace } from './chain/block-timer.ts'
import type { Chain } from './chain/chain.ts'
import type { Plan } from './chain/deferred-tx.ts'
import { digest, type Hex, lower } from './chain/hex.ts'
import { arranged, type Movement, saying, senderOf } from './chain/transactions.ts'
import { createSkies } from './faults/apply.ts'
import type { Kind, Weather } from './faults/faults.ts'
import { type Acts, createDesk, type Publishing } from './life/issuer.ts'
import { createNav, troubled } from './life/nav-curve.ts'
import { createHerald } from './node/announce.ts'
import type { Call } from './node/json-rpc.ts'
import { readingOf } from './node/list-record.ts'
import { createRpc } from './node/methods.ts'
import { laggingOf, nearestOf } from './node/replica.ts'
import { type Counted, createEar } from './node/request-counts.ts'
import { closeServer, openServer, portOf } from './node/server.ts'
import { Sockets } from './node/sockets.ts'
import { createList, type StockList } from './node/stock-list.ts'
import { feeds, type Standing, standing } from './tokens/feeds.ts'
import { latecomer, type Token, tokens } from './tokens/listed.ts'
import { openWorld } from './world.ts'

/** How the devnet is to be; every field has a default. */
export type DevnetOptions = {
  /** 0, the default, for any that is free. */
  port?: number
  host?: string
  seed?: string
  chainId?: number
  blockMs?: number
  flashMs?: number
  now?: () => number
  /** `clock`: blocks come by themselves, with a market. `manual`: nothing happens unless it is asked for. */
  pace?: 'clock' | 'manual'
  /** How many transactions the market makes per flashblock, on average; 0 closes it. */
  transactionsPerFlash?: number
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
type Transfer = { symbol?: string; address?: string; from?: string; to?: string; raw: bigint }

/** A devnet that runs. */
export type Devnet = {
  url: string
  rpcUrl: string
  wsUrl: string
  stocksUrl: string
  chainId: number
  weather: Weather
  /** The truth, to compare with what a relay says. */
  chain: Pick<Chain, 'head' | 'pending' | 'oldest' | 'block' | 'blockOfHash' | 'held'>
  /** Those listed at the start. */
  tokens: readonly Token[]
  list: StockList
  /** Who holds plenty of every token. */
  custodian: Hex
  /** Puts a transfer into the next flashblock; the hash that its transaction will have. Whoever holds too little is given it first. */
  transfer: (transfer: Transfer) => Hex
  /** Puts a transaction with these logs into the next flashblock. */
  emit: (...logs: BareLog[]) => Hex
  /** What a test asks of the issuer. */
  act: Acts
  /** Puts a round of a token's feed into the next flashblock. */
  round: (round: Publishing) => Hex
  /** Puts another aggregator behind the proxy of a token's feed, in the next phase. */
  swapAggregator: (symbol: string) => Hex
  /** What stands behind the proxy of each feed, as pre-confirmed, by the symbol that its token was issued under. */
  readonly feeds: Readonly<Record<string, Standing>>
  /** Makes the next flashblock now; its logs. At manual pace only, as are the next two. */
  flash: () => readonly Log[]
  /** Seals the block now. */
  seal: () => Block
  /** Replaces the newest blocks, without some of their transactions; those in `later` come back in the next flashblock. */
  reorg: (depth: number, without?: readonly Hex[], later?: readonly Hex[]) => readonly Block[]
  /** How many requests were heard. */
  requests: Readonly<Record<Counted, number>>
  /** How many subscriptions are open. */
  subscriptions: () => Record<Kind, number>
  /** How many sockets are open. */
  sockets: () => number
  /** Resolves once a condition holds; it is looked at whenever something was asked, connected, made or sealed. */
  until: (condition: () => boolean) => Promise<void>
  stop: () => Promise<void>
}

/** With faster blocks there is no calendar by default: a tide would be over in a minute or two. */
const CALENDAR_BLOCK_MS = 1_000

/** How many transactions may wait for the next flashblock. */
const WAITING_BOUND = 10_000

/** Starts the chain in the box, with some hundred blocks behind it, and serves it. */
export const startDevnet = async (options: DevnetOptions = {}): Promise<Devnet> => {
  const { port = 0, host = '127.0.0.1', seed = 'stocktape', chainId = 84_532_001 } = options
  const { receipts = false, calls = false } = options
  const { blockMs = 2_000, flashMs = 200, safeDepth = 30, finalizedDepth = 100, now = Date.now } = options
  const manual = options.pace === 'manual'
  const transactionsPerFlash = manual ? 0 : (options.transactionsPerFlash ?? 2)
  const startedMs = now()
  const calendar = transactionsPerFlash > 0 && (options.calendar ?? blockMs >= CALENDAR_BLOCK_MS)
  const world = openWorld({ seed, chainId, blockMs, flashMs, transactionsPerFlash, calendar }, startedMs)
  const { chain } = world

  const { requests, see, changed, until } = createEar()
  const skies = createSkies(() => sockets.cut())
  const { weather } = skies
  const replica = nearestOf(chain, weather)
  const node = { replica, skies, chainId, receipts, calls, safeDepth, finalizedDepth }
  const [near, far] = [createRpc(node), createRpc({ ...node, replica: laggingOf(chain, weather) })]
  const sockets = new Sockets({ call: near, weather, see, changed })
  const herald = createHerald({ world, replica, skies, sockets, changed })
  const navOf = calendar ? troubled(createNav(seed)) : createNav(seed)
  const reading = readingOf(world, (token) => navOf(token, manual ? startedMs : now()))
  const list = createList([...tokens, latecomer], reading)

  const waiting: Plan[] = []
  let injected = 0
  const inject = (plan: Plan): Hex => {
    if (waiting.length >= WAITING_BOUND) throw new Error(`only ${WAITING_BOUND} transactions can wait for a flashblock`)
    injected += 1
    const hash = digest(seed, 'injected', chain.pending.number, injected)
    waiting.push((moment) => ({ ...plan(moment), injected: hash }))
    return hash
  }
  const { custodian, operator } = world
  const desk = createDesk({ inject, addressOf: list.addressOf, custodian, operator })
  const flash = () => herald.flash(waiting.splice(0))

  const callOfNode = (): Call => {
    const rpc = skies.lags() ? far : near
    return (method, params) => {
      see(method)
      return rpc(method, params)
    }
  }
  const server = await openServer({ listBody: list.body, callOfNode, sockets, weather, seen: see }, host, port)
  const rest = manual ? () => {} : keepPace(now, world.dueMs, () => (world.sealsNext() ? herald.seal() : flash()))
  const stop = () => {
    rest()
    sockets.cut()
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
    weather,
    chain,
    tokens,
    list,
    custodian,
    transfer: (transfer) => {
      const what = movementOf(transfer, list, custodian)
      return inject(() => arranged(what, senderOf(what, custodian)))
    },
    emit: (...logs) => inject(() => saying(custodian, logs)),
    ...desk,
    get feeds() {
      const held = (key: string) => chain.held(key, 'pending')
      return Object.fromEntries(feeds.map(({ token, proxy }) => [token.symbol, standing(held, proxy)]))
    },
    flash: byHand(manual, flash),
    seal: byHand(manual, herald.seal),
    reorg: byHand(manual, herald.reorg),
    requests,
    subscriptions: () => sockets.counts(),
    sockets: () => sockets.size,
    until,
    stop: () => {
      stopped ??= stop()
      return stopped
    },
  }
}

const movementOf = ({ symbol, address, from, to, raw }: Transfer, list: StockList, custodian: Hex): Movement => {
  if (symbol === undefined && address === undefined) throw new Error('a transfer needs a symbol or an address')
  return {
    token: address === undefined ? list.addressOf(symbol ?? '') : lower(address),
    from: from === undefined ? custodian : lower(from),
    to: to === undefined ? custodian : lower(to),
    raw,
  }
}

/** At the clock's pace nobody else makes blocks: they would not be those that the seed tells. */
const byHand =
  <A extends unknown[], R>(manual: boolean, act: (...args: A) => R) =>
  (...args: A): R => {
    if (!manual) throw new Error('the clock sets the pace here')
    return act(...args)
  }
