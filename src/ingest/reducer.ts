import type { OpenKeys } from '../chain/sealed/block-logs.ts'
import type { Cursor } from '../chain/sealed/recent-blocks.ts'
import type { ChainEvent } from '../chain/source/source.ts'
import type { Head } from '../protocol/fields.ts'
import type { Draft, DraftOf } from '../protocol/updates.ts'
import { headNote, newestSealedNote, type SealedBlockTime, type SourceStatusNote, statusNote } from '../tape/notes.ts'
import type { TokenContractState } from '../tokens/apply-call.ts'
import type { TokenTable } from '../tokens/list-diff.ts'
import type { FeedContractState, PriceFeed } from '../tokens/price-feeds.ts'
import { IngestContext, type IngestOptions } from './context.ts'
import type { Ledger } from './ledger.ts'
import type { BatchOutput } from './outbox.ts'
import type { ReceivedLog } from './pending-logs.ts'
import { PreconfirmedHandler } from './preconfirmed.ts'
import { cursorOf, restartPointNote, restoreLedger } from './restore.ts'
import { blockFieldOf, settleBlock } from './settle-block.ts'
import type { ListEvent } from './token-state.ts'

/** The answer of a token or feed contract. */
export type TokenOrFeedAnswer = ({ readonly type: 'token' } & TokenContractState) | ({ readonly type: 'feed' } & FeedContractState)

/** An event of the pipeline. */
export type IngestEvent =
  | Exclude<ChainEvent, { type: 'log' }>
  /** Pre-confirmed logs of one transaction that arrived together. */
  | { readonly type: 'transaction'; readonly logs: readonly ReceivedLog[] }
  | TokenOrFeedAnswer
  | ({ readonly type: 'list' } & ListEvent)

const unknownHead: Head = { pending: null, sealed: null, safe: null, finalized: null }

/** Turns events into updates and notes. Its state survives a restart. */
export class Reducer {
  readonly #options: IngestOptions
  readonly #context: IngestContext
  readonly #preconfirmed: PreconfirmedHandler
  #head: Head
  #newestSealed: SealedBlockTime | null
  #status: SourceStatusNote | null

  private constructor(options: IngestOptions, ledger: Ledger) {
    const { tape } = options
    this.#options = options
    this.#head = tape.note(headNote) ?? unknownHead
    this.#newestSealed = tape.note(newestSealedNote) ?? null
    this.#status = tape.note(statusNote) ?? null
    this.#context = new IngestContext(options, ledger, this.#head, this.cursor?.number ?? null)
    this.#preconfirmed = new PreconfirmedHandler(this.#context)
  }

  /** Restores the state from the tape: published keys, open keys, tokens and heads. */
  static async restore(options: IngestOptions): Promise<Reducer> {
    return new Reducer(options, await restoreLedger(options.tape))
  }

