import type { Log } from '../chain/logs/log-schema.ts'
import { type LogFilter, matching } from '../chain/rpc/methods.ts'
import { codes, Fault } from './rpc-error.ts'

/** What can be subscribed to. */
export const kinds = ['pendingLogs', 'logs', 'newHeads'] as const
export type Kind = (typeof kinds)[number]

/** Different filters at once, and addresses and topics in all of them: each log is held against each filter. */
const FILTERS_BOUND = 2_000
const WORDS_BOUND = 100_000

/** Somebody who hears what it subscribed to, under the id that it was given. */
export type Subscriber = { readonly id: string; notify(notice: Notice): void }

/** One thing said to many: the same text, and for those who know it by the same id the same bytes. */
export class Notice {
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
    const known = this.#bytes.get(id)
    if (known) return known
    const bytes = encode(
      `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"${id}","result":${this.#text}}}`,
    )
    if (this.#bytes.size < SHARED_BOUND) this.#bytes.set(id, bytes)
    return bytes
  }
}

/** Ids whose bytes are shared; connections count from one, so that most of them know theirs by the first few. */
const SHARED_BOUND = 64

/** A subscription, and since when it is one. */
export type Subscription = {
  readonly kind: Kind
  readonly subscriber: Subscriber
  /** What was told with a smaller number was told before. */
  readonly since: number
  /** Blocks up to this one were sealed before; null where no head was known. */
  head: number | null
  /** What that was before the chain went back, and for what had been told by then. */
  before: { readonly head: number; readonly told: number } | null
}

/** All who want the same. */
type Company = {
  readonly kind: Kind
  readonly words: number
  readonly wants: (log: Log) => boolean
  readonly members: Set<Subscription>
}

/** Who subscribed to what. */
export class Subscribers {
  readonly #companies = new Map<string, Company>()
  readonly #nameOf = new Map<Subscription, string>()
  #words = 0

  has(kind: Kind): boolean {
    return [...this.#companies.values()].some((company) => company.kind === kind)
  }

  /** Lets somebody hear from now on; throws where there is no room for one more filter. */
  add(subscription: Subscription, filter: LogFilter): void {
    const name = nameOf(subscription.kind, filter)
    const company = this.#companies.get(name) ?? this.#open(name, subscription.kind, filter)
    company.members.add(subscription)
    this.#nameOf.set(subscription, name)
  }

  remove(subscription: Subscription): void {
    const name = this.#nameOf.get(subscription) ?? ''
    this.#nameOf.delete(subscription)
    const company = this.#companies.get(name)
    company?.members.delete(subscription)
    if (company?.members.size !== 0) return
    this.#companies.delete(name)
    this.#words -= company.words
  }

  /** Tells a log to all who want it, and of whom it is true that it concerns them. */
  tellLog(kind: Kind, log: Log, notice: Notice, concerns: (subscription: Subscription) => boolean): void {
    for (const company of this.#companies.values()) {
      if (company.kind !== kind || !company.wants(log)) continue
      for (const one of company.members) if (concerns(one)) one.subscriber.notify(notice)
    }
  }

  /** The blocks from this one on may be no more: those that come in their place are everybody's news. */
  wentBack(from: number, told: number): void {
    for (const subscription of this.#nameOf.keys()) {
      const { head } = subscription
      if (head === null || head < from) continue
      subscription.before ??= { head, told }
      subscription.head = from - 1
    }
  }

  tellHead(text: string): void {
    const notice = new Notice(text, false)
    for (const { kind, members } of this.#companies.values()) {
      if (kind === 'newHeads') for (const { subscriber } of members) subscriber.notify(notice)
    }
  }

  #open(name: string, kind: Kind, filter: LogFilter): Company {
    const words = wordsOf(filter)
    // All that there is, is one filter, whoever asks for it.
    if (words > 0 && (this.#companies.size >= FILTERS_BOUND || this.#words + words > WORDS_BOUND))
      throw new Fault(codes.limit, 'too many different filters are in use now; come back later, or ask for less')
    const company = { kind, words, wants: matching(filter), members: new Set<Subscription>() }
    this.#companies.set(name, company)
    this.#words += words
    return company
  }
}

/** How many addresses and topics a filter names. */
export const wordsOf = ({ address, topics }: LogFilter): number =>
  [address ?? []].flat().length + (topics ?? []).flat().filter((topic) => topic !== null).length

/** The same for every way of writing the same filter. */
const nameOf = (kind: Kind, { address, topics }: LogFilter): string =>
  `${kind} ${JSON.stringify([sorted(address), (topics ?? []).map(sorted)])}`

const sorted = (words: string | readonly string[] | null | undefined): readonly string[] =>
  [...new Set([words ?? []].flat().map((word) => word.toLowerCase()))].sort()
