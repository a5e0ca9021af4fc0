import type { Hex } from '../../src/protocol/fields.ts'
import { type Block, type Building, type Placed, place } from './simulated-block.ts'
import type { Chain, Mark } from './simulated-chain.ts'

/** The chain as one node shows it at one moment, which may lie in the past. */
export class View {
  readonly #chain: Chain
  readonly #at: number
  readonly #canonAt: number
  readonly #mark: Mark

  /** `at`: what is being built; `canonAt`: what is sealed. A node may follow the one faster than the other. */
  constructor(chain: Chain, at: number, canonAt: number) {
    this.#chain = chain
    this.#at = at
    this.#canonAt = canonAt
    const mark = chain.marks.findLast((one) => one.at <= canonAt) ?? chain.marks[0]
    if (!mark) throw new Error('a chain without blocks')
    this.#mark = mark
  }

  get head(): number {
    return this.#mark.number
  }

  get safe(): number {
    return this.#mark.safe
  }

  get finalized(): number {
    return this.#mark.finalized
  }

  block(number: number): Block | undefined {
    if (number > this.head) return undefined
    return this.#chain.numbers
      .get(number)
      ?.findLast(({ since, until }) => since <= this.#canonAt && this.#canonAt < until)
  }

  byHash(hash: Hex): Block | undefined {
    const block = this.#chain.hashes.get(hash)
    return block && block === this.block(block.number) ? block : undefined
  }

  /** The newest block that is being built, if anything of it is shown. */
  get building(): Building | undefined {
    return this.#shown.at(-1)
  }

  /** Every log that is pre-confirmed: of more than one block where the sealed chain lags behind. */
  get pending(): readonly Placed[] {
    return this.#shown.flatMap((building) => place(building, this.txsOf(building)))
  }

  txsOf({ txs, shownAt }: Building): Building['txs'] {
    const later = shownAt.findIndex((at) => at > this.#at)
    return later < 0 ? txs : txs.slice(0, later)
  }

  get #shown(): readonly Building[] {
    const shown: Building[] = []
    for (let nth = this.#chain.buildings.length - 1; nth >= 0; nth -= 1) {
      const building = this.#chain.buildings[nth]
      if (!building || building.number <= this.head) break
      const begun = building.since <= this.#at && building.lostAt > this.#at
      if (begun && !(building.abandoned && building.until <= this.#at)) shown.unshift(building)
    }
    return shown
  }
}
