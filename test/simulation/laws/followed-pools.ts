import type { Entry } from '../../../src/relay/tape/tape.ts'
import type { PlacedLog } from '../placed-logs.ts'
import { poolAt, type SimulatedPool } from '../simulated-pools.ts'
import type { Law, LawContext } from './law.ts'
import type { ListedTokens } from './listed-tokens.ts'
import { swapOf } from './swaps.ts'

/** I24: which pools the tape says are followed, since which block, and whether that is right. */
export class FollowedPools implements Law {
  readonly #context: LawContext
  readonly #tokens: ListedTokens
  /** The first block from which each pool is followed. */
  readonly #from = new Map<string, number>()

  constructor(context: LawContext, tokens: ListedTokens) {
    this.#context = context
    this.#tokens = tokens
  }

  /** Whether the tape must contain a trade for this log of a pool. */
  isExpected(log: PlacedLog): boolean {
    const from = this.#from.get(log.content.address)
    return from !== undefined && log.block >= from && swapOf(log) !== null
  }

  onBatch(entries: readonly Entry[]): void {
    const { violation, settings, namedPools } = this.#context
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
        continue
      }
      if (!isFollowed && reason !== 'wrong_tokens') violation('I24', `${id} drops ${venue.pool}, which was not followed`)
      const reasons: Readonly<Record<string, boolean | undefined>> = {
        settings: !namedPools().some((named) => named === pool),
        delisted: !this.#tokens.isListed(address),
        wrong_tokens: pool?.tradesOthers,
      }
      if (!reasons[reason ?? '']) violation('I24', `${id} drops ${venue.pool} because of ${reason}`)
      this.#from.delete(venue.pool)
    }
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
