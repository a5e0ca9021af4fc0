import { parseUnits } from 'viem/utils'
import { type Hex, toLowerHex } from '../lib/hex.ts'
import type { DeferredTransaction, EmittedLog } from './chain/chain-types.ts'
import { type DevnetPool, pools, routePartnerOf } from './tokens/devnet-pools.ts'
import { buildAggregatorSwap, buildRoundTransaction, FEED_DECIMALS, feeds } from './tokens/feeds.ts'
import { buildFeedFreeze } from './tokens/oracle-registry.ts'
import { rootOfPrice } from './tokens/sqrt-price.ts'
import { buildRoute, buildSwap } from './tokens/swap-call.ts'
import * as calls from './tokens/token-calls.ts'
import { buildFundedTransfer, buildLogsTransaction, buildSeizure, senderOf, type TokenTransfer } from './tokens/token-transfers.ts'

/** Names a token by its symbol on the list, or by the symbol under which it was issued. */
type TokenRef = { symbol: string }

/** A new multiplier in decimal, such as `1.000537939576369481`. It is immediate without `effectiveAt`, a second of Unix time. */
type Split = { to: string; effectiveAt?: number }

type AnnouncementRequest = { id: string; description?: string; uri?: string }

type DetailChanges = { uri?: string; metadata?: Readonly<Record<string, string>>; supplyCap?: bigint }

/** A movement. `from` and `to` default to the custodian. A mint is from the zero address, a burn is to it. */
type TransferRequest = { symbol?: string; address?: string; from?: string; to?: string; raw: bigint; memo?: Hex }

/**
 * A swap in a pool of a token: the one with the `id`, or the first of the kind, by default Uniswap v3. `price` is decimal, and `sqrtPriceX96` is the root as the
 * pool stores it. An omitted field does not change.
 */
type SwapRequest = { kind?: DevnetPool['kind']; id?: Hex; price?: string; sqrtPriceX96?: bigint; liquidity?: bigint }

/** A round of a token's feed: decimal price, number (default: the next), Unix seconds (default: the block's). */
type RoundRequest = TokenRef & { price: string; round?: number | bigint; updatedAt?: number }

type ActionInputs = {
  inject: (transaction: DeferredTransaction) => Hex
  addressOf: (symbol: string) => Hex
  custodian: Hex
  operator: Hex
  trader: Hex
}

/**
 * Actions of the issuer, of traders and of the price feeds, for tests. Each puts a transaction into the next flashblock and
 * returns its hash. A call that the token refuses is still included, without logs and without effect.
 */
export const createTestActions = (inputs: ActionInputs) => {
  const { seize, ...transfers } = createTransferActions(inputs)
  return {
    ...transfers,
    issuer: { ...createTokenActions(inputs), seize },
    ...createFeedActions(inputs),
    ...createSwapActions(inputs),
  }
}

const createTokenActions = ({ inject, addressOf, operator }: ActionInputs) => {
  const submit = (symbol: string, ...tokenCalls: readonly calls.TokenCall[]): Hex =>
    inject(calls.buildTokenCall({ token: addressOf(symbol), sender: operator }, ...tokenCalls))
  return {
    /** Changes the multiplier, now or later. An immediate change cancels a scheduled one. A second schedule is refused. */
    split: ({ symbol, ...split }: TokenRef & Split) => submit(symbol, multiplierCall(split)),
    cancelSplit: ({ symbol }: TokenRef) => submit(symbol, calls.cancelSchedule),
    /** Announces a cash dividend, and changes the multiplier in the same transaction. */
    dividend: ({ symbol, to, ...notice }: TokenRef & AnnouncementRequest & { to: string }) =>
      submit(symbol, calls.announce(notice, multiplierCall({ to }))),
    /** Announces a split in the transaction of the split; without `split`, only publishes a notice. */
    announce: ({ symbol, split, ...notice }: TokenRef & AnnouncementRequest & { split?: Split }) =>
      submit(symbol, calls.announce(notice, ...(split ? [multiplierCall(split)] : []))),
    /** Pauses features, by their ordinals. */
    pause: ({ symbol, features }: TokenRef & { features: readonly number[] }) => submit(symbol, calls.pause(features)),
    unpause: ({ symbol, features }: TokenRef & { features: readonly number[] }) => submit(symbol, calls.unpause(features)),
    /** Freezes the token's feed in the oracle's registry. Emits no log. */
    freezeFeed: ({ symbol }: TokenRef) => inject(buildFeedFreeze(addressOf(symbol), operator, true)),
    unfreezeFeed: ({ symbol }: TokenRef) => inject(buildFeedFreeze(addressOf(symbol), operator, false)),
    /** Changes the name, the symbol, or both in one transaction. */
    rename: ({ symbol, to, name }: TokenRef & { to?: string; name?: string }) =>
      submit(
        symbol,
        ...(name === undefined ? [] : [calls.changeName(name)]),
        ...(to === undefined ? [] : [calls.changeSymbol(to)]),
      ),
    /** Changes other token details, in the order of these fields. */
    updateDetails: ({ symbol, uri, metadata = {}, supplyCap }: TokenRef & DetailChanges) =>
      submit(
        symbol,
        ...(uri === undefined ? [] : [calls.changeContractUri(uri)]),
        ...Object.entries(metadata).map(([key, value]) => calls.changeMetadata(key, value)),
        ...(supplyCap === undefined ? [] : [calls.changeSupplyCap(supplyCap)]),
      ),
  }
}

