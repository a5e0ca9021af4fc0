import type { Nav } from '../../../src/protocol/fields.ts'
import type { Entry } from '../../../src/relay/tape/tape.ts'
import { FEED_TOKEN, roundsOf } from '../simulated-feed.ts'
import type { ServedRecord } from '../simulated-list.ts'
import type { Law, LawContext } from './law.ts'
import { isFact, isValued } from './published-facts.ts'

const AHEAD_BOUND_MS = 120_000
/** By then the relay has published a list that it read, and a NAV that became stale at the next refresh. */
const PUBLISH_TIMEOUT_MS = 20_000

/** The NAV of a served record at a time, computed independently of the relay. */
function navOf(record: ServedRecord, now: number, staleMs: number): Nav {
  const { nav_price: price, nav_price_updated_at: time } = record
  const stale_after_s = Math.floor(staleMs / 1_000)
  if (price === undefined) return { price: null, updated_at: null, age_s: null, state: 'missing', stale_after_s, frozen: null }
  const updatedAt = typeof time === 'string' ? Date.parse(time) : Number.NaN
  const updated_at = Number.isNaN(updatedAt) ? null : new Date(updatedAt).toISOString()
  const ageMs = now - updatedAt
  const readable = updated_at !== null && ageMs >= -AHEAD_BOUND_MS
  const age_s = readable ? Math.max(0, Math.floor(ageMs / 1_000)) : null
  const valid = readable && typeof price === 'number' && price > 0
  if (!valid) return { price: null, updated_at, age_s, state: 'invalid', stale_after_s, frozen: null }
  return { price: String(price), updated_at, age_s, state: ageMs > staleMs ? 'stale' : 'fresh', stale_after_s, frozen: null }
}

/** A reading that was valid is from the future once the clock is set back. */
const isFuture = (updatedAt: string | null, now: string): boolean =>
  updatedAt !== null && Date.parse(updatedAt) - Date.parse(now) > AHEAD_BOUND_MS

const navText = ({ price, updated_at, state }: Nav): string => `${price} ${updated_at} ${state}`

/** I10: the list served every published NAV, and its state fits the message's time; `was` is the previous NAV. */
export class NavValues implements Law {
  readonly #context: LawContext
  readonly #published = new Map<string, Nav>()

  constructor(context: LawContext) {
    this.#context = context
  }

  onBatch(entries: readonly Entry[]): void {
    const { violation, activeFaults } = this.#context
    const hasFeed = activeFaults.occurs('olderRounds')
    for (const { update } of entries) {
      const { id, type, address } = update
      if (type === 'nav') {
        this.#check(update.nav, update)
        const before = this.#published.get(address)
        if (
          (update.before === null) !== (before === undefined) ||
          (before && update.before && navText(before) !== navText(update.before))
        )
          violation('I10', `${id}: was ${update.before && navText(update.before)}, not ${before && navText(before)}`)
        if (before && navText(before) === navText(update.nav)) violation('I10', `${id} publishes the same NAV again`)
        const isHeld = (before?.state === 'fresh' || before?.state === 'stale') && !isFuture(before.updated_at, update.time)
        const held = (isHeld && before?.updated_at) || ''
        // To a clock that was set back all readings are from the future, and none is better than another.
        const isComparable = !activeFaults.isActive('clockStepped') || update.nav.state !== 'invalid'
        const goesBack = update.nav.updated_at !== null && update.nav.updated_at < held
        // A round that is not sealed gives way to the one before it.
        const mayGoBack = address === FEED_TOKEN && hasFeed && activeFaults.occursAt('chain')
        if (isComparable && goesBack && !mayGoBack) violation('I10', `${id} goes back from ${held} to ${update.nav.updated_at}`)
        this.#published.set(address, update.nav)
      } else if (isFact(update) && isValued(update)) {
        const { nav, ingest, block } = update
        const isBackfilled = ingest.source === 'backfill'
        // A backfilled movement may be older than every known NAV, and its NAV is as of its block.
        if (isBackfilled && nav.state === 'missing') continue
        this.#check(nav, isBackfilled && block.timestamp !== null ? { ...update, time: block.timestamp } : update)
      } else if (type === 'token' && update.change === 'delisted') this.#published.delete(address)
    }
  }

  /** The last published NAV is what the list serves, or served a moment ago. */
  onEnd(recovered: boolean): void {
    const { violation, clock, list, settings, activeFaults } = this.#context
    if (!recovered) return
    if (activeFaults.occurs('olderRounds')) this.#published.delete(FEED_TOKEN)
    const since = clock.now() - PUBLISH_TIMEOUT_MS
    for (const [address, published] of this.#published) {
      const recent = list.served.filter(({ at }) => at >= since).flatMap(({ records }) => records)
      const served = recent.filter((record) => record.contract_address === address)
      const times = [clock.now(), since]
      const ok = served.some((record) =>
        times.some((time) => navText(navOf(record, time, settings.staleMs)) === navText(published)),
      )
      if (served.length > 0 && !ok) violation('I10', `${address}: the last published NAV is ${navText(published)}`)
    }
  }

  #isRound(nav: Nav, address: string | null, now: number): boolean {
    const { chain, activeFaults, settings } = this.#context
    if (address !== FEED_TOKEN || !activeFaults.occurs('olderRounds')) return false
    return roundsOf(chain).some(({ price, updatedAt }) => {
      const record = { nav_price: Number(price), nav_price_updated_at: updatedAt } as unknown as ServedRecord
      return navText(navOf(record, now, settings.staleMs)) === navText(nav)
    })
  }

  #check(nav: Nav, { id, address, time }: { id: string; address: string | null; time: string }): void {
    const { violation, list, settings } = this.#context
    const now = Date.parse(time)
    const same = (other: Nav) =>
      navText(other) === navText(nav) && other.age_s === nav.age_s && other.stale_after_s === nav.stale_after_s
    for (let nth = list.served.length - 1; nth >= 0; nth -= 1) {
      const record = list.served[nth]?.records.find((entry) => entry.contract_address === address)
      if (record && same(navOf(record, now, settings.staleMs))) return
    }
    if (this.#isRound(nav, address, now)) return
    violation('I10', `${id}: the list never served ${JSON.stringify(nav)} for ${address}`)
  }
}
