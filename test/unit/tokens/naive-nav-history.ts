import type { Round } from '../../../src/tokens/nav-history.ts'
import { NOON } from './stock-records.ts'

type Reading = { readonly price: string | null; readonly updatedAt: number | null }

/** What happens to a token's NAV, and to the relay that keeps it. */
export type Deed =
  | { readonly kind: 'list'; readonly reading: Reading }
  | { readonly kind: 'round'; readonly round: Round }
  | { readonly kind: 'takeBack'; readonly keys: readonly string[] }
  | { readonly kind: 'settle'; readonly block: number; readonly sealed: readonly Round[] }
  | { readonly kind: 'clock'; readonly now: number }
  | { readonly kind: 'restart' }

export const STALE_MS = 360_000
const AHEAD_MS = 120_000

/** What a number is worth, asked in another way than the relay asks. */
export const isGood = ({ price, updatedAt }: Reading, now: number) =>
  Number(price) > 0 && Number.isFinite(Number(price)) && updatedAt !== null && updatedAt <= now + AHEAD_MS

export const stateOf = (reading: Reading, now: number) => {
  if (reading.price === null) return 'missing'
  if (!isGood(reading, now)) return 'invalid'
  return now - (reading.updatedAt ?? 0) > STALE_MS ? 'stale' : 'fresh'
}

const byTime = (a: Reading, b: Reading) => (a.updatedAt ?? 0) - (b.updatedAt ?? 0)
const witnesses = ['pending call', 'pending log', 'sealed call', 'sealed log']
const witnessOf = ({ sealed, key }: Round) => `${sealed ? 'sealed' : 'pending'} ${key === null ? 'call' : 'log'}`
const ordersOf = (one: Round) => {
  const { phase, round, at } = one
  return [phase, Number(round), witnesses.indexOf(witnessOf(one)), at?.block ?? 0, at?.logIndex ?? 0]
}
const byOrder = (a: Round, b: Round) => {
  const [left, right] = [ordersOf(a), ordersOf(b)]
  const differing = left.findIndex((part, index) => part !== right[index])
  return differing < 0 ? 0 : (left[differing] ?? 0) - (right[differing] ?? 0)
}

/** Everything known, in no order; sorted whenever it is asked. */
export class Naive {
  now = NOON
  prices: Reading[] = []
  lastWord: Reading | null = null
  feed: Round[] = []

  take(deed: Deed): void {
    if (deed.kind === 'clock') this.now = deed.now
    if (deed.kind === 'list') this.#listed(deed.reading)
    if (deed.kind === 'round') this.#said(deed.round)
    if (deed.kind === 'takeBack') this.#lost(({ key }) => deed.keys.some((gone) => gone === key))
    if (deed.kind !== 'settle') return
    this.#lost(({ at, key }) => at?.block === deed.block && deed.sealed.every((one) => one.key !== key))
    for (const one of deed.sealed) this.#said({ ...one, sealed: true })
  }

  #listed(reading: Reading): void {
    if (this.lastWord && isGood(this.lastWord, this.now)) this.prices.push(this.lastWord)
    this.lastWord = null
    this.prices = this.prices.filter((one) => isGood(one, this.now))
    const newest = Math.max(...this.prices.map(({ updatedAt }) => updatedAt ?? 0))
    if (isGood(reading, this.now)) {
      this.prices = [...this.prices.filter(({ updatedAt }) => updatedAt !== reading.updatedAt), reading]
    } else if (reading.updatedAt === null || reading.updatedAt >= newest) this.lastWord = reading
  }

  #said(round: Round): void {
    const id = ({ key, phase, round: nth }: Round) => key ?? `${phase}/${nth}`
    const index = this.feed.findIndex((one) => id(one) === id(round))
    if (index < 0) this.feed.push(round)
    else if (round.sealed || !this.feed[index]?.sealed) this.feed[index] = round
  }

  #lost(isLost: (round: Round) => boolean): void {
    const lost = this.feed.filter((one) => one.key !== null && isLost(one))
    const numbers = lost.map(({ phase, round }) => `${phase}/${round}`)
    this.feed = this.feed.filter(
      (one) => !lost.includes(one) && (one.key !== null || !numbers.includes(`${one.phase}/${one.round}`)),
    )
  }

  #heard(now: number): Reading[] {
    const all = [...this.prices.toSorted(byTime), ...(this.lastWord ? [this.lastWord] : [])]
    return this.feed.length > 0 ? all.filter((one) => isGood(one, now)) : all
  }

  held() {
    const round = this.feed.toSorted(byOrder).at(-1)
    const listed = this.#heard(this.now).at(-1) ?? { price: null, updatedAt: null }
    const isNews = this.feed.every(({ updatedAt }) => updatedAt !== listed.updatedAt)
    const newer = round?.updatedAt != null && (listed.updatedAt ?? 0) > round.updatedAt && isNews
    if (!round || newer) return { reading: listed, source: 'list', missed: newer }
    return { reading: { price: round.price, updatedAt: round.updatedAt }, source: 'log', missed: false }
  }

  heldAt(madeAt: number): Reading {
    const known = [...this.#heard(madeAt), ...this.feed.toSorted(byOrder)]
    const past = known.filter(({ updatedAt }) => updatedAt !== null && updatedAt <= madeAt)
    const { price, updatedAt } = past.toSorted(byTime).at(-1) ?? { price: null, updatedAt: null }
    return { price, updatedAt }
  }
}
