import { wait } from '../../../lib/async-loop.ts'
import { getOrAdd } from '../../../lib/bounded-map.ts'
import type { Hex } from '../../../lib/hex.ts'
import type { Host } from '../../host.ts'
import type { BatchAnswer } from '../rpc/answer-envelope.ts'
import { Header, isSealed, type SealedHeader } from '../rpc/block-header.ts'
import type { BatchRequest, RequestBatchFn } from '../rpc/endpoint-pool.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'
import type { Pool } from './pool.ts'
import {
  type PoolAnswer,
  type PoolFacts,
  type PoolReading,
  poolQueries,
  type QueryAnswers,
  type ReadingWay,
  readPoolAnswers,
} from './pool-queries.ts'

/** The block in which pools were read. Its hash is null while it is pre-confirmed. */
type ReadingBlock = { readonly number: number; readonly hash: Hex | null; readonly timestamp: number | null }

/** States of pools in one block; the block is null if no pool was read. */
export type PoolReadings = { readonly block: ReadingBlock | null; readonly pools: ReadonlyMap<Pool, PoolReading> }

type Tag = 'pending' | 'latest'

type Options = Pick<Host, 'clock'> & { readonly requestBatch: RequestBatchFn }

const READING_BOUND_MS = 2_000
/** Limit of repeats of a batch that lacks an answer, or during which the block changed. */
const REPEATS_BOUND = 1
/** Pause before a batch is repeated. Without a pause, most failed batches fail again. */
const REPEAT_PAUSE_MS = 150
/** After a node refuses the calls for a pool, the pool is read from storage for this long. */
const STORAGE_MS = 600_000

/** Result of one batch. `next` says how to send another one: read another way, in the latest block, or repeated. */
type BatchOutcome = { readonly readings: PoolReadings; readonly next: 'way' | 'latest' | 'repeat' | null }

type PoolMemory = { facts: PoolFacts; storageUntil: number; areCallsRefused: boolean }

/** Reads many pools in one block. The first and the last request of a batch show whether the block changed between them. */
export class PoolReader {
  readonly #options: Options
  readonly #memories = new WeakMap<Pool, PoolMemory>()

  constructor(options: Options) {
    this.#options = options
  }

  /** Reads the pools in one batch, or in several one after the other. Fails only if the signal is aborted. */
  async read(pools: readonly Pool[], tagAtFirst: Tag, signal: AbortSignal): Promise<PoolReadings> {
    const deadline = new AbortController()
    const timer = this.#options.clock.schedule(() => deadline.abort(), READING_BOUND_MS)
    const stopTimer = () => timer.unsubscribe()
    // The relay leaves nothing scheduled when it stops.
    signal.addEventListener('abort', stopTimer)
    const bounds = AbortSignal.any([signal, deadline.signal])
    let tag = tagAtFirst
    let readings = unreadable(pools, `no answer within ${READING_BOUND_MS} ms`)
    try {
      for (let repeats = 0; repeats <= REPEATS_BOUND; ) {
        const outcome = await this.#attempt(pools, tag, bounds)
        // If a repeated batch reads no pool, the readings of the batch before it are returned.
        if (outcome.readings.block || !readings.block) readings = outcome.readings
        if (outcome.next === null) break
        if (outcome.next === 'latest') tag = 'latest'
        if (outcome.next !== 'repeat') continue
        repeats += 1
        if (repeats <= REPEATS_BOUND) await wait(REPEAT_PAUSE_MS, this.#options.clock, bounds)
      }
    } catch (failure) {
      signal.throwIfAborted()
      if (!deadline.signal.aborted) throw failure
    } finally {
      signal.removeEventListener('abort', stopTimer)
      stopTimer()
    }
    return readings
  }

  async #attempt(pools: readonly Pool[], tag: Tag, signal: AbortSignal): Promise<BatchOutcome> {
    const asked = pools.map((pool) => this.#queriesFor(pool, tag))
    // The header of the latest block shows whether the node is building a pending block on it.
    const headers = tag === 'pending' ? [headerOf(tag), headerOf('latest')] : [headerOf(tag)]
    const batch = [...headers, ...asked.flatMap(({ queries }) => queries.map(([, request]) => request)), headerOf(tag)]
    const answers = await this.#options.requestBatch(batch, signal).catch((failure: unknown) => {
      signal.throwIfAborted()
      if (failure instanceof UpstreamError) return failure
      throw failure
    })
    if (answers instanceof UpstreamError) return { readings: unreadable(pools, answers.message), next: 'repeat' }
    const [first, last] = [readHeader(answers[0]), readHeader(answers[batch.length - 1])]
    const latest = readHeader(answers[headers.length - 1])
    const block = first && isSealed(latest) ? blockOf(first, latest) : null
    if (tag === 'pending' && !block && (first || isNone(answers[0])))
      return { readings: unreadable(pools, 'no block is being built'), next: 'latest' }
    let from = headers.length
    const read = asked.map(({ pool, way, queries }): [Pool, PoolAnswer] => {
      const entries = queries.map(([name], index) => [name, answers[from + index]])
      from += queries.length
      return [pool, this.#readPool(pool, way, Object.fromEntries(entries))]
    })
    if (!block) return { readings: unreadable(pools, 'the block has no header'), next: 'repeat' }
    if (!first || !last || !isSameBlock(first, last))
      return { readings: unreadable(pools, 'the block changed during the read'), next: 'repeat' }
    const kinds = new Set(read.map(([, { kind }]) => kind))
    const next = kinds.has('refused') ? 'way' : kinds.has('failed') ? 'repeat' : null
    return { readings: { block, pools: new Map(read.map(([pool, answer]) => [pool, asReading(answer)])) }, next }
  }

