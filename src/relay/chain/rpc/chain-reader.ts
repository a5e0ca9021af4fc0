import { isDeepStrictEqual } from 'node:util'
import { type Hex, quantity } from '../../../lib/hex.ts'
import { type ReadFilter, requestFilterOf } from '../logs/log-filter.ts'
import { type FindLog, type Log, type Logs, parseLogs, unreadableTxsOf } from '../logs/log-parser.ts'
import { Header, type SealedHeader } from './block-header.ts'
import type { RequestFn } from './endpoint-pool.ts'
import { UnparsedLogs } from './unparsed-logs.ts'
import { FilterRefusedError, UpstreamError } from './upstream-error.ts'

/** Sorts logs in chain order, since not every node returns them so. Logs with one key are then next to each other. */
const sortLogs = (logs: readonly Log[]): readonly Log[] =>
  logs.toSorted((a, b) => a.blockNumber - b.blockNumber || a.logIndex - b.logIndex || Number(a.key > b.key) - Number(a.key < b.key))

/** Reads and checks headers and logs. Repeats the request for a missing block once, since another node of the URL may have it. */
export class ChainReader {
  readonly #request: RequestFn
  readonly #findLog: FindLog | undefined
  /** Limit of addresses per request: one less than the shortest list that a node refused. */
  #addressesBound = Number.POSITIVE_INFINITY

  /** `findLog` finds the pre-confirmed copy of a sealed log, if there is one, so that the two share their strings. */
  constructor(request: RequestFn, findLog?: FindLog) {
    this.#request = request
    this.#findLog = findLog
  }

  /** Returns null if there is no such block, or if a lagging node does not have it yet. */
  async header(block: 'latest' | 'pending' | 'safe' | 'finalized' | number, signal?: AbortSignal): Promise<Header | null> {
    if (typeof block !== 'number') return this.#header(block, signal)
    const number = quantity(block)
    return (await this.#header(number, signal)) ?? this.#header(number, signal)
  }

  /** Reads the logs of a block by its hash, since a node that lacks the block cannot answer with an empty list then. */
  logsByHash({ number, hash }: BlockId, filters: readonly ReadFilter[], signal?: AbortSignal): Promise<Logs> {
    // A block cannot be split into smaller ranges, so the list of addresses is split.
    return this.#readEach(filters, true, async (part) => {
      const read = async () => this.#read(await this.#logsAnswer(part, { blockHash: hash }, signal), signal)
      const answer = await read().catch((failure: unknown) => {
        if (failure instanceof UpstreamError && failure.kind === 'behind') return read()
        throw failure
      })
      if (answer.logs.some((log) => log.blockHash !== hash || log.blockNumber !== number))
        throw new UpstreamError('unreadable', 'the answer has logs of another block')
      return answer
    })
  }

  /** Reads the logs of a range of blocks. A range up to `pending` includes pre-confirmed logs. `onAnswer` gets each answer alone. */
  logsInRange(
    from: number,
    to: number | 'pending',
    filters: readonly ReadFilter[],
    signal?: AbortSignal,
    onAnswer?: (filter: ReadFilter, logs: readonly Log[]) => void,
  ): Promise<Logs> {
    return this.#readEach(filters, to === 'pending' || from === to, async (part) => {
      const answer = checkRange(from, to, await this.#read(await this.#logsAnswer(part, rangeFilter(from, to), signal), signal))
      onAnswer?.(part, answer.logs)
      return answer
    })
  }

  /** Reads the logs of a range. Returns null if a long answer, which is not parsed then, has `counts` logs per block hash. */
  async logsIfCountsDiffer(
    counts: ReadonlyMap<Hex, number>,
    from: number,
    to: number,
    filters: readonly ReadFilter[],
    signal: AbortSignal,
  ): Promise<Logs | null> {
    const [filter, ...others] = filters
    if (!filter || others.length > 0 || filter.addresses.length > this.#addressesBound)
      return this.logsInRange(from, to, filters, signal)
    const answer = await this.#logsAnswer(filter, rangeFilter(from, to), signal).catch((failure: unknown) => failure)
    if (answer instanceof UpstreamError && answer.isFilterTooLong) return this.logsInRange(from, to, filters, signal)
    if (answer instanceof Error) throw answer
    if (answer instanceof UnparsedLogs) {
      const found = await answer.countByBlockHash()
      if ([...counts].every(([hash, count]) => (found.get(hash) ?? 0) === count)) return null
    }
    return checkRange(from, to, await this.#read(answer, signal))
  }

  async #readEach(
    filters: readonly ReadFilter[],
    isIndivisible: boolean,
    read: (filter: ReadFilter) => Promise<Logs>,
  ): Promise<Logs> {
    const reads = filters.map((filter) => this.#inParts(filter, isIndivisible, read))
    const [first, ...others] = reads
    if (first && others.length === 0) return first
    await Promise.allSettled(reads)
    const refused: { readonly filter: ReadFilter; readonly failure: UpstreamError }[] = []
    const answers: Logs[] = []
    for (const [index, filter] of filters.entries())
      try {
        answers.push((await reads[index]) ?? NO_LOGS)
      } catch (failure) {
        // A node that refuses the first filter too refuses the request, whatever the filter is.
        if (index === 0 || !isRefusalOf(filter, failure, isIndivisible)) throw failure
        refused.push({ filter, failure })
      }
    const [refusal] = refused
    if (!refusal) return mergeLogs(answers)
    throw new FilterRefusedError(
      refused.map(({ filter }) => filter),
      refusal.failure,
    )
  }

  /** Reads the logs of all addresses at once, or of each half of the list if the node refuses that many addresses or logs. */
  async #inParts(filter: ReadFilter, isIndivisible: boolean, read: (filter: ReadFilter) => Promise<Logs>): Promise<Logs> {
    const { addresses } = filter
    try {
      if (addresses.length <= this.#addressesBound) return await read(filter)
    } catch (failure) {
      if (!(failure instanceof UpstreamError) || failure.kind !== 'too_large' || addresses.length < 2) throw failure
      if (failure.isFilterTooLong) this.#addressesBound = Math.min(this.#addressesBound, addresses.length - 1)
      else if (!isIndivisible) throw failure
    }
    const half = Math.ceil(addresses.length / 2)
    const parts: Logs[] = []
    for (const part of [addresses.slice(0, half), addresses.slice(half)])
      parts.push(await this.#inParts({ ...filter, addresses: part }, isIndivisible, read))
    return mergeLogs(parts)
  }

  async #header(block: 'latest' | 'pending' | 'safe' | 'finalized' | Hex, signal?: AbortSignal): Promise<Header | null> {
    const answer = await this.#request('eth_getBlockByNumber', [block, false], signal)
    if (answer === null) return null
    const header = Header.safeParse(answer).data
    if (!header) throw new UpstreamError('unreadable', 'the answer is not a block')
    return header
  }

  async #read(answer: unknown, signal?: AbortSignal): Promise<Logs> {
    const parts: Logs[] = []
    for await (const part of answer instanceof UnparsedLogs ? answer.parts() : [answer]) {
      signal?.throwIfAborted()
      if (!Array.isArray(part)) throw new UpstreamError('unreadable', 'the answer is not a list of logs')
      const read = parseLogs(part, this.#findLog)
      parts.push(read.unreadable > 0 ? { ...read, unreadableTxs: unreadableTxsOf(part) } : read)
    }
    const merged = mergeLogs(parts)
    checkKeys(merged.logs)
    return merged
  }

  async #logsAnswer(filter: ReadFilter, blockFilter: BlockFilter, signal?: AbortSignal): Promise<unknown> {
    // A request with an empty list would return the logs of every contract.
    if (filter.addresses.length === 0) return []
    return this.#request('eth_getLogs', [{ ...requestFilterOf(filter), ...blockFilter }], signal)
  }
}