const createTransferActions = ({ inject, addressOf, custodian, operator }: ActionInputs) => {
  const toTokenTransfer = ({ symbol, address, from = custodian, to = custodian, raw, memo }: TransferRequest): TokenTransfer => {
    if (symbol === undefined && address === undefined) throw new Error('a transfer needs a symbol or an address')
    const token = address === undefined ? addressOf(symbol ?? '') : toLowerHex(address)
    return { token, from: toLowerHex(from), to: toLowerHex(to), raw, memo }
  }
  return {
    /** Transfers, mints or burns tokens. The holder first receives the missing ones. Emits Transfer, and Memo if there is one. */
    transfer: (request: TransferRequest) => {
      const transfer = toTokenTransfer(request)
      return inject(() => buildFundedTransfer(transfer, senderOf(transfer, custodian)))
    },
    emit: (...logs: EmittedLog[]) => inject(() => buildLogsTransaction(custodian, logs)),
    /** Takes tokens away from a holder. Emits Transfer, Memo and Seized. */
    seize: (request: TransferRequest & { memo: Hex }) =>
      inject(() => buildFundedTransfer(toTokenTransfer(request), operator, buildSeizure)),
  }
}

const createFeedActions = ({ inject, addressOf, operator }: ActionInputs) => {
  const feedOf = (symbol: string) => {
    const token = addressOf(symbol)
    const feed = feeds.find((candidate) => candidate.token.address === token)
    if (!feed) throw new Error(`${symbol} has no feed`)
    return feed
  }
  return {
    publishRound: ({ symbol, price, round, updatedAt }: RoundRequest): Hex =>
      inject(
        buildRoundTransaction(feedOf(symbol), operator, {
          answer: parseUnits(price, FEED_DECIMALS),
          ...(round !== undefined && { round: BigInt(round) }),
          ...(updatedAt !== undefined && { updatedAt: BigInt(updatedAt) }),
        }),
      ),
    /** Puts a new aggregator behind the proxy of a token's feed, in the next phase. */
    swapAggregator: (symbol: string): Hex => inject(buildAggregatorSwap(feedOf(symbol), operator)),
  }
}

const createSwapActions = ({ inject, addressOf, trader }: ActionInputs) => {
  const poolOf = (symbol: string, name: string, isWanted: (pool: DevnetPool) => boolean): DevnetPool => {
    const token = addressOf(symbol)
    const pool = pools.find((candidate) => candidate.token === token && isWanted(candidate))
    if (!pool) throw new Error(`${symbol} has no pool ${name}`)
    return pool
  }
  return {
    swap: (symbol: string, { kind = 'uniswap_v3', id, price, sqrtPriceX96, liquidity }: SwapRequest): Hex => {
      const pool = poolOf(symbol, id ?? kind, (candidate) => (id === undefined ? candidate.kind === kind : candidate.id === id))
      const root = price === undefined ? sqrtPriceX96 : rootOfPrice(pool, price)
      return inject(buildSwap(pool, trader, { sqrtPriceX96: root, liquidity }))
    },
    /** Sets the price of a Uniswap v4 pool with tokens of a deeper one, in one transaction without a Transfer. */
    route: (symbol: string, price: string): Hex => {
      const pool = poolOf(symbol, 'with a deeper one', (candidate) => routePartnerOf(candidate) !== undefined)
      const partner = routePartnerOf(pool) ?? pool
      return inject(buildRoute(pool, partner, trader, rootOfPrice(pool, price)))
    },
  }
}

const multiplierCall = ({ to, effectiveAt }: Split): calls.TokenCall =>
  effectiveAt === undefined ? calls.changeMultiplier(to) : calls.scheduleMultiplier(to, effectiveAt)
