import { catchError, concat, map, mergeMap, type Observable, of, reduce, retry, throwError } from 'rxjs'
import type { Hex } from '../../protocol/fields.ts'
import { Header, type Log, type Logs, readLogs } from '../logs/log-schema.ts'
import type { Ask } from './client.ts'
import { UpstreamError } from './error.ts'

const hexOf = (number: number): Hex => `0x${number.toString(16)}`

const isBehind = (failure: unknown): boolean => failure instanceof UpstreamError && failure.kind === 'behind'

/** The order of the chain; not every node keeps it. */
const inOrder = (logs: readonly Log[]): readonly Log[] =>
  logs.toSorted((a, b) => a.blockNumber - b.blockNumber || a.logIndex - b.logIndex)

/**
 * The two questions that the chain is read with, and their answers read. A block that a node does not know is asked for
 * once more at once: behind one name may stand several, and the next answer may come from one that does.
 */
export class Reader {
  readonly #ask: Ask

  constructor(ask: Ask) {
    this.#ask = ask
  }

  /** One block's header by tag or number; null where there is none, or where a node that is behind knows none yet. */
  header(block: 'latest' | 'pending' | 'safe' | 'finalized' | number): Observable<Header | null> {
    const asked = this.#ask('eth_getBlockByNumber', [typeof block === 'number' ? hexOf(block) : block, false]).pipe(
      map((answer) => {
        if (answer === null) return null
        const header = Header.safeParse(answer).data
        if (!header) throw new UpstreamError('unreadable', 'the answer is no block')
        return header
      }),
    )
    return typeof block === 'number' ? asked.pipe(mergeMap((header) => (header ? of(header) : asked))) : asked
  }

  /** The logs of one sealed block. Asked by its hash, which a node that is behind cannot answer with nothing. */
  logsOf(hash: Hex, addresses: readonly Hex[]): Observable<Logs> {
    return this.#logs(addresses, { blockHash: hash }).pipe(
      retry({ count: 1, delay: (failure: unknown) => (isBehind(failure) ? of(null) : throwError(() => failure)) }),
      map((found) => {
        if (found.logs.some((log) => log.blockHash !== null && log.blockHash !== hash))
          throw new UpstreamError('unreadable', 'the answer has logs of another block')
        return found
      }),
      catchError((failure: unknown) => {
        const tooLarge = failure instanceof UpstreamError && failure.kind === 'too_large'
        if (!tooLarge || addresses.length < 2) return throwError(() => failure)
        // One block cannot be asked for in parts, but its contracts can.
        const half = Math.ceil(addresses.length / 2)
        return concat(this.logsOf(hash, addresses.slice(0, half)), this.logsOf(hash, addresses.slice(half))).pipe(
          reduce((one, other) => ({
            logs: inOrder([...one.logs, ...other.logs]),
            unreadable: one.unreadable + other.unreadable,
          })),
        )
      }),
    )
  }

  /** The logs of a range of blocks; with `pending` also what is pre-confirmed on top of it. */
  logsBetween(from: number, to: number | 'pending', addresses: readonly Hex[]): Observable<Logs> {
    return this.#logs(addresses, { fromBlock: hexOf(from), toBlock: to === 'pending' ? to : hexOf(to) }).pipe(
      map((found) => {
        if (to !== 'pending' && found.logs.some(({ blockNumber }) => blockNumber < from || blockNumber > to))
          throw new UpstreamError('unreadable', 'the answer has logs of other blocks')
        return found
      }),
    )
  }

  #logs(
    addresses: readonly Hex[],
    where: { blockHash: Hex } | { fromBlock: Hex; toBlock: Hex | 'pending' },
  ): Observable<Logs> {
    // To a node an empty list means every contract there is.
    if (addresses.length === 0) return of({ logs: [], unreadable: 0 })
    return this.#ask('eth_getLogs', [{ address: [...addresses], ...where }]).pipe(
      map((answer) => {
        if (!Array.isArray(answer)) throw new UpstreamError('unreadable', 'the answer is no list of logs')
        const { logs, unreadable } = readLogs(answer)
        return { logs: inOrder(logs), unreadable }
      }),
    )
  }
}