  /** The sealed block up to which all were settled when the tape was last written. */
  get cursor(): Cursor | null {
    return cursorOf(this.#options.tape.note(restartPointNote))
  }

  get head(): Head {
    return this.#head
  }

  get tokens(): TokenTable {
    return this.#context.tokenState.tokens
  }

  /** The feeds with their known aggregators. */
  get feeds(): readonly PriceFeed[] {
    return this.#context.tokenState.feeds
  }

  get ledger(): Ledger {
    return this.#context.ledger
  }

  /** Open keys and unsealed feed rounds. */
  get openKeys(): OpenKeys {
    const { ledger, tokenState } = this.#context
    return {
      at: (block) => [...ledger.at(block), ...tokenState.openRoundsAt(block)],
      publishedBlocksBetween: (from, to) => ledger.publishedBlocksBetween(from, to),
      sealedInPreviousRun: ledger.sealedInPreviousRun,
    }
  }

  reduce(batch: readonly IngestEvent[]): BatchOutput {
    for (const event of batch) this.#apply(event)
    return this.#context.outbox.take()
  }

  #apply(event: IngestEvent): void {
    const { tokenState, ledger } = this.#context
    switch (event.type) {
      case 'transaction':
        if (this.#preconfirmed.publish(event.logs)) this.#raiseHead({ pending: event.logs[0]?.log.blockNumber ?? null })
        return
      case 'list':
        return tokenState.applyList(event)
      case 'token':
        if (tokenState.applyTokenAnswer(event)) this.#context.correctMultipliers(event.address, () => true)
        return
      case 'feed':
        return tokenState.applyFeedAnswer(event)
      case 'subscribed':
        return tokenState.markSubscribed(event.addresses)
      case 'head':
        this.#context.observeBlockTime({ ...event, number: event.pending ?? event.sealed ?? 0 })
        this.#noteNewestSealed(event.sealed, event.timestamp)
        return this.#raiseHead(event)
      case 'cursor':
        ledger.setSettled(event.cursor.number)
        return this.#noteRestartPoint(event.cursor)
      case 'sealed':
        return this.#applySealed(event)
      case 'finality':
        return this.#applyFinality(event)
      case 'status':
        return this.#applyStatus(event)
      case 'hole':
        tokenState.markHole(event.blocks.to)
        this.#broadcast({ type: 'hole', blocks: { first: event.blocks.from, last: event.blocks.to }, reason: event.reason })
        return this.#noteRestartPoint(event.cursor)
      case 'reorg':
        // Until the block is settled again, its published facts stand.
        return
      case 'unreadable':
        return this.#context.count.unreadable(event.count)
    }
  }

  #applySealed({ blocks, newest, cursor }: Extract<IngestEvent, { type: 'sealed' }>): void {
    const { ledger, tokenState } = this.#context
    const isPreconfirming = this.#status?.source === 'pendingLogs' || this.#status?.source === 'poll'
    ledger.setSettled(newest, Math.min(cursor.number, blocks[0]?.number ?? newest))
    for (const block of blocks) {
      const settlesAllBefore = block.number <= cursor.number
      settleBlock(this.#context, block, { late: isPreconfirming || block.via === 'backfill', newest, settlesAllBefore })
    }
    this.#preconfirmed.forgetSettled(newest)
    tokenState.advancePosition({ block: newest, logIndex: Number.MAX_SAFE_INTEGER })
    this.#noteRestartPoint(cursor)
  }

  #raiseHead({ sealed = null, pending = null, safe = null, finalized = null }: Partial<Head>): void {
    const highestSealed = higher(this.#head.sealed, sealed)
    const highestPending = higher(this.#head.pending, pending)
    const head = {
      // A sealed block is not pending any more, and the next pending number is not known yet.
      pending: highestPending !== null && highestSealed !== null && highestPending <= highestSealed ? null : highestPending,
      sealed: highestSealed,
      safe: higher(this.#head.safe, safe),
      finalized: higher(this.#head.finalized, finalized),
    }
    if (Object.entries(head).every(([name, number]) => this.#head[name as keyof Head] === number)) return
    this.#head = head
    this.#context.outbox.setNote(headNote, head)
  }

  /** The status page reports the lag behind this block's time. */
  #noteNewestSealed(number: number | null, timestamp: number | null): void {
    if (number === null || timestamp === null || number <= (this.#newestSealed?.number ?? -1)) return
    this.#newestSealed = { number, timestamp }
    this.#context.outbox.setNote(newestSealedNote, this.#newestSealed)
  }

  #applyFinality({ stage, block }: Extract<IngestEvent, { type: 'finality' }>): void {
    if (stage === 'safe') this.#context.ledger.setSafe(block.number)
    this.#noteNewestSealed(block.number, block.timestamp)
    this.#raiseHead({ [stage]: block.number, sealed: block.number })
    this.#broadcast({ type: 'finality', stage, block: blockFieldOf(block) })
  }

  #noteRestartPoint({ number, hash }: Cursor): void {
    this.#context.advanceSettled(number)
    const seq = this.#context.ledger.restartSeq(this.#context.tapeEnd)
    this.#context.outbox.setNote(restartPointNote, { block: number, hash, seq })
  }

  #applyStatus({ source, reason }: Pick<SourceStatusNote, 'source' | 'reason'>): void {
    if (this.#status?.source === source && this.#status.reason === reason) return
    this.#status = { source, reason, since: this.#context.nowIso }
    this.#context.outbox.setNote(statusNote, this.#status)
    this.#broadcast({ type: 'status', source, since: this.#status.since, reason, head: this.#head })
  }

  /** Publishes an update that concerns all tokens. */
  #broadcast(draft: BroadcastDraft): void {
    const { type, ...rest } = draft
    this.#context.outbox.publish({ type, symbol: '*', address: null, time: this.#context.nowIso, ...rest } as Draft)
  }
}

type BroadcastDraft = {
  [Type in 'status' | 'hole' | 'finality']: Omit<DraftOf<Type>, 'symbol' | 'address' | 'time'>
}['status' | 'hole' | 'finality']

const higher = (before: number | null, now: number | null): number | null =>
  before === null || (now !== null && now > before) ? now : before
