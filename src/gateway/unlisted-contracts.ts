import { BehaviorSubject, distinctUntilChanged, EMPTY, map, type Observable, switchMap } from 'rxjs'
import type { OpenKeys } from '../chain/sealed/block-logs.ts'
import type { ChainEvent } from '../chain/source/source.ts'
import type { Hex } from '../protocol/fields.ts'
import { LogFeed } from './log-feed.ts'
import { errorCodes, RpcError } from './rpc-error.ts'
import { SubscriberIndex } from './subscriber-index.ts'

/** Unlisted contracts that are followed at once. */
const CONTRACTS_BOUND = 256

/** Follows unlisted contracts for as long as a client subscribes to them. */
export class UnlistedContracts {
  readonly subscribers = new SubscriberIndex()
  readonly logFeed = new LogFeed({ subscribers: this.subscribers, isListed: (address) => this.#refCounts.has(address) })
  readonly #refCounts = new Map<Hex, number>()
  readonly #contracts = new BehaviorSubject<readonly Hex[]>([])

  /** The events of these contracts, from a source that is open only while there are any. */
  events(source: (addresses: Observable<readonly Hex[]>, openKeys: OpenKeys) => Observable<ChainEvent>): Observable<ChainEvent> {
    return this.#contracts.pipe(
      map((contracts) => contracts.length > 0),
      distinctUntilChanged(),
      switchMap((hasAny) => (hasAny ? source(this.#contracts, this.logFeed) : EMPTY)),
    )
  }

  /** Follows these contracts; the returned function ends it. */
  watch(addresses: readonly Hex[]): () => void {
    const added = addresses.filter((address) => !this.#refCounts.has(address))
    if (this.#refCounts.size + added.length > CONTRACTS_BOUND)
      throw new RpcError(errorCodes.limitExceeded, 'too many unlisted contracts are followed now; come back later')
    for (const address of addresses) this.#refCounts.set(address, (this.#refCounts.get(address) ?? 0) + 1)
    this.#publishContracts()
    return () => {
      for (const address of addresses) {
        const left = (this.#refCounts.get(address) ?? 1) - 1
        if (left > 0) this.#refCounts.set(address, left)
        else this.#refCounts.delete(address)
      }
      this.#publishContracts()
    }
  }

  #publishContracts(): void {
    const contracts = [...this.#refCounts.keys()].sort()
    if (contracts.join() !== this.#contracts.value.join()) this.#contracts.next(contracts)
  }
}
