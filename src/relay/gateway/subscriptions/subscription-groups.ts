import type { Steps } from '../../../lib/turns.ts'
import { type LogFilter, logMatcher } from '../../../protocol/json-rpc-methods.ts'
import type { Log } from '../../chain/logs/log-parser.ts'
import { limitExceeded } from '../rpc-error.ts'
import { type Subscriber, SubscriptionNotice } from './subscription-notice.ts'

export const subscriptionNames = ['pendingLogs', 'logs', 'newHeads'] as const
export type SubscriptionName = (typeof subscriptionNames)[number]

/** Limit of different filters, since each log is matched against each of them. */
const FILTERS_BOUND = 2_000
/** Limit of the addresses and topics in all filters. */
const TERMS_BOUND = 100_000

/** Limit of the former heads of a subscription. Each reorg that counts is deeper than the one before. */
const FORMER_HEADS_BOUND = 64

const NOTICES_PER_STEP = 100

export type Subscription = {
  readonly kind: SubscriptionName
  readonly subscriber: Subscriber
  /** Logs with a smaller index were sent before the subscription opened. */
  readonly firstIndex: number
  /** Blocks up to this one were sealed before the subscription opened; null if no head was known. */
  head: number | null
  /** Values of `head` before reorgs lowered it, oldest first, each with the number of logs sent until then. */
  readonly formerHeads: { readonly head: number; readonly sentCount: number }[]
}

type SubscriberGroup = {
  readonly kind: SubscriptionName
  readonly termCount: number
  readonly matches: (log: Log) => boolean
  readonly members: Set<Subscription>
}

/** Maps logs and heads to the subscriptions that match. */
export class SubscriptionGroups {
  readonly #groups = new Map<string, SubscriberGroup>()
  readonly #groupKeyOf = new Map<Subscription, string>()
  #termCount = 0
  #noticeCount = 0

  has(kind: SubscriptionName): boolean {
    return [...this.#groups.values()].some((group) => group.kind === kind)
  }

  /** Adds a subscription; throws if there is no room for its filter. */
  add(subscription: Subscription, filter: LogFilter): void {
    const groupKey = groupKeyOf(subscription.kind, filter)
    const group = this.#groups.get(groupKey) ?? this.#addGroup(groupKey, subscription.kind, filter)
    group.members.add(subscription)
    this.#groupKeyOf.set(subscription, groupKey)
  }

  remove(subscription: Subscription): void {
    const groupKey = this.#groupKeyOf.get(subscription) ?? ''
    this.#groupKeyOf.delete(subscription)
    const group = this.#groups.get(groupKey)
    group?.members.delete(subscription)
    if (group?.members.size !== 0) return
    this.#groups.delete(groupKey)
    this.#termCount -= group.termCount
  }

  /** Sends a log to every subscription that matches it and passes `isFor`. The notice is made only if there is one. */
  *publishLog(
    kind: SubscriptionName,
    log: Log,
    makeNotice: () => SubscriptionNotice,
    isFor: (subscription: Subscription) => boolean,
  ): Steps<void> {
    let notice: SubscriptionNotice | null = null
    for (const group of this.#groups.values()) {
      if (group.kind !== kind || !group.matches(log)) continue
      for (const subscription of group.members) {
        if (!isFor(subscription)) continue
        notice ??= makeNotice()
        subscription.subscriber.notify(notice)
        this.#noticeCount += 1
        if (this.#noticeCount % NOTICES_PER_STEP === 0) yield
      }
    }
  }

  /** Makes the blocks from this one new to every subscription, after a reorg. */
  rollBack(from: number, sentCount: number, firstHead: number | null): void {
    for (const subscription of this.#groupKeyOf.keys()) {
      const head = subscription.head ?? firstHead
      if (head === null || head < from) continue
      // Beyond the limit, the oldest ones are those of logs that no reorg reaches any more.
      if (subscription.formerHeads.length === FORMER_HEADS_BOUND) subscription.formerHeads.shift()
      subscription.formerHeads.push({ head, sentCount })
      subscription.head = from - 1
    }
  }

  publishHead(text: string): void {
    const notice = new SubscriptionNotice(text, false)
    for (const { kind, members } of this.#groups.values()) {
      if (kind === 'newHeads') for (const { subscriber } of members) subscriber.notify(notice)
    }
  }

  #addGroup(groupKey: string, kind: SubscriptionName, filter: LogFilter): SubscriberGroup {
    const termCount = countTerms(filter)
    // All clients share the group of the empty filter, so it is always accepted.
    if (termCount > 0 && (this.#groups.size >= FILTERS_BOUND || this.#termCount + termCount > TERMS_BOUND))
      throw limitExceeded('too many different filters are in use now; come back later, or ask for less')
    const group = { kind, termCount, matches: logMatcher(filter), members: new Set<Subscription>() }
    this.#groups.set(groupKey, group)
    this.#termCount += termCount
    return group
  }
}

/** Number of addresses and topics that a filter names. */
export const countTerms = ({ address, topics }: LogFilter): number =>
  [address ?? []].flat().length + (topics ?? []).flat().filter((topic) => topic !== null).length

/** Returns a key of a filter that is equal for every spelling of it. */
const groupKeyOf = (kind: SubscriptionName, { address, topics }: LogFilter): string =>
  `${kind} ${JSON.stringify([normalized(address), (topics ?? []).map(normalized)])}`

const normalized = (terms: string | readonly string[] | null | undefined): readonly string[] =>
  [...new Set([terms ?? []].flat().map((term) => term.toLowerCase()))].sort()
