import { parseUnits } from 'viem/utils'
import type { Plan } from '../chain/deferred-tx.ts'
import { type Hex, lower } from '../chain/hex.ts'
import { arranged, type Movement, seizing, senderOf, withMemo } from '../chain/transactions.ts'
import {
  changeMetadata,
  changeName,
  changeSupplyCap,
  changeSymbol,
  changeUri,
  pause,
  unpause,
} from '../tokens/admin.ts'
import { type Act, announce, calling, together } from '../tokens/call.ts'
import { FEED_DECIMALS, feeds, publishing, swapping } from '../tokens/feeds.ts'
import { cancelSchedule, changeMultiplier, scheduleMultiplier } from '../tokens/multiplier.ts'
import { MULTIPLIER_DECIMALS } from '../tokens/storage.ts'

/** The token by the symbol that the list has for it, or that it was issued under. */
type Of = { symbol: string }

/** A new multiplier in decimal, such as `2` or `1.000537939576369481`; at once, or from a second (of Unix time) on. */
type Split = { to: string; effectiveAt?: number }

/** What is announced; a text that is left out is empty. */
type Notice = { id: string; description?: string; uri?: string }

/** What is moved with a memo of 32 bytes; the custodian stands in for an end that is not named. */
type Memoed = { from?: string; to?: string; raw: bigint; memo: Hex }

/**
 * What a test asks of the issuer. Each is a transaction in the next flashblock, and gives the hash that it will have;
 * a call that the token refuses is there, says nothing and changes nothing.
 */
export type Acts = {
  /** Another multiplier, at once or scheduled. A schedule is refused while another lies ahead; one at once gives that up. */
  split: (split: Of & Split) => Hex
  /** Gives up the schedule that lies ahead. */
  cancel: (of: Of) => Hex
  /** A cash dividend: announced, with the multiplier changed in the same transaction. */
  dividend: (dividend: Of & Notice & { to: string }) => Hex
  /** Announces a split, or nothing but itself. */
  announce: (announcement: Of & Notice & { split?: Split }) => Hex
  /** Pauses features, by their ordinals. */
  pause: (pause: Of & { features: readonly number[] }) => Hex
  unpause: (unpause: Of & { features: readonly number[] }) => Hex
  /** Takes tokens away from a holder: Transfer, Memo, Seized. */
  seize: (seizure: Of & Memoed) => Hex
  /** A transfer, mint or burn with a memo: Transfer, Memo. */
  remit: (remittance: Of & Memoed) => Hex
  /** Another name, another symbol, or both in one transaction. */
  rename: (names: Of & { to?: string; name?: string }) => Hex
  /** What else a token says of itself, in the order in which it stands here. */
  describe: (of: Of & { uri?: string; metadata?: Readonly<Record<string, string>>; supplyCap?: bigint }) => Hex
}

/** A round of a token's feed: its price in decimal, its number (the next) and its second of Unix time (the block's). */
export type Publishing = Of & { price: string; round?: number | bigint; updatedAt?: number }

/** What the desk works with. */
type Office = {
  inject: (plan: Plan) => Hex
  addressOf: (symbol: string) => Hex
  custodian: Hex
  operator: Hex
}

/** The desk where a test orders what happens to the tokens and to their feeds. */
export const createDesk = ({ inject, addressOf, custodian, operator }: Office) => {
  const order = (symbol: string, ...acts: readonly Act[]): Hex => {
    const [first, ...others] = acts
    if (!first) throw new Error('there is nothing to do')
    const act = others.length === 0 ? first : together(acts)
    return inject(calling({ token: addressOf(symbol), sender: operator }, act))
  }
  const movementOf = ({ symbol, from = custodian, to = custodian, raw }: Of & Memoed): Movement => ({
    token: addressOf(symbol),
    from: lower(from),
    to: lower(to),
    raw,
  })
  const act: Acts = {
    split: ({ symbol, ...split }) => order(symbol, splitting(split)),
    cancel: ({ symbol }) => order(symbol, cancelSchedule),
    dividend: ({ symbol, to, ...notice }) => order(symbol, announce(whole(notice), [splitting({ to })])),
    announce: ({ symbol, split, ...notice }) => order(symbol, announce(whole(notice), split ? [splitting(split)] : [])),
    pause: ({ symbol, features }) => order(symbol, pause(features)),
    unpause: ({ symbol, features }) => order(symbol, unpause(features)),
    seize: (seizure) => {
      const what = movementOf(seizure)
      return inject(() => seizing(arranged(what, operator), what, seizure.memo))
    },
    remit: (remittance) => {
      const what = movementOf(remittance)
      return inject(() => withMemo(arranged(what, senderOf(what, custodian)), what, remittance.memo))
    },
    rename: ({ symbol, to, name }) =>
      order(symbol, ...(name === undefined ? [] : [changeName(name)]), ...(to === undefined ? [] : [changeSymbol(to)])),
    describe: ({ symbol, uri, metadata = {}, supplyCap }) =>
      order(
        symbol,
        ...(uri === undefined ? [] : [changeUri(uri)]),
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
  const round = ({ symbol, price, round: number, updatedAt }: Publishing): Hex =>
    inject(
      publishing(feedOf(symbol), operator, {
        answer: parseUnits(price, FEED_DECIMALS),
        ...(number !== undefined && { round: BigInt(number) }),
        ...(updatedAt !== undefined && { updatedAt: BigInt(updatedAt) }),
      }),
    )
  const swapAggregator = (symbol: string): Hex => inject(swapping(feedOf(symbol), operator))
  return { act, round, swapAggregator }
}

const splitting = ({ to, effectiveAt }: Split): Act => {
  const multiplier = parseUnits(to, MULTIPLIER_DECIMALS)
  if (multiplier <= 0n) throw new Error(`a multiplier is above zero, not ${to}`)
  return effectiveAt === undefined ? changeMultiplier(multiplier) : scheduleMultiplier(multiplier, effectiveAt)
}

const whole = ({ id, description = '', uri = '' }: Notice) => ({ id, description, uri })
