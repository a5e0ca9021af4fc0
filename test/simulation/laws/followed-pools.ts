import type { Update } from '../../../src/protocol/updates.ts'
import type { Entry } from '../../../src/relay/tape/tape.ts'
import type { Fault, FaultKind } from '../fault-table.ts'
import type { PlacedLog } from '../placed-logs.ts'
import { MANAGER, poolAt, poolOf, type SimulatedPool } from '../simulated-pools.ts'
import type { Law, LawContext } from './law.ts'
import type { ListedTokens } from './listed-tokens.ts'
import type { AmendedFact, Fact } from './published-facts.ts'
import { swapOf } from './swaps.ts'

/** How long a manager is refused before the relay gives its pools up, at the least, and when it has done so. */
const REFUSED_LEAST_MS = 8_000
export const REFUSED_MOST_MS = 15_000
/** By then the relay has asked a manager that answers again, and has read the blocks that waited for it. */
const RETURN_MS = 25_000
/** How long it may take to write what the answer of a manager changes. */
const PUBLISH_TIMEOUT_MS = 5_000
const RECOVERY_MS = 60_000
/** Blocks that became canonical within this time before a pool was dropped may have been read without it. */
const SETTLING_MS = 30_000

/** With these a block may have been read long before it is settled. */
const delayingFaults: readonly FaultKind[] = ['slowTape', 'slowAnswers', 'hangingAnswers', 'flaky', 'unreachable', 'rateLimited']

/** A node that refuses the manager of some pools holds up nothing else for long. */
export const hindersAll = ({ target, kind }: Fault): boolean =>
  target !== 'list' && target !== 'clock' && kind !== 'managersRefused'

/** With these a node answers the filter of a manager with an error for some time, the second because a block has too many swaps. */
const refusingFaults: readonly FaultKind[] = ['managersRefused', 'fewResults']

type VenueUpdate = Extract<Update, { type: 'venue' }>

/** Blocks whose swaps the tape has: all from `from` on, until the pool was dropped. */
type ClosedSpan = { readonly from: number; readonly to: number; readonly droppedAt: number }

/** I24: which pools the tape says are followed, since which block, and whether that is right. */
export class FollowedPools implements Law {
  readonly #context: LawContext
  readonly #tokens: ListedTokens
  /** The first block from which each pool is followed. */
  readonly #from = new Map<string, number>()
  /** The pools of a manager that the node refuses, each with the moment when it was dropped (ms since the simulation began). */
  readonly #refused = new Map<string, number>()
  /** When each of them was followed again. */
  readonly #returnedAt = new Map<string, number>()
  readonly #closed = new Map<string, readonly ClosedSpan[]>()
  /** The last message about each pool that is dropped. */
  readonly #dropped = new Map<string, VenueUpdate>()

  constructor(context: LawContext, tokens: ListedTokens) {
    this.#context = context
    this.#tokens = tokens
  }

  /** Whether the tape must contain a trade for this log of a pool. */
  isExpected(log: PlacedLog): boolean {
    const from = this.#from.get(poolOf(log.content)?.id ?? '')
    return from !== undefined && log.block >= from && swapOf(log) !== null
  }

  /** Whether a trade must be on the tape once its block is settled: what was followed until a manager was refused is there too. */
  wasExpected(log: PlacedLog, canonicalFrom: number): boolean {
    const spans = this.#closed.get(poolOf(log.content)?.id ?? '') ?? []
    const isWithin = ({ from, to, droppedAt }: ClosedSpan) =>
      from <= log.block && log.block < to && canonicalFrom < droppedAt - SETTLING_MS
    return this.isExpected(log) || (swapOf(log) !== null && spans.some(isWithin))
  }

  /** Whether pools are dropped because the node refuses their manager. */
  get areRefused(): boolean {
    return this.#refused.size > 0
  }

