import type { Nav } from '../../../src/protocol/fields.ts'
import type { Entry } from '../../../src/tape/tape.ts'
import type { ServedRecord } from '../simulated-list.ts'
import type { Law, Scene } from './law.ts'
import { isFact, isMovement } from './published-facts.ts'

const AHEAD_BOUND_MS = 120_000
/** A list that was read is told by then, and a NAV that grew old at the next refresh. */
const TELL_BOUND_MS = 20_000

/** What a served record's NAV is worth at a time, worked out once more by other means. */
function navOf(record: ServedRecord, now: number, staleMs: number): Nav {
  const { nav_price: price, nav_price_updated_at: time } = record
  const bound_s = Math.floor(staleMs / 1_000)
  if (price === undefined) return { price: null, updated_at: null, age_s: null, state: 'missing', bound_s }
  const updatedAt = typeof time === 'string' ? Date.parse(time) : Number.NaN
  const updated_at = Number.isNaN(updatedAt) ? null : new Date(updatedAt).toISOString()
  const ageMs = now - updatedAt
  const readable = updated_at !== null && ageMs >= -AHEAD_BOUND_MS
  const age_s = readable ? Math.max(0, Math.floor(ageMs / 1_000)) : null
  const valid = readable && typeof price === 'number' && price > 0
  if (!valid) return { price: null, updated_at, age_s, state: 'invalid', bound_s }
  return { price: String(price), updated_at, age_s, state: ageMs > staleMs ? 'stale' : 'fresh', bound_s }
}

const worth = ({ price, updated_at, state }: Nav): string => `${price} ${updated_at} ${state}`

/** I10: every NAV is one that the list served, valued at the time of its message; `was` is what was told before. */
export class Navs implements Law {
  readonly #scene: Scene
  readonly #told = new Map<string, Nav>()

  constructor(scene: Scene) {
    this.#scene = scene
  }

  turn(entries: readonly Entry[]): void {
    const { broken } = this.#scene
    for (const { update } of entries) {
      const { id, type, address } = update
      if (type === 'nav') {
        this.#check(update.nav, update)
        const before = this.#told.get(address)
        if (
          (update.was === null) !== (before === undefined) ||
          (before && update.was && worth(before) !== worth(update.was))
        )
          broken('I10', `${id}: was ${update.was && worth(update.was)}, not ${before && worth(before)}`)
        if (before && worth(before) === worth(update.nav)) broken('I10', `${id} tells the same NAV again`)
        const held = before?.state === 'fresh' || before?.state === 'stale' ? (before.updated_at ?? '') : ''
        if (update.nav.updated_at !== null && update.nav.updated_at < held)
          broken('I10', `${id} goes back from ${held} to ${update.nav.updated_at}`)
        this.#told.set(address, update.nav)
      } else if (isFact(update) && isMovement(update)) {
        // What is caught up may be older than any NAV that is known.
        const unknown = update.ingest.source === 'backfill' && update.nav.state === 'missing'
        if (!unknown) this.#check(update.nav, update)
      } else if (type === 'token' && update.change === 'delisted') this.#told.delete(address)
    }
  }

  /** What was told last is what the list says, or is about to be. */
  end(recovered: boolean): void {
    const { broken, clock, list, settings } = this.#scene
    if (!recovered) return
    const since = clock.now() - TELL_BOUND_MS
    for (const [address, told] of this.#told) {
      const recent = list.served.filter(({ at }) => at >= since).flatMap(({ records }) => records)
      const served = recent.filter((record) => record.contract_address === address)
      const times = [clock.now(), since]
      const ok = served.some((record) =>
        times.some((time) => worth(navOf(record, time, settings.staleMs)) === worth(told)),
      )
      if (served.length > 0 && !ok) broken('I10', `${address}: the NAV told last is ${worth(told)}`)
    }
  }

  #check(nav: Nav, { id, address, time }: { id: string; address: string | null; time: string }): void {
    const { broken, list, settings } = this.#scene
    const now = Date.parse(time)
    const same = (one: Nav) => worth(one) === worth(nav) && one.age_s === nav.age_s && one.bound_s === nav.bound_s
    for (let nth = list.served.length - 1; nth >= 0; nth -= 1) {
      const record = list.served[nth]?.records.find((one) => one.contract_address === address)
      if (record && same(navOf(record, now, settings.staleMs))) return
    }
    broken('I10', `${id}: nobody served ${JSON.stringify(nav)} for ${address}`)
  }
}
