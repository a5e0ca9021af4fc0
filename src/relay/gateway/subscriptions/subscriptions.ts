import { type Hex, toLowerHex } from '../../../lib/hex.ts'
import { LogFilter } from '../../../protocol/json-rpc-methods.ts'
import type { ChainEvent } from '../../chain/source/source.ts'
import { errorCodes, invalidParams, RpcError } from '../rpc-error.ts'
import { formatPath } from '../validated-call.ts'
import { HeadNotifier } from './head-notifier.ts'
import { LogNotifier } from './log-notifier.ts'
import { countTerms, SubscriptionGroups, type SubscriptionName, subscriptionNames } from './subscription-groups.ts'
import type { Subscriber } from './subscription-notice.ts'

type Options = {
  readonly isListed: (address: Hex) => boolean
  readonly hasList: () => boolean
  readonly readBlock: (number: number) => Promise<unknown>
  readonly delay: () => Promise<unknown>
}

const NAMED_BOUND = 3

/** All subscriptions of all clients, fed by one upstream subscription. */
export class Subscriptions {
  readonly #options: Options
  readonly #subscribers = new SubscriptionGroups()
  readonly #logNotifier: LogNotifier
  readonly #headNotifier: HeadNotifier

  constructor(options: Options) {
    this.#options = options
    this.#logNotifier = new LogNotifier({ subscribers: this.#subscribers, isListed: options.isListed })
    this.#headNotifier = new HeadNotifier({
      hasListeners: () => this.#subscribers.has('newHeads'),
      readBlock: options.readBlock,
      publish: (header) => this.#subscribers.publishHead(header),
      delay: options.delay,
    })
  }

  receive(event: ChainEvent): void {
    this.#logNotifier.receive(event)
    this.#headNotifier.receive(event)
  }

  /** Opens a subscription; the returned function ends it. `charge` may throw if the filter has too many addresses and topics. */
  open(params: unknown, subscriber: Subscriber, charge: (termCount: number) => void = () => {}): () => void {
    const [name, filterParam, ...others] = Array.isArray(params) ? params : []
    const kind = subscriptionNames.find((candidate) => candidate === name)
    if (!kind) throw invalidParams(`params[0] must be one of ${subscriptionNames.join(', ')}`)
    if (others.length > 0) throw invalidParams('a kind and a filter, and nothing else')
    if (kind === 'newHeads') return this.#add(kind, subscriber, {})
    const filter = readFilter(filterParam)
    charge(countTerms(filter))
    const addresses = new Set([filter.address ?? []].flat().map(toLowerHex))
    const unlisted = [...addresses].filter((address) => !this.#options.isListed(address))
    if (unlisted.length > 0) throw this.#unlistedError(unlisted)
    return this.#add(kind, subscriber, filter)
  }

  #add(kind: SubscriptionName, subscriber: Subscriber, filter: LogFilter): () => void {
    const subscription = { kind, subscriber, ...this.#logNotifier.subscriptionStart }
    this.#subscribers.add(subscription, filter)
    return () => this.#subscribers.remove(subscription)
  }

  #unlistedError(unlisted: readonly Hex[]): RpcError {
    if (!this.#options.hasList())
      return new RpcError(errorCodes.serverError, 'the list of tokenized stocks has not been read yet; try again in a moment')
    const named = unlisted.slice(0, NAMED_BOUND).join(', ') + (unlisted.length > NAMED_BOUND ? ', …' : '')
    return invalidParams(
      `not a listed tokenized stock: ${named}. Subscriptions are served for listed tokens only, from one upstream subscription; eth_getLogs answers about any contract`,
    )
  }
}

/** No filter, or an empty one, means all listed tokens. */
function readFilter(filterParam: unknown): LogFilter {
  const parsed = LogFilter.safeParse(filterParam ?? {})
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw invalidParams(`params[1]${formatPath(issue?.path ?? [])} must be ${issue?.message ?? 'a filter'}`)
}
