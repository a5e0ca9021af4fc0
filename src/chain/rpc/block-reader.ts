import { catchError, concat, map, mergeMap, type Observable, of, reduce, retry, throwError } from 'rxjs'
import type { Hex } from '../../protocol/fields.ts'
import { Header, type Log, type Logs, readLogs } from '../logs/log-schema.ts'
import type { RequestFn } from './client.ts'
import { UpstreamError } from './error.ts'

const toHexQuantity = (number: number): Hex => `0x${number.toString(16)}`

const isBehind = (failure: unknown): boolean => failure instanceof UpstreamError && failure.kind === 'behind'

/** Not every node returns logs in the order of the chain. */
const sortLogs = (logs: readonly Log[]): readonly Log[] =>
  logs.toSorted((a, b) => a.blockNumber - b.blockNumber || a.logIndex - b.logIndex)

/**
 * Reads headers and logs, and checks both. A block that the node lacks is requested once more at once: one URL may
 * stand for several nodes, and the next answer may come from one that has the block.
 */
export class BlockReader {
  readonly #request: RequestFn

  constructor(request: RequestFn) {
    this.#request = request
  }

  /** The header of a block; null if there is none, or if a lagging node does not have it yet. */
  header(block: 'latest' | 'pending' | 'safe' | 'finalized' | number): Observable<Header | null> {
    const request = this.#request('eth_getBlockByNumber', [typeof block === 'number' ? toHexQuantity(block) : block, false]).pipe(
      map((answer) => {
        if (answer === null) return null
        const header = Header.safeParse(answer).data
        if (!header) throw new UpstreamError('unreadable', 'the answer is not a block')
        return header
      }),
    )
    return typeof block === 'number' ? request.pipe(mergeMap((header) => (header ? of(header) : request))) : request
  }

  /** The logs of one sealed block. A lagging node cannot answer an unknown hash with an empty list. */
  logsByHash(hash: Hex, addresses: readonly Hex[]): Observable<Logs> {
    return this.#logs(addresses, { blockHash: hash }).pipe(
      retry({ count: 1, delay: (failure: unknown) => (isBehind(failure) ? of(null) : throwError(() => failure)) }),
      map((answer) => {
        if (answer.logs.some((log) => log.blockHash !== null && log.blockHash !== hash))
          throw new UpstreamError('unreadable', 'the answer has logs of another block')
        return answer
      }),
      catchError((failure: unknown) => {
        const isTooLarge = failure instanceof UpstreamError && failure.kind === 'too_large'
        if (!isTooLarge || addresses.length < 2) return throwError(() => failure)
        // A block cannot be split, so its contracts are.
        const half = Math.ceil(addresses.length / 2)
        return concat(this.logsByHash(hash, addresses.slice(0, half)), this.logsByHash(hash, addresses.slice(half))).pipe(
          reduce((first, second) => ({
            logs: sortLogs([...first.logs, ...second.logs]),
            unreadable: first.unreadable + second.unreadable,
          })),
        )
      }),
    )
  }

  /** The logs of a range of blocks; up to `pending` includes the pre-confirmed ones. */
  logsInRange(from: number, to: number | 'pending', addresses: readonly Hex[]): Observable<Logs> {
    return this.#logs(addresses, { fromBlock: toHexQuantity(from), toBlock: to === 'pending' ? to : toHexQuantity(to) }).pipe(
      map((answer) => {
        if (to !== 'pending' && answer.logs.some(({ blockNumber }) => blockNumber < from || blockNumber > to))
          throw new UpstreamError('unreadable', 'the answer has logs of other blocks')
        return answer
      }),
    )
  }

  #logs(
    addresses: readonly Hex[],
    blockFilter: { blockHash: Hex } | { fromBlock: Hex; toBlock: Hex | 'pending' },
  ): Observable<Logs> {
    // To a node an empty list means every contract.
    if (addresses.length === 0) return of({ logs: [], unreadable: 0 })
    return this.#request('eth_getLogs', [{ address: [...addresses], ...blockFilter }]).pipe(
      map((answer) => {
        if (!Array.isArray(answer)) throw new UpstreamError('unreadable', 'the answer is not a list of logs')
        const { logs, unreadable } = readLogs(answer)
        return { logs: sortLogs(logs), unreadable }
      }),
    )
  }
}
