import type { Round } from '../../../../src/relay/tokens/nav-history.ts'
import { NOON } from './stock-records.ts'

type NavValue = { readonly price: string | null; readonly updatedAt: number | null }

/** An event for a token's NAV, or for the relay that stores it. */
export type NavAction =
  | { readonly kind: 'list'; readonly reading: NavValue }
  | { readonly kind: 'round'; readonly round: Round }
  | { readonly kind: 'settle'; readonly block: number; readonly sealed: readonly Round[] }
  | { readonly kind: 'clock'; readonly now: number }
  | { readonly kind: 'restart' }

export const STALE_MS = 360_000
const AHEAD_MS = 120_000

/** Whether a reading is a valid price, decided in another way than in the relay. */
export const isValidReading = ({ price, updatedAt }: NavValue, now: number) =>
  Number(price) > 0 && Number.isFinite(Number(price)) && updatedAt !== null && updatedAt <= now + AHEAD_MS

export const navStateOf = (reading: NavValue, now: number) => {
  if (reading.price === null) return 'missing'
  if (!isValidReading(reading, now)) return 'invalid'
  return now - (reading.updatedAt ?? 0) > STALE_MS ? 'stale' : 'fresh'
}

const byTime = (a: NavValue, b: NavValue) => (a.updatedAt ?? 0) - (b.updatedAt ?? 0)
const originRanking = ['pending call', 'pending log', 'sealed call', 'sealed log']
const originOf = ({ sealed, key }: Round) => `${sealed ? 'sealed' : 'pending'} ${key === null ? 'call' : 'log'}`
const sortKeyOf = (feedRound: Round) => {
  const { phase, round, position } = feedRound
  return [phase, Number(round), originRanking.indexOf(originOf(feedRound)), position?.block ?? 0, position?.logIndex ?? 0]
}
const byOrder = (a: Round, b: Round) => {
  const [left, right] = [sortKeyOf(a), sortKeyOf(b)]
  const differing = left.findIndex((part, index) => part !== right[index])
  return differing < 0 ? 0 : (left[differing] ?? 0) - (right[differing] ?? 0)
}

/** A simple model: it keeps everything unsorted, and sorts on every read. */
export class NaiveNavHistory {
  now = NOON
  prices: NavValue[] = []
  invalidReading: NavValue | null = null
  feed: Round[] = []

  apply(action: NavAction): void {
    if (action.kind === 'clock') this.now = action.now
    if (action.kind === 'list') this.#applyReading(action.reading)
    if (action.kind === 'round') this.#applyRound(action.round)
    if (action.kind !== 'settle') return
    this.#removeRounds(({ position, key }) => position?.block === action.block && action.sealed.every((round) => round.key !== key))
    for (const round of action.sealed) this.#applyRound({ ...round, sealed: true })
  }

  #applyReading(reading: NavValue): void {
    if (this.invalidReading && isValidReading(this.invalidReading, this.now)) this.prices.push(this.invalidReading)
    this.invalidReading = null
    this.prices = this.prices.filter((known) => isValidReading(known, this.now))
    const newest = Math.max(...this.prices.map(({ updatedAt }) => updatedAt ?? 0))
    if (isValidReading(reading, this.now)) {
      this.prices = [...this.prices.filter(({ updatedAt }) => updatedAt !== reading.updatedAt), reading]
    } else if (reading.updatedAt === null || reading.updatedAt >= newest) this.invalidReading = reading
  }

  #applyRound(round: Round): void {
    const id = ({ key, phase, round: nth }: Round) => key ?? `${phase}/${nth}`
    const index = this.feed.findIndex((known) => id(known) === id(round))
    if (index < 0) this.feed.push(round)
    else if (round.sealed || !this.feed[index]?.sealed) this.feed[index] = round
  }

  #removeRounds(isRemoved: (round: Round) => boolean): void {
    const removed = this.feed.filter((known) => known.key !== null && isRemoved(known))
    const numbers = removed.map(({ phase, round }) => `${phase}/${round}`)
    this.feed = this.feed.filter(
      (known) => !removed.includes(known) && (known.key !== null || !numbers.includes(`${known.phase}/${known.round}`)),
    )
  }

  #listReadings(now: number): NavValue[] {
    const all = [...this.prices.toSorted(byTime), ...(this.invalidReading ? [this.invalidReading] : [])]
    return this.feed.length > 0 ? all.filter((listed) => isValidReading(listed, now)) : all
  }

  /** The last report of each round, in order, without those that are older than an earlier round. */
  #countedRounds(): Round[] {
    const lastReports = new Map(this.feed.toSorted(byOrder).map((round) => [`${round.phase}/${round.round}`, round]))
    const placeOf = ({ position }: Round) => (position ? position.block * 1_000 + position.logIndex : null)
    const isRetired = (earlier: Round, round: Round) =>
      earlier.phase < round.phase && (placeOf(earlier) ?? -1) >= (placeOf(round) ?? Number.POSITIVE_INFINITY)
    return [...lastReports.values()].filter((round, index, rounds) => {
      const known = rounds.slice(0, index).filter((earlier) => !isRetired(earlier, round))
      const times = known.map(({ updatedAt }) => updatedAt ?? 0).filter((time) => time <= this.now + AHEAD_MS)
      return round.updatedAt === null || round.updatedAt >= Math.max(...times)
    })
  }

  current() {
    const round = this.#countedRounds().at(-1)
    const listed = this.#listReadings(this.now).at(-1) ?? { price: null, updatedAt: null }
    const isNewTime = this.feed.every(({ updatedAt }) => updatedAt !== listed.updatedAt)
    const isListNewer = round?.updatedAt != null && (listed.updatedAt ?? 0) > round.updatedAt && isNewTime
    if (!round || isListNewer) return { reading: listed, source: 'list' }
    return { reading: { price: round.price, updatedAt: round.updatedAt }, source: 'log' }
  }

  currentAt(time: number): NavValue {
    const known = [...this.#listReadings(time), ...this.feed.toSorted(byOrder)]
    const past = known.filter(({ updatedAt }) => updatedAt !== null && updatedAt <= time)
    const { price, updatedAt } = past.toSorted(byTime).at(-1) ?? { price: null, updatedAt: null }
    return { price, updatedAt }
  }
}
