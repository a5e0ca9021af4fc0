import { defer, type Observable, of, type SchedulerLike, throwError, timer } from 'rxjs'
import { map, mergeMap } from 'rxjs/operators'
import type { Ask } from '../../src/chain/rpc.ts'
import { UpstreamError } from '../../src/chain/upstream-error.ts'
import { apple, header, pendingLog, sealedLog, type WireLog } from './wire.ts'

type Filter = { readonly address: readonly string[]; readonly fromBlock: string; readonly toBlock: string }
type Asked = { readonly method: string; readonly params: readonly unknown[] }

/** A chain as a node answers for it, one question at a time and with no time of its own. */
export class FakeChain {
  readonly asked: Asked[] = []
  /** The newest sealed block; the one being built is the next. */
  head: number
  transactions = 1
  /** What `pending` reads as. */
  pending: 'shown' | 'numberless' | 'latest' | 'null' = 'shown'
  rangeBound = 2_000
  resultsBound = 20_000
  /** How long an answer takes. */
  delayMs = 0
  /** Thrown instead of an answer. */
  trouble: UpstreamError | null = null
  inFlight = 0
  mostInFlight = 0
  readonly #logs: { readonly block: number; readonly index: number; readonly address: `0x${string}` }[] = []
  readonly #clock: SchedulerLike | null

  constructor(head: number, clock: SchedulerLike | null = null) {
    this.head = head
    this.#clock = clock
  }

  /** Puts a transfer into a block, whether it is sealed by now or not. */
  put(block: number, address: `0x${string}` = apple): { block: number; index: number } {
    const index = this.#logs.filter((log) => log.block === block).length
    this.#logs.push({ block, index, address })
    this.transactions += 1
    return { block, index }
  }

  readonly ask: Ask = (method, params) =>
    defer(() => {
      this.asked.push({ method, params })
      this.inFlight += 1
      this.mostInFlight = Math.max(this.mostInFlight, this.inFlight)
      const wait: Observable<unknown> = this.delayMs > 0 && this.#clock ? timer(this.delayMs, this.#clock) : of(0)
      return wait.pipe(
        mergeMap(() => {
          this.inFlight -= 1
          return this.trouble ? throwError(() => this.trouble) : of(0)
        }),
        map(() => (method === 'eth_getLogs' ? this.#find(params[0] as Filter) : this.#block(String(params[0])))),
      )
    })

  /** The ranges of blocks that logs were asked for. */
  ranges(): readonly (readonly [from: number, to: number | 'pending'])[] {
    return this.asked
      .filter(({ method }) => method === 'eth_getLogs')
      .map(({ params }) => {
        const { fromBlock, toBlock } = params[0] as Filter
        return [Number(fromBlock), toBlock === 'pending' ? toBlock : Number(toBlock)] as const
      })
  }

  #block(which: string): unknown {
    if (which === 'latest') return header(this.head)
    if (which !== 'pending') return Number(which) <= this.head ? header(Number(which)) : null
    if (this.pending === 'null') return null
    if (this.pending === 'latest') return header(this.head)
    const built = header(this.head + 1, { sealed: false, transactions: this.transactions })
    return this.pending === 'shown' ? built : { ...built, number: null, hash: null }
  }

  #find({ address, fromBlock, toBlock }: Filter): readonly WireLog[] {
    const from = Number(fromBlock)
    const to = toBlock === 'pending' ? this.head : Number(toBlock)
    if (to - from + 1 > this.rangeBound) throw new UpstreamError('too_large', 'query exceeds max block range')
    const pendingIs = this.pending === 'shown' || this.pending === 'numberless'
    const found = this.#logs.filter((log) => {
      if (!address.includes(log.address)) return false
      if (log.block > this.head) return toBlock === 'pending' && pendingIs
      // What stands before the node answers for a block above its head with nothing at all.
      return log.block >= from && log.block <= to && to <= this.head
    })
    if (found.length > this.resultsBound) throw new UpstreamError('too_large', 'query exceeds max results')
    return found.map((log) => (log.block > this.head ? pendingLog(log) : sealedLog(log)))
  }
}