  #queriesFor(pool: Pool, tag: Tag) {
    const { facts, storageUntil } = this.#memoryOf(pool)
    const way: ReadingWay = this.#options.clock.now() < storageUntil ? 'storage' : 'call'
    return { pool, way, queries: Object.entries(poolQueries(pool, way, facts, tag)) }
  }

  /** Reads the answers about one pool, and remembers its properties that need no further request. */
  #readPool(pool: Pool, way: ReadingWay, answers: QueryAnswers): PoolAnswer {
    const memory = this.#memoryOf(pool)
    const { answer, facts } = readPoolAnswers(pool, way, memory.facts, answers)
    memory.facts = facts
    // The storage does not tell the tokens of a Uniswap v3 pool.
    const areUnknown = way === 'storage' && pool.kind !== 'uniswap_v4' && !facts.areTokensRight
    if (answer.kind === 'read' && areUnknown) return { ...answer, tokens: memory.areCallsRefused ? 'refused' : 'unread' }
    if (answer.kind !== 'refused') return answer
    if (way === 'storage' || pool.kind === 'slipstream') return { ...answer, kind: 'unreadable' }
    memory.storageUntil = this.#options.clock.now() + STORAGE_MS
    memory.areCallsRefused = answer.isRefused === true
    return answer
  }

  #memoryOf(pool: Pool): PoolMemory {
    return getOrAdd(this.#memories, pool, () => ({
      facts: { areTokensRight: false, feeBps: null },
      storageUntil: Number.NEGATIVE_INFINITY,
      areCallsRefused: false,
    }))
  }
}

export function unreadable(pools: readonly Pool[], reason: string): PoolReadings {
  return { block: null, pools: new Map(pools.map((pool) => [pool, { kind: 'unreadable', reason }])) }
}

const asReading = (answer: PoolAnswer): PoolReading => (answer.kind === 'read' ? answer : { ...answer, kind: 'unreadable' })

/** Whether the node has no such block, or refuses to show it. */
const isNone = (answer: BatchAnswer | undefined): boolean =>
  answer !== undefined && (answer.ok ? answer.result === null : answer.error.isRefused)

const readHeader = (answer: BatchAnswer | undefined): Header | null =>
  answer?.ok ? (Header.safeParse(answer.result).data ?? null) : null

const isSameBlock = (a: Header, b: Header): boolean => a.number === b.number && a.hash === b.hash && a.parentHash === b.parentHash

const headerOf = (tag: Tag): BatchRequest => ({ method: 'eth_getBlockByNumber', params: [tag, false] })

/** Returns the block of a header; null if it is neither the latest block nor built on the latest one. */
function blockOf({ number, hash, parentHash, timestamp }: Header, latest: SealedHeader): ReadingBlock | null {
  // Some nodes answer `pending` with the latest block.
  if (hash === latest.hash) return { number: latest.number, hash, timestamp }
  const isBeingBuilt = number === null ? parentHash === latest.hash : number > latest.number
  return isBeingBuilt ? { number: number ?? latest.number + 1, hash: null, timestamp } : null
}
