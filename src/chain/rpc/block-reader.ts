import { catchError, concat, map, mergeMap, type Observable, of, reduce, retry, throwError } from 'rxjs'
import type { Hex } from '../../protocol/fields.ts'
import { Header, type Log, type Logs, readLogs } from '../logs/log-schema.ts'
import type { RequestFn } from './client.ts'
import { UpstreamError } from './error.ts'

const toHexQuantity = (number: number): Hex => `0x${number.toString(16)}`

const isBehind = (failure: unknown): boolean => failure instanceof UpstreamError && failure.kind === 'behind'

/** The order of the chain; not every node keeps it. */
const sortLogs = (logs: readonly Log[]): readonly Log[] =>
  logs.toSorted((a, b) => a.blockNumber - b.blockNumber || a.logIndex - b.logIndex)

/**
 * The two questions that the chain is read with, and their answers read. A block that a node does not know is asked for
 * once more at once: behind one name may stand several, and the next answer may come from one that does.
 */
export class BlockReader {
  readonly #request: RequestFn

  constructor(request: RequestFn) {
    this.#request = request
  }

  /** One block's header by tag or number; null where there is none, or where a node that is behind knows none yet. */
  header(block: 'latest' | 'pending' | 'safe' | 'finalized' | number): Observable<Header | null> {
    const answered = this.#request('eth_getBlockByNumber', [
      typeof block === 'number' ? toHexQuantity(block) : block,
      false,
    ]).pipe(
      map((answer) => {
        if (answer === null) return null
        const header = Header.safeParse(answer).data
        if (!header) throw new UpstreamError('unreadable', 'the answer is no block')
        return header
      }),
    )
    return typeof block === 'number' ? answered.pipe(mergeMap((header) => (header ? of(header) : answered))) : answered
  }

  /** The logs of one sealed block. Asked by its hash, which a node that is behind cannot answer with nothing. */
  logsByHash(hash: Hex, addresses: readonly Hex[]): Observable<Logs> {
    return this.#logs(addresses, { blockHash: hash }).pipe(
      retry({ count: 1, delay: (failure: unknown) => (isBehind(failure) ? of(null) : throwError(() => failure)) }),
      map((found) => {
        if (found.logs.some((log) => log.blockHash !== null && log.blockHash !== hash))
          throw new UpstreamError('unreadable', 'the answer has logs of another block')
        return found
      }),
      catchError((failure: unknown) => {
        const isTooLarge = failure instanceof UpstreamError && failure.kind === 'too_large'
        if (!isTooLarge || addresses.length < 2) return throwError(() => failure)
        // One block cannot be asked for in parts, but its contracts can.
        const half = Math.ceil(addresses.length / 2)
        return concat(
          this.logsByHash(hash, addresses.slice(0, half)),
          this.logsByHash(hash, addresses.slice(half)),
        ).pipe(
          reduce((one, other) => ({
            logs: sortLogs([...one.logs, ...other.logs]),
            unreadable: one.unreadable + other.unreadable,
          })),
        )
      }),
    )
  }

  /** The logs of a range of blocks; with `pending` also what is pre-confirmed on top of it. */
  logsInRange(from: number, to: number | 'pending', addresses: readonly Hex[]): Observable<Logs> {
    return this.#logs(addresses, {
      fromBlock: toHexQuantity(from),
      toBlock: to === 'pending' ? to : toHexQuantity(to),
    }).pipe(
      map((found) => {
        if (to !== 'pending' && found.logs.some(({ blockNumber }) => blockNumber < from || blockNumber > to))
          throw new UpstreamError('unreadable', 'the answer has logs of other blocks')
        return found
      }),
    )
  }

  #logs(
    addresses: readonly Hex[],
    blockFilter: { blockHash: Hex } | { fromBlock: Hex; toBlock: Hex | 'pending' },
  ): Observable<Logs> {
    // To a node an empty list means every contract there is.
    if (addresses.length === 0) return of({ logs: [], unreadable: 0 })
    return this.#request('eth_getLogs', [{ address: [...addresses], ...blockFilter }]).pipe(
      map((answer) => {
        if (!Array.isArray(answer)) throw new UpstreamError('unreadable', 'the answer is no list of logs')
        const { logs, unreadable } = readLogs(answer)
        return { logs: sortLogs(logs), unreadable }
      }),
    )
  }
}
