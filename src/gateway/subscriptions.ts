import { LogFilter } from '../chain/rpc/methods.ts'
import type { Heard } from '../chain/source/source.ts'
import type { Hex } from '../protocol/fields.ts'
import { placeOf } from './call.ts'
import { Heads } from './head-feed.ts'
import { Wire } from './log-feed.ts'
import { codes, Fault } from './rpc-error.ts'
import { type Kind, kinds, type Subscriber, Subscribers, type Subscription, wordsOf } from './subscriber-index.ts'
import type { Foreign } from './unlisted-contracts.ts'

type Options = {
  /** Whether an address is that of a listed token. */
  readonly lists: (address: Hex) => boolean
  /** Whether any list has been read yet. */
  readonly hasList: () => boolean
  /** Who listens to contracts that are not listed; null where nobody does. */
  readonly foreign: Foreign | null
  /** The sealed block of a number, as the node has it. */
  readonly block: (number: number) => Promise<unknown>
  /** Resolves a moment later. */
  readonly rest: () => Promise<unknown>
}

/** How many addresses that cannot be heard are named. */
const NAMED_BOUND = 3

/** Where everybody subscribes to what the node says, heard once for all of them. */
export class Exchange {
  readonly #options: Options
  readonly #subscribers = new Subscribers()
  readonly #wire: Wire
  readonly #heads: Heads

  constructor(options: Options) {
    this.#options = options
    this.#wire = new Wire({ subscribers: this.#subscribers, lists: options.lists })
    this.#heads = new Heads({
      listens: () => this.#subscribers.has('newHeads'),
      block: options.block,
      tell: (header) => this.#subscribers.tellHead(header),
      rest: options.rest,
    })
  }

  hear(heard: Heard): void {
    this.#wire.hear(heard)
    this.#heads.hear(heard)
  }

  /**
   * Subscribes to what `eth_subscribe` was called with; what it gives ends it. `charge` is told how many addresses and
   * topics a filter names before it is held, and may refuse it.
   */
  open(params: unknown, subscriber: Subscriber, charge: (words: number) => void = () => {}): () => void {
    const [name, given, ...others] = Array.isArray(params) ? params : []
    const kind = kinds.find((one) => one === name)
    if (!kind) throw new Fault(codes.params, `invalid params: params[0] must be one of ${kinds.join(', ')}`)
    if (others.length > 0) throw new Fault(codes.params, 'invalid params: a kind and a filter, and nothing else')
    if (kind === 'newHeads') return this.#enter(this.#subscribers, this.#wire, { kind, subscriber }, {})
    const filter = readFilter(given)
    charge(wordsOf(filter))
    return this.#logs(kind, filter, subscriber)
  }

  #logs(kind: Kind, filter: LogFilter, subscriber: Subscriber): () => void {
    const { lists, foreign } = this.#options
    const addresses = [...new Set([filter.address ?? []].flat().map((address) => address.toLowerCase() as Hex))]
    const listed = addresses.filter(lists)
    const others = addresses.filter((address) => !lists(address))
    if (others.length > 0 && !foreign) throw this.#unlisted(others)
    const ends: (() => void)[] = []
    try {
      if (others.length === 0 || listed.length > 0)
        ends.push(this.#enter(this.#subscribers, this.#wire, { kind, subscriber }, { ...filter, address: listed }))
      if (foreign && others.length > 0) {
        ends.push(foreign.want(others))
        ends.push(this.#enter(foreign.subscribers, foreign.wire, { kind, subscriber }, { ...filter, address: others }))
      }
    } catch (failure) {
      for (const end of ends) end()
      throw failure
    }
    return () => {
      for (const end of ends) end()
    }
  }

  #enter(
    subscribers: Subscribers,
    wire: Wire,
    who: Pick<Subscription, 'kind' | 'subscriber'>,
    filter: LogFilter,
  ): () => void {
    const subscription = { ...who, ...wire.now }
    subscribers.add(subscription, filter)
    return () => subscribers.remove(subscription)
  }

  #unlisted(others: readonly Hex[]): Fault {
    if (!this.#options.hasList())
      return new Fault(codes.server, 'the list of tokenized stocks has not been read yet; try again in a moment')
    const named = others.slice(0, NAMED_BOUND).join(', ') + (others.length > NAMED_BOUND ? ', …' : '')
    return new Fault(
      codes.params,
      `invalid params: not a listed tokenized stock: ${named}. Subscriptions are served for listed tokens only, from one upstream subscription for everybody; eth_getLogs answers about any contract`,
    )
  }
}

/** Nothing, or an empty filter, asks for all listed tokens. */
function readFilter(given: unknown): LogFilter {
  const read = LogFilter.safeParse(given ?? {})
  if (read.success) return read.data
  const [issue] = read.error.issues
  throw new Fault(
    codes.params,
    `invalid params: params[1]${placeOf(issue?.path ?? [])} must be ${issue?.message ?? 'a filter'}`,
  )
}
