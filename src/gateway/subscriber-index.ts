import type { Log } from '../chain/logs/log-schema.ts'
import { type LogFilter, logMatcher } from '../chain/rpc/methods.ts'
import { errorCodes, RpcError } from './rpc-error.ts'

/** What can be subscribed to. */
export const subscriptionNames = ['pendingLogs', 'logs', 'newHeads'] as const
export type SubscriptionName = (typeof subscriptionNames)[number]

/** Different filters at once, and addresses and topics in all of them: each log is held against each filter. */
const FILTERS_BOUND = 2_000
const TERMS_BOUND = 100_000

/** Somebody who hears what it subscribed to, under the id that it was given. */
export type Subscriber = { readonly id: string; notify(notice: SubscriptionNotice): void }

/** One thing said to many: the same text, and for those who know it by the same id the same bytes. */
export class SubscriptionNotice {
  /** Whether it was caught up: much may come at once that nobody was slow to read. */
  readonly isLate: boolean
  readonly #text: string
  readonly #bytes = new Map<string, Buffer>()

  constructor(text: string, isLate: boolean) {
    this.#text = text
    this.isLate = isLate
  }

  /** The notification under an id, in the bytes of a carrier. */
  bytes(id: string, encode: (text: string) => Buffer): Buffer {
    const cached = this.#bytes.get(id)
    if (cached) return cached
    const bytes = encode(
      `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"${id}","result":${this.#text}}}`,
    )
    if (this.#bytes.size < SHARED_IDS_BOUND) this.#bytes.set(id, bytes)
    return bytes
  }
}

/** Ids whose bytes are shared; connections count from one, so that most of them know theirs by the first few. */
const SHARED_IDS_BOUND = 64

/** A subscription, and since when it is one. */
export type Subscription = {
  readonly kind: SubscriptionName
  readonly subscriber: Subscriber
  /** What was told with a smaller number was told before. */
  readonly firstIndex: number
  /** Blocks up to this one were sealed before; null where no head was known. */
  head: number | null
  /** What that was before the chain went back, and for what had been told by then. */
  beforeReorg: { readonly head: number; readonly sentCount: number } | null
}

/** All who want the same. */
type SubscriberGroup = {
  readonly kind: SubscriptionName
  readonly termCount: number
  readonly matches: (log: Log) => boolean
  readonly members: Set<Subscription>
}

/** Who subscribed to what. */
export class SubscriberIndex {
  readonly #groups = new Map<string, SubscriberGroup>()
  readonly #groupKeyOf = new Map<Subscription, string>()
  #termCount = 0

  has(kind: SubscriptionName): boolean {
    return [...this.#groups.values()].some((group) => group.kind === kind)
  }

  /** Lets somebody hear from now on; throws where there is no room for one more filter. */
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

  /** Tells a log to all who want it, and of whom it is true that it concerns them. */
  publishLog(
    kind: SubscriptionName,
    log: Log,
    notice: SubscriptionNotice,
    isFor: (subscription: Subscription) => boolean,
  ): void {
    for (const group of this.#groups.values()) {
      if (group.kind !== kind || !group.matches(log)) continue
      for (const subscription of group.members) if (isFor(subscription)) subscription.subscriber.notify(notice)
    }
  }

  /** The blocks from this one on may be no more: those that come in their place are everybody's news. */
  rollBack(from: number, sentCount: number): void {
    for (const subscription of this.#groupKeyOf.keys()) {
      const { head } = subscription
      if (head === null || head < from) continue
      subscription.beforeReorg ??= { head, sentCount }
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
    // All that there is, is one filter, whoever asks for it.
    if (termCount > 0 && (this.#groups.size >= FILTERS_BOUND || this.#termCount + termCount > TERMS_BOUND))
      throw new RpcError(
        errorCodes.limitExceeded,
        'too many different filters are in use now; come back later, or ask for less',
      )
    const group = { kind, termCount, matches: logMatcher(filter), members: new Set<Subscription>() }
    this.#groups.set(groupKey, group)
    this.#termCount += termCount
    return group
  }
}

/** How many addresses and topics a filter names. */
export const countTerms = ({ address, topics }: LogFilter): number =>
  [address ?? []].flat().length + (topics ?? []).flat().filter((topic) => topic !== null).length

/** The same for every way of writing the same filter. */
const groupKeyOf = (kind: SubscriptionName, { address, topics }: LogFilter): string =>
  `${kind} ${JSON.stringify([normalized(address), (topics ?? []).map(normalized)])}`

const normalized = (terms: string | readonly string[] | null | undefined): readonly string[] =>
  [...new Set([terms ?? []].flat().map((term) => term.toLowerCase()))].sort()
