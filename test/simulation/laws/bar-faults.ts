import type { Update } from '../../../src/protocol/updates.ts'
import type { MinuteBar } from '../../../src/relay/tape/bars/bar-row.ts'
import { isOfSecond, poolAt } from '../simulated-pools.ts'
import type { LawContext } from './law.ts'

/** Blocks whose trades the tape may lack. */
type Gap = {
  readonly reason: string
  /** Null for all tokens. */
  readonly token: string | null
  readonly pool: string | null
  readonly first: number
  /** Infinite while a pool is dropped because its manager is refused. */
  readonly last: number
  /** Whether trades are missing, and not only maybe. */
  readonly isCertain: boolean
}

const MINUTE_S = 60
/** By then a relay that starts has settled a block. */
const SETTLE_MS = 10_000

/** The part of I25 about `partial`: why trades of a minute may be missing. */
export class BarFaults {
  readonly #context: LawContext
  readonly #followed = new Set<string>()
  /** Numbers of the blocks with seals. */
  readonly #sealed = new Set<number>()
  #gaps: readonly Gap[] = []

  constructor(context: LawContext) {
    this.#context = context
  }

  apply(update: Update): void {
    if (update.type === 'hole') {
      const { reason, blocks } = update
      // A replaced block that was sealed before says nothing of the time of this hole.
      for (let number = blocks.first; number <= blocks.last; number += 1) this.#sealed.delete(number)
      this.#gaps = [...this.#gaps, { reason, token: null, pool: null, ...blocks, isCertain: true }]
    } else if (update.type === 'seal') this.#sealed.add(update.block.number)
    else if (update.type === 'venue') this.#applyVenue(update)
  }

  #applyVenue({ change, reason, venue: { pool }, address: token, from_block: from }: Extract<Update, { type: 'venue' }>): void {
    const known = poolAt(pool)
    if (known && this.#context.settings.hasSecondary && isOfSecond(known)) return
    const isOpen = (gap: Gap) => gap.pool === pool && gap.last === Number.POSITIVE_INFINITY
    // After a reorganisation the blocks of a gap are read again, for a pool that is followed from before them.
    const ended = (gap: Gap) => ({ ...gap, last: Math.max(gap.first, from - 1), isCertain: gap.isCertain && from > gap.first })
    this.#gaps = this.#gaps.map((gap) => (isOpen(gap) ? ended(gap) : gap))
    const isCertain = this.#followed.has(pool)
    this.#followed[change === 'followed' ? 'add' : 'delete'](pool)
    if (change === 'followed') return
    const last = reason === 'refused' ? Number.POSITIVE_INFINITY : from
    this.#gaps = [...this.#gaps, { reason: reason ?? '', token, pool, first: from, last, isCertain }]
  }

  /** A pool that is refused, and that the settings no longer name, is missed no more once the relay has settled a block. */
  onRelayStart(): void {
    const { chain, namedPools } = this.#context
    const isOver = ({ pool, last }: Gap) => last === Number.POSITIVE_INFINITY && !namedPools().some(({ id }) => id === pool)
    const later = { first: chain.head + 1, last: chain.head + Math.ceil(SETTLE_MS / chain.blockMs), isCertain: false }
    this.#gaps = this.#gaps.flatMap((gap) =>
      isOver(gap)
        ? [
            { ...gap, last: chain.head },
            { ...gap, ...later },
          ]
        : gap,
    )
  }

  /** Checks why a stored minute is partial. */
  check({ address, start, partial }: MinuteBar): void {
    const { violation } = this.#context
    const gaps = this.#gaps.filter(({ token }) => token === null || token === address)
    const certain = gaps.find((gap) => gap.isCertain && this.#isInside(gap, start))
    const possible = gaps.filter((gap) => this.#mayTouch(gap, start)).map(({ reason }) => reason)
    const name = `${address} ${new Date(start * 1_000).toISOString()}`
    if (partial === null && certain) violation('I25', `${name} is not partial in spite of ${JSON.stringify(certain)}`)
    if (partial !== null && !possible.includes(partial)) violation('I25', `${name} is partial by ${partial}, not ${possible}`)
  }

  /** Whether a block of the minute lies in a gap, in one of its versions. */
  isTouched(address: string, minute: number): boolean {
    return this.#gaps.some((gap) => (gap.token === null || gap.token === address) && this.#timesIn(gap, minute).some(Boolean))
  }

  /** Whether a block of the gap has a time in the minute, and never had another. */
  #isInside(gap: Gap, minute: number): boolean {
    return this.#timesIn(gap, minute).includes('all')
  }

  #timesIn({ first, last }: Gap, minute: number): readonly ('all' | 'some' | null)[] {
    const { chain } = this.#context
    const from = Math.max(first, chain.first)
    return Array.from({ length: Math.max(0, Math.min(last, chain.head) - from + 1) }, (_, nth) => {
      const times = chain.blocksByNumber.get(from + nth)?.map(({ timestamp }) => minuteOf(timestamp) === minute) ?? []
      return times.includes(true) ? (times.includes(false) ? 'some' : 'all') : null
    })
  }

  /**
   * Trades may be missing in the minutes of the blocks beside the gap too. The relay does not know the time of each block: a page of
   * old blocks has only those with logs.
   */
  #mayTouch({ first, last }: Gap, minute: number): boolean {
    const below = Math.max(...[...this.#sealed].filter((number) => number < first))
    const above = Math.min(...[...this.#sealed].filter((number) => number > last))
    const from = Math.min(...(this.#context.chain.blocksByNumber.get(below) ?? []).map(({ timestamp }) => timestamp))
    const to = Math.max(...(this.#context.chain.blocksByNumber.get(above) ?? []).map(({ timestamp }) => timestamp))
    return (!Number.isFinite(from) || minuteOf(from) <= minute) && (!Number.isFinite(to) || minute <= minuteOf(to))
  }
}

const minuteOf = (second: number): number => second - (second % MINUTE_S)
