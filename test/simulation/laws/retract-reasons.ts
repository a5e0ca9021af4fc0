import type { Update } from '../../../src/protocol/updates.ts'
import { type Reading, readingsOf } from './expected-logs.ts'
import type { Life, Lives } from './key-lifecycles.ts'
import type { Scene } from './law.ts'

type Retract = Extract<Update, { type: 'retract' }>
type Amend = Extract<Update, { type: 'amend' }>

/** Whether a retraction gives the right reason, and an amendment should not have been a retraction. */
export class Reasons {
  readonly #scene: Scene
  readonly #lives: Lives
  /** Retractions of the block at hand that named no other key, and the keys that they could have named. */
  #nameless: { readonly id: string; readonly key: string; readonly others: readonly string[] }[] = []
  #named = new Set<string>()

  constructor(scene: Scene, lives: Lives) {
    this.#scene = scene
    this.#lives = lives
  }

  /** `life` as it was before it ended. */
  retracted({ id, key, reason, by, block }: Retract, life: Life): void {
    const { broken, chain } = this.#scene
    if (reason === 'replaced') {
      this.#named.add(by ?? '')
      const [number = ''] = (by ?? '').split('-')
      const places =
        chain.numbers.get(Number(number))?.flatMap(({ logs }) => readingsOf(logs).get(by ?? '') ?? []) ?? []
      const found = places.some((read) => this.#same(read, life))
      if (!found || by === key) broken('I4', `${id} ${key} is replaced by ${by}, which does not hold its content`)
      return
    }
    if (by !== null) broken('I4', `${id} ${key}: ${reason} by ${by}`)
    const expected = life.hash === null ? 'not_sealed' : 'reorg'
    if (reason !== expected) broken('I4', `${id} ${key} is retracted as ${reason}, not ${expected}`)
    const here = this.#placesIn(block.hash, life).filter((other) => !this.#holds(other, life))
    const elsewhere = [...this.#lives.all.values()].filter(
      (other) => other.tx === life.tx && other.number !== life.number && this.#stands(other, life.saying),
    )
    this.#nameless.push({ id, key, others: [...here, ...elsewhere.map((other) => other.key)] })
  }

  /** Only what is nowhere else in the transaction is amended. */
  amended({ id, key, update }: Amend): void {
    const { broken } = this.#scene
    const life = this.#lives.all.get(key)
    if (!life || update.stage !== 'sealed') return
    // What still stands under its own key has not moved, whatever else says the same: only what follows from it changed.
    const own = readingsOf(this.#lives.blockOf(update.block?.hash ?? null)?.logs ?? []).get(key)
    if (own && this.#same(own, life)) return
    // Where it stood twice, one of the two may have moved there.
    const [other] = this.#placesIn(update.block?.hash ?? null, life).filter(
      (one) => !this.#holds(one, life) && !this.#named.has(one),
    )
    if (other) broken('I4', `${id} amends ${key} though its content is now ${other}`)
  }

  /** A block is told whole: whoever named no key found none, or each was named by another already. */
  settled(): void {
    const { broken } = this.#scene
    for (const { id, key, others } of this.#nameless) {
      const free = others.find((other) => !this.#named.has(other))
      if (free) broken('I4', `${id} ${key} is not told as replaced by ${free}`)
    }
    this.#nameless = []
    this.#named = new Set()
  }

  #same({ log, saying, isPart }: Reading, life: Life): boolean {
    return !isPart && log.tx === life.tx && saying === life.saying
  }

  /** Other keys of a block under which the same content of the same transaction is sealed. */
  #placesIn(hash: string | null, life: Life): readonly string[] {
    const logs = this.#lives.blockOf(hash)?.logs ?? []
    const others = [...readingsOf(logs)].filter(([key, read]) => key !== life.key && this.#same(read, life))
    return others.map(([key]) => key)
  }

  /** Whether a key was told with this very content by itself: it has not moved there. */
  #holds(key: string, { saying }: Life): boolean {
    const other = this.#lives.all.get(key)
    return other !== undefined && other.state !== 'retracted' && other.saying === saying
  }

  #stands(other: Life, saying: string): boolean {
    return other.state === 'sealed' && other.hash !== null && other.saying === saying
  }
}
