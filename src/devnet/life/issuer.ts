import { parseUnits } from 'viem/utils'
import type { DeferredTransaction } from '../chain/deferred-tx.ts'
import { type HexString, toLowerHex } from '../chain/hex.ts'
import { addMemo, addSeizure, buildFundedTransfer, senderOf, type TokenTransfer } from '../chain/transactions.ts'
import {
  changeContractUri,
  changeMetadata,
  changeName,
  changeSupplyCap,
  changeSymbol,
  pause,
  unpause,
} from '../tokens/admin.ts'
import { announce, buildTokenCall, multicall, type TokenCall } from '../tokens/call.ts'
import { buildAggregatorSwap, buildRoundTransaction, FEED_DECIMALS, feeds } from '../tokens/feeds.ts'
import { cancelSchedule, changeMultiplier, scheduleMultiplier } from '../tokens/multiplier.ts'
import { MULTIPLIER_DECIMALS } from '../tokens/storage.ts'

/** The token by the symbol that the list has for it, or that it was issued under. */
type TokenRef = { symbol: string }

/** A new multiplier in decimal, such as `2` or `1.000537939576369481`; at once, or from a second (of Unix time) on. */
type Split = { to: string; effectiveAt?: number }

/** What is announced; a text that is left out is empty. */
type AnnouncementRequest = { id: string; description?: string; uri?: string }

/** What is moved with a memo of 32 bytes; the custodian stands in for an end that is not named. */
type MemoTransfer = { from?: string; to?: string; raw: bigint; memo: HexString }

/**
 * What a test asks of the issuer. Each is a transaction in the next flashblock, and gives the hash that it will have;
 * a call that the token refuses is there, says nothing and changes nothing.
 */
export type IssuerActions = {
  /** Another multiplier, at once or scheduled. A schedule is refused while another lies ahead; one at once gives that up. */
  split: (split: TokenRef & Split) => HexString
  /** Gives up the schedule that lies ahead. */
  cancelSplit: (token: TokenRef) => HexString
  /** A cash dividend: announced, with the multiplier changed in the same transaction. */
  dividend: (dividend: TokenRef & AnnouncementRequest & { to: string }) => HexString
  /** Announces a split, or nothing but itself. */
  announce: (announcement: TokenRef & AnnouncementRequest & { split?: Split }) => HexString
  /** Pauses features, by their ordinals. */
  pause: (pause: TokenRef & { features: readonly number[] }) => HexString
  unpause: (unpause: TokenRef & { features: readonly number[] }) => HexString
  /** Takes tokens away from a holder: Transfer, Memo, Seized. */
  seize: (seizure: TokenRef & MemoTransfer) => HexString
  /** A transfer, mint or burn with a memo: Transfer, Memo. */
  transferWithMemo: (transfer: TokenRef & MemoTransfer) => HexString
  /** Another name, another symbol, or both in one transaction. */
  rename: (names: TokenRef & { to?: string; name?: string }) => HexString
  /** What else a token says of itself, in the order in which it stands here. */
  updateDetails: (
    details: TokenRef & { uri?: string; metadata?: Readonly<Record<string, string>>; supplyCap?: bigint },
  ) => HexString
}

/** A round of a token's feed: its price in decimal, its number (the next) and its second of Unix time (the block's). */
export type RoundRequest = TokenRef & { price: string; round?: number | bigint; updatedAt?: number }

/** What the desk works with. */
type IssuerInputs = {
  inject: (transaction: DeferredTransaction) => HexString
  addressOf: (symbol: string) => HexString
  custodian: HexString
  operator: HexString
}

/** The desk where a test orders what happens to the tokens and to their feeds. */
export const createIssuer = ({ inject, addressOf, custodian, operator }: IssuerInputs) => {
  const submit = (symbol: string, ...calls: readonly TokenCall[]): HexString => {
    const [first, ...others] = calls
    if (!first) throw new Error('there is nothing to do')
    const call = others.length === 0 ? first : multicall(calls)
    return inject(buildTokenCall({ token: addressOf(symbol), sender: operator }, call))
  }
  const toTokenTransfer = ({
    symbol,
    from = custodian,
    to = custodian,
    raw,
  }: TokenRef & MemoTransfer): TokenTransfer => ({
    token: addressOf(symbol),
    from: toLowerHex(from),
    to: toLowerHex(to),
    raw,
  })
  const issuer: IssuerActions = {
    split: ({ symbol, ...split }) => submit(symbol, multiplierCall(split)),
    cancelSplit: ({ symbol }) => submit(symbol, cancelSchedule),
    dividend: ({ symbol, to, ...notice }) => submit(symbol, announce(withDefaults(notice), [multiplierCall({ to })])),
    announce: ({ symbol, split, ...notice }) =>
      submit(symbol, announce(withDefaults(notice), split ? [multiplierCall(split)] : [])),
    pause: ({ symbol, features }) => submit(symbol, pause(features)),
    unpause: ({ symbol, features }) => submit(symbol, unpause(features)),
    seize: (seizure) => {
      const tokenTransfer = toTokenTransfer(seizure)
      return inject(() => addSeizure(buildFundedTransfer(tokenTransfer, operator), tokenTransfer, seizure.memo))
    },
    transferWithMemo: (transfer) => {
      const tokenTransfer = toTokenTransfer(transfer)
      return inject(() =>
        addMemo(buildFundedTransfer(tokenTransfer, senderOf(tokenTransfer, custodian)), tokenTransfer, transfer.memo),
      )
    },
    rename: ({ symbol, to, name }) =>
      submit(
        symbol,
        ...(name === undefined ? [] : [changeName(name)]),
        ...(to === undefined ? [] : [changeSymbol(to)]),
      ),
    updateDetails: ({ symbol, uri, metadata = {}, supplyCap }) =>
      submit(
        symbol,
        ...(uri === undefined ? [] : [changeContractUri(uri)]),
        ...Object.entries(metadata).map(([key, value]) => changeMetadata(key, value)),
        ...(supplyCap === undefined ? [] : [changeSupplyCap(supplyCap)]),
      ),
  }
  const feedOf = (symbol: string) => {
    const token = addressOf(symbol)
    const feed = feeds.find((one) => one.token.address === token)
    if (!feed) throw new Error(`${symbol} has no feed`)
    return feed
  }
  const publishRound = ({ symbol, price, round: roundNumber, updatedAt }: RoundRequest): HexString =>
    inject(
      buildRoundTransaction(feedOf(symbol), operator, {
        answer: parseUnits(price, FEED_DECIMALS),
        ...(roundNumber !== undefined && { round: BigInt(roundNumber) }),
        ...(updatedAt !== undefined && { updatedAt: BigInt(updatedAt) }),
      }),
    )
  const swapAggregator = (symbol: string): HexString => inject(buildAggregatorSwap(feedOf(symbol), operator))
  return { issuer, publishRound, swapAggregator }
}

const multiplierCall = ({ to, effectiveAt }: Split): TokenCall => {
  const multiplier = parseUnits(to, MULTIPLIER_DECIMALS)
  if (multiplier <= 0n) throw new Error(`a multiplier is above zero, not ${to}`)
  return effectiveAt === undefined ? changeMultiplier(multiplier) : scheduleMultiplier(multiplier, effectiveAt)
}

const withDefaults = ({ id, description = '', uri = '' }: AnnouncementRequest) => ({ id, description, uri })