const NO_LOGS: Logs = { logs: [], unreadable: 0 }

const isRefusalOf = ({ topics }: ReadFilter, failure: unknown, isIndivisible: boolean): failure is UpstreamError =>
  topics !== undefined &&
  failure instanceof UpstreamError &&
  (failure.isAboutFilter || (isIndivisible && failure.kind === 'too_large'))

function mergeLogs(parts: readonly Logs[]): Logs {
  const logs = sortLogs(parts.flatMap((part) => part.logs))
  const unreadable = parts.reduce((sum, part) => sum + part.unreadable, 0)
  const unreadableTxs = new Set(parts.flatMap((part) => [...(part.unreadableTxs ?? [])]))
  return unreadable > 0 ? { logs, unreadable, unreadableTxs } : { logs, unreadable }
}

export type BlockId = Pick<SealedHeader, 'number' | 'hash'>

type BlockFilter = { readonly blockHash: Hex } | { readonly fromBlock: Hex; readonly toBlock: Hex | 'pending' }

const rangeFilter = (from: number, to: number | 'pending'): BlockFilter => ({
  fromBlock: quantity(from),
  toBlock: to === 'pending' ? to : quantity(to),
})

/** Fails if two logs with one key differ. A node may return a log twice. */
function checkKeys(sorted: readonly Log[]): void {
  for (const [index, log] of sorted.entries()) {
    const next = sorted[index + 1]
    const isRepeated = next?.logIndex === log.logIndex && next.key === log.key
    if (isRepeated && !isDeepStrictEqual(next, log))
      throw new UpstreamError('unreadable', `the answer contradicts itself about ${log.key}`)
  }
}

function checkRange(from: number, to: number | 'pending', answer: Logs): Logs {
  if (to !== 'pending' && answer.logs.some(({ blockNumber }) => blockNumber < from || blockNumber > to))
    throw new UpstreamError('unreadable', 'the answer has logs of other blocks')
  return answer
}
