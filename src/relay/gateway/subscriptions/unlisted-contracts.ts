import {
  asyncScheduler,
  BehaviorSubject,
  connect,
  distinctUntilChanged,
  EMPTY,
  map,
  type Observable,
  ReplaySubject,
  type SchedulerLike,
  type Subscription,
  switchMap,
  throttleTime,
} from 'rxjs'
import type { Hex } from '../../../protocol/fields.ts'
import type { OpenKeys } from '../../chain/sealed/block-logs.ts'
import type { ChainEvent } from '../../chain/source/source.ts'
import { errorCodes, RpcError } from '../rpc-error.ts'
import { LogFeed } from './log-feed.ts'
import { SubscriberIndex } from './subscriber-index.ts'

/** Unlisted contracts that are followed at once, and those in the subscriptions of one address. */
const CONTRACTS_BOUND = 256
const CONTRACTS_PER_CLIENT_BOUND = 64
/** A contract is followed this much longer than subscribed to: each change makes the relay subscribe anew upstream. */
const LINGER_MS = 60_000
/** The followed contracts change at most this often. */
const CHANGE_INTERVAL_MS = 1_000

/** A contract with its subscriptions; without any it lingers. */
type FollowedContract = { count: number; lingering: Subscription | null }

/** Follows unlisted contracts while clients subscribe to them, and a little longer. */
export class UnlistedContracts {
  readonly subscribers = new SubscriberIndex()
  readonly logFeed = new LogFeed({ subscribers: this.subscribers, isListed: (address) => this.#followed.has(address) })
  readonly #clock: SchedulerLike
  readonly #followed = new Map<Hex, FollowedContract>()
  readonly #countByClient = new Map<string, number>()
  readonly #contracts = new BehaviorSubject<readonly Hex[]>([])

  constructor(clock: SchedulerLike = asyncScheduler) {
    this.#clock = clock
  }

  /** The events of these contracts, from a source that is open only while there are any. */
  events(source: (addresses: Observable<readonly Hex[]>, openKeys: OpenKeys) => Observable<ChainEvent>): Observable<ChainEvent> {
    return this.#contracts.pipe(
      throttleTime(CHANGE_INTERVAL_MS, this.#clock, { leading: true, trailing: true }),
      distinctUntilChanged((before, now) => before.join() === now.join()),
      connect(
        (contracts) =>
          contracts.pipe(
            map(({ length }) => length > 0),
            distinctUntilChanged(),
            switchMap((hasAny) => (hasAny ? source(contracts, this.logFeed) : EMPTY)),
          ),
        { connector: () => new ReplaySubject(1) },
      ),
    )
  }

  /** Follows these contracts for a client; the returned function ends it. */
  watch(addresses: readonly Hex[], client = ''): () => void {
    const countOfClient = (this.#countByClient.get(client) ?? 0) + addresses.length
    if (countOfClient > CONTRACTS_PER_CLIENT_BOUND)
      throw new RpcError(
        errorCodes.limitExceeded,
        `your address follows more than ${CONTRACTS_PER_CLIENT_BOUND} unlisted contracts; end some subscriptions`,
      )
    this.#makeRoom(addresses)
    this.#countByClient.set(client, countOfClient)
    for (const address of addresses) {
      const contract = this.#followed.get(address) ?? { count: 0, lingering: null }
      contract.count += 1
      contract.lingering?.unsubscribe()
      contract.lingering = null
      this.#followed.set(address, contract)
    }
    this.#publishContracts()
    return () => this.#release(addresses, client)
  }

  /** Drops lingering contracts where the new ones need their place. */
  #makeRoom(addresses: readonly Hex[]): void {
    const added = addresses.filter((address) => !this.#followed.has(address))
    let excess = this.#followed.size + added.length - CONTRACTS_BOUND
    const lingering = [...this.#followed].filter(([address, { count }]) => count === 0 && !addresses.includes(address))
    if (excess > lingering.length)
      throw new RpcError(errorCodes.limitExceeded, 'too many unlisted contracts are followed now; come back later')
    for (const [address, contract] of lingering) {
      if (excess <= 0) break
      contract.lingering?.unsubscribe()
      this.#followed.delete(address)
      excess -= 1
    }
  }

  #release(addresses: readonly Hex[], client: string): void {
    const left = (this.#countByClient.get(client) ?? 0) - addresses.length
    if (left > 0) this.#countByClient.set(client, left)
    else this.#countByClient.delete(client)
    for (const address of addresses) {
      const contract = this.#followed.get(address)
      if (!contract) continue
      contract.count -= 1
      if (contract.count > 0) continue
      contract.lingering = this.#clock.schedule(() => {
        this.#followed.delete(address)
        this.#publishContracts()
      }, LINGER_MS)
    }
  }

  #publishContracts(): void {
    const contracts = [...this.#followed.keys()].sort()
    if (contracts.join() !== this.#contracts.value.join()) this.#contracts.next(contracts)
  }
}