  /** Whether a published fact may wait for the answer of a manager, although its block is settled. */
  mayWait(fact: AmendedFact): boolean {
    const id = poolIdOf(fact) ?? ''
    const { activeFaults } = this.#context
    const returnedAt = this.#returnedAt.get(id)
    // A pool that was dropped for another reason has open trades too while its manager is refused.
    const isRefused = poolAt(id)?.manager === MANAGER && activeFaults.wasActiveWithin('managersRefused', REFUSED_MOST_MS)
    if (this.#refused.has(id) || (this.#dropped.has(id) && isRefused)) return true
    if (returnedAt === undefined) return false
    // It may be refused again, or their blocks may be gone, before all are read that waited.
    const isReadable = activeFaults.isQuietFor(REFUSED_MOST_MS, ({ target }) => target === 'rpc')
    return !isReadable || returnedAt > this.#now - PUBLISH_TIMEOUT_MS
  }

  /** A block that is read without a manager says nothing of its trades. `what`: the message that seals or retracts one. */
  checkEnd(what: string, fact: AmendedFact): void {
    const { violation, activeFaults, settings } = this.#context
    if (!poolAt(poolIdOf(fact) ?? '')?.manager || settings.othersHealthy) return
    const since = activeFaults.activeSince('managersRefused')
    const isDelayed = delayingFaults.some((kind) => activeFaults.wasActiveWithin(kind, SETTLING_MS))
    if (since !== null && this.#now - since >= REFUSED_LEAST_MS && !isDelayed)
      violation('I24', `${what} ends ${fact.key}, though the node refuses its manager since ${since}`)
  }

  get #now(): number {
    return this.#context.clock.elapsedMs
  }

  onBatch(entries: readonly Entry[]): void {
    const { violation, settings, namedPools, activeFaults } = this.#context
    for (const { update } of entries) {
      if (update.type !== 'venue') continue
      const { id, address, change, venue, from_block, reason } = update
      const pool = poolAt(venue.pool)
      if (!pool || pool.token !== address || pool.kind !== venue.kind) violation('I24', `${id} is about no pool of ${address}`)
      if ((change === 'followed') !== (reason === null)) violation('I24', `${id} is ${change} because of ${reason}`)
      const isFollowed = this.#from.has(venue.pool)
      if (change === 'followed') {
        if (isFollowed) violation('I24', `${id} follows ${venue.pool} again`)
        if (!this.#tokens.isListed(address)) violation('I24', `${id} follows a pool of ${address}, which is not listed`)
        // Where the node answers no calls, the settings are believed.
        if (pool?.tradesOthers && settings.answersCalls) violation('I24', `${id} follows ${venue.pool}, which trades other tokens`)
        this.#from.set(venue.pool, from_block)
        this.#dropped.delete(venue.pool)
        if (this.#refused.delete(venue.pool)) this.#returnedAt.set(venue.pool, this.#now)
        continue
      }
      const before = this.#dropped.get(venue.pool)
      if (before?.reason === reason) this.#dropFromLower(update, before)
      else if (!isFollowed && reason !== 'wrong_tokens') violation('I24', `${id} drops ${venue.pool}, which was not followed`)
      this.#dropped.set(venue.pool, update)
      if (before?.reason === reason) continue
      const reasons: Readonly<Record<string, boolean | undefined>> = {
        settings: !namedPools().some((named) => named === pool),
        delisted: !this.#tokens.isListed(address),
        wrong_tokens: pool?.tradesOthers,
        refused: pool?.manager === MANAGER && refusingFaults.some((kind) => activeFaults.wasActiveWithin(kind, REFUSED_MOST_MS)),
      }
      if (!reasons[reason ?? '']) violation('I24', `${id} drops ${venue.pool} because of ${reason}`)
      this.#drop(update)
    }
  }

  /** Blocks that were settled before a pool was dropped are settled again after a reorganisation, without it. */
  #dropFromLower({ id, venue: { pool }, from_block: to }: VenueUpdate, before: VenueUpdate): void {
    const { violation } = this.#context
    if (to >= before.from_block)
      violation('I24', `${id} drops ${pool} from ${to} on, as ${before.id} did from ${before.from_block}`)
    const spans = this.#closed.get(pool) ?? []
    this.#closed.set(
      pool,
      spans.map((span) => ({ ...span, to: Math.min(span.to, to) })),
    )
  }

  #drop({ venue: { pool: id }, from_block: to, reason }: VenueUpdate): void {
    const from = this.#from.get(id)
    this.#from.delete(id)
    this.#refused.delete(id)
    if (reason !== 'refused') return
    this.#refused.set(id, this.#now)
    if (from !== undefined) this.#closed.set(id, [...(this.#closed.get(id) ?? []), { from, to, droppedAt: this.#now }])
  }

  /** A manager that answers is followed again. */
  onTick(): void {
    const { violation, activeFaults } = this.#context
    const [id] = this.#refused.keys()
    if (id === undefined || activeFaults.wasActiveWithin('managersRefused', RETURN_MS)) return
    // Nor does a token that is not listed have pools.
    const isHindering = ({ target, kind }: Fault) => target !== 'clock' && kind !== 'managersRefused'
    if (activeFaults.isQuietFor(RECOVERY_MS, isHindering)) violation('I24', `${id} stays dropped though its manager answers`)
  }

  onEnd(recovered: boolean): void {
    const { violation, namedPools } = this.#context
    if (!recovered) return
    const isDue = ({ token, tradesOthers }: SimulatedPool) => this.#tokens.isListed(token) && !tradesOthers
    for (const { id } of namedPools().filter(isDue)) if (!this.#from.has(id)) violation('I24', `${id} is not followed at the end`)
    for (const id of this.#from.keys())
      if (!namedPools().some((pool) => pool.id === id)) violation('I24', `${id} is still followed at the end`)
  }
}

/** The pool of a trade; null for another fact. */
function poolIdOf(fact: AmendedFact): string | null {
  const published = fact as Fact
  return published.type === 'trade' ? published.venue.pool : null
}
