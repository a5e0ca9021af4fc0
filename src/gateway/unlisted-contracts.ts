import { BehaviorSubject, distinctUntilChanged, EMPTY, map, type Observable, switchMap } from 'rxjs'
import type { Owed } from '../chain/sealed/block-logs.ts'
import type { Heard } from '../chain/source/source.ts'
import type { Hex } from '../protocol/fields.ts'
import { Wire } from './log-feed.ts'
import { codes, Fault } from './rpc-error.ts'
import { Subscribers } from './subscriber-index.ts'

/** Contracts that are no listed tokens and are listened to all the same. */
const CONTRACTS_BOUND = 256

/** Contracts that are listened to for whoever subscribes to them, and only as long as somebody does. */
export class Foreign {
  readonly subscribers = new Subscribers()
  readonly wire = new Wire({ subscribers: this.subscribers, lists: (address) => this.#wanted.has(address) })
  readonly #wanted = new Map<Hex, number>()
  readonly #contracts = new BehaviorSubject<readonly Hex[]>([])

  /** What is heard of them, from a source that is open only while there are any. */
  heard(source: (addresses: Observable<readonly Hex[]>, owed: Owed) => Observable<Heard>): Observable<Heard> {
    return this.#contracts.pipe(
      map((contracts) => contracts.length > 0),
      distinctUntilChanged(),
      switchMap((any) => (any ? source(this.#contracts, this.wire) : EMPTY)),
    )
  }

  /** Listens to these, until they are let go. */
  want(addresses: readonly Hex[]): () => void {
    const others = addresses.filter((address) => !this.#wanted.has(address))
    if (this.#wanted.size + others.length > CONTRACTS_BOUND)
      throw new Fault(codes.limit, 'too many contracts that are not listed are listened to now; come back later')
    for (const address of addresses) this.#wanted.set(address, (this.#wanted.get(address) ?? 0) + 1)
    this.#say()
    return () => {
      for (const address of addresses) {
        const left = (this.#wanted.get(address) ?? 1) - 1
        if (left > 0) this.#wanted.set(address, left)
        else this.#wanted.delete(address)
      }
      this.#say()
    }
  }

  #say(): void {
    const contracts = [...this.#wanted.keys()].sort()
    if (contracts.join() !== this.#contracts.value.join()) this.#contracts.next(contracts)
  }
}
